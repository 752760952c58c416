"""Ratings of passages and documents, and the questions they belong to."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from kbkit.models.values import Target, TargetKind, Value

MAX_QUERY_LENGTH = 10_000
"""Maximum characters of a query; the rest is ignored."""
Scores = dict[str, dict[str, dict[str, int]]]
"""Last score of each rater, 1 to 5, by query, chunk id and rater."""


@dataclass(frozen=True, slots=True)
class RatingTotal(Value):
    """Summary of the ratings of a chunk or a document.

    Attributes:
        average: Mean of the last rating of each rater, 1 to 5.
    """

    raters: int
    average: float


@dataclass(frozen=True, slots=True)
class Rating(Value):
    """A score of 1 to 5 for a chunk or a document, with or without a query."""

    id: int
    kb: str
    target: Target
    score: int
    query: str
    rater: str
    note: str
    created_at: datetime


def fold_query(query: str) -> str:
    return " ".join(query.casefold().split())


class ChunkScore(NamedTuple):
    """The fields of a chunk's rating that a search needs."""

    query: str
    chunk_id: str
    rater: str
    score: int


def latest_scores(ratings: Iterable[Rating]) -> Scores:
    """Return the last score of each rater for a chunk and a query.

    Queries that differ only in case or white space are one; its wording is that of the first
    rating, with white space folded.
    """
    return latest_of(
        ChunkScore(rating.query, rating.target.id, rating.rater, rating.score)
        for rating in ratings
        if rating.target.kind is TargetKind.CHUNK
    )


def latest_of(ratings: Iterable[ChunkScore]) -> Scores:
    wordings: dict[str, str] = {}
    scores: Scores = {}
    for rating in ratings:
        key = fold_query(rating.query)
        if not key:
            continue
        query = wordings.setdefault(key, " ".join(rating.query.split()))
        chunks = scores.setdefault(query, {})
        chunks.setdefault(rating.chunk_id, {})[rating.rater] = rating.score
    return scores


def latest_scores_of(ratings: Iterable[Rating], query: str) -> dict[str, dict[str, int]]:
    """Return the last score of each rater for one query, by chunk."""
    key = fold_query(query)
    scores = latest_scores(rating for rating in ratings if fold_query(rating.query) == key)
    return next(iter(scores.values()), {})
