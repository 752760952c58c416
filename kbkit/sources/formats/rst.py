"""Files of reStructuredText."""

from __future__ import annotations

from pathlib import PurePosixPath

from kbkit.markdown.structure import document_title
from kbkit.sources.decode import decode
from kbkit.sources.formats.base import Part, one_line
from kbkit.sources.restructured_text import markdown_of_rst


def read(data: bytes, name: str) -> list[Part]:
    """Parse reStructuredText; unknown directives and roles keep their content."""
    text = decode(data, markup=False).replace("\r\n", "\n").replace("\r", "\n").lstrip("\ufeff")
    content = markdown_of_rst(text)
    title = one_line(document_title(content))
    title = title or PurePosixPath(name.replace("\\", "/")).stem
    return [Part(title, content + "\n" if content else "", metadata={"format": "rst"})]
