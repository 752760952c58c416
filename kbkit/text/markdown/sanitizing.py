"""Sanitize Markdown for a page: rewrite links, escape untrusted markup.

`kbkit.text.markdown.rendering` makes the pages of an export safe anyway; this module protects
readers who render the Markdown files with another program. Code loses only invisible characters.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from markdown_it.common.utils import unescapeAll

from kbkit.models.values import plain, without_controls
from kbkit.text.markdown import Block, Kind, blocks, is_closed, same_breaks, text_anchor
from kbkit.text.markdown.structure import CODE_SPAN, DESTINATION, split_anchor
from kbkit.text.markdown.writing import anchor_mark

_ACTIVE = re.compile(r"[\\`<\]{]")
_PIECE = re.compile(
    rf"(?=[\\`<\]{{])(?:(?s:{CODE_SPAN.pattern})|`+|\\(?P<escaped>(?s:.))"
    r"|<(?P<link>(?:https?://|mailto:)[^\s<>]+)>"
    rf"|(?P<goal>{DESTINATION.pattern})|(?P<opening>[<{{]))"
)
_REFERENCES = {"<": "&lt;", "{": "&#123;"}
_DEFINITION = re.compile(r"[ >\t]{0,12}(\[(?:\\.|[^\]\\])+\]):[ \t]*(?:<([^<>]*)>|(\S+))")
_PICTURE = re.compile(
    r"\[!\[[^\[\]]{0,400}\]\([^()\n]{0,2000}\)\]\([^()\n]{0,2000}\)|!\[[^\[\]]{0,400}\]\([^()\n]{0,2000}\)"
)
_CONTENTS = re.compile(r"^([ >\t]*(?:[-*+][ \t]+)?)\[(?=TOC\]\s*$)", re.IGNORECASE | re.MULTILINE)
_NO_MARKS = re.compile(r"^[ >\t]*")
_MARKS = re.compile(r"^(?:[ >\t]|(?:[-*+]|\d{1,9}[.)])(?=[ \t]))*")
_BLOCK_START = re.compile(r"^(\d{1,9}(?=[.)])|(?=[-+=:!?#>*_`~|]))")
_CELLS = re.compile(r"((?<!\\)\|)")
_CLOSING = re.compile(r"(?<!\S)#+$")  # would be taken for the end of the marks
_SPECIAL = re.compile(r"([\\`*_\[\]|~#])")

Rewrite = Callable[[str], str | None]
"""Returns a link's new destination, or ``None`` if it must not be followed."""


@dataclass(frozen=True, slots=True)
class Sanitized:
    """A document's Markdown, ready for its page, and the anchor of its dropped title or ``""``."""

    text: str
    anchor: str


@lru_cache(maxsize=16_384)
def escape(text: str) -> str:
    text = plain(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _SPECIAL.sub(r"\\\1", text).replace("{", "&#123;").replace("}", "&#125;")


def prepare(content: str, *, title: str, rewrite: Rewrite) -> Sanitized:
    """Prepare a document's Markdown for a page with its title.

    Drops a heading that repeats the title if only pictures precede it. If other headings of level 1
    remain, all headings go down one level. Raw HTML becomes text; characters that control terminals
    or text direction are removed, also in code.
    """
    # before parsing, since removing control characters may join the parts of markup
    content = without_controls(same_breaks(content.replace("\r\n", "\n")))
    parsed = list(blocks(content))
    at = 0
    repeated, anchor = _find_repeated_title(parsed, content, title)
    demote = any(block.level == 1 and block.outermost and block is not repeated for block in parsed)
    parts: list[str] = []
    before: Block | None = None
    for block in parsed:
        parts.append(_between(content[at : block.start], before, rewrite))
        before, at = block, block.end
        if block is not repeated:
            parts.append(_sanitize_block(block, content[block.start : at], rewrite, demote=demote))
    parts.append(_between(content[at:], before, rewrite))
    text = "".join(parts).strip("\n")
    # close a fence that the document left open, which would include the rest of the page
    last = parsed[-1] if parsed else None
    if last and last.kind is Kind.FENCE and last.outermost and not is_closed(last, content):
        text += f"\n{last.markup}"
    return Sanitized(text, anchor)


def _find_repeated_title(
    parsed: Sequence[Block], content: str, title: str
) -> tuple[Block | None, str]:
    """Return the heading that repeats the title at the start, and its anchor."""
    heading = next((block for block in parsed if block.kind is Kind.HEADING), None)
    above = _PICTURE.sub("", content[: heading.start]) if heading else ""
    if heading and heading.outermost and not any(map(str.isalnum, above)):
        text, anchor = split_anchor(heading.title)
        if _words(text) == _words(title):
            return heading, anchor
    return None, ""


def _words(text: str) -> str:
    text = re.sub(r"\[((?:\\.|[^\[\]\\])*)\]\([^()]*\)", r"\1", text)
    return " ".join(re.sub(r"[`*_\\¶]", "", text).split()).casefold()


def _between(text: str, before: Block | None, rewrite: Rewrite) -> str:
    if before and before.kind is Kind.HTML and before.outermost and not text.startswith("\n\n"):
        text = f"\n{text}"  # a comment ends at its line; as text it would continue in the next
    return "\n".join(_definition(line, rewrite) if line else line for line in text.split("\n"))


def _sanitize_block(block: Block, text: str, rewrite: Rewrite, *, demote: bool) -> str:
    if block.kind is Kind.HEADING:
        return _heading(block, text, rewrite, demote=demote)
    if block.kind is Kind.TABLE:
        head, dashes, *rows = text.split("\n")
        return "\n".join([_cells(head, rewrite), dashes, *(_cells(row, rewrite) for row in rows)])
    if block.kind in {Kind.HTML, Kind.FRONT_MATTER}:
        return html_as_text(block, text, escape)
    if block.kind is Kind.TEXT and _ACTIVE.search(text):
        text, anchor = text_anchor(block, text)
        lines = _sanitize(text, rewrite).split("\n")
        text = "\n".join(
            line.replace("[", "\\[", 1) if _DEFINITION.match(line) else line for line in lines
        )
        return _CONTENTS.sub(r"\1\\[", text) + anchor_mark(anchor)
    return text


def _cells(row: str, rewrite: Rewrite) -> str:
    return "".join(_sanitize(cell, rewrite) for cell in _CELLS.split(row))


def html_as_text(block: Block, text: str, escaped: Callable[[str], str]) -> str:
    lead = _MARKS if block.item else _NO_MARKS
    safe_lines = []
    for line in text.split("\n"):
        begin = 0 if block.outermost else len(line) - len(lead.sub("", line, count=1))
        safe_lines.append(line[:begin] + _BLOCK_START.sub(r"\1\\", escaped(line[begin:].strip())))
        lead = _NO_MARKS
    return "\n".join(safe_lines)


def _heading(heading: Block, text: str, rewrite: Rewrite, *, demote: bool) -> str:
    lead = (_MARKS if heading.item else _NO_MARKS).match(text)
    marks = "#" * min(6, heading.level + demote)
    title = " ".join(map(str.strip, heading.title.split("\n")))  # underlined ones may have lines
    title = _CLOSING.sub(r"\\\g<0>", title)
    title, anchor = split_anchor(title)
    title = _sanitize(title, rewrite) + anchor_mark(anchor)
    return f"{lead[0] if lead else ''}{marks} {title}".rstrip()


def _sanitize(text: str, rewrite: Rewrite) -> str:
    def safe(piece: re.Match[str]) -> str:
        if piece["link"]:
            return _autolink(piece["link"], rewrite)
        if piece["goal"] and (goal := DESTINATION.match(text, piece.start())):
            target = rewrite(unescapeAll(goal[1] if goal[1] is not None else goal[2]))
            return f"]({target or ''}"
        return _REFERENCES.get(piece["opening"] or piece["escaped"], piece[0])

    return _PIECE.sub(safe, text)


def _autolink(target: str, rewrite: Rewrite) -> str:
    link = rewrite(target)
    if link is None:
        return escape(target)
    if link.startswith(("http://", "https://", "mailto:")):
        return f"<{link}>"
    return f"[{escape(target)}]({link})"


def _definition(line: str, rewrite: Rewrite) -> str:
    """Rewrite a link's definition (``[label]: address``), or sanitize another line."""
    match = _DEFINITION.match(line)
    if not match:
        return _sanitize(line, rewrite)
    target = rewrite(unescapeAll(match[2] if match[2] is not None else match[3]))
    return f"{_sanitize(match[1], rewrite)}: {target or '<>'}"
