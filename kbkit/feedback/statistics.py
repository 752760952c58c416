"""Confidence intervals and paired tests."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kbkit.models import Rating
from kbkit.models.ratings import latest_scores

if TYPE_CHECKING:
    import pandas as pd


Values = NDArray[np.float64]
"""One value per query, shape ``(queries,)``."""

CONFIDENCE = 0.95
_RESAMPLES = 9_999
_BATCH = 500
_SEED = 20_261


@dataclass(frozen=True, slots=True)
class Difference:
    """The mean difference of paired values, the first minus the second.

    Attributes:
        low: Lower end of its 95 % confidence interval.
        high: Upper end.
        p_value: Probability of a difference this large by chance, 0 to 1.
    """

    mean: float
    low: float
    high: float
    p_value: float


def confidence_interval(values: Values, low: float = 0.0, high: float = 1.0) -> tuple[float, float]:
    """Return the 95 % confidence interval of a mean: percentiles of 9,999 bootstrap samples.

    The samples are the same in each run. For fewer than two values it is the whole range.
    Source: Efron and Tibshirani, "An Introduction to the Bootstrap" (1993), chapter 13.
    """
    from scipy.stats import bootstrap

    if len(values) < 2:
        return low, high
    result = bootstrap(
        (values,),
        np.mean,
        n_resamples=_RESAMPLES,
        batch=_BATCH,
        confidence_level=CONFIDENCE,
        method="percentile",
        rng=np.random.default_rng(_SEED),
    )
    interval = result.confidence_interval
    return float(interval.low), float(interval.high)


def difference(values: Values, others: Values) -> Difference:
    """Compare two measurements of the same queries, with a paired permutation test.

    Under the null hypothesis the sign of each query's difference is random: all sign patterns up to
    13 queries, else 9,999 of them (Fisher's randomisation test; Smucker, Allan and Carterette, "A
    Comparison of Statistical Significance Tests for Information Retrieval Evaluation", 2007).
    Two-sided. Without differences, or with fewer than two queries, the p-value is 1.
    """
    from scipy.stats import permutation_test

    paired = values - others
    mean = float(paired.mean()) if len(paired) else 0.0
    low, high = confidence_interval(paired, -1.0, 1.0)
    if len(paired) < 2 or not paired.any():
        return Difference(mean, low, high, 1.0)
    test = permutation_test(
        (values, others),
        lambda first, second, axis: np.mean(first - second, axis=axis),
        permutation_type="samples",
        vectorized=True,
        n_resamples=_RESAMPLES,
        batch=_BATCH,
        rng=np.random.default_rng(_SEED),
    )
    return Difference(mean, low, high, float(test.pvalue))


DEPTH = 10
"""Cutoff of nDCG and MRR."""


class Ranking(NamedTuple):
    """Ranking of a query.

    Attributes:
        gains: Gains of all judged items by name, 0 or more; positive means relevant.
        found: Name of each hit, best first; others than the judged, and ``None``, are not relevant.
    """

    gains: Mapping[str, int]
    found: Sequence[str | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Measures:
    """Measures of one ranking, all from 0 to 1.

    Attributes:
        ndcg: nDCG@10 with linear gains and the discount log2(rank + 1) (Järvelin and Kekäläinen,
            "Cumulated gain-based evaluation of IR techniques", 2002).
        reciprocal_rank: 1 / rank of the first relevant hit, 0 if none is among the first 10.
        recall: Share of relevant items among the first k hits.
        judged: Share of judged hits among the first 10.
    """

    ndcg: float
    reciprocal_rank: float
    recall: float
    judged: float

    @property
    def hit_at_1(self) -> float:
        """1 if the first hit is relevant, else 0."""
        return float(self.reciprocal_rank == 1)


def measure(rankings: Sequence[Ranking], k: int) -> list[Measures]:
    import ir_measures
    from ir_measures import RR, Judged, R, nDCG

    measures: dict[Any, str] = {
        nDCG @ DEPTH: "ndcg",
        RR @ DEPTH: "reciprocal_rank",
        R @ k: "recall",
        Judged @ DEPTH: "judged",
    }
    qrels = {str(number): dict(ranking.gains) for number, ranking in enumerate(rankings)}
    # scores fall with the rank
    runs = {
        str(number): {
            f"\n{rank}" if name is None else name: float(-rank)
            for rank, name in enumerate(ranking.found)
        }
        for number, ranking in enumerate(rankings)
        if ranking.found
    }
    values: list[dict[str, float]] = [dict.fromkeys(measures.values(), 0.0) for _ in rankings]
    for metric in ir_measures.iter_calc(list(measures), qrels, runs):
        values[int(metric.query_id)][measures[metric.measure]] = float(metric.value)
    return [Measures(**row) for row in values]


STARS = (1, 2, 3, 4, 5)


@dataclass(frozen=True, slots=True)
class RatedPassage:
    """A chunk that several people rated for the same query.

    Attributes:
        query: As first asked.
        scores: Last score of each rater, 1 to 5, by name.
    """

    query: str
    chunk_id: str
    scores: Mapping[str, int]

    @property
    def spread(self) -> int:
        """Stars between the best and the worst score, 0 to 4."""
        return max(self.scores.values()) - min(self.scores.values())


@dataclass(frozen=True, slots=True)
class Agreement:
    """Agreement of raters on shared passages.

    Attributes:
        passages: Passages rated by at least two people, the greatest differences first.
        alpha: Krippendorff's alpha with the ordinal metric: 1 for full agreement, 0 for chance,
            below 0 for less; ``nan`` if nothing was rated twice. Judgements are reliable from 0.8,
            and unreliable below 0.667 (Krippendorff, "Content Analysis", 2004, chapter 11).
    """

    passages: tuple[RatedPassage, ...]
    alpha: float

    @property
    def raters(self) -> tuple[str, ...]:
        """Names of raters who share rated passages."""
        return tuple(sorted({rater for passage in self.passages for rater in passage.scores}))

    def to_frame(self) -> pd.DataFrame:
        """Return one row per passage, with its query, spread and scores by rater."""
        import pandas as pd

        raters = self.raters
        names = [f"by {name}" for name in raters]
        rows = [
            (p.query, p.chunk_id, p.spread, *(p.scores.get(name) for name in raters))
            for p in self.passages
        ]
        frame = pd.DataFrame(rows, columns=["query", "chunk_id", "spread", *names])
        return frame.astype({"spread": int} | dict.fromkeys(names, "Int64"))

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as JSON values; an undefined alpha is ``None``."""
        return {
            "alpha": None if math.isnan(self.alpha) else self.alpha,
            "passages": len(self.passages),
            "raters": list(self.raters),
        }

    def __repr__(self) -> str:
        return (
            f"<Agreement of {len(self.raters)} raters on {len(self.passages)} passages: "
            f"alpha {self.alpha:.3f}>"
        )


def agreement(ratings: Iterable[Rating]) -> Agreement:
    """Measure the agreement of people who rated the same chunks for the same queries.

    The last rating of a rater counts; queries that differ only in case or white space are one.
    Ratings of documents and ratings without a query are left out.
    """
    passages = [
        RatedPassage(query, chunk_id, scores)
        for query, chunks in latest_scores(ratings).items()
        for chunk_id, scores in chunks.items()
        if len(scores) > 1
    ]
    passages.sort(key=lambda passage: -passage.spread)
    alpha = ordinal_alpha([list(passage.scores.values()) for passage in passages])
    return Agreement(tuple(passages), alpha)


def ordinal_alpha(units: Iterable[Collection[int]]) -> float:
    """Return Krippendorff's alpha of stars, with the ordinal metric.

    It is ``1 - observed / expected`` disagreement over a coincidence matrix, where each pair of
    values in a unit of m values counts ``1 / (m - 1)``. The distance of two values is the number of
    ratings between them, both ends counted half, squared. Values may be missing.
    Source: Krippendorff, "Computing Krippendorff's Alpha-Reliability" (2011), part D.
    """
    pairable = [list(unit) for unit in units if len(unit) > 1]
    if not pairable:
        return math.nan
    counts = np.array([[unit.count(star) for star in STARS] for unit in pairable])
    weighted = counts / (counts.sum(axis=1, keepdims=True) - 1)
    coincidences = weighted.T @ counts - np.diag(weighted.sum(axis=0))
    totals = coincidences.sum(axis=0)
    middles = totals.cumsum() - totals / 2
    distances = (middles[:, None] - middles[None, :]) ** 2
    expected = float((np.outer(totals, totals) * distances).sum()) / (totals.sum() - 1)
    observed = float((coincidences * distances).sum())
    return 1.0 - observed / expected if expected else 1.0
