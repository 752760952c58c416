"""Puts together what an agent is given to answer a question with, within a budget of tokens."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypeAlias

from kbkit.embedding.static import count_tokens
from kbkit.errors import ConfigError, KbkitError
from kbkit.models import Citation, Context, ContextPiece, Hit
from kbkit.models.plain import quotation_mark
from kbkit.retrieval.excerpts import Excerpt, excerpts
from kbkit.retrieval.quoting import NOTHING, fenced, harmless, instructions, one_line

LEAST_TOKENS = 100
"""Smallest budget: smaller ones hold no passage with its source."""
SOUGHT = 4
"""Hits that are sought for each excerpt that is wanted, since some repeat others or join them."""

_LEAST_TEXT = 24
"""Tokens of a text that are worth their source."""
_LINE_TOKENS = {"title": 40, "section": 60, "source": 120}
"""Most tokens of what a document says of itself, lest one take all the room."""
_NOTE_TOKENS = 60
_BEGINNING = 2
"""Tokens of the beginning of a text and of a line end."""
_CUT = " [...]"
_ENDS = ("\n\n", "\n", ". ", " ")


@dataclass(frozen=True, slots=True)
class Findings:
    """What one leg found for a question.

    Attributes:
        hits: Passages, best first.
        notes: What the reader should know.
    """

    hits: Sequence[Hit] = ()
    notes: tuple[str, ...] = ()


Leg: TypeAlias = Callable[[], Findings]
"""Finds something for a question; called in a thread of its own."""


def gather(search: Leg, others: Mapping[str, Leg]) -> list[Findings]:
    """What all legs find, which run at once.

    Args:
        search: Finds passages; what it raises is raised.
        others: The rest by name; one that fails leaves a note.
    """

    def find(name: str, leg: Leg) -> Findings:
        try:
            return leg()
        except KbkitError as error:
            return Findings(notes=(f"{name}: {error}",))

    if not others:
        return [search()]
    with ThreadPoolExecutor(len(others), thread_name_prefix="kbkit-context") as threads:
        found = [threads.submit(find, name, leg) for name, leg in others.items()]
        return [search(), *(each.result() for each in found)]


def build(query: str, search: Leg, others: Mapping[str, Leg], limit: int, tokens: int) -> Context:
    """Have all legs find something, and put it together.

    Args:
        query: What is asked.
        search: Finds passages.
        others: Other legs, by name.
        limit: Most passages.
        tokens: Most tokens of the text, by the tokenizer of the static embedder.

    Raises:
        ConfigError: The budget holds no passage with its source.
    """
    start = time.perf_counter()
    found = gather(search, others)
    hits = [hit for findings in found for hit in findings.hits]
    notes = tuple(dict.fromkeys(note for findings in found for note in findings.notes))
    pieces, text = _write(excerpts(hits, limit), notes, tokens)
    seconds = time.perf_counter() - start
    return Context(query, text, tuple(pieces), count_tokens(text), tokens, seconds, notes)


def _write(
    found: Sequence[Excerpt], notes: Sequence[str], tokens: int
) -> tuple[list[ContextPiece], str]:
    """Pieces that the budget holds, and the block that they make."""
    mark, now = quotation_mark(), datetime.now(UTC)
    pieces: list[ContextPiece] = []
    parts: list[str] = []
    # No token goes beyond the end of a line, so lines, and what is made of them, add up
    head = count_tokens(_head(len(found), mark)) + 2
    room, dearest = tokens - head, 0
    for excerpt in found:
        citation, text = _citation(excerpt, now), harmless(excerpt.text)
        number = len(pieces) + 1
        source = _source(citation)
        own = count_tokens(fenced(mark, str(number), f"{source}\n\n")) + 2
        if room - own < min(_LEAST_TEXT, _count(text)):
            dearest = max(dearest, own)
            continue
        quoted = cut(text, room - own)
        parts.append(fenced(mark, str(number), f"{source}\n\n{quoted}"))
        room -= count_tokens(parts[-1]) + 2
        pieces.append(
            ContextPiece(number, quoted, citation, excerpt.hit.score, len(quoted) < len(text))
        )
    if found and not pieces:
        raise ConfigError(
            f"max_tokens={tokens}: too few for a passage with its source; give at least "
            f"{head + dearest + _LEAST_TEXT}"
        )
    for note in notes:
        part = fenced(mark, "note", cut(one_line(note), _NOTE_TOKENS))
        if (taken := count_tokens(part) + 2) <= room:
            parts.append(part)
            room -= taken
    return pieces, "\n\n".join([_head(len(pieces), mark), *parts] if parts else [NOTHING])


def _head(count: int, mark: str) -> str:
    found = f"{count} passage{'s' if count > 1 else ''}, best first." if count else NOTHING
    return f"{found} {instructions(mark)}"


def _citation(excerpt: Excerpt, now: datetime) -> Citation:
    hit = excerpt.hit
    return Citation(
        title=hit.title,
        heading_path=excerpt.heading_path,
        url=hit.url,
        uri=hit.uri,
        kb=hit.kb,
        document_id=hit.chunk.document_id,
        chunk_ids=tuple(chunk.id for chunk in excerpt.chunks),
        page=hit.chunk.page,
        fetched_at=hit.fetched_at,
        age_days=max(0, (now - hit.fetched_at).days),
        state=hit.state,
    )


def _source(citation: Citation) -> str:
    """Where a piece is from, in lines, each within bounds."""
    age = f"{citation.age_days} day{'s' if citation.age_days > 1 else ''} ago"
    # what tells a browser where to scroll costs more than it tells a model
    address = re.sub(r"#?:~:text=.*", "", citation.url, flags=re.DOTALL)
    said = {
        "title": citation.title,
        "section": " > ".join(citation.heading_path),
        "source": address,
        "page": "" if citation.page is None else str(citation.page),
        "fetched": f"{citation.fetched_at:%Y-%m-%d}, {age if citation.age_days else 'today'}, "
        f"{citation.state.value}",
    }
    return "\n".join(
        f"{name}: {cut(one_line(value), _LINE_TOKENS.get(name, _NOTE_TOKENS))}"
        for name, value in said.items()
        if value
    )


def cut(text: str, tokens: int) -> str:
    """A text as far as a budget lets it, cut where something ends."""
    if _count(text) <= tokens:
        return text
    low, high = 0, len(text)
    while low < high:  # the longest beginning that fits, with the sign that it is one
        middle = (low + high + 1) // 2
        if _count(text[:middle] + _CUT) <= tokens:
            low = middle
        else:
            high = middle - 1
    ends = ((text.rfind(end, low * 2 // 3, low), len(end.rstrip())) for end in _ENDS)
    kept = next((end + signs for end, signs in ends if end > 0), low)
    return text[:kept].rstrip() + _CUT


def _count(text: str) -> int:
    """Tokens of a text where it begins a line; on its own, a mark of a word's beginning counts."""
    return count_tokens(f"\n{text}") - _BEGINNING
