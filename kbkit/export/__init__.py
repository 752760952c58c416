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

from __future__ import annotations

from kbkit.export.facts import Facts
from kbkit.export.mkdocs.build import (
    build_site,
    find_site,
    serve_site,
    write_project,
    write_standalone,
)
from kbkit.export.pages.writer import export_pages
from kbkit.models import ExportReport

__all__ = [
    "ExportReport",
    "Facts",
    "build_site",
    "export_pages",
    "find_site",
    "serve_site",
    "write_project",
    "write_standalone",
]
