"""Publish a knowledge base as a site, and search the published index in Python.

::

    publisher        pages, search index and site of one knowledge base
    facts            facts in addition to the documents
    index_content    content of the search index
    published_index  search of that index, as in browsers
"""
