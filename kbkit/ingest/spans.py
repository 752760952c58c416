"""Split Markdown into spans: by headings, blocks, pages, sentences or size."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Iterator, Sequence
from enum import Enum
from functools import lru_cache, partial
from itertools import chain, groupby, pairwise
from typing import TYPE_CHECKING, NamedTuple

from kbkit.models import ChunkSpan, DocumentType
from kbkit.text.markdown import Block, Kind
from kbkit.text.markdown.structure import Outline, trim

if TYPE_CHECKING:
    from llama_index.core.node_parser import SentenceSplitter


_WINDOW = 65_536  # characters that a sentence splitter sees at once, which bounds its memory
_MIN_ROOM = 50  # characters; a smaller rest of a chunk is not worth filling
_SHORT_SECTION = 200  # characters: a line or two
_SENTENCE = re.compile(r"[.!?…]+[\"')\]’”]*\s+(?![a-z]|\{#)|[。！？]+[」』”’）]*\s*|\n\s*\n")
_CLAUSE = re.compile(r"[,;:]\s+|\n")
_TEXT = re.compile(r"\S")
_BLANK_LINES = re.compile(r"\n(?:[^\S\n]*\n)+")

Span = tuple[int, int]


class Cut(Enum):
    """Options of splitting."""

    NEVER = "never"
    """A heading: never split, and kept with what follows."""
    LINES = "lines"
    """Code, a table or raw HTML: stays whole, or is cut at line ends."""
    ITEMS = "items"
    """A list: between items first."""
    SENTENCES = "sentences"


class Piece(NamedTuple):
    """Text that fills chunks, ``content[start:end]``, with the starts of list items in it."""

    start: int
    end: int
    cut: Cut
    items: tuple[int, ...] = ()


_FORMATS = {"pdf": "page", "docx": "paragraph"}
_FORMATS |= dict.fromkeys(("sheet", "csv", "data", "code"), "fixed")


def cut(
    content: str,
    structure: Outline,
    strategy: str,
    size: int,
    overlap: int = 0,
    *,
    lines: bool = False,
) -> Iterator[ChunkSpan]:
    """Split a document into spans; `lines` lets ``fixed`` ones end at line ends where possible."""
    overlaps = strategy in {"fixed", "sentence"} and overlap > 0
    limit = size - overlap if overlaps else size
    for start, end in _segments(content, structure, strategy):
        if end - start <= size:
            yield _span_at(content, structure, start, end)
            continue
        if strategy == "fixed":
            spans = _windows(content, start, end, limit, lines=lines)
        else:
            pieces = _pieces(content, start, end, structure)
            if strategy == "sentence":
                pieces = _runs(pieces)
            spans = _pack(content, pieces, limit, size)
        previous_start = -1
        for low, high in spans:
            first = low
            if overlaps and previous_start >= 0:
                earliest = max(low - overlap, high - size, previous_start + 1)
                first = _reach_back(content, earliest, low, strategy == "sentence")
            yield _span_at(content, structure, first, high)
            previous_start = first


def strategy_for(structure: Outline, document_type: DocumentType, form: str = "") -> str:
    """Resolve the strategy ``auto`` for a document.

    Split PDFs by page, Word documents by chapter and paragraph, tables, data and source code by
    headings and size, and other texts by headings; without headings, by marked pages or paragraphs.
    """
    if form in _FORMATS:
        return _FORMATS[form]
    if structure.headings or document_type not in (DocumentType.OTHER, DocumentType.POLICY):
        return "headings"
    return "page" if structure.pages else "paragraph"


def _segments(content: str, structure: Outline, strategy: str) -> Iterator[Span]:
    if strategy in {"headings", "fixed", "sentence"}:
        marks = [(heading.start, heading.end, heading.level) for heading in structure.headings]
    elif strategy == "page":
        marks = [(low, after, 0) for low, after, _ in structure.pages]
    else:
        marks = list(_chapters(content, structure))
    start = 0
    # a heading without text joins the deeper heading below it; an empty page joins the next one
    pending: tuple[int, int] | None = None
    for low, after, level in marks:
        if pending is None or content[pending[0] : low].strip() or 0 < level <= pending[1]:
            span = trim(content, start, low)
            if span[0] < span[1]:
                yield span
            start = low
        pending = after, level
    span = trim(content, start, len(content))
    if span[0] < span[1]:
        yield span


def _chapters(content: str, structure: Outline) -> Iterator[tuple[int, int, int]]:
    """Iterate over chapters (two heading levels) that start a chunk; short sections share one."""
    headings = [heading for heading in structure.headings if heading.level <= 2]
    ends = [heading.start for heading in headings[1:]] + [len(content)]
    gathered = len(content[: headings[0].start].strip()) if headings else 0
    for heading, end in zip(headings, ends, strict=False):
        text = len(content[heading.end : end].strip())
        if gathered and (heading.level == 1 or max(gathered, text) >= _SHORT_SECTION):
            yield heading.start, heading.end, heading.level
            gathered = 0
        gathered += text


def _span_at(content: str, structure: Outline, start: int, end: int) -> ChunkSpan:
    """Return a span with the path of its last opening heading and the nearest anchor above."""
    headings = structure.headings
    index = bisect_right(headings, start, key=lambda heading: heading.start) - 1
    while (
        0 <= index < len(headings) - 1
        and headings[index].end >= start
        and headings[index + 1].start < end
        and not content[headings[index].end : headings[index + 1].start].strip()
    ):
        index += 1
    anchor = headings[index].anchor if index >= 0 else ""
    last = bisect_right(structure.anchors, start, key=lambda pair: pair[0]) - 1
    if last >= 0 and (index < 0 or structure.anchors[last][0] > headings[index].start):
        anchor = structure.anchors[last][1]
    pages = structure.pages
    page = bisect_right(pages, start, key=lambda mark: mark[0]) - 1
    while (
        0 <= page < len(pages) - 1
        and pages[page + 1][0] < end
        and not content[max(pages[page][1], start) : pages[page + 1][0]].strip()
    ):
        page += 1
    path = headings[index].path if index >= 0 else ()
    return ChunkSpan(start, end, path, anchor, pages[page][2] if page >= 0 else None)


def _pieces(content: str, start: int, end: int, structure: Outline) -> Iterator[Piece]:
    """Iterate over headings, code, raw HTML, and paragraphs of a range in order."""
    first, last = (
        bisect_left(structure.blocks, offset, key=lambda block: block.start)
        for offset in (content.rfind("\n", 0, start) + 1, end)
    )
    loose: list[Block] = []
    position = start
    for block in structure.blocks[first:last]:
        heading = block.kind is Kind.HEADING and block.outermost
        if not heading and not block.is_verbatim:
            loose.append(block)
            continue
        yield from _split_loose(content, position, max(block.start, start), loose)
        span = trim(content, max(block.start, start), min(block.end, end))
        yield Piece(*span, Cut.NEVER if heading else Cut.LINES)
        loose = []
        position = span[1]
    yield from _split_loose(content, position, end, loose)


def _split_loose(content: str, start: int, end: int, loose: Sequence[Block]) -> Iterator[Piece]:
    blanks = (blank.span() for blank in _BLANK_LINES.finditer(content, start, end))
    edges = [start, *chain.from_iterable(blanks), end]
    number = 0
    for position, after in zip(edges[::2], edges[1::2], strict=True):
        next_number = bisect_left(loose, after, key=lambda block: block.start)
        low, high = trim(content, position, after)
        if low < high:
            yield _piece(content, low, high, loose[number:next_number])
        number = next_number


def _piece(content: str, start: int, end: int, blocks: Sequence[Block]) -> Piece:
    if blocks and blocks[0].item and blocks[0].start <= start:
        marks = (block.start for block in blocks if block.item)
        return Piece(start, end, Cut.ITEMS, tuple(max(mark, start) for mark in marks))
    margin = content[content.rfind("\n", 0, start) + 1 : start]
    indented = len(margin) >= 4 or "\t" in margin
    table = any(block.kind is Kind.TABLE for block in blocks)
    return Piece(start, end, Cut.LINES if table or indented else Cut.SENTENCES)


def _runs(pieces: Iterator[Piece]) -> Iterator[Piece]:
    """Join adjacent paragraphs and lists, so that sentences fill chunks."""
    for joins, group in groupby(pieces, lambda piece: piece.cut in {Cut.SENTENCES, Cut.ITEMS}):
        run = list(group)
        yield from [Piece(run[0].start, run[-1].end, Cut.SENTENCES)] if joins else run


def _pack(content: str, pieces: Iterator[Piece], limit: int, size: int) -> Iterator[Span]:
    """Fill chunks with whole pieces. Headings at the end of a chunk move to the next."""
    queue = deque(pieces)
    start = end = -1  # the chunk so far
    body = -1  # end of its last piece that is not a heading
    head = -1  # start of the headings after it
    while queue:
        piece = queue.popleft()
        if piece.end - piece.start > (size if piece.cut is Cut.LINES else limit):
            queue.extendleft(reversed(list(_cut(content, piece, limit, size))))
            continue
        if start >= 0 and piece.end - start > limit:
            if body >= 0:
                yield start, body
                start, body = head, -1
                queue.appendleft(piece)
                continue
            room = limit - (piece.start - start)
            if piece.cut in {Cut.SENTENCES, Cut.ITEMS} and room >= _MIN_ROOM:
                queue.extendleft(reversed(list(_cut(content, piece, room, size))))
                continue
            yield start, end
            start, head = -1, -1
        if start < 0:
            start = piece.start
        end = piece.end
        if piece.cut is Cut.NEVER:
            head = piece.start if head < 0 else head
        else:
            body, head = end, -1
    if start >= 0:
        yield start, end


def _cut(content: str, piece: Piece, limit: int, size: int) -> Iterator[Piece]:
    if piece.cut is Cut.ITEMS:
        for low, high in pairwise((piece.start, *piece.items[1:], piece.end)):
            yield Piece(*trim(content, low, high), Cut.SENTENCES)
    elif piece.cut is Cut.LINES:
        for low, high in _windows(content, piece.start, piece.end, size, lines=True):
            yield Piece(low, high, Cut.LINES)
    else:
        for low, high in _windows(content, piece.start, piece.end, _WINDOW, lines=True):
            for span in _sentences(content, low, high, limit):
                yield Piece(*span, Cut.SENTENCES)


def _windows(
    content: str, start: int, end: int, limit: int, *, lines: bool = False
) -> Iterator[Span]:
    """Cut at the last line end (or white space) that the limit allows, else at the limit."""
    while end - start > limit:
        line = content.rfind("\n", start, start + limit + 1)
        space = content.rfind(" ", start, start + limit + 1)
        cut_at = line if lines and line > start else max(line, space)
        span = trim(content, start, cut_at if cut_at > start else start + limit)
        yield span
        start = trim(content, span[1], end)[0]
    yield start, end


def _sentences(content: str, start: int, end: int, limit: int) -> Iterator[Span]:
    position = start
    for piece in _splitter(limit).split_text(content[start:end]):
        match = _TEXT.search(content, position, end)
        low = match.start() if match else end
        if not content.startswith(piece, low):  # the splitter changed the text: cut without it
            break
        position = low + len(piece)
        yield low, position
    low, high = trim(content, position, end)
    if low < high:
        yield from _windows(content, low, high, limit)


def load_splitter() -> None:
    """Import the sentence splitter early, since this takes a second."""
    _splitter(1)


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
    """Split text into sentences; long ones into clauses or words. Joined, they equal the text.

    No piece exceeds the limit: the splitter processes longer ones slowly, letter by letter.
    """
    # the rest if it is short, else up to a space, else up to the limit
    words = re.compile(rf".{{1,{limit}}}\Z|.{{0,{limit - 1}}} |.{{1,{limit}}}", re.DOTALL)
    pieces: list[str] = []
    for sentence in _split(_SENTENCE, text):
        clauses = [sentence] if len(sentence) <= limit else _split(_CLAUSE, sentence)
        pieces += chain.from_iterable(map(words.findall, clauses))
    return pieces


def _split(after: re.Pattern[str], text: str) -> Iterator[str]:
    start = 0
    for match in after.finditer(text):
        yield text[start : match.end()]
        start = match.end()
    if start < len(text):
        yield text[start:]


def _reach_back(content: str, earliest: int, start: int, sentences: bool) -> int:
    """Return the start of an overlap: at a sentence or a word."""
    match = _SENTENCE.search(content, earliest, start) if sentences else None
    if match:
        earliest = match.end()
    else:
        while earliest < start and not content[earliest - 1].isspace():
            earliest += 1
    low, high = trim(content, earliest, start)
    return low if low < high else start
