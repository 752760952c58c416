"""Workflows around a workspace, from the draft of a recipe to a site that follows its sources.

::

    gallery           recipes to copy, and the errors of a recipe, found before it is built
    drafts            recipes drafted from a site, a folder or a package
    builder           build a recipe: read, evaluate, export; again while its sources change
    notebook          the notebook of a recipe
    migration         move a workspace to another database
    embedding_models  list, fetch and remove embedding models
"""
