"""Render a document as safe HTML, as exported sites do.

Raw HTML in a document is text, images are links to them, and nothing is fetched from elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cached_property
from html import escape, unescape
from urllib.parse import urljoin, urlsplit

from kbkit.export.pages.paths import LinkMap
from kbkit.models import Chunk, Document
from kbkit.panels.render import PATH_LENGTH, plain
from kbkit.panels.text_rendering import MAX_LENGTH, LinkTarget, PanelText
from kbkit.text.markdown.rendering import render as render_markdown
from kbkit.text.markdown.sanitizing import prepare

_HREF = re.compile(r'<a href="([^"]+)"')
_DOCUMENT = "#document-"
_WEB = ("http", "https", "mailto")


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
        return render_markdown(prepared.text, resolve).html

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
