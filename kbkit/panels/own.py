"""What the reader has said about results before."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from kbkit.models import Rating


@dataclass(frozen=True, slots=True)
class OwnRating:
    """The reader's ratings of one chunk.

    Attributes:
        here: Score of 1 to 5 given for the query at hand, or ``None``.
        other_query: Another query that the chunk was last rated for, or ``""``.
        other_score: The score given there, or ``None``.
    """

    here: int | None = None
    other_query: str = ""
    other_score: int | None = None


def own_ratings(ratings: Iterable[Rating], rater: str, query: str) -> dict[str, OwnRating]:
    """The reader's last ratings, by the id of what was rated.

    Args:
        ratings: Ratings, oldest first.
        rater: Name of the reader; what others said is left out.
        query: The query at hand; case and white space do not count.
    """
    found: dict[str, OwnRating] = {}
    asked = _folded(query)
    for rating in ratings:
        if rating.rater != rater:
            continue
        before = found.get(rating.target, OwnRating())
        if _folded(rating.query) == asked:
            now = OwnRating(rating.score, before.other_query, before.other_score)
        else:
            now = OwnRating(before.here, rating.query, rating.score)
        found[rating.target] = now
    return found


def _folded(query: str) -> str:
    return " ".join(query.casefold().split())
