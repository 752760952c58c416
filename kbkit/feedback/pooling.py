"""Pools of candidates for judging: hits of every mode, and some that none shows.

People can only rate what they see. Judgements of what search shows today would confirm it, and
could not tell that another way of searching is better. So a pool holds what every mode finds, as
TREC has done since Spärck Jones and van Rijsbergen proposed it ("Report on the need for and
provision of an 'ideal' information retrieval test collection", 1975), and a random sample of
what lies further down.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from kbkit.feedback.evaluation_set import Searchable, without_ratings
from kbkit.feedback.judging_pool import MAX_LIMIT, Candidate, JudgingPool
from kbkit.models import Hit, Mode, Rating
from kbkit.models.scores import fold_query, latest_scores_of
from kbkit.validation import check_integer, check_text

_FURTHER_HITS = 100
"""Hits after the shown ones, from which others are sampled."""


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
    """Candidates of every mode for a query; see `KnowledgeBase.pool`."""
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
