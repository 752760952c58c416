"""HTML files, read like web pages."""

from __future__ import annotations

from pathlib import PurePosixPath

from kbkit.sources.decode import decode
from kbkit.sources.formats.base import Part, UnreadableError


def read(data: bytes, name: str) -> list[Part]:
    """Read the content of a page; links that lead to other files are kept as text."""
    from kbkit.sources.html.extract import extract

    page = extract(decode(data), "", alone=False)
    if not page.content:
        raise UnreadableError(page.reason or "no text")
    stem = PurePosixPath(name.replace("\\", "/")).stem
    return [Part(page.title or stem, page.content, metadata=page.metadata, template=page.template)]
