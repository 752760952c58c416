"""Ratings of chunks for queries, as feedback uses them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from kbkit.models.reports import Rating
from kbkit.models.targets import TargetKind

MAX_QUERY_LENGTH = 10_000
"""Characters read of a query."""
Scores = dict[str, dict[str, dict[str, int]]]
"""The last score of each rater, 1 to 5, by query, chunk id and rater."""


def fold_query(query: str) -> str:
    return " ".join(query.casefold().split())


class ChunkScore(NamedTuple):
    """A rating of a chunk, reduced to what search needs."""

    query: str
    chunk_id: str
    rater: str
    score: int


def latest_scores(ratings: Iterable[Rating]) -> Scores:
    """The ratings of chunks that name a query.

    The last rating that somebody gave a chunk for a query counts. Queries that differ only in case
    or white space are one, worded as it was first asked, white space folded.
    """
    return latest_of(
        ChunkScore(rating.query, rating.target.id, rating.rater, rating.score)
        for rating in ratings
        if rating.target.kind is TargetKind.CHUNK
    )


def latest_of(given: Iterable[ChunkScore]) -> Scores:
    wordings: dict[str, str] = {}
    scores: Scores = {}
    for said in given:
        key = fold_query(said.query)
        if not key:
            continue
        query = wordings.setdefault(key, " ".join(said.query.split()))
        chunks = scores.setdefault(query, {})
        chunks.setdefault(said.chunk_id, {})[said.rater] = said.score
    return scores


def latest_scores_of(ratings: Iterable[Rating], query: str) -> dict[str, dict[str, int]]:
    """The last score of each rater for one query, by chunk."""
    key = fold_query(query)
    found = latest_scores(rating for rating in ratings if fold_query(rating.query) == key)
    return next(iter(found.values()), {})
