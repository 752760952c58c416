"""Pages that kbkit renders in an MkDocs site: exported ones, and the search page."""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any, cast
from urllib.parse import unquote

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from mkdocs.structure.toc import get_toc

from kbkit.export.mkdocs.page_head import description
from kbkit.export.mkdocs.render_cache import RenderCache
from kbkit.export.mkdocs.search_box import SiteSearch
from kbkit.export.pages.charts import DOCUMENTS, FULL_TEXT
from kbkit.export.pages.outline import GRAPH, HOME
from kbkit.markdown.page_parts import dated

_LEAD = re.compile(r"</h1>(?:\s*<p>.*?</p>)?", re.DOTALL)
_BYLINE = re.compile(r'(<p class="kb-meta".*?)(?=</p>)', re.DOTALL)
_FOR_PROGRAMS = {Path(name).stem for name in (DOCUMENTS, FULL_TEXT)}


class ExportedPage(Page):
    """A page of an exported knowledge base."""

    prefix: str
    """Folder of its export in the documentation."""
    path: str
    """Path of its Markdown file in the export."""
    renderer: RenderCache
    """Renders it, unless it has been."""
    is_document = False
    """Whether it is a document's page."""
    coloured = ""
    """Its HTML with coloured code; the search reads ``content``, which has plain code."""
    checked = ""
    """Day on which its document was fetched last (ISO), where it is that of a document."""
    pictures: frozenset[str] = frozenset()
    """Paths of allowed pictures."""
    images = ""
    """Folder of documents' pictures."""
    found = False
    """Whether an index of its export covers it."""
    sidebar = ""
    """Items of its own sidebar, HTML."""

    @property
    def is_home(self) -> bool:
        return self.path == HOME

    @property
    def is_graph(self) -> bool:
        return self.path == GRAPH

    def add_below_lead(self, part: str) -> None:
        self.content = _LEAD.sub(lambda lead: lead[0] + part, self.content or "", count=1)

    def add_subjects(self, line: str) -> None:
        self.content = _BYLINE.sub(lambda found: found[1] + line, self.content or "", count=1)

    def render(self, config: MkDocsConfig, files: Files) -> None:
        if since := self.meta.get("since"):
            self.update_date = str(since)  # what sitemap.xml says
        rendered = self.renderer.render(
            self.file.src_uri,
            self.markdown or "",
            lambda href: _page_url(href, self.file, files),
            lambda href: _picture(href, self.file, files, self.pictures),
            lambda src: _image(src, self.file, files, self.images),
            document="source" in self.meta,
        )
        plain = dated(rendered.plain, self.checked)
        self.coloured = dated(rendered.html, self.checked)
        if self.found:
            self.meta["search"] = {"exclude": True}
        self.meta["description"] = description(plain)
        # Pages of large sites fill the memory, so none is held twice without need
        self.content = self.coloured if self.found else plain
        self.toc = get_toc(cast(Any, rendered.toc))
        self.present_anchor_ids = set(rendered.anchors)


def _page_url(href: str, file: File, files: Files) -> str | None:
    path, hash_, fragment = href.partition("#")
    path, mark, query = path.partition("?")
    target = posixpath.normpath(posixpath.join(posixpath.dirname(file.src_uri), unquote(path)))
    found = files.src_uris.get(target)
    # Files that are no pages: those for programs. Documents cannot name them, see LinkMap
    if found is None:
        return None
    for_programs = found.name in _FOR_PROGRAMS or target.endswith(".zip")
    if not (found.is_documentation_page() or for_programs):
        return None
    return str(found.url_relative_to(file)) + mark + query + hash_ + fragment


def _picture(href: str, file: File, files: Files, pictures: frozenset[str]) -> str | None:
    target = posixpath.normpath(posixpath.join(posixpath.dirname(file.src_uri), unquote(href)))
    found = files.src_uris.get(target) if target in pictures else None
    return None if found is None else found.content_string


def _image(src: str, file: File, files: Files, folder: str) -> str | None:
    target = posixpath.normpath(posixpath.join(posixpath.dirname(file.src_uri), unquote(src)))
    found = files.src_uris.get(target) if folder and posixpath.dirname(target) == folder else None
    return None if found is None else str(found.url_relative_to(file))


class SearchPage(Page):
    """The page that searches all knowledge bases of the site."""

    search: SiteSearch

    def render(self, config: MkDocsConfig, files: Files) -> None:
        self.meta["search"] = {"exclude": True}
        self.meta["description"] = f"Search {config.site_name} by words and by meaning."
        self.content = self.search.page()
        self.toc = get_toc([])
        self.present_anchor_ids = set()
