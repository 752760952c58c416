"""Convert Markdown to plain text. All patterns are bounded: texts are untrusted."""

from __future__ import annotations

import re
from functools import lru_cache
from html import unescape
from textwrap import dedent

from kbkit.text.markdown.blocks import Kind, blocks, text_anchor

SAFE_SCHEMES = frozenset({"http", "https", "mailto"})

RELATIVE = re.compile(r"(?!//)[\w./%~+-][\w./%~+#?&=-]*")
"""An address within a site, without special characters of Markdown."""

DESTINATION = re.compile(
    r"\]\(\s*(?:<([^<>\n]*)>|(?!<)((?:\\.|\((?:\\.|[^\s()\\])*\)|[^\s()\\])*))(?=[\s)])"
)
"""Address after a link's text, in angle brackets (1) or bare (2)."""

CODE_SPAN = re.compile(r"(`+)(?!`).+?(?<!`)\1(?!`)", re.DOTALL)

WIKI_LINK = re.compile(
    r"\[\[([^\[\]\n|#^]{1,500})(?:[#^]([^\[\]\n|]{0,500}))?(?:\|([^\[\]\n]{0,500}))?\]\]"
)
"""A link by name (``[[Name#Heading|text]]``): name, heading and text."""

_LINK = re.compile(
    r"!?\[((?:[^\[\]\n]|\[[^\[\]\n]{0,400}\]){0,400})\]"  # text, with one level of nested brackets
    r"\((?:<[^<>\n]*>|[^\s()<>]*(?:\([^\s()]*\)[^\s()<>]*)*)(?:\s+(?:\"[^\"\n]*\"|'[^'\n]*'))?\s*\)"
)


def destinations(markdown: str) -> list[str]:
    return [match[1] or match[2] or "" for match in DESTINATION.finditer(markdown)]


def links(markdown: str) -> list[re.Match[str]]:
    """Find links and images with labels of at most 400 characters (group 1)."""
    return list(_LINK.finditer(markdown)) if "](" in markdown else []


def link_texts(markdown: str) -> list[str]:
    """Return the labels of links and images, up to 400 characters each."""
    return [match[1] for match in links(markdown)]


def without_link_targets(markdown: str) -> str:
    """Replace links and images by their labels, if those have at most 400 characters."""
    return _LINK.sub(r"\1", markdown) if "](" in markdown else markdown


_MARKUP = re.compile(r"[`*_\[\\<&]")
_MARKS = re.compile(r"^(?:\s*(?:(?:[-*+]|\d{1,9}[.)])(?=\s|$)|>))*\s*")
_DASHES = re.compile(r"[\s>|:-]*")
_ROW = re.compile(r"^[ >]*\|[^\n]*[^\\\n]\|[ ]*$", re.MULTILINE)
_CELL_END = re.compile(r"(?<!\\)\|")
_ANCHOR = re.compile(r"\{#[^{}\s]*\}$")
_VERBATIM = re.compile(
    r"\\([!-/:-@\[-`{-~])"  # an escaped mark
    r"|(?<!`)(`+)(?!`)(.+?)(?<!`)\2(?!`)"  # code
)
_PLACEHOLDER = re.compile(r"\0(\d+)\0")
_AUTOLINK = re.compile(r"<((?:https?|ftp|mailto):[^\s<>]*)>")
_TAG = re.compile(
    r"</?(?:abbr|b|big|br|BR|center|cite|code|del|div|em|font|h[1-6]|i|img|IMG|ins|kbd|mark|p|picture|"
    r"q|s|samp|small|source|span|strong|sub|sup|svg|tt|u|var|wbr)(?:\s[^<>]*)?/?>|"
    r"<a\s[^<>]*>|</a>|<!--.*?-->"
)
"""HTML tags; other names in angle brackets may be types (``List<String>``) or named elements."""
_REFERENCE = re.compile(r"(?<![\w\]])!?\[([^\[\]]{0,400})\]\[[^\[\]]{0,400}\]")
_ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[a-zA-Z]\w{1,30});")
_EMPHASIS = re.compile(
    r"(\*{1,3})(?=\S)(.{1,300}?)(?<=\S)\1"
    r"|(?<!\w)(_{1,3})(?=\S)(.{1,300}?)(?<=\S)\3(?!\w)"
)


@lru_cache(maxsize=4_096)
def plain_text(markdown: str, *, lines: bool = False) -> str:
    """Remove Markdown's marks and link targets; code stays unchanged.

    Headings are left out, since a hit shows its heading path, unless there is no other text.
    """
    markdown = markdown.replace("\0", "")
    text: list[str] = []
    headings: list[str] = []
    for block in blocks(markdown):
        piece = markdown[block.start : block.end]
        if block.kind is Kind.HEADING:
            headings.append(inline_text(_ANCHOR.sub("", block.title)))
        elif block.kind is Kind.FENCE:
            code = piece.splitlines()
            closed = len(code) > 1 and code[-1].lstrip(" \t>").startswith(block.markup)
            text += _dedented(code[1 : -1 if closed else None])
        elif block.kind is Kind.TABLE:
            head, _, *rows = piece.splitlines()
            text += map(_row, (head, *rows))
        elif block.kind is Kind.TEXT and _ROW.search(piece):  # table rows without their head
            text += map(_row, piece.splitlines())
        elif block.kind is Kind.TEXT:
            if block.item or not block.outermost:
                piece = " ".join(_MARKS.sub("", line) for line in piece.splitlines())
            piece = text_anchor(block, piece)[0]
            text.append(_one_line(inline_text(" ".join(piece.splitlines()))))
        elif block.kind is not Kind.RULE:
            text += _dedented(piece.splitlines())
    text = text or headings
    return "\n".join(filter(None, text)) if lines else _one_line(" ".join(text))


def _row(row: str) -> str:
    return _one_line(inline_text(_CELL_END.sub(" ", row.lstrip(" >"))))


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _dedented(code: list[str]) -> list[str]:
    text = dedent("\n".join(line.expandtabs(4).rstrip() for line in code))
    return text.replace("\r", " ").split("\n")


def inline_text(markup: str, *, tags: bool = True) -> str:
    """Remove links, emphasis, escapes and entities from a line of Markdown; code stays."""
    if not _MARKUP.search(markup):
        return markup
    verbatim: list[str] = []

    def replace_verbatim(match: re.Match[str]) -> str:
        verbatim.append(match[1] or match[3].strip())
        return f"\0{len(verbatim) - 1}\0"

    text = markup
    if "`" in text or "\\" in text:
        text = _VERBATIM.sub(replace_verbatim, text)
    if "<" in text:
        text = _AUTOLINK.sub(r"\1", text)
        text = text if tags else _TAG.sub("", text)
    if "](" in text:
        for _ in range(2):  # an image in a link
            text = without_link_targets(text)
    if "][" in text:
        text = _REFERENCE.sub(r"\1", text)
    for _ in range(3):  # emphasis may nest
        if "*" not in text and "_" not in text:
            break
        text, count = _EMPHASIS.subn(lambda match: match[2] or match[4], text)
        if not count:
            break
    if "&" in text:
        text = _ENTITY.sub(lambda match: unescape(match[0]), text)
    return _PLACEHOLDER.sub(lambda match: verbatim[int(match[1])], text) if verbatim else text
