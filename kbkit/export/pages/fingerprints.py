"""Fingerprints of pages, to skip unchanged ones.

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

from kbkit.export.pages.document_page import PageLayout
from kbkit.export.pages.outline import Entry, Outline

_REVISION = 3
"""Goes up when the same document becomes another page."""


class PageFingerprints:
    """The fingerprints of the pages of an export, and of the one before."""

    def __init__(self, before: Mapping[str, str], outline: Outline) -> None:
        self._before = before
        links = json.dumps(dict(outline.paths), sort_keys=True)
        self._common = _digest(f"{version('kbkit')} {_REVISION} {links}".encode())
        self.current: dict[str, str] = {}

    def of_sources(self, entry: Entry, layout: PageLayout) -> str:
        parts = (
            self._common,
            entry.revision.digest,
            layout.front_matter,
            layout.breadcrumbs,
            layout.byline,
            layout.footer,
            layout.files,
        )
        return _digest("\0".join(parts).encode("utf-8", "replace"))

    def keep(self, path: str, file: Path, sources: str) -> bool:
        """Whether a page is up to date; it keeps its fingerprint then."""
        known, _, became = self._before.get(path, "").partition(" ")
        if known != sources:
            return False
        try:
            same = _digest(file.read_bytes()) == became
        except OSError:
            return False
        if same:
            self.current[path] = self._before[path]
        return same

    def add(self, path: str, sources: str, text: str) -> None:
        self.current[path] = f"{sources} {_digest(text.encode('utf-8', 'replace'))}"


def _digest(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=10).hexdigest()
