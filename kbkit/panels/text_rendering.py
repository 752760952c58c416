"""Render a file or a document as safe HTML: Markdown, or highlighted text.

Raw HTML becomes text and images become links, so nothing is fetched from elsewhere.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from html import escape, unescape
from urllib.parse import quote, unquote, urljoin, urlsplit

from kbkit.export.pages.paths import LinkMap
from kbkit.models import Chunk, Document, FileLink
from kbkit.panels.render import PATH_LENGTH, plain
from kbkit.text.markdown.extensions import resolve_wiki_links
from kbkit.text.markdown.rendering import render
from kbkit.text.markdown.sanitizing import prepare
from kbkit.text.markdown.structure import slug

MAX_LENGTH = 200_000
"""Maximum characters rendered."""

_FILE = "#file-"
_MISSING = "#missing-"
_HREF = re.compile(r'<a href="([^"]+)"')
_DOCUMENT = "#document-"
_WEB = ("http", "https", "mailto")
_FRONT = re.compile(r"\A---[ \t]*\n(.*?)\n(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)
_MARKDOWN = (".md", ".markdown", ".txt")


@dataclass(frozen=True, slots=True)
class LinkTarget:
    """Target of a link."""

    name: str
    """Path of a file, which may not exist, or id of a document."""
    anchor: str = ""
    exists: bool = True


@dataclass(frozen=True, slots=True)
class PanelText:
    """A rendered file or document."""

    html: str
    links: dict[str, LinkTarget] = field(default_factory=dict)
    """Links to other files or documents, by address."""
    cut: int = 0
    """Number of characters left out at the end."""


def is_rendered(path: str) -> bool:
    return posixpath.splitext(path)[1].lower() in _MARKDOWN


def render_file(path: str, text: str, links: Sequence[FileLink]) -> PanelText:
    path_of = {link.target: link.path for link in links}
    targets: dict[str, LinkTarget] = {}

    def address(target: LinkTarget) -> str:
        mark = _FILE if target.exists else _MISSING
        href = f"{mark}{quote(target.name)}" + (f"#{quote(target.anchor)}" if target.anchor else "")
        targets[href] = target
        return href

    def named(name: str, heading: str) -> str:
        linked = path_of.get(name.lstrip("/"), "")
        return address(LinkTarget(linked or name, slug(heading) if heading else "", bool(linked)))

    def resolve(href: str) -> str | None:
        if href.startswith("#"):
            return href
        try:
            scheme = urlsplit(href).scheme
        except ValueError:
            return None
        if scheme:
            return href if scheme in _WEB else None
        bare, _, anchor = href.partition("#")
        target = posixpath.normpath(posixpath.join(posixpath.dirname(path), unquote(bare)))
        if target not in path_of:
            return None
        return address(
            LinkTarget(path_of[target] or target, unquote(anchor), bool(path_of[target]))
        )

    shown = _FRONT.sub(lambda match: f"```yaml\n{match[1]}\n```\n\n", text[:MAX_LENGTH], count=1)
    prepared = prepare(resolve_wiki_links(shown, named), title="", rewrite=resolve)
    html = render(prepared.text, resolve).html
    return PanelText(html, targets, max(0, len(text) - MAX_LENGTH))


def render_text(path: str, text: str) -> PanelText:
    cut = text[:MAX_LENGTH]
    marks = "`" * max(3, 1 + max((len(run) for run in re.findall(r"`+", cut)), default=0))
    language = posixpath.splitext(path)[1].lstrip(".").lower()
    language = {"markdown": "md", "txt": "", "log": ""}.get(language, language)
    html = render(f"{marks}{language}\n{cut}\n{marks}", lambda _href: None).html
    return PanelText(html, {}, max(0, len(text) - MAX_LENGTH))


class DocumentRenderer:
    """Renders the documents of one knowledge base."""

    def __init__(self, documents: Iterable[Document]) -> None:
        self._uris = {document.uri: document.id for document in documents}
        self._ids = set(self._uris.values())

    @cached_property
    def _pages(self) -> LinkMap:
        return LinkMap(self._uris)

    def render(self, document: Document, chunks: Sequence[Chunk] | None = None) -> PanelText:
        if chunks is None:
            html = self._html(document, document.content[:MAX_LENGTH])
        else:
            html = "".join(self._pieces(document, chunks))
        links = {}
        for href in set(_HREF.findall(html)):
            if link := self._link(unescape(href)):
                links[unescape(href)] = link
        return PanelText(html, links, max(0, len(document.content) - MAX_LENGTH))

    def _pieces(self, document: Document, chunks: Sequence[Chunk]) -> Iterable[str]:
        end = 0
        for number, chunk in enumerate(chunks, 1):
            if chunk.start >= MAX_LENGTH:
                return
            yield self._html(document, document.content[end : chunk.start])
            end = max(end, chunk.end)
            path = plain(" › ".join(chunk.heading_path), PATH_LENGTH)
            page = f", page {chunk.page}" if chunk.page is not None else ""
            label = f"Passage {number} of {len(chunks)}, {len(chunk.text):,} characters{page}"
            yield (
                f'<section class="chunk" aria-label="{escape(label)}"><p class="chunk-of">'
                f"<b>{number}</b> <bdi>{escape(path)}</bdi> {len(chunk.text):,} characters{page}"
                f"</p>{self._html(document, chunk.text)}</section>"
            )
        yield self._html(document, document.content[end:MAX_LENGTH])

    def _html(self, document: Document, markdown: str) -> str:
        if not markdown.strip():
            return ""

        def resolve(href: str) -> str | None:
            return self._resolve(href, document)

        prepared = prepare(markdown, title=document.title, rewrite=resolve)
        return render(prepared.text, resolve).html

    def _resolve(self, href: str, document: Document) -> str | None:
        if href.startswith("#"):
            return href
        try:
            address = urljoin(document.uri, href)
            scheme = urlsplit(address).scheme
        except ValueError:
            return None
        document_id = self._pages.page(address) or self._pages.page(href)
        if document_id is not None:
            return f"{_DOCUMENT}{document_id}#{address.partition('#')[2]}"
        return address if scheme in _WEB else None

    def _link(self, href: str) -> LinkTarget | None:
        if not href.startswith(_DOCUMENT):
            return None
        document_id, _, anchor = href.removeprefix(_DOCUMENT).partition("#")
        return LinkTarget(document_id, anchor) if document_id in self._ids else None
