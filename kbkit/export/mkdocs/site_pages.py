"""Pages that kbkit renders in an MkDocs site, with their sidebar.

A script loads other sections of the sidebar when a reader unfolds them; without scripts their names
are links. So the size of a page does not grow with the number of documents.
"""

from __future__ import annotations

import hashlib
import html
import json
import posixpath
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, cast
from urllib.parse import unquote

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from mkdocs.structure.toc import get_toc

from kbkit.export.facts import write_file
from kbkit.export.index_packing import encode_call
from kbkit.export.mkdocs.page_head import description
from kbkit.export.mkdocs.search import SiteSearch
from kbkit.export.pages.document_page import DOCUMENTS, FULL_TEXT
from kbkit.export.pages.outline import BROWSE
from kbkit.export.pages.paths import digest
from kbkit.text.markdown import extensions, rendering, sanitizing
from kbkit.text.markdown.rendering import Rendered, ResolvePage, add_date, render

_LIBRARIES = ("kbkit", "markdown-it-py", "nh3", "pygments")


class RenderCache:
    """A cache of a site's rendered pages, a file each; works without storage, too."""

    def __init__(self, folder: Path | None) -> None:
        self.hits = 0
        self._used: set[str] = set()
        self._renderer_version = _renderer_version()
        self._folder = folder

    def render(
        self, path: str, text: str, finders: Mapping[str, ResolvePage], *, document: bool
    ) -> Rendered:
        """Render a page, or return it from the cache."""
        name = f"{hashlib.sha256(path.encode('utf-8', 'replace')).hexdigest()}.json"
        self._used.add(name)
        source = f"{self._renderer_version} {document} {text}".encode("utf-8", "replace")
        key = hashlib.blake2b(source, digest_size=16).hexdigest()
        cached = self._load(name, key)
        if cached and all(
            find(href) == target
            for kind, find in finders.items()
            for href, target in cached[kind].items()
        ):
            self.hits += 1
            return Rendered(
                cached["plain"], cached["html"], cached["toc"], anchors=frozenset(cached["anchors"])
            )
        targets: dict[str, dict[str, str | None]] = {kind: {} for kind in finders}

        def record(kind: str, href: str) -> str | None:
            targets[kind][href] = target = finders[kind](href)
            return target

        links, pictures, images = (partial(record, kind) for kind in finders)
        page = render(text, links, document=document, picture=pictures, image=images)
        values = {"key": key, **targets, "plain": page.plain, "html": page.html, "toc": page.toc}
        if self._folder is not None:
            with suppress(OSError):  # a full disk only slows the next build
                data = json.dumps({**values, "anchors": sorted(page.anchors)})
                write_file(self._folder / name, data.encode())
        return page

    def close(self) -> None:
        """Remove pages that this build did not render."""
        if self._folder is not None:
            with suppress(OSError):
                (self._folder / ".gitignore").write_text("*\n", encoding="utf-8")
                for path in self._folder.iterdir():
                    if path.suffix == ".json" and path.name not in self._used:
                        path.unlink()

    def _load(self, name: str, key: str) -> dict[str, Any] | None:
        if self._folder is None:
            return None
        try:
            values: dict[str, Any] = json.loads((self._folder / name).read_bytes())
            return values if values["key"] == key else None
        except (OSError, ValueError, LookupError, TypeError):
            return None


def _renderer_version() -> str:
    modules = (rendering, sanitizing, extensions)
    code = b"".join(Path(str(module.__file__)).read_bytes() for module in modules)
    versions = " ".join(map(version, _LIBRARIES))
    return f"{versions} {hashlib.blake2b(code, digest_size=16).hexdigest()}"


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
    is_document = False
    coloured = ""
    """HTML with coloured code; the search reads ``content``, with plain code."""
    checked = ""
    """Day of its document's last fetch (ISO)."""
    pictures: frozenset[str] = frozenset()
    """Paths of allowed pictures."""
    images = ""
    """Folder of documents' pictures."""
    found = False
    """Whether an index of its export covers it."""
    sidebar = ""
    """HTML of its sidebar's items."""

    def add_below_lead(self, part: str) -> None:
        self.content = _LEAD.sub(lambda lead: lead[0] + part, self.content or "", count=1)

    def add_subjects(self, line: str) -> None:
        self.content = _BYLINE.sub(lambda match: match[1] + line, self.content or "", count=1)

    def render(self, config: MkDocsConfig, files: Files) -> None:
        if since := self.meta.get("since"):
            self.update_date = str(since)  # for sitemap.xml
        rendered = self.renderer.render(
            self.file.src_uri,
            self.markdown or "",
            {
                "links": lambda href: _page_url(href, self.file, files),
                "pictures": lambda href: _picture(href, self.file, files, self.pictures),
                "images": lambda src: _image(src, self.file, files, self.images),
            },
            document="source" in self.meta,
        )
        plain = add_date(rendered.plain, self.checked)
        self.coloured = add_date(rendered.html, self.checked)
        if self.found:
            self.meta["search"] = {"exclude": True}
        self.meta["description"] = description(plain)
        # pages of large sites fill the memory, so one string is shared if possible
        self.content = self.coloured if self.found else plain
        self.toc = get_toc(cast(Any, rendered.toc))
        self.present_anchor_ids = set(rendered.anchors)


def _target(href: str, file: File, files: Files) -> tuple[str, File | None]:
    folder = posixpath.dirname(file.src_uri)
    target = posixpath.normpath(posixpath.join(folder, unquote(href)))
    return target, files.src_uris.get(target)


def _page_url(href: str, file: File, files: Files) -> str | None:
    path, hash_, fragment = href.partition("#")
    path, mark, query = path.partition("?")
    target, page = _target(path, file, files)
    # other files are for programs; documents cannot link to them, see LinkMap
    for_programs = target.endswith(".zip") or (page is not None and page.name in _FOR_PROGRAMS)
    if page is None or not (page.is_documentation_page() or for_programs):
        return None
    return str(page.url_relative_to(file)) + mark + query + hash_ + fragment


def _picture(href: str, file: File, files: Files, pictures: frozenset[str]) -> str | None:
    target, page = _target(href, file, files)
    return page.content_string if page and target in pictures else None


def _image(src: str, file: File, files: Files, folder: str) -> str | None:
    target, page = _target(src, file, files)
    is_image = page and folder and posixpath.dirname(target) == folder
    return str(page.url_relative_to(file)) if page and is_image else None


class SearchPage(Page):
    """The page that searches all knowledge bases of the site."""

    search: SiteSearch

    def render(self, config: MkDocsConfig, files: Files) -> None:
        self.meta["search"] = {"exclude": True}
        self.meta["description"] = f"Search {config.site_name} by words and by meaning."
        self.content = self.search.page()
        self.toc = get_toc([])
        self.present_anchor_ids = set()


MAX_SHOWN = 40
"""Maximum entries of a section on a page."""
MAX_UNFOLDED = 500
"""Maximum entries of an unfolded section."""
FOLDER = "contents"
"""Folder of the files of sections, next to the scripts."""


@dataclass(slots=True, eq=False)
class _Entry:
    """A page or a section in the tree.

    Attributes:
        listing: Address of the section's full list.
        ends: Whether it is the first entry after the documents.
    """

    title: str
    url: str
    listing: str = ""
    over: _Entry | None = None
    children: list[_Entry] = field(default_factory=list)
    ends: bool = False

    @property
    def id(self) -> str:
        return digest(f"{self.url} {self.listing}")


class Sidebar:
    """The tree of one export."""

    def __init__(
        self,
        nav: Sequence[Mapping[str, Any]],
        address: Callable[[str], str | None],
        site: tuple[str, str] | None = None,
        others: Sequence[tuple[str, str]] = (),
    ) -> None:
        self._address = address
        self._site = site
        self._others = others
        self._entries: dict[str, _Entry] = {}
        self._root = _Entry("", "")
        self._root.children = list(self._read(nav, self._root))
        if nav and "list" in nav[0]:
            self._root.listing = address(nav[0]["list"]) or ""

    def _read(
        self, nav: Sequence[Mapping[str, Any]], over: _Entry, prefix: str = ""
    ) -> Iterator[_Entry]:
        for item in nav:
            path = str(item["path"])
            url = self._address(path)
            if url is None:
                continue
            # members of a class do not repeat its name
            title = str(item["title"])
            short = title.removeprefix(f"{prefix}.") if prefix else title
            entry = _Entry(short, url, over=over, ends=path == BROWSE)
            self._entries.setdefault(path, entry)
            if children := item.get("children"):
                list_path = str(item.get("list", ""))
                entry.listing = (self._address(list_path) if list_path else "") or url
                entry.children = list(self._read(children, entry, title))
                self._entries.setdefault(list_path or path, entry)
            yield entry

    def reading(self) -> Iterator[str]:
        return iter(self._entries)

    def of(self, path: str, url: str) -> str:
        up = "../" * url.count("/")
        current = entry = self._entries.get(path)
        branch = []
        while entry is not None:
            branch.append(entry)
            entry = entry.over
        parts = []
        if self._site:
            title, address = self._site
            parts.append(_item(f"‹ {html.escape(title)}", up + address, "kb-site"))
        parts += _level(self._root, branch, current, url, up)
        parts += [_item(html.escape(title), up + to, "kb-other") for title, to in self._others]
        return "".join(parts)

    def files(self) -> Iterator[tuple[str, bytes]]:
        for entry in self._entries.values():
            if entry.children:
                rows = [
                    [child.title, child.url, *([child.id] if child.children else [])]
                    for child in entry.children[:MAX_UNFOLDED]
                ]
                if remaining := len(entry.children) - len(rows):
                    rows.append([f"{remaining:,} more", entry.listing])
                yield f"{entry.id}.js", encode_call("kbkitContents", [entry.id, rows])


def _level(
    over: _Entry, branch: Sequence[_Entry], current: _Entry | None, here: str, up: str
) -> Iterator[str]:
    entries = over.children
    if len(entries) > MAX_SHOWN:
        place = next((n for n, each in enumerate(entries) if each in branch), 0)
        first = max(0, min(place - MAX_SHOWN // 2, len(entries) - MAX_SHOWN))
        entries = entries[first : first + MAX_SHOWN]
    for entry in entries:
        link = _link(html.escape(entry.title), up + entry.url)
        if entry is current and entry.url == here:
            link = link.replace(
                'class="md-nav__link"',
                'class="md-nav__link md-nav__link--active" aria-current=page',
            )
        if not entry.children:
            yield f'<li class="md-nav__item{" kb-end" * entry.ends}">{link}</li>'
        elif entry in branch:
            inner = "".join(_level(entry, branch, current, here, up))
            yield f'<li class="md-nav__item kb-open" data-kb={entry.id}>{link}<ul>{inner}</ul></li>'
        else:
            yield f'<li class="md-nav__item" data-kb={entry.id}>{link}</li>'
    if len(entries) < len(over.children) and over.listing:
        yield _item(f"All {len(over.children):,} …", up + over.listing, "kb-all")


def _link(title: str, address: str) -> str:
    return f'<a class="md-nav__link" href="{html.escape(address)}">{title}</a>'


def _item(title: str, address: str, name: str) -> str:
    return f'<li class="md-nav__item {name}">{_link(title, address)}</li>'
