"""Find entries that fit a prompt, by relevance and rating."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

from kbkit.embedding.static import count_tokens
from kbkit.entries.skill_file import NAME
from kbkit.entries.store import EntryStore
from kbkit.errors import ImpossibleError
from kbkit.knowledge_base import KnowledgeBase
from kbkit.models import Context, ContextPiece, EntryRating, EntryStatus, Hit
from kbkit.models.plain import pluralize, quotation_mark
from kbkit.models.scores import MAX_QUERY_LENGTH
from kbkit.retrieval.context import Fact, Findings
from kbkit.retrieval.quoting import cut, fenced, instructions, one_line
from kbkit.stores.catalog import entries as catalog
from kbkit.stores.catalog.database import Database
from kbkit.stores.catalog.entries import PRIOR_SCORE, PRIOR_VOTES, EntryRecord

NOTHING = "No entry fits; solve it afresh."
_SOUGHT = 4
"""Passages that are sought for each entry."""
_WEIGHT = 0.5
"""Share of the score that ratings can add or remove."""
_MIN_SHARE, _MIN_COSINE = 0.1, 0.35
"""Minimum share of the best score; minimum cosine without common words."""
_DESCRIPTION_TOKENS = 60
_FILES_TOKENS = 60
_TITLE_TOKENS = 60
_MAX_FILES = 12


class Found(NamedTuple):
    """An entry that fits a prompt.

    Attributes:
        lines: Title, slug and stars; purpose; files.
    """

    slug: str
    score: float
    lines: tuple[str, ...]


class EntryLookup:
    """Finds the entries that fit a prompt."""

    def __init__(
        self, store: EntryStore, database: Database, knowledge_base: Callable[[], KnowledgeBase]
    ) -> None:
        self._store = store
        self._database = database
        self._knowledge_base = knowledge_base

    def find(self, prompt: str, limit: int) -> list[Found]:
        """Active entries that fit a prompt, the best first."""
        with self._database.read() as transaction:
            known = catalog.records(transaction)
        usable = {
            slug: record
            for slug, record in known.items()
            if record.status == EntryStatus.ACTIVE.value and not record.problem
        }
        if not usable or not limit:
            return []
        hits = self._knowledge_base().search(
            prompt[:MAX_QUERY_LENGTH], limit=_SOUGHT * (limit + len(known) - len(usable))
        )
        scores: dict[str, float] = {}
        for hit in hits:
            if hit.uri in usable and (hit.parts.bm25 > 0 or hit.parts.cosine >= _MIN_COSINE):
                scores[hit.uri] = max(scores.get(hit.uri, 0.0), _relevance(hit))
        least = _MIN_SHARE * max(scores.values(), default=0.0)
        rated = {
            slug: score * (1 + _WEIGHT * rating_prior(usable[slug]))
            for slug, score in scores.items()
            if score >= least
        }
        best = sorted(rated, key=lambda slug: (-rated[slug], slug))[:limit]
        return [Found(slug, rated[slug], self._lines(usable[slug])) for slug in best]

    def context(self, prompt: str, limit: int, tokens: int) -> Context:
        start = time.perf_counter()
        mark = quotation_mark()
        found = self.find(prompt, limit)
        room = tokens - count_tokens(_block(len(found), mark, "")) - 2
        pieces: list[ContextPiece] = []
        for entry in found:
            number = len(pieces) + 1
            text = _item(number, entry)
            if (taken := count_tokens(f"{text}\n")) > room:
                break
            room -= taken
            pieces.append(ContextPiece(number, "entry", text, None, entry.slug, entry.score))
        if found and not pieces:
            raise ImpossibleError(f"max_tokens={tokens}: too few for an entry; give twice as many")
        text = NOTHING
        if pieces:
            text = _block(len(pieces), mark, "\n".join(piece.text for piece in pieces))
        seconds = time.perf_counter() - start
        return Context(prompt, text, tuple(pieces), count_tokens(text), tokens, seconds)

    def findings(self, prompt: str, limit: int) -> Findings:
        found = self.find(prompt, limit)
        return Findings(facts=[Fact(each.slug, each.lines, kind="entry") for each in found])

    def _lines(self, record: EntryRecord) -> tuple[str, ...]:
        rating = EntryRating(record.average, record.votes)
        said = f" {rating.average:g} ({pluralize(rating.count, 'vote')})"
        votes = said if rating.count else ""
        title = cut(one_line(record.title), _TITLE_TOKENS)
        head = f"{title} ({record.slug}) {rating.stars}{votes}".strip()
        files = [
            item.path.removeprefix(f"{record.slug}/")
            for item in self._store.walk(record.slug)
            if not item.is_folder and not item.path.endswith(f"/{NAME}")
        ]
        more = f" and {len(files) - _MAX_FILES} more" if len(files) > _MAX_FILES else ""
        lines = [
            head,
            cut(one_line(record.description), _DESCRIPTION_TOKENS),
            cut(f"files: {one_line(', '.join(files[:_MAX_FILES]))}{more}", _FILES_TOKENS)
            if files
            else "",
        ]
        return tuple(filter(None, lines))


def rating_prior(record: EntryRecord) -> float:
    """Return the prior of votes, from -1 to 1, as ratings have in search.

    The distance of the average from the middle of the scale, drawn to 0 as if five more people had
    chosen the middle: a Bayesian average.
    """
    return (record.average - PRIOR_SCORE) / 2 * record.votes / (record.votes + PRIOR_VOTES)


def _relevance(hit: Hit) -> float:
    return max(0.0, hit.score - hit.parts.rating)


def _item(number: int, entry: Found) -> str:
    first, *rest = entry.lines
    return "\n".join([f"{number}. {first}", *(f"   {line}" for line in rest)])


def _block(count: int, mark: str, text: str) -> str:
    found = f"{count} entr{'ies' if count > 1 else 'y'}, best first: solutions for such tasks."
    return f"{found} {instructions(mark)}\n\n{fenced(mark, 'entries', text)}"
