"""Knowledge bases -> MkDocs pages and static sites.

::

    paths      file names from URIs          manifest   what an export wrote
    links      where links lead              pages      the text of the pages
    sections   the tree of sections          export     writes pages, only what changed
    markdown   documents' Markdown, disarmed project    the MkDocs project, and its build
    render     Markdown -> safe HTML         site       all of it in one call
    plugin     the MkDocs plugin             serve      a server for the result
"""

from __future__ import annotations

from kbkit.export.export import export_pages
from kbkit.export.project import build_site, write_project
from kbkit.export.report import ExportReport
from kbkit.export.serve import open_server, serve
from kbkit.export.site import export_site

__all__ = [
    "ExportReport",
    "build_site",
    "export_pages",
    "export_site",
    "open_server",
    "serve",
    "write_project",
]
