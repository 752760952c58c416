"""Build the context of an agent within a token budget, and snippets of hits."""

import re
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import TypeAlias

from kbkit.embedding.static import count_tokens
from kbkit.errors import ImpossibleError, KbkitError
from kbkit.models import Citation, Context, ContextPiece, Hit
from kbkit.models.values import pluralize, quotation_mark
from kbkit.retrieval.delimiting import (
    NOTHING,
    Excerpt,
    citation_of,
    count_line_tokens,
    cut,
    excerpts,
    fence,
    harmless,
    instructions,
    one_line,
    source_lines,
)
from kbkit.text.analysis import Analyzer, analyzer
from kbkit.text.markdown.structure import plain_text

MIN_TOKENS = 100
"""Minimum budget; a smaller one has no room for a passage with its source."""
SOUGHT = 4
"""Hits to retrieve per excerpt, because some are repeated or joined."""

SAID = "said: "
"""Prefix of fact lines that repeat the passage."""

_THREADS = ThreadPoolExecutor(8, thread_name_prefix="kbkit-context")
_MIN_TEXT = 24
"""Minimum tokens of a text with a short source."""
_FULL_TEXT = 60
"""Minimum tokens of a text with a full source."""
_NOTE_TOKENS = 60
_FACT_TOKENS = 90
_SHARES = {"entity": 4, "entry": 6, "folders": 12}
"""Divisors of the budget by kind of fact."""
_BETWEEN = 2
"""Tokens between parts."""


@dataclass(frozen=True, slots=True)
class ContextFact:
    """A fact that may help to answer; its kind is ``entity``, ``entry`` or ``folders``."""

    name: str
    lines: tuple[str, ...]
    hit: Hit | None = None
    kind: str = "entity"


@dataclass(frozen=True, slots=True)
class Findings:
    """Results of one retriever for a question."""

    hits: Sequence[Hit] = ()
    facts: Sequence[ContextFact] = ()
    notes: tuple[str, ...] = ()


Finder: TypeAlias = Callable[[], Findings]
"""Returns findings for a question."""


def gather(search: Finder, others: Mapping[str, Finder]) -> list[Findings]:
    """Run all finders concurrently, and collect their results."""

    def find(name: str, finder: Finder) -> Findings:
        try:
            return finder()
        except KbkitError as error:
            return Findings(notes=(f"{name}: {error}",))

    futures = {name: _THREADS.submit(find, name, finder) for name, finder in others.items()}
    try:
        hits = search()
        # run here the finders that no thread has started: faster on a busy machine
        return [
            hits,
            *(
                find(name, finder) if futures[name].cancel() else futures[name].result()
                for name, finder in others.items()
            ),
        ]
    finally:  # the caller may close what the finders use
        wait([future for future in futures.values() if not future.cancel()])


def build(
    query: str, search: Finder, others: Mapping[str, Finder], limit: int, tokens: int
) -> Context:
    start = time.perf_counter()
    gathered = gather(search, others)
    hits = [hit for findings in gathered for hit in findings.hits]
    facts = [fact for findings in gathered for fact in findings.facts]
    notes = tuple(dict.fromkeys(note for findings in gathered for note in findings.notes))
    pieces, text, used_tokens = _write(excerpts(hits, limit), facts, notes, tokens)
    seconds = time.perf_counter() - start
    return Context(query, text, tuple(pieces), used_tokens, tokens, seconds, notes)


def _write(
    extracts: Sequence[Excerpt], facts: Sequence[ContextFact], notes: Sequence[str], tokens: int
) -> tuple[list[ContextPiece], str, int]:
    """Return the pieces that fit the budget, their block, and its tokens.

    Tokens do not cross line ends, so the counts of parts add up.
    """
    mark, now = quotation_mark(), datetime.now(UTC)
    count = len(extracts) + len(facts)
    head = count_tokens(_head(len(extracts), Counter(fact.kind for fact in facts), mark)) + _BETWEEN
    # reserve room for facts; passages get the rest
    fitting, tokens_by_kind = list[ContextFact](), Counter[str]()
    for fact in facts:
        size = count_line_tokens(fence(mark, str(count), _fact_text(fact, now, {}))) + _BETWEEN
        if tokens_by_kind[fact.kind] + size <= tokens // _SHARES[fact.kind]:
            fitting.append(fact)
            tokens_by_kind[fact.kind] += size
    reserved = tokens_by_kind.total()
    room, max_overhead = tokens - head - reserved, 0
    pieces: list[ContextPiece] = []
    quoted: dict[str, ContextPiece] = {}
    parts: list[str] = []
    used = 0
    for excerpt in extracts:
        chunks = tuple(chunk.id for chunk in excerpt.chunks)
        citation = citation_of(excerpt.hit, now, excerpt.heading_path, chunks)
        text, number = harmless(excerpt.text), len(pieces) + 1
        length = count_line_tokens(text)
        source, overhead = _source(citation, mark, number, room - used - min(_FULL_TEXT, length))
        available = room - used - overhead
        if available < min(_MIN_TEXT, length):
            max_overhead = max(max_overhead, overhead)
            continue
        quoted_text = text if length <= available else cut(text, available)
        parts.append(fence(mark, str(number), f"{source}\n\n{quoted_text}"))
        used += overhead + (length if quoted_text is text else count_line_tokens(quoted_text))
        score, is_cut = excerpt.hit.score, len(quoted_text) < len(text)
        pieces.append(ContextPiece(number, "passage", quoted_text, citation, "", score, is_cut))
        quoted |= dict.fromkeys(chunks, pieces[-1])
    if extracts and not pieces:
        if fitting:
            return _write(extracts, (), notes, tokens)
        raise ImpossibleError(
            f"max_tokens={tokens}: too few for a passage with its source; give at least "
            f"{head + max_overhead + _MIN_TEXT}"
        )
    passages = len(pieces)
    for fact in fitting:
        text, number = _fact_text(fact, now, quoted), len(pieces) + 1
        if not text:
            continue
        parts.append(fence(mark, str(number), text))
        used += count_line_tokens(parts[-1]) + _BETWEEN
        source_of = None if fact.hit is None else citation_of(fact.hit, now)
        pieces.append(ContextPiece(number, fact.kind, text, source_of, one_line(fact.name)))
    counts = Counter(piece.kind for piece in pieces[passages:])
    for note in notes:
        part = fence(mark, "note", cut(one_line(note), _NOTE_TOKENS))
        overhead = count_line_tokens(part) + _BETWEEN
        if used + overhead <= tokens - head:
            parts.append(part)
            used += overhead
    if not parts:
        return pieces, NOTHING, count_tokens(NOTHING)
    opening = _head(passages, counts, mark)
    return pieces, "\n\n".join([opening, *parts]), count_tokens(opening) + used


def _source(citation: Citation, mark: str, number: int, room: int) -> tuple[str, int]:
    for short in (False, True):
        source = source_lines(citation, short=short)
        overhead = count_line_tokens(fence(mark, str(number), f"{source}\n\n")) + _BETWEEN
        if overhead <= room:
            break
    return source, overhead


def _head(passages: int, counts: Mapping[str, int], mark: str) -> str:
    opening = NOTHING
    if passages:
        opening = f"{pluralize(passages, 'passage')}, best first"
        if facts := counts.get("entity"):
            opening += f", and what is known of {facts} that the question names"
        if entries := counts.get("entry"):
            opening += f", and {pluralize(entries, 'entry')} that worked before"
        opening += "."
    return f"{opening} {instructions(mark)}"


def _fact_text(fact: ContextFact, now: datetime, quoted: Mapping[str, ContextPiece]) -> str:
    """Return the lines of a fact; ``""`` if a passage already states it."""
    piece = None if fact.hit is None else quoted.get(fact.hit.chunk.id)
    lines = [cut(one_line(line), _FACT_TOKENS) for line in fact.lines]
    if piece is not None:
        unquoted = [line for line in lines if not line.startswith(SAID)]
        return "\n".join([*unquoted, f"mentioned in: [{piece.number}]"]) if unquoted[1:] else ""
    if fact.hit is not None:
        lines.append(source_lines(citation_of(fact.hit, now)))
    return "\n".join(lines)


_BEGINNING = 3
"""Leading letters that the forms of a word share, with rare exceptions (*lie*, *lying*)."""
_SIGNS = "-@#$._"
"""Signs at the start of terms that may differ in the text."""


@lru_cache(maxsize=200_000)
def _terms_of(word: str, analyzer: Analyzer) -> tuple[str, ...]:
    return tuple(analyzer.terms(word))


@lru_cache(maxsize=1_024)  # for the snippet and the address of a hit
def snippet(markdown: str, terms: tuple[str, ...], language: str, length: int = 240) -> str:
    """Return the part of a text with the most different terms, as plain lines."""
    lines = plain_text(markdown, lines=True)
    if len(lines) <= length:
        return lines
    text = lines.replace("\n", " ")
    positions = _positions(text, frozenset(terms), analyzer(language), length // 3)
    first_match, last_match = _best_window(positions, length)
    start = max(0, first_match - length // 6)
    if start > 0:  # start at a word, unless the word is too long
        start = text.find(" ", start, first_match) + 1 or start
    end = min(len(text), start + length)
    if end < len(text):
        space = text.rfind(" ", max(start + 1, last_match), end + 1)
        end = space if space > 0 else end
    excerpt = lines[start:end].strip() if start else lines[start:end].rstrip()
    return ("… " if start else "") + excerpt + (" …" if end < len(text) else "")


def _positions(
    text: str, terms: frozenset[str], analyzer: Analyzer, long: int
) -> list[tuple[int, frozenset[str]]]:
    """Locate words with query terms; within long words, the terms themselves."""
    # stemming keeps the first letters
    beginnings = {re.escape(term.lstrip(_SIGNS)[:_BEGINNING]) for term in terms}
    signs = re.compile("|".join(sorted(beginnings)) if terms else "(?!)", re.IGNORECASE)
    positions: list[tuple[int, frozenset[str]]] = []
    end = 0
    for sign in signs.finditer(text):
        if sign.start() < end:
            continue
        start = text.rfind(" ", 0, sign.start()) + 1
        end = text.find(" ", sign.end())
        end = end if end >= 0 else len(text)
        word = text[start:end]
        hit = terms.intersection(_terms_of(word, analyzer))
        if hit and len(word) > long:
            folded = word.casefold()
            positions += sorted((start + max(0, folded.find(t)), frozenset({t})) for t in hit)
        elif hit:
            positions.append((start, hit))
    return positions


def _best_window(positions: list[tuple[int, frozenset[str]]], length: int) -> tuple[int, int]:
    max_terms, window = 0, (0, 0)
    for i, (start, _) in enumerate(positions):
        covered = frozenset[str]()
        last = start
        for position, hit in positions[i:]:
            if position - start > length * 2 // 3:
                break
            if not hit <= covered:
                covered = covered | hit
                last = position
        if len(covered) > max_terms:
            max_terms, window = len(covered), (start, last)
    return window
