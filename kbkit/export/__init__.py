"""Publish a knowledge base, or documents without a workspace, as MkDocs pages and static sites.

::

    publisher, graph_facts   pages with their facts, index and site of one knowledge base
    facts                    inputs and files of an export
    pages/                   Markdown pages, their links and order, and files for programs
    index_*                  the search index that browsers read
    published_index          search of that index in Python, as in browsers
    mkdocs/                  plugin, project, search box, build
    assets/                  scripts and styles of the site
"""

from kbkit.extras import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
