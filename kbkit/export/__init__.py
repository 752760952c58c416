"""Knowledge bases -> MkDocs pages and static sites.

::

    paths      file names from URIs          manifest   what an export wrote
    links      where links lead              history    since when pages say what they say
    sections   the tree of sections          facts      what is known beside the documents
    outline    how the pages hang together   pages      the page of a document
    lists      home, sections, types, tags   about      where it comes from
    bars       plots as SVG                  machine    documents.json, llms.txt
    markdown   documents' Markdown, disarmed export     writes pages, only what changed
    render     Markdown -> safe HTML         project    the MkDocs project, and its build
    plugin     the MkDocs plugin             site       all of it in one call
    style      how pages look                serve      a server for the result
"""

from __future__ import annotations

from kbkit.export.export import export_pages
from kbkit.export.facts import Facts
from kbkit.export.mkdocs.project import build_site, write_project, write_standalone
from kbkit.export.mkdocs.web_server import open_server, serve
from kbkit.export.report import ExportReport

__all__ = [
    "ExportReport",
    "Facts",
    "build_site",
    "export_pages",
    "open_server",
    "serve",
    "write_project",
    "write_standalone",
]
