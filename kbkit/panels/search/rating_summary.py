"""Earlier ratings of results."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from kbkit.models import Rating
from kbkit.models.scores import fold_query


@dataclass(frozen=True, slots=True)
class RatingSummary:
    """Ratings of a chunk: the reader's and the average.

    Attributes:
        score: The reader's score of 1 to 5 for the current query, or ``None``.
        other_query: Another query that the reader last rated the chunk for, or ``""``.
        other_score: The score there, or ``None``.
        average: Mean of all readers' last ratings, or ``None``.
    """

    score: int | None = None
    other_query: str = ""
    other_score: int | None = None
    average: float | None = None
    raters: int = 0


def summarize(ratings: Iterable[Rating], rater: str, query: str) -> dict[str, RatingSummary]:
    summaries: dict[str, RatingSummary] = {}
    latest: dict[str, dict[str, int]] = {}
    key = fold_query(query)
    for rating in ratings:
        latest.setdefault(rating.target.id, {})[rating.rater] = rating.score
        summary = summaries.get(rating.target.id, RatingSummary())
        if rating.rater == rater and fold_query(rating.query) == key:
            summary = replace(summary, score=rating.score)
        elif rating.rater == rater:
            summary = replace(summary, other_query=rating.query, other_score=rating.score)
        summaries[rating.target.id] = summary
    return {
        target: replace(summary, average=sum(scores.values()) / len(scores), raters=len(scores))
        for (target, summary), scores in zip(summaries.items(), latest.values(), strict=True)
    }
