"""Plain text, with its front matter."""

from __future__ import annotations

from kbkit.sources.decode import decode
from kbkit.sources.formats.base import Part
from kbkit.sources.front_matter import read_text


def read(data: bytes, name: str) -> list[Part]:
    """Parse plain text; front matter becomes title, tags and metadata."""
    text = read_text(decode(data, markup=False), name)
    return [Part(text.title, text.content, tags=text.tags, metadata=text.metadata)]
