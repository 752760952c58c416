"""Markdown of any dialect, with its front matter."""

from __future__ import annotations

from kbkit.sources.decode import decode
from kbkit.sources.formats.base import Part
from kbkit.sources.front_matter import read_text


def read(data: bytes, name: str) -> list[Part]:
    """Parse Markdown; front matter becomes title, tags and metadata."""
    text = read_text(decode(data, markup=False), name, markdown=True)
    return [Part(text.title, text.content, tags=text.tags, metadata=text.metadata)]
