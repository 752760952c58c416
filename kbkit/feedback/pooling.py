"""Pools of candidates for judging: what any mode shows, and some of what none shows.

People can only rate what they see. Judgements of what search shows today would confirm it, and
could not tell that another way of searching is better. So a pool holds what every mode finds, as
TREC has done since Spärck Jones and van Rijsbergen proposed it ("Report on the need for and
provision of an 'ideal' information retrieval test collection", 1975), and a random sample of
what lies further down.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, overload

from kbkit.feedback.evaluation_set import Searchable, without_ratings
from kbkit.models import Hit, Mode, Rating
from kbkit.models.scores import fold_query, latest_scores_of
from kbkit.validation import check_integer, check_text

if TYPE_CHECKING:
    import pandas as pd

MAX_LIMIT = 100
"""Most hits of each mode, and most others, that a pool may hold."""
_FURTHER_HITS = 100
"""Hits behind those that are shown, out of which others are drawn."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A chunk to be judged.

    Attributes:
        hit: The chunk and its document. Its score says which mode liked it: do not show that.
        found_by: The modes that show it; empty for one that was drawn from further down. Not to
            be shown either.
        score: What the rater has said of it for this query before, 1 to 5, or ``None``.
        raters: How many people have rated it for this query.
    """

    hit: Hit
    found_by: tuple[str, ...]
    score: int | None
    raters: int


@dataclass(frozen=True, slots=True)
class JudgingPool(Sequence[Candidate]):
    """Candidates for one query, in an order that tells nothing of how they were found."""

    query: str
    candidates: tuple[Candidate, ...]

    def to_frame(self) -> pd.DataFrame:
        """One row a candidate, with what a judge needs to see and no more."""
        import pandas as pd

        columns = ["chunk_id", "title", "heading_path", "text", "url", "score", "raters"]
        rows = [
            (
                one.hit.chunk.id,
                one.hit.title,
                list(one.hit.chunk.heading_path),
                one.hit.chunk.text,
                one.hit.url,
                one.score,
                one.raters,
            )
            for one in self.candidates
        ]
        return pd.DataFrame(rows, columns=columns).astype({"score": "Int64", "raters": int})

    def __len__(self) -> int:
        return len(self.candidates)

    def __iter__(self) -> Iterator[Candidate]:
        return iter(self.candidates)

    @overload
    def __getitem__(self, index: int) -> Candidate: ...
    @overload
    def __getitem__(self, index: slice) -> JudgingPool: ...
    def __getitem__(self, index: int | slice) -> Candidate | JudgingPool:
        if isinstance(index, slice):
            return JudgingPool(self.query, self.candidates[index])
        return self.candidates[index]

    def __repr__(self) -> str:
        rated = sum(one.score is not None for one in self.candidates)
        return f"<JudgingPool for {self.query!r}: {len(self)} candidates, {rated} rated>"

    def _repr_html_(self) -> str:
        return self.to_frame().to_html(index=False, max_rows=20)


def pool(
    kb: Searchable,
    query: str,
    *,
    limit: int,
    unshown: int,
    seed: int,
    ratings: Iterable[Rating],
    rater: str,
) -> JudgingPool:
    """Candidates of every mode for a query; see `KnowledgeBase.pool`.

    Args:
        kb: Where to search.
        query: What is asked.
        limit: Hits of each mode.
        unshown: Candidates drawn from what hybrid search finds further down.
        seed: Another one gives another order and draws others.
        ratings: Of the knowledge base, oldest first.
        rater: Whose ratings are marked; each rater has an order of their own, of the same
            candidates.

    Raises:
        ConfigError: The query is empty, or a number is out of range.
    """
    limit = check_integer("limit", limit, 1, MAX_LIMIT)
    unshown = check_integer("unshown", unshown, 0, MAX_LIMIT)
    seed = check_integer("seed", seed, 0, 2**63 - 1)
    query, rater = check_text("query", query), check_text("rater", rater)
    # what a rater says must not change what is there to be said, nor count where it is measured
    retrieval = without_ratings(kb.spec.retrieval)
    hits: dict[str, Hit] = {}
    found_by: dict[str, list[str]] = {}
    further: list[Hit] = []
    for mode in Mode:
        hybrid = mode is Mode.HYBRID and unshown > 0
        found = kb.search(
            query, limit=limit + _FURTHER_HITS if hybrid else limit, mode=mode, retrieval=retrieval
        )
        further += found[limit:]
        for hit in found[:limit]:
            hits.setdefault(hit.chunk.id, hit)
            found_by.setdefault(hit.chunk.id, []).append(mode.value)
    drawn = _shuffled((hit.chunk.id for hit in further), seed, query)
    unseen = {hit.chunk.id: hit for hit in further if hit.chunk.id not in hits}
    for chunk_id in [one for one in drawn if one in unseen][:unshown]:
        hits[chunk_id] = unseen[chunk_id]
    scores = latest_scores_of(ratings, query)
    candidates = tuple(
        Candidate(
            hit=hits[chunk_id],
            found_by=tuple(found_by.get(chunk_id, ())),
            score=scores.get(chunk_id, {}).get(rater),
            raters=len(scores.get(chunk_id, ())),
        )
        for chunk_id in _shuffled(hits, seed, query, rater)
    )
    return JudgingPool(query, candidates)


def _shuffled(ids: Iterable[str], seed: int, query: str, rater: str = "") -> list[str]:
    """Ids in an order by chance that lasts: when some come or go, the others keep theirs."""
    start = f"{seed}\n{fold_query(query)}\n{rater}\n".encode("utf-8", "replace")

    def key(chunk_id: str) -> bytes:
        return hashlib.sha256(start + chunk_id.encode()).digest()

    return sorted(ids, key=key)
