"""What a search found, for an agent: passages with their sources, as many as a budget holds."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from kbkit.models import Citation, Hits
from kbkit.replies.quotes import Quotes
from kbkit.replies.reply import Budget, Reply, size, with_cursor, write_cursor
from kbkit.retrieval.citations import LINE_TOKENS, citation_of, cut, cut_at, source_of
from kbkit.retrieval.excerpts import excerpts
from kbkit.retrieval.quoting import NOTHING, harmless, one_line

SOUGHT = 4
"""Hits that are sought for each passage that is wanted, since some repeat others or join them."""
_MOST_NOTES = 3
_SHARES = 3
"""A passage takes at most one part of so many, unless nothing else would fit beside it."""
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
    passages = [
        _Passage(
            str(number), citation_of(excerpt.hit, now, excerpt.heading_path),
            excerpt.hit.chunk.id if with_ids else "", harmless(excerpt.text),
        )
        for number, excerpt in enumerate(found[start : start + limit], start + 1)
    ]  # fmt: skip
    shown: list[tuple[str, dict[str, Any]]] = []
    share = budget.room // min(limit, _SHARES)
    for passage in passages:
        room = Budget(min(share, budget.room))
        if not room.holds(*passage.shown(quotes, length=_LEAST_LENGTH)):
            if shown:
                break
            room = budget
        shown.append(passage.within(quotes, room))
        budget.take(*shown[-1])
    for at, passage in enumerate(passages[: len(shown)]):  # what is left is for those that were cut
        budget.room += size(*shown[at])
        shown[at] = passage.within(quotes, budget)
        budget.take(*shown[at])
    end = start + len(shown)
    cursor = write_cursor(end) if shown and len(found) > end else ""
    parts = [part for part, _ in shown]
    text = "\n\n".join([quotes.note, *parts, *told]) if parts or told else NOTHING
    results = [values for _, values in shown]
    return Reply(with_cursor(text, cursor), frame | {"results": results, "next_cursor": cursor})


def citation_values(citation: Citation, quotes: Quotes, *, short: bool = False) -> dict[str, Any]:
    """Where a text is from, as values.

    Args:
        citation: It.
        quotes: Where its title is quoted, with the headings below that.
        short: With only what identifies it.
    """
    said = source_of(citation, short=short)
    headings = [said.pop(name) for name in ("title", "section") if name in said]
    del said["fetched"]
    return {
        "title": quotes.value(" > ".join(headings)), **said,
        "fetched_at": f"{citation.fetched_at:%Y-%m-%d}", "state": citation.state.value,
    }  # fmt: skip


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
        more = {"chunk_id": self.chunk_id} if self.chunk_id else {}
        said = source_of(self.citation, short=short) | more
        lines = "\n".join(f"{name}: {value}" for name, value in said.items())
        values = citation_values(self.citation, quotes, short=short) | more
        return (
            quotes.text(self.number, f"{lines}\n\n{text}"),
            values | {"text": quotes.value(text)},
        )

    def within(self, quotes: Quotes, budget: Budget) -> tuple[str, dict[str, Any]]:
        """It within a budget: its text is cut, and what is said of its source if that is long."""
        if budget.holds(*(whole := self.shown(quotes))):
            return whole
        short = not budget.holds(*self.shown(quotes, length=min(len(self.text), _LEAST_LENGTH)))
        low, high = 0, min(len(self.text), budget.room * 4)
        while low < high:
            middle = (low + high + 1) // 2
            if budget.holds(*self.shown(quotes, short=short, length=middle)):
                low = middle
            else:
                high = middle - 1
        return self.shown(quotes, short=short, length=low)
