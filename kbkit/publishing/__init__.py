"""Publish a knowledge base as a site, and search the published index in Python.

::

    publisher        pages, search index and site of one knowledge base
    facts            what its pages tell beside the documents
    index_content    what its search index is made of
    published_index  searches that index as browsers do
"""
