"""Markdown of documents made fit to stand on a page: links rewritten, markup of others disarmed.

Text of documents is hostile. The pages of an export are rendered by `kbkit.markdown.rendering`,
which lets nothing active through; what happens here protects those who render the Markdown files
with something else. Code is never touched, neither blocks nor spans.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from markdown_it.common.utils import unescapeAll

from kbkit.markdown.blocks import Block, blocks, closes
from kbkit.models.plain import plain

ANCHOR = re.compile(r"(?<![ \t])[ \t]*\{#([^\s{}\"'<>]+)\}[ \t]*$")
"""The anchor behind a heading's text."""

_HEADING_MARKS = re.compile(r"#{1,6}(?=[ \t]|$)")
_ACTIVE = re.compile(r"[\\`<\]{]")
_BACKTICKS = re.compile(r"`+")
_SPAN = re.compile(r"(`+)(?!`).+?(?<!`)\1(?!`)", re.DOTALL)
_AUTOLINK = re.compile(r"<((?:https?://|mailto:)[^\s<>]+)>")
_DESTINATION = re.compile(
    r"\]\(\s*(?:<([^<>\n]*)>|(?!<)((?:\\.|\((?:\\.|[^\s()\\])*\)|[^\s()\\])*))(?=[\s)])"
)
_DEFINITION = re.compile(r"[ >\t]{0,12}(\[(?:\\.|[^\]\\])+\]):[ \t]*(?:<([^<>]*)>|(\S+))")
_CELLS = re.compile(r"((?<!\\)\|)")
_SPECIAL = re.compile(r"([\\`*_\[\]|~#])")

Rewrite = Callable[[str], str | None]
"""Gives a link's new destination, or ``None`` where it must not be followed."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A document's Markdown, ready for its page.

    Attributes:
        text: The Markdown below the page's title.
        anchor: Anchor of the title that the document itself began with, or ``""``.
    """

    text: str
    anchor: str


@lru_cache(maxsize=16_384)
def escape(text: str) -> str:
    """Plain text as Markdown that shows exactly it, in a line, a link's text or a table cell."""
    text = plain(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _SPECIAL.sub(r"\\\1", text).replace("{", "&#123;").replace("}", "&#125;")


def prepare(content: str, *, title: str, rewrite: Rewrite) -> Prepared:
    """Make a document's Markdown fit to stand below its title on a page.

    A heading of level 1 that repeats the title is dropped (its anchor is handed over); if other
    headings of level 1 remain, all headings go down one level.

    Args:
        content: The document's Markdown.
        title: Its title, plain text.
        rewrite: Says where a link leads.
    """
    lines = content.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    found = list(blocks(lines))
    last = found[-1] if found else None
    fence = last if last and last.is_fence and last.outermost else None
    # what ends a fence that the document left open, which would take in the rest of the page
    closing = f"\n{fence.markup}" if fence and not closes(fence, lines) else ""
    anchor = ""
    if found and found[0].level == 1 and found[0].outermost:
        match = ANCHOR.search(found[0].content)
        if _words(ANCHOR.sub("", found[0].content)) == _words(title):
            anchor = match[1] if match else ""
            for number in range(found[0].first, found[0].end):
                lines[number] = ""
            del found[0]
    demote = any(block.level == 1 and block.outermost for block in found)
    covered = _disarm_blocks(found, lines, rewrite, demote=demote)
    for number, line in enumerate(lines):
        if number not in covered and line:
            lines[number] = _definition(line, rewrite)
    return Prepared("\n".join(lines).strip("\n") + closing, anchor)


def _words(text: str) -> str:
    """Text without markup and case, to compare a heading with a title."""
    text = re.sub(r"\[((?:\\.|[^\[\]\\])*)\]\([^()]*\)", r"\1", text)
    return " ".join(re.sub(r"[`*_\\¶]", "", text).split()).casefold()


def _disarm_blocks(
    found: list[Block], lines: list[str], rewrite: Rewrite, *, demote: bool
) -> set[int]:
    """Disarm every line of text in place.

    Returns:
        The lines that were dealt with, code among them.
    """
    covered: set[int] = set()
    for block in found:
        whole = range(block.first, block.end)
        if block.kind in {"code", "dashes"}:
            covered.update(whole)
            continue
        if block.kind != "heading" and block.first in covered:
            continue  # further cells of a row
        covered.update(whole)
        text = "\n".join(lines[block.first : block.end])
        if block.kind == "cells":
            text = "".join(_disarm(cell, rewrite) for cell in _CELLS.split(text))
        elif block.kind == "heading":
            text = _heading(block, text, rewrite, demote=demote)
        elif _ACTIVE.search(text):
            text = "\n".join(map(_defuse_definition, _disarm(text, rewrite).split("\n")))
            if block.content.strip().upper() == "[TOC]":
                text = text.replace("[", "\\[", 1)
        else:
            continue
        lines[block.first : block.end] = text.split("\n")
    return covered


def _heading(heading: Block, text: str, rewrite: Rewrite, *, demote: bool) -> str:
    """Disarm a heading; its anchor stays, its level may go down by one.

    Returns:
        As many lines as there were.
    """
    if heading.markup[0] == "#":
        text = _heading_text(text, rewrite)
        down = demote and heading.level < 6
        return _HEADING_MARKS.sub(lambda found: found[0] + "#", text, count=1) if down else text
    text, _, underline = text.rpartition("\n")
    text = _heading_text(text, rewrite)
    if not demote or heading.level == 1:
        return f"{text}\n{underline.replace('=', '-') if demote else underline}"
    # There is no underline for level 3; the lines are counted, so as many stay
    head, *rest = text.split("\n")
    lead = re.match(r"[ >\t]*", head)
    begin = lead.end() if lead else 0
    joined = " ".join([head[begin:], *(line.strip(" >\t") for line in rest)])
    return head[:begin] + "### " + joined + "\n" * (len(rest) + 1)


def _heading_text(text: str, rewrite: Rewrite) -> str:
    match = ANCHOR.search(text)
    anchor = match[0] if match else ""
    return _disarm(text[: match.start()] if match else text, rewrite) + anchor


def _disarm(text: str, rewrite: Rewrite) -> str:
    """Disarm a stretch of text and rewrite its links; code spans stay as they are."""
    out: list[str] = []
    at = 0
    while found := _ACTIVE.search(text, at):
        out.append(text[at : found.start()])
        at = found.start()
        char = text[at]
        if char == "\\" and at + 1 < len(text):
            follower = text[at + 1]
            out.append({"<": "&lt;", "{": "&#123;"}.get(follower, char + follower))
            at += 2
        elif char == "`":
            at = _copy_code(text, at, out)
        elif char == "<":
            link = _AUTOLINK.match(text, at)
            out.append(_autolink(link[1], rewrite) if link else "&lt;")
            at = link.end() if link else at + 1
        elif char == "]" and (goal := _DESTINATION.match(text, at)):
            target = rewrite(unescapeAll(goal[1] if goal[1] is not None else goal[2]))
            out.append(f"]({target or ''}")
            at = goal.end()
        else:
            out.append("&#123;" if char == "{" else char)
            at += 1
    return "".join(out) + text[at:]


def _copy_code(text: str, at: int, out: list[str]) -> int:
    """Copy a code span, or backticks that begin none.

    Returns:
        Where to go on.
    """
    span = _SPAN.match(text, at) or _BACKTICKS.match(text, at)
    assert span is not None
    out.append(span[0])
    return span.end()


def _autolink(target: str, rewrite: Rewrite) -> str:
    """An address in angle brackets; one that is a page of the export becomes a link to it."""
    found = rewrite(target)
    if found is None:
        return escape(target)
    if found.startswith(("http://", "https://", "mailto:")):
        return f"<{found}>"
    return f"[{escape(target)}]({found})"


def _defuse_definition(line: str) -> str:
    """Keep a line of text from being a link's definition to parsers that are less careful."""
    return line.replace("[", "\\[", 1) if _DEFINITION.match(line) else line


def _definition(line: str, rewrite: Rewrite) -> str:
    """A link's definition (``[label]: address``), or a line that no block claims."""
    match = _DEFINITION.match(line)
    if not match:
        return _disarm(line, rewrite)
    target = rewrite(unescapeAll(match[2] if match[2] is not None else match[3]))
    return f"{_disarm(match[1], rewrite)}: {target or '<>'}"
