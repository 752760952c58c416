"""CommonMark that strangers wrote, made fit to stand inside of a document of our own."""

from __future__ import annotations

import re
from functools import cache, lru_cache
from typing import Any

_LONGEST = 100_000
_FENCE = re.compile(r"^([\s>]*(?:(?:[-*+]|\d{1,9}[.)])\s+)?)(`{3,}|~{3,})([^`]*)$")
_HEADING = re.compile(r"^ {0,3}(#{1,6})(?=[ \t]|$)[ \t]*(.*?)[ \t]*#*[ \t]*$")
_UNDERLINE = re.compile(r"^ {0,3}(=+|-+)[ \t]*$")
_CODE_SPAN = re.compile(r"(?<!`)(`+)(?!`)(?:.|\n(?!\s*\n)){1,2000}?(?<!`)\1(?!`)")
_BREAK = re.compile(r"<br\s*/?>", re.IGNORECASE)
_TAG = re.compile(r"<(?=[A-Za-z/!?])(?!(?:https?://|mailto:)[^\s<>]*>)")
_IS_HTML = re.compile(
    r"\s*<(?:p|div|ul|ol|dl|h[1-6]|table|section|span|b|strong|em|i|a|code|pre)\b[^>]*>.*</\w+>",
    re.DOTALL | re.IGNORECASE,
)
_UNSAFE_LINK = re.compile(r"\]\(\s*<?\s*(?:javascript|vbscript|data)\s*:", re.IGNORECASE)
_SENTINEL = "\n\n# \u241esentinel"


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
    if re.search(r"`{3}|~{3}", written) and not _contained(written):
        from kbkit.markdown.writing import escape, guard

        written = guard(escape(text.strip()))
    return written.strip("\n")


def inline_markdown(text: Any) -> str:
    """A description as inline Markdown in one line, for lists and cells of tables."""
    if not isinstance(text, str):
        return ""
    written = block_markdown(text, 6)
    lines = [line.strip() for line in written.split("\n")]
    # a fence cannot stand in one line; its code can
    kept = [_HEADING.sub(r"**\2**", line) for line in lines if not re.match(r"`{3,}|~{3,}", line)]
    return " ".join(" ".join(kept).split())


def table_cell(text: str) -> str:
    """Inline Markdown as a cell of a pipe table."""
    return " ".join(re.sub(r"(?<!\\)\|", r"\\|", text).split())


def _shifted(text: str, level: int) -> str:
    """Headings moved below the document's, raw HTML outside of code made text."""
    lines = text.split("\n")
    pieces: list[tuple[bool, str]] = []  # whether code, line
    mark = ""
    for line in lines:
        match = _FENCE.match(line)
        if mark:
            pieces.append((True, line))
            if match and match[2][0] == mark[0] and len(match[2]) >= len(mark) and not match[3]:
                mark = ""
            continue
        if match:
            mark = match[2]
            pieces.append((True, line))
            continue
        under = _UNDERLINE.match(line)
        previous = pieces[-1][1] if pieces and not pieces[-1][0] else ""
        if under and previous.strip() and not re.match(r"\s*(?:[-*+>#|]|\d+[.)])", previous):
            pieces[-1] = (False, ("# " if under[1][0] == "=" else "## ") + previous.strip())
        else:
            pieces.append((False, line))
    if mark:
        pieces.append((True, mark))
    levels = [
        len(match[1]) for code, line in pieces if not code and (match := _HEADING.match(line))
    ]
    shift = level - min(levels, default=1)
    out: list[str] = []
    prose: list[str] = []
    for code, line in [*pieces, (True, "")]:
        if code:
            if prose:
                out.append(_prose("\n".join(prose)))
                prose = []
            out.append(line)
        elif match := _HEADING.match(line):
            hashes = "#" * max(1, min(6, len(match[1]) + shift))
            prose.append(f"{hashes} {match[2]}".rstrip())
        else:
            prose.append(line)
    return "\n".join(out)


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
    from kbkit.sources.html.dom import clean, parse
    from kbkit.sources.html.writer import MarkdownWriter

    root = parse(f"<html><body>{text}</body></html>")
    body = None if root is None else root.find("body")
    if body is None:
        return ""
    clean(body)
    return MarkdownWriter("").write(body)


@cache
def _parser() -> Any:
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark")


def _contained(written: str) -> bool:
    """Whether a heading behind the text is still a heading of the document."""
    tokens = _parser().parse(written + _SENTINEL)
    return len(tokens) >= 3 and tokens[-3].type == "heading_open" and tokens[-3].level == 0
