"""What readers have said about results before."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from kbkit.feedback.query_ids import fold_query
from kbkit.models import Rating


@dataclass(frozen=True, slots=True)
class OwnRating:
    """What a reader, and all readers together, said about one chunk.

    Attributes:
        here: The reader's score of 1 to 5 for the query at hand, or ``None``.
        other_query: Another query that the reader last rated the chunk for, or ``""``.
        other_score: The score given there, or ``None``.
        average: Mean of the last rating of each reader, or ``None`` where nobody rated it.
        raters: How many readers rated it.
    """

    here: int | None = None
    other_query: str = ""
    other_score: int | None = None
    average: float | None = None
    raters: int = 0


def own_ratings(ratings: Iterable[Rating], rater: str, query: str) -> dict[str, OwnRating]:
    """What was said about chunks, by their ids.

    Args:
        ratings: Ratings, oldest first.
        rater: Name of the reader.
        query: The query at hand; case and white space do not count.
    """
    found: dict[str, OwnRating] = {}
    last: dict[str, dict[str, int]] = {}
    asked = fold_query(query)
    for rating in ratings:
        last.setdefault(rating.target, {})[rating.rater] = rating.score
        own = found.get(rating.target, OwnRating())
        if rating.rater == rater and fold_query(rating.query) == asked:
            own = replace(own, here=rating.score)
        elif rating.rater == rater:
            own = replace(own, other_query=rating.query, other_score=rating.score)
        found[rating.target] = own
    return {
        target: replace(own, average=sum(said.values()) / len(said), raters=len(said))
        for (target, own), said in zip(found.items(), last.values(), strict=True)
    }
