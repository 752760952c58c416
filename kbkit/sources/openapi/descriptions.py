"""CommonMark that strangers wrote, made fit to stand inside of a document of our own."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from kbkit.markdown.blocks import Block, Kind, blocks, is_closed
from kbkit.markdown.disarming import html_as_text

_LONGEST = 100_000
_CODE_SPAN = re.compile(r"(?<!`)(`+)(?!`)(?:.|\n(?!\s*\n)){1,2000}?(?<!`)\1(?!`)")
_BREAK = re.compile(r"<br\s*/?>", re.IGNORECASE)
_TAG = re.compile(r"<(?=[A-Za-z/!?])(?!(?:https?://|mailto:)[^\s<>]*>)")
_IS_HTML = re.compile(
    r"\s*<(?:p|div|ul|ol|dl|h[1-6]|table|section|span|b|strong|em|i|a|code|pre)\b[^>]*>.*</\w+>",
    re.DOTALL | re.IGNORECASE,
)
_UNSAFE_LINK = re.compile(r"\]\(\s*<?\s*(?:javascript|vbscript|data)\s*:", re.IGNORECASE)


def block_markdown(text: Any, level: int) -> str:
    """A description as Markdown blocks.

    Its headings come below those of the document, HTML becomes Markdown or is shown as text,
    and whatever it opens is closed, so that it cannot swallow what follows.

    Args:
        text: The description; anything but text gives nothing.
        level: Level of its highest headings in the document, 1 to 6.

    Returns:
        Markdown without a newline at its end.
    """
    if not isinstance(text, str) or not text.strip():
        return ""
    return _described(text[:_LONGEST], level)


@lru_cache(maxsize=2048)  # fields of one schema are described wherever it is used
def _described(text: str, level: int) -> str:
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\x00", "")
    if _IS_HTML.match(text) and (converted := _from_html(text)):
        text = converted
    written = _UNSAFE_LINK.sub("](", _shifted(text.expandtabs(4).strip("\n"), level))
    return written.strip("\n")


def inline_markdown(text: Any) -> str:
    """A description as inline Markdown in one line, for lists and cells of tables."""
    if not isinstance(text, str):
        return ""
    written = block_markdown(text, 6)
    return " ".join(" ".join(_lines(block, written) for block in blocks(written)).split())


def _lines(block: Block, written: str) -> str:
    """A block as it can stand in a line."""
    piece = written[block.start : block.end]
    if block.kind is Kind.HEADING:
        return f"**{block.title}**" if block.title else ""
    if block.kind is Kind.FENCE:  # it cannot stand in a line; its code can
        lines = piece.split("\n")
        return " ".join(lines[1 : -1 if is_closed(block, written) else None])
    return piece


def table_cell(text: str) -> str:
    """Inline Markdown as a cell of a pipe table."""
    return " ".join(re.sub(r"(?<!\\)\|", r"\\|", text).split())


def _shifted(text: str, level: int) -> str:
    """Headings moved below the document's, raw HTML outside of code made text, fences closed."""
    found = list(blocks(text))
    levels = [block.level for block in found if block.kind is Kind.HEADING and block.outermost]
    shift = level - min(levels, default=1)
    out = []
    at = 0
    for block in found:
        piece = text[block.start : block.end]
        if block.kind is Kind.HEADING and block.outermost:
            hashes = "#" * max(1, min(6, block.level + shift))
            piece = f"{hashes} {_prose(' '.join(block.title.split()))}".rstrip()
        elif block.kind in {Kind.HTML, Kind.FRONT_MATTER}:
            piece = html_as_text(block, piece, _without_html)
        elif not block.is_verbatim:
            piece = _prose(piece)
        elif block.kind is Kind.FENCE and block.outermost and not is_closed(block, text):
            piece += f"\n{block.markup}"
        out += [text[at : block.start], piece]
        at = block.end
    return "".join((*out, text[at:]))


def _prose(text: str) -> str:
    out = []
    end = 0
    for match in _CODE_SPAN.finditer(text):
        out.append(_without_html(text[end : match.start()]))
        out.append(match[0])
        end = match.end()
    out.append(_without_html(text[end:]))
    return "".join(out)


def _without_html(text: str) -> str:
    return _TAG.sub("&lt;", _BREAK.sub("  \n", text))


def _from_html(text: str) -> str:
    from kbkit.sources.html.cleaning import clean
    from kbkit.sources.html.dom import parse
    from kbkit.sources.html.writer import MarkdownWriter

    root = parse(f"<html><body>{text}</body></html>")
    body = None if root is None else root.find("body")
    if body is None:
        return ""
    clean(body)
    return MarkdownWriter("").write(body)
