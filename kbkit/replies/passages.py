"""What a search found, for an agent: passages with their sources, as many as a budget holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from kbkit.models import Citation, Hits
from kbkit.replies.quotes import Quotes
from kbkit.replies.reply import Budget, Reply, with_cursor, write_cursor
from kbkit.retrieval.citations import LINE_TOKENS, citation_of, cut, cut_at, source_of
from kbkit.retrieval.excerpts import excerpts
from kbkit.retrieval.quoting import NOTHING, harmless, one_line

SOUGHT = 4
"""Hits that are sought for each passage that is wanted, since some repeat others or join them."""
_MOST_NOTES = 3
_SHARES = 3
"""A passage takes at most one part of so many, lest a long one leave no room for others."""
_LEAST_LENGTH = 200
"""Characters of a long passage that are worth telling beside its source."""


def search_reply(
    hits: Hits, *, start: int, limit: int, budget: Budget, with_ids: bool = False
) -> Reply:
    """Passages of a search, from one of them on.

    Args:
        hits: Best first, `SOUGHT` times as many as ``start + limit + 1``.
        start: How many passages were told before.
        limit: Most passages.
        budget: What the reply may take.
        with_ids: Whether the text names their chunks too, so that they can be rated.
    """
    quotes, now = Quotes(), datetime.now(UTC)
    found = excerpts(hits, start + limit + 1)
    notes = [cut(one_line(note), LINE_TOKENS) for note in hits.notes[:_MOST_NOTES]]
    told = [quotes.text("note", note) for note in notes]
    frame = {
        "note": quotes.note, "results": [], "notes": [quotes.value(note) for note in notes],
        "next_cursor": "",
    }  # fmt: skip
    budget.take("\n\n".join([quotes.note, *told]), frame)
    parts: list[str] = []
    results: list[dict[str, Any]] = []
    share = Budget(budget.room // min(limit, _SHARES))
    for number, excerpt in enumerate(found[start : start + limit], start + 1):
        passage = _Passage(
            str(number), citation_of(excerpt.hit, now, excerpt.heading_path),
            excerpt.hit.chunk.id if with_ids else "", harmless(excerpt.text),
        )  # fmt: skip
        part, values = passage.shown(quotes)
        if not share.holds(part, values) or not budget.holds(part, values):
            room = Budget(min(share.room, budget.room))
            if not room.holds(*passage.shown(quotes, length=_LEAST_LENGTH)):
                if parts:
                    break
                room = budget
            part, values = passage.within(quotes, room)
        budget.take(part, values)
        parts.append(part)
        results.append(values)
    end = start + len(results)
    cursor = write_cursor(end) if results and len(found) > end else ""
    text = "\n\n".join([quotes.note, *parts, *told]) if parts or told else NOTHING
    return Reply(with_cursor(text, cursor), frame | {"results": results, "next_cursor": cursor})


def citation_values(citation: Citation, said: Mapping[str, str]) -> dict[str, Any]:
    """Where a text is from, as values.

    Args:
        citation: It.
        said: Those of its lines that are told.
    """
    return {name: value for name, value in said.items() if name != "fetched"} | {
        "kb": citation.kb,
        "fetched_at": f"{citation.fetched_at:%Y-%m-%d}",
        "state": citation.state.value,
        "version": cut(citation.version, LINE_TOKENS) or "unknown",
    }


@dataclass(frozen=True, slots=True)
class _Passage:
    """A passage under its number.

    Attributes:
        chunk_id: By which it is rated, or ``""``.
    """

    number: str
    citation: Citation
    chunk_id: str
    text: str

    def shown(
        self, quotes: Quotes, *, short: bool = False, length: int | None = None
    ) -> tuple[str, dict[str, Any]]:
        """It as a text and as values.

        Args:
            quotes: Where it is quoted.
            short: With only what identifies its source.
            length: Most characters of its text.
        """
        text = self.text if length is None else cut_at(self.text, length)
        citation = self.citation
        said = {"document": citation.document_id} if short else source_of(citation)
        more = {"version": cut(citation.version, LINE_TOKENS) or "unknown", "kb": citation.kb}
        more |= {"chunk_id": self.chunk_id} if self.chunk_id else {}
        lines = "\n".join(f"{name}: {value}" for name, value in (said | more).items())
        values = citation_values(citation, said) | more | {"text": quotes.value(text)}
        return quotes.text(self.number, f"{lines}\n\n{text}"), values

    def within(self, quotes: Quotes, budget: Budget) -> tuple[str, dict[str, Any]]:
        """It within a budget: its text is cut, and only if that is not enough its source."""
        short = not budget.holds(*self.shown(quotes, length=0))
        low, high = 0, min(len(self.text), budget.room * 4)
        while low < high:
            middle = (low + high + 1) // 2
            if budget.holds(*self.shown(quotes, short=short, length=middle)):
                low = middle
            else:
                high = middle - 1
        return self.shown(quotes, short=short, length=low)
