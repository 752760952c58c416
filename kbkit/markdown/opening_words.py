"""The first and last words of a passage, as text fragments quote them.

A browser finds them there: they are what a text fragment (``#:~:text=``) quotes. It looks for them
in one block of the page at a time, so they are of one block, and of one line where lines count.

Source: WICG, "Text Fragments" (draft community group report).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from kbkit.markdown.blocks import Block, Kind, blocks, text_anchor
from kbkit.markdown.plain_text import inline_text, plain_text
from kbkit.markdown.structure import split_anchor

_END = 48
"""Characters of a beginning or an end, as `assets/snippet.js` has them."""
MAX_LENGTH = 80
"""Characters of the words."""
NEAR = 400
"""Characters between an anchor and words that a reader sees without scrolling."""
_ENOUGH = 3
"""Words by which a passage is found; of less, a page may have many."""
_READ = 4_000  # characters of a passage that are read
_MARKS = re.compile(r"^(?:\s*(?:(?:[-*+]|\d{1,9}[.)])(?=\s|$)|>|\[[ xX]\]))*\s*")
_TERM = re.compile(r"^(?:\*\*(?:[^*\n]|\*(?!\*)){1,300}\*\*|`[^`\n]{1,300}`): ")
"""A term before its definition, in two HTML blocks."""
_BREAK = re.compile(r"\\\n| {2,}\n|[ \t]*\n[ \t]*(?=(?:[-*+>|]|\d{1,9}[.)])\s)")
_UNSEEN = re.compile(r"!\[|<br|\$")
"""Syntax without visible text."""
_OPENED = re.compile(r"[\s*_`(\[]+$")
"""Opening marks of invisible syntax."""
_MARKED = re.compile(r"`[^`\n]+`|\*\*[^*\n]+\*\*|\]\(")
_SPACE = re.compile(r"[ \t\n\r\f\v]+")  # a page's thin spaces and the like are looked for as well
_CELL_END = re.compile(r"(?<!\\)\|")
_PAUSE = re.compile(r"(?<=[。！？、，；：])")


def passage_ends(markdown: str) -> str:
    """Return the first and last words of a passage; must match ``ends`` in the scripts."""
    text = plain_text(markdown)
    parts = [text]
    if len(text) > 2 * _END:
        parts = [re.sub(r"\s\S*$", "", text[:_END]), re.sub(r"^\S*\s", "", text[-_END:])]
    return "…".join(re.sub(r"[…\s\ud800-\udfff]", " ", part) for part in parts)


def opening_words(markdown: str, *, from_top: bool = False) -> str:
    """The words of the first block that has enough of them, on one line."""
    text = markdown[:_READ].replace("\0", "")
    first, heading = "", ""
    for block in blocks(text):
        if block.kind is Kind.HEADING and not first:
            title, anchor = split_anchor(block.title)
            if anchor or (from_top and not heading):
                return ""
            heading = heading or _shortened(inline_text(title))
            continue
        said, anchor = text_anchor(block, text[block.start : block.end])
        if anchor and not first and not heading:
            return ""
        for line in _lines(block, said):
            words = _shortened(line)
            if len(words.split()) >= _ENOUGH or len(words) > MAX_LENGTH // 2:
                return words
            first = first or words
    return first or heading


def shown_words(markdown: str, shown: str) -> str:
    """Return the first line of a snippet, if it is far below its heading."""
    seen, above = _SPACE.sub(" ", shown), 0
    for block in blocks(markdown[:_READ].replace("\0", "")):
        if block.kind is Kind.HEADING:
            continue
        for line in _lines(block, markdown[block.start : block.end]):
            words = _shortened(line)
            if above > NEAR and len(words.split()) >= _ENOUGH and words in seen:
                return words
            above += len(line)
    return ""


def _lines(block: Block, text: str) -> Iterator[str]:
    if block.kind is Kind.TEXT:
        text = _TERM.sub("", _MARKS.sub("", text, count=1), count=1)
        for line in _BREAK.split(text):
            seen, *unseen = _UNSEEN.split(line, maxsplit=1)
            yield _plain(_OPENED.sub("", seen) if unseen else seen)
    elif block.kind is Kind.TABLE:
        for row in text.split("\n"):
            yield from (inline_text(cell.strip()) for cell in _CELL_END.split(row.strip(" >|")))
    elif block.kind is Kind.FENCE:
        yield from text.split("\n")[1:]
    elif block.kind is Kind.CODE:  # or, where the list around it is not of the passage, text
        yield from (_plain(line) if _MARKED.search(line) else line for line in text.split("\n"))


def _plain(line: str) -> str:
    return inline_text(_MARKS.sub("", line, count=1))


def _shortened(text: str) -> str:
    """At most `MAX_LENGTH` characters that end where a word does."""
    text = _SPACE.sub(" ", text).strip()
    if len(text) <= MAX_LENGTH:
        return text
    end = text.rfind(" ", 0, MAX_LENGTH + 1)
    if end > 0:
        return text[:end]
    pauses = [found.end() for found in _PAUSE.finditer(text[:MAX_LENGTH])]
    return text[: pauses[-1]] if pauses else text[:MAX_LENGTH]
