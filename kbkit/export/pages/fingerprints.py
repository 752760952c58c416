"""Knows pages that need not be made again: what they are made of is what it was.

Disarming a document's text takes most of the time of an export, and after a refresh few documents
have changed. So the manifest keeps a digest of what each page was made of, and one of the page,
lest somebody has changed it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path

from kbkit.export.pages.document_page import Frame
from kbkit.export.pages.outline import Entry, Outline

_REVISION = 1
"""Goes up when the same document becomes another page."""


class Stamps:
    """The stamps of an export, and of the one before."""

    def __init__(self, before: Mapping[str, str], outline: Outline) -> None:
        """Begin an export.

        Args:
            before: Stamps that the export before left.
            outline: How the pages hang together; where links lead depends on all of it.
        """
        self._before = before
        links = json.dumps(dict(outline.paths), sort_keys=True)
        self._start = _digest(f"{version('kbkit')} {_REVISION} {links}".encode())
        self.now: dict[str, str] = {}

    def made_of(self, entry: Entry, frame: Frame) -> str:
        """Stands for all that a page is made of."""
        parts = (self._start, entry.since.digest, *_parts(frame))
        return _digest("\0".join(parts).encode("utf-8", "replace"))

    def keep(self, path: str, file: Path, made_of: str) -> bool:
        """Whether a page is as it would become; it keeps its stamp then."""
        known, _, became = self._before.get(path, "").partition(" ")
        if known != made_of:
            return False
        try:
            same = _digest(file.read_bytes()) == became
        except OSError:
            return False
        if same:
            self.now[path] = self._before[path]
        return same

    def note(self, path: str, made_of: str, text: str) -> None:
        """Stamp a page that was made."""
        self.now[path] = f"{made_of} {_digest(text.encode('utf-8', 'replace'))}"


def _parts(frame: Frame) -> tuple[str, ...]:
    return (frame.front_matter, frame.small_print, frame.onwards)


def _digest(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=10).hexdigest()
