"""Markdown, text, HTML and reStructuredText files."""

from __future__ import annotations

from kbkit.sources.decode import decode
from kbkit.sources.front_matter import read_text as read_front_matter
from kbkit.sources.parts import Part, UnreadableError, one_line, stem
from kbkit.text.markdown.structure import document_title


def read_markdown(data: bytes, name: str) -> list[Part]:
    """Read Markdown of any dialect; front matter becomes title, tags and metadata."""
    return [read_front_matter(decode(data, markup=False), name, markdown=True)]


def read_text(data: bytes, name: str) -> list[Part]:
    return [read_front_matter(decode(data, markup=False), name)]


def read_html(data: bytes, name: str) -> list[Part]:
    """Read the content of a page; relative links stay relative."""
    from kbkit.sources.html.extract import extract

    page = extract(decode(data), "", alone=False)
    if not page.content:
        raise UnreadableError(page.reason or "no text")
    title = page.title or stem(name)
    return [Part(title, page.content, metadata=page.metadata, template=page.template)]


def read_rst(data: bytes, name: str) -> list[Part]:
    from kbkit.sources.restructured_text import markdown_of_rst

    text = decode(data, markup=False).replace("\r\n", "\n").replace("\r", "\n").lstrip("\ufeff")
    content = markdown_of_rst(text)
    title = one_line(document_title(content)) or stem(name)
    return [Part(title, content + "\n" if content else "", metadata={"format": "rst"})]
