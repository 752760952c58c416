"""Tables in HTML whose cells are written in Markdown."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

from kbkit.markdown.blocks import Block, Kind

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

_EDGE = re.compile(r"<(/?)table\b", re.IGNORECASE)
_MARKED = re.compile(
    r"""(?P<start><(?P<name>td|th|dd|dt|li|p|summary|figcaption|caption)\b[^<>]*?)
    \s+markdown(?:=(?:"[^"]*"|'[^']*'|\w+))?(?P<rest>[^<>]*>)(?P<inner>.*?)(?=</(?P=name)\s*>)""",
    re.DOTALL | re.IGNORECASE | re.VERBOSE,
)


def table_end(found: Sequence[Block], first: int, text: str) -> int:
    """The block that ends a table which a block of HTML begins, or that block itself.

    A blank line ends a block of HTML, and Markdown goes on inside of the cell.

    Args:
        found: The blocks of a text.
        first: The one that may begin a table.
        text: The text.
    """
    open_ = 0
    for number in range(first, len(found)):
        block = found[number]
        if block.kind is not Kind.HTML or not block.outermost:
            continue
        for edge in _EDGE.finditer(text, block.start, block.end):
            open_ += -1 if edge[1] else 1
        if open_ <= 0:
            return number
    return first


def rendered(piece: str) -> str:
    """HTML around Markdown as HTML only: what stands between blank lines, or says ``markdown``."""
    piece = _MARKED.sub(_cell, piece)
    html: str = _markdown().render(piece)
    return html


def says_markdown(piece: str) -> bool:
    """Whether a cell or the like says that its text is Markdown."""
    return _MARKED.search(piece) is not None


def _cell(found: re.Match[str]) -> str:
    inner = "\n".join(line.strip() for line in found["inner"].strip().split("\n"))
    render = _markdown().render if "\n" in inner else _markdown().renderInline
    lines = (line for line in render(inner).split("\n") if line.strip())
    return found["start"] + found["rest"] + "\n".join(lines)


@cache
def _markdown() -> MarkdownIt:
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
