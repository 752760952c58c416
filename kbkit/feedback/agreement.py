"""Agreement of raters: Krippendorff's alpha for ordinal data."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kbkit.models import Rating
from kbkit.models.scores import latest_scores

if TYPE_CHECKING:
    import pandas as pd

STARS = (1, 2, 3, 4, 5)


@dataclass(frozen=True, slots=True)
class RatedPassage:
    """A chunk that several people rated for the same query.

    Attributes:
        query: The query as it was first asked.
        scores: The last score of each rater, 1 to 5, by the rater's name.
    """

    query: str
    chunk_id: str
    scores: Mapping[str, int]

    @property
    def spread(self) -> int:
        """Stars between the best and the worst score, 0 to 4."""
        return max(self.scores.values()) - min(self.scores.values())


@dataclass(frozen=True, slots=True)
class RaterPair:
    """Two raters.

    Attributes:
        passages: Number of passages rated by both.
        same: Share with the same score.
        near: Share with at most one star of difference.
        alpha: See `Agreement`.
    """

    raters: tuple[str, str]
    passages: int
    same: float
    near: float
    alpha: float


@dataclass(frozen=True, slots=True)
class Agreement:
    """Agreement of raters on shared passages.

    Attributes:
        passages: Passages rated by at least two people, the greatest differences first.
        alpha: Krippendorff's alpha with the ordinal metric: 1 for full agreement, 0 for chance,
            below 0 for less; ``nan`` if nothing was rated twice. From 0.8 judgements are taken as
            reliable, below 0.667 as not (Krippendorff, "Content Analysis", 2004, chapter 11).
        pairs: Agreement of each pair of raters.
    """

    passages: tuple[RatedPassage, ...]
    alpha: float
    pairs: tuple[RaterPair, ...]

    @property
    def raters(self) -> tuple[str, ...]:
        """Names of raters who share rated passages."""
        return tuple(sorted({rater for passage in self.passages for rater in passage.scores}))

    def to_frame(self) -> pd.DataFrame:
        """Return a row for each passage, with its query, spread and scores by rater."""
        import pandas as pd

        raters = self.raters
        names = [f"by {name}" for name in raters]
        rows = [
            (one.query, one.chunk_id, one.spread, *(one.scores.get(name) for name in raters))
            for one in self.passages
        ]
        frame = pd.DataFrame(rows, columns=["query", "chunk_id", "spread", *names])
        return frame.astype({"spread": int} | dict.fromkeys(names, "Int64"))

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as JSON values; an undefined alpha is ``None``."""
        return {
            "alpha": _or_none(self.alpha),
            "passages": len(self.passages),
            "raters": list(self.raters),
            "pairs": [
                {
                    "raters": list(pair.raters),
                    "passages": pair.passages,
                    "same": pair.same,
                    "near": pair.near,
                    "alpha": _or_none(pair.alpha),
                }
                for pair in self.pairs
            ],
        }

    def __repr__(self) -> str:
        return (
            f"<Agreement of {len(self.raters)} raters on {len(self.passages)} passages: "
            f"alpha {self.alpha:.3f}>"
        )


def agreement(ratings: Iterable[Rating]) -> Agreement:
    """Measure agreement of people who rated the same chunks for the same queries.

    The last rating that somebody gave counts; queries that differ only in case or white space are
    one; ratings of documents and ratings without a query are left out.
    """
    passages = [
        RatedPassage(query, chunk_id, scores)
        for query, chunks in latest_scores(ratings).items()
        for chunk_id, scores in chunks.items()
        if len(scores) > 1
    ]
    passages.sort(key=lambda passage: -passage.spread)
    return Agreement(
        passages=tuple(passages),
        alpha=ordinal_alpha([list(passage.scores.values()) for passage in passages]),
        pairs=_rater_pairs(passages),
    )


def ordinal_alpha(units: Iterable[Collection[int]], values: Sequence[int] = STARS) -> float:
    """Krippendorff's alpha with the ordinal metric.

    ``1 - observed / expected`` disagreement, over a matrix of coincidences: each pair of values of
    one unit counts ``1 / (m - 1)``, with m the values of that unit. Two values are as far apart as
    there are values between them, both ends counted half, squared. Krippendorff, "Computing
    Krippendorff's Alpha-Reliability" (2011), part D. Any number of raters, and units that some
    did not rate, are no hindrance.
    """
    coincidences = _coincidences(units, values)
    totals = coincidences.sum(axis=0)
    pairable = totals.sum()
    if not pairable:
        return math.nan
    middles = totals.cumsum() - totals / 2
    distances = (middles[:, None] - middles[None, :]) ** 2
    expected = float((np.outer(totals, totals) * distances).sum()) / (pairable - 1)
    observed = float((coincidences * distances).sum())
    return 1.0 - observed / expected if expected else 1.0


def _coincidences(units: Iterable[Collection[int]], values: Sequence[int]) -> NDArray[np.float64]:
    """Count pairs of values given to one unit, shape ``(values, values)``."""
    places = {value: place for place, value in enumerate(values)}
    found = np.zeros((len(values), len(values)))
    for unit in units:
        if len(unit) < 2:
            continue
        counts = np.zeros(len(values))
        for value in unit:
            counts[places[value]] += 1
        found += (np.outer(counts, counts) - np.diag(counts)) / (len(unit) - 1)
    return found


def _rater_pairs(passages: Sequence[RatedPassage]) -> tuple[RaterPair, ...]:
    shared: dict[tuple[str, str], list[tuple[int, int]]] = {}
    for passage in passages:
        for first, second in combinations(sorted(passage.scores), 2):
            both = (passage.scores[first], passage.scores[second])
            shared.setdefault((first, second), []).append(both)
    return tuple(
        RaterPair(
            raters=raters,
            passages=len(given),
            same=sum(a == b for a, b in given) / len(given),
            near=sum(abs(a - b) <= 1 for a, b in given) / len(given),
            alpha=ordinal_alpha(given),
        )
        for raters, given in sorted(shared.items())
    )


def _or_none(alpha: float) -> float | None:
    return None if math.isnan(alpha) else alpha
