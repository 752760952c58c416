"""The source ``mirror``: a folder of HTML pages that stands for a site, read without network."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

from kbkit.errors import SourceError
from kbkit.models import SourceDocument
from kbkit.recipes import MirrorSource
from kbkit.sources.base import Outcome, SourceContext, SourceEvent
from kbkit.sources.doctype import detect
from kbkit.sources.extract import Extracted
from kbkit.sources.reading import Reader
from kbkit.sources.urls import canonical, matches

_PAGES = frozenset({".html", ".htm", ".xhtml"})
_MOST_BYTES = 50_000_000
_AHEAD = 64  # pages in memory


class Mirror:
    """A folder of HTML pages.

    Args:
        spec: The part of the recipe that describes it.
    """

    type = "mirror"
    exhaustive = True

    def __init__(self, spec: MirrorSource) -> None:
        self._spec = spec
        self._base = canonical(
            spec.base_url if spec.base_url.endswith("/") else spec.base_url + "/"
        )

    def events(self, context: SourceContext) -> Iterator[SourceEvent]:
        """Read the pages; the order of the events is that of being done.

        Raises:
            SourceError: There is no such folder.
        """
        folder = context.base / Path(self._spec.path).expanduser()
        if not folder.is_dir():
            raise SourceError(
                f"{self._spec.path}: no such folder (relative paths start at "
                f"{context.base.resolve()})"
            )
        root = folder.resolve()
        pages = self._pages(folder)
        reader = Reader(expected=len(pages))
        try:
            for path in pages:
                if context.stop():
                    return
                event = self._submit(reader, path, folder, root)
                if event is not None:
                    yield event
                while reader.pending >= _AHEAD and not context.stop():
                    yield from self._poll(reader)
            while reader.pending and not context.stop():
                if not reader.busy:
                    reader.settle()
                yield from self._poll(reader)
        finally:
            reader.close()

    def _pages(self, folder: Path) -> list[Path]:
        found = []
        for parent, folders, names in os.walk(folder):
            folders.sort()
            for name in names:
                path = Path(parent) / name
                inside = "/" + path.relative_to(folder).as_posix()
                if path.suffix.lower() in _PAGES and matches(
                    inside, self._spec.include, self._spec.exclude
                ):
                    found.append(path)
        return sorted(found)[: self._spec.limit]

    def _submit(self, reader: Reader, path: Path, folder: Path, root: Path) -> SourceEvent | None:
        uri = self._base + quote(path.relative_to(folder).as_posix(), safe="/~!$&'()*+,;=:@")
        try:
            if not path.resolve().is_relative_to(root):
                reason = "a link that leads out of the folder"
                return SourceEvent(uri, Outcome.SKIPPED, reason=reason)
            if not path.is_file():
                return SourceEvent(uri, Outcome.SKIPPED, reason="not a file")
            if path.stat().st_size > _MOST_BYTES:
                reason = f"larger than {_MOST_BYTES / 1e6:g} MB"
                return SourceEvent(uri, Outcome.SKIPPED, reason=reason)
            body = path.read_bytes()
        except (OSError, RuntimeError) as error:
            reason = getattr(error, "strerror", None) or "a circle of links"
            return SourceEvent(uri, Outcome.FAILED, reason=f"cannot be read ({reason})")
        reader.submit(uri, uri, body, "")
        return None

    def _poll(self, reader: Reader) -> Iterator[SourceEvent]:
        reading = reader.poll(0.2)
        if reading is not None and reading.final:
            yield self._event(reading.key, reading.page)

    def _event(self, uri: str, page: Extracted) -> SourceEvent:
        reason = page.reason
        if not reason and page.refresh and len(page.content) < 400:
            reason = f"leads on to {page.refresh} (meta refresh)"
        if reason or not page.content:
            outcome = Outcome.FAILED if page.failed else Outcome.SKIPPED
            return SourceEvent(uri, outcome, reason=reason or "no text")
        title = page.title or uri.rpartition("/")[2]
        kind = self._spec.document_type or detect(uri, title, page.content)
        return SourceEvent(
            uri, Outcome.FETCHED, SourceDocument(uri, title, page.content, kind, self._spec.tags)
        )
