"""Cuts Markdown into spans: by headings, blocks, pages, sentences or size."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import deque
from collections.abc import Iterator
from functools import lru_cache, partial
from typing import TYPE_CHECKING

from kbkit.markdown.structure import Block, Kind, Outline, blocks, items, trim
from kbkit.models import ChunkSpan, DocumentType

if TYPE_CHECKING:
    from llama_index.core.node_parser import SentenceSplitter

_WINDOW = 65_536  # characters that a sentence splitter sees at once, which bounds its memory
_LEAST_ROOM = 50  # characters; a smaller rest of a chunk is not worth filling
_SENTENCE = re.compile(r"[.!?…]+[\"')\]’”]*\s+(?![a-z])|[。！？]+[」』”’）]*\s*|\n\s*\n")
_CLAUSE = re.compile(r"[,;:]\s+|\n")
_TEXT = re.compile(r"\S")

Span = tuple[int, int]


_FORMATS = {
    "pdf": "page",
    "docx": "paragraph",
    "sheet": "fixed",
    "csv": "fixed",
    "data": "fixed",
    "code": "fixed",
}
"""What ``auto`` means for formats of files whose headings do not tell all."""


def cut(
    content: str,
    structure: Outline,
    strategy: str,
    size: int,
    overlap: int = 0,
    *,
    lines: bool = False,
) -> Iterator[ChunkSpan]:
    """The spans of a document, in order, each with the place where it stands.

    Args:
        content: Markdown.
        structure: Its outline.
        strategy: One of those of a recipe, but ``auto``.
        size: Most characters.
        overlap: Characters that neighbours share, with ``fixed`` and ``sentence``.
        lines: Let ``fixed`` cut at line ends where it can.
    """
    for start, end in _spans(content, structure, strategy, size, overlap, lines=lines):
        yield _placed(content, structure, start, end)


def strategy_for(structure: Outline, document_type: DocumentType, form: str = "") -> str:
    """What ``auto`` means for a document.

    Pages of a PDF stay apart, paragraphs of a Word document fill chunks, and tables, data and
    source code are cut by size below their headings, at line ends. Of the rest, manuals and
    their like are cut by headings. So is anything else that has some; without any, marked pages
    stay apart, and otherwise paragraphs fill chunks.
    """
    if form in _FORMATS:
        return _FORMATS[form]
    if document_type is not DocumentType.OTHER and document_type is not DocumentType.POLICY:
        return "headings"
    if structure.headings:
        return "headings"
    return "page" if structure.pages else "paragraph"


def _spans(
    content: str, structure: Outline, strategy: str, size: int, overlap: int, *, lines: bool = False
) -> Iterator[Span]:
    """Spans of all chunks, in order."""
    overlaps = strategy in {"fixed", "sentence"} and overlap > 0
    limit = size - overlap if overlaps else size
    for start, end in _segments(content, structure, strategy):
        if end - start <= size:
            yield start, end
            continue
        if strategy == "fixed":
            spans = _windows(content, start, end, limit, lines=lines)
        else:
            atoms = blocks(content, start, end, structure)
            if strategy == "sentence":
                atoms = _runs(atoms)
            spans = _pack(content, atoms, limit, size)
        before = -1
        for low, high in spans:
            first = low
            if overlaps and before >= 0:
                earliest = max(low - overlap, high - size, before + 1)
                first = _reach_back(content, earliest, low, strategy == "sentence")
            yield first, high
            before = first


def _segments(content: str, structure: Outline, strategy: str) -> Iterator[Span]:
    """Ranges that no chunk crosses the ends of, trimmed."""
    if strategy in {"headings", "fixed", "sentence"}:
        marks = [(heading.start, heading.end, heading.level) for heading in structure.headings]
    elif strategy == "page":
        marks = [(low, behind, 0) for low, behind, _ in structure.pages]
    else:
        marks = []
    start = 0
    # A heading without text of its own goes with the deeper heading below it, and a page mark
    # without a page with the next.
    pending: tuple[int, int] | None = None
    for low, behind, level in marks:
        if pending is None or content[pending[0] : low].strip() or 0 < level <= pending[1]:
            span = trim(content, start, low)
            if span[0] < span[1]:
                yield span
            start = low
        pending = behind, level
    span = trim(content, start, len(content))
    if span[0] < span[1]:
        yield span


def _placed(content: str, structure: Outline, start: int, end: int) -> ChunkSpan:
    """Where a chunk stands: under the last of the headings that it opens with."""
    headings = structure.headings
    index = bisect_right(headings, start, key=lambda heading: heading.start) - 1
    while (
        0 <= index < len(headings) - 1
        and headings[index].end >= start
        and headings[index + 1].start < end
        and headings[index + 1].level > headings[index].level
        and not content[headings[index].end : headings[index + 1].start].strip()
    ):
        index += 1
    pages = structure.pages
    page = bisect_right(pages, start, key=lambda mark: mark[0]) - 1
    while (
        0 <= page < len(pages) - 1
        and pages[page + 1][0] < end
        and not content[max(pages[page][1], start) : pages[page + 1][0]].strip()
    ):
        page += 1
    return ChunkSpan(
        start,
        end,
        headings[index].path if index >= 0 else (),
        headings[index].anchor if index >= 0 else "",
        pages[page][2] if page >= 0 else None,
    )


def _runs(atoms: Iterator[Block]) -> Iterator[Block]:
    """Neighbouring paragraphs and lists as one block, so that sentences fill chunks."""
    run: Block | None = None
    for atom in atoms:
        if atom.kind in {Kind.PROSE, Kind.LIST}:
            run = Block(run.start if run else atom.start, atom.end, Kind.PROSE)
            continue
        if run:
            yield run
            run = None
        yield atom
    if run:
        yield run


def _pack(content: str, atoms: Iterator[Block], limit: int, size: int) -> Iterator[Span]:
    """Fill chunks with whole blocks. Headings that would end a chunk begin the next."""
    queue = deque(atoms)
    start = end = -1  # the chunk so far
    body = -1  # end of its last block that is no heading
    head = -1  # start of the headings behind that
    while queue:
        atom = queue.popleft()
        if atom.end - atom.start > (size if atom.kind is Kind.LINES else limit):
            queue.extendleft(reversed(list(_cut(content, atom, limit, size))))
            continue
        if start >= 0 and atom.end - start > limit:
            if body >= 0:
                yield start, body
                start, body = head, -1
                queue.appendleft(atom)
                continue
            room = limit - (atom.start - start)
            if atom.kind in {Kind.PROSE, Kind.LIST} and room >= _LEAST_ROOM:
                queue.extendleft(reversed(list(_cut(content, atom, room, size))))
                continue
            yield start, end
            start, head = -1, -1
        if start < 0:
            start = atom.start
        end = atom.end
        if atom.kind is Kind.HEADING:
            head = atom.start if head < 0 else head
        else:
            body, head = end, -1
    if start >= 0:
        yield start, end


def _cut(content: str, block: Block, limit: int, size: int) -> Iterator[Block]:
    """Smaller blocks in place of one that is too large."""
    if block.kind is Kind.LIST:
        for low, high in items(content, block.start, block.end):
            yield Block(*trim(content, low, high), Kind.PROSE)
    elif block.kind is Kind.LINES:
        for low, high in _windows(content, block.start, block.end, size, lines=True):
            yield Block(low, high, Kind.LINES)
    else:
        for low, high in _windows(content, block.start, block.end, _WINDOW, lines=True):
            for span in _sentences(content, low, high, limit):
                yield Block(*span, Kind.PROSE)


def _windows(
    content: str, start: int, end: int, limit: int, *, lines: bool = False
) -> Iterator[Span]:
    """Cut at the last line end (or white space) that the limit allows, else at the limit."""
    while end - start > limit:
        line = content.rfind("\n", start, start + limit + 1)
        space = content.rfind(" ", start, start + limit + 1)
        cut = line if lines and line > start else max(line, space)
        span = trim(content, start, cut if cut > start else start + limit)
        yield span
        start = trim(content, span[1], end)[0]
    yield start, end


def _sentences(content: str, start: int, end: int, limit: int) -> Iterator[Span]:
    """Cut prose between sentences, and between words where a sentence is too long."""
    position = start
    for piece in _splitter(limit).split_text(content[start:end]):
        found = _TEXT.search(content, position, end)
        low = found.start() if found else end
        if not content.startswith(piece, low):  # the splitter changed the text: cut without it
            break
        position = low + len(piece)
        yield low, position
    low, high = trim(content, position, end)
    if low < high:
        yield from _windows(content, low, high, limit)


@lru_cache(maxsize=64)
def _splitter(limit: int) -> SentenceSplitter:
    from llama_index.core.node_parser import SentenceSplitter

    return SentenceSplitter(
        chunk_size=limit,
        chunk_overlap=0,
        paragraph_separator="\n\n",
        tokenizer=str,  # sizes are in characters
        chunking_tokenizer_fn=partial(_small_pieces, limit=limit),
    )


def _small_pieces(text: str, limit: int) -> list[str]:
    """Sentences, or clauses or words of one that is too long; joined, they are the text.

    No piece is longer than the limit: the splitter's own way with such goes letter by letter,
    which takes seconds for a megabyte without spaces.
    """
    pieces = []
    for sentence in _split(_SENTENCE, text):
        if len(sentence) <= limit:
            pieces.append(sentence)
            continue
        for clause in _split(_CLAUSE, sentence):
            start = 0
            while len(clause) - start > limit:
                space = clause.rfind(" ", start, start + limit) + 1
                cut = space if space > start else start + limit
                pieces.append(clause[start:cut])
                start = cut
            pieces.append(clause[start:])
    return pieces


def _split(behind: re.Pattern[str], text: str) -> Iterator[str]:
    start = 0
    for match in behind.finditer(text):
        yield text[start : match.end()]
        start = match.end()
    if start < len(text):
        yield text[start:]


def _reach_back(content: str, earliest: int, start: int, sentences: bool) -> int:
    """Where a chunk begins that shares text with the one before: at a sentence or a word."""
    match = _SENTENCE.search(content, earliest, start) if sentences else None
    if match:
        earliest = match.end()
    else:
        while earliest < start and not content[earliest - 1].isspace():
            earliest += 1
    low, high = trim(content, earliest, start)
    return low if low < high else start
