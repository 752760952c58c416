"""The source ``mirror``: HTML pages that stand for a site, read without network."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from urllib.parse import quote, urlsplit

from kbkit.errors import SourceError
from kbkit.globs import admits
from kbkit.models import SourceDocument
from kbkit.recipes import MirrorSource
from kbkit.sources.base import Outcome, SourceContext, SourceEvent
from kbkit.sources.disk.archives import StoredPage, is_warc, read_pages, read_warc
from kbkit.sources.doctype import detect
from kbkit.sources.html.extract import ExtractedPage
from kbkit.sources.html.site_extractor import MANY, SiteExtractor
from kbkit.sources.web.urls import canonical

_AHEAD = 64  # pages in memory
_LARGE = 1_000_000  # bytes of an archive that are likely many pages


class MirrorReader:
    """A folder, an archive or a WARC of HTML pages.

    Args:
        spec: The part of the recipe that describes it.
    """

    type = "mirror"
    exhaustive = True

    def __init__(self, spec: MirrorSource) -> None:
        self._spec = spec
        base = spec.base_url or ""
        self._base = canonical(base if not base or base.endswith("/") else base + "/")

    def events(self, context: SourceContext) -> Iterator[SourceEvent]:
        """Read the pages; the order of the events is that of being done.

        Raises:
            SourceError: There is no such folder or file, or the archive is damaged or too large.
        """
        path = context.base / Path(self._spec.path).expanduser()
        if not path.exists():
            raise SourceError(
                f"{self._spec.path}: no such folder or archive (relative paths start at "
                f"{context.base.resolve()})"
            )
        if path.is_dir():
            many = sum(1 for _ in islice(path.rglob("*.htm*"), MANY + 1)) > MANY
        else:
            many = path.stat().st_size > _LARGE
        reader = SiteExtractor(expected=MANY + 1 if many else 0, engine=context.engine)
        try:
            for number, page in enumerate(self._pages(path)):
                if context.stop() or number >= self._spec.limit:
                    break
                uri = self._uri(page)
                if page.reason:
                    yield SourceEvent(uri, page.outcome, reason=page.reason)
                else:
                    reader.submit(uri, uri, page.body, page.charset)
                while reader.pending >= _AHEAD and not context.stop():
                    yield from self._poll(reader)
            while reader.pending and not context.stop():
                if not reader.busy:
                    reader.settle()
                yield from self._poll(reader)
        finally:
            reader.close()

    def _pages(self, path: Path) -> Iterator[StoredPage]:
        if is_warc(path):
            return read_warc(path, self._base, lambda url: self._wanted(urlsplit(url).path))
        return read_pages(path, self._wanted)

    def _wanted(self, inside: str) -> bool:
        return admits(inside, self._spec.include, self._spec.exclude)

    def _uri(self, page: StoredPage) -> str:
        if page.place.startswith(("http://", "https://")) and not self._base:
            return page.place
        if page.place.startswith(self._base):
            return page.place
        return self._base + quote(page.place, safe="/~!$&'()*+,;=:@")

    def _poll(self, reader: SiteExtractor) -> Iterator[SourceEvent]:
        reading = reader.poll(0.2)
        if reading is not None and reading.final:
            yield self._event(reading.key, reading.page)

    def _event(self, uri: str, page: ExtractedPage) -> SourceEvent:
        # who points at a mirror wants its pages; noindex is meant for those who come uninvited
        reason = "" if page.noindex and page.content else page.reason
        if not reason and page.refresh and len(page.content) < 400:
            reason = f"leads on to {page.refresh} (meta refresh)"
        if reason or not page.content:
            outcome = Outcome.FAILED if page.failed else Outcome.SKIPPED
            return SourceEvent(uri, outcome, reason=reason or "no text")
        title = page.title or uri.rpartition("/")[2]
        kind = self._spec.document_type or detect(uri, title, page.content, page.template)
        document = SourceDocument(
            uri, title, page.content, kind, self._spec.tags, page.metadata,
            page.fidelity, page.note,
        )  # fmt: skip
        return SourceEvent(uri, Outcome.FETCHED, document)
