"""Publish a knowledge base as a site, and search the published index in Python.

::

    publisher        pages with their facts, search index and site of one knowledge base
    graph_facts      the published part of the graph
    index_content    content of the search index
    published_index  search of that index, as in browsers
"""
