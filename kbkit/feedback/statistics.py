"""Confidence intervals and paired tests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]
"""One figure a query, shape ``(queries,)``."""

CONFIDENCE = 0.95
_RESAMPLES = 9_999
_BATCH = 500
_SEED = 20_261


@dataclass(frozen=True, slots=True)
class Difference:
    """The mean difference of paired figures.

    Attributes:
        mean: The first less the second.
        low: Lower end of its 95 % confidence interval.
        high: Upper end.
        p_value: Probability of such a difference by chance, 0 to 1.
    """

    mean: float
    low: float
    high: float
    p_value: float


def confidence_interval(values: Values, low: float = 0.0, high: float = 1.0) -> tuple[float, float]:
    """The 95 % confidence interval of a mean: percentiles of 9,999 bootstrap samples of queries.

    Efron and Tibshirani, "An Introduction to the Bootstrap" (1993), chapter 13. The samples are
    the same in each run. One figure or none tells nothing of others: then it is the whole range.
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
    found = result.confidence_interval
    return float(found.low), float(found.high)


def difference(values: Values, others: Values) -> Difference:
    """Compare two figures of the same queries, with a paired permutation test.

    Under the null hypothesis each query's two figures may change places, so the sign of each
    difference is tossed: all ways up to 13 queries, else 9,999 of them (Fisher's randomisation
    test; Smucker, Allan and Carterette, "A Comparison of Statistical Significance Tests for
    Information Retrieval Evaluation", 2007). Two-sided. Where nothing differs, or there are fewer
    than two queries, the p-value is 1.
    """
    from scipy.stats import permutation_test

    paired = values - others
    mean = float(paired.mean()) if len(paired) else 0.0
    low, high = confidence_interval(paired, -1.0, 1.0)
    if len(paired) < 2 or not paired.any():
        return Difference(mean, low, high, 1.0)
    test = permutation_test(
        (values, others),
        _mean_difference,
        permutation_type="samples",
        vectorized=True,
        n_resamples=_RESAMPLES,
        batch=_BATCH,
        rng=np.random.default_rng(_SEED),
    )
    return Difference(mean, low, high, float(test.pvalue))


def _mean_difference(first: Values, second: Values, axis: int) -> Any:
    return np.mean(first - second, axis=axis)


DEPTH = 10
"""Places of a ranking that nDCG and MRR read."""


@dataclass(frozen=True, slots=True)
class Ranking:
    """Ranking of a query, with its relevant documents.

    Attributes:
        gains: Gains of all judged items, 0 or more; positive is relevant.
        found: Index into ``gains`` of each hit, best first; ``None`` for unjudged hits, which count
            as not relevant.
    """

    gains: tuple[int, ...]
    found: tuple[int | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Measures:
    """Measures of one ranking, all from 0 to 1.

    Attributes:
        ndcg: nDCG of the first 10, with the gains as they are and the discount log2(rank + 1)
            (Järvelin and Kekäläinen, "Cumulated gain-based evaluation of IR techniques", 2002).
        reciprocal_rank: 1 / rank of the first relevant hit, 0 if none is among the first 10.
        recall: Share of the relevant ones that were found in time.
        judged: Share of judged hits among the first 10.
    """

    ndcg: float
    reciprocal_rank: float
    recall: float
    judged: float

    @property
    def hit_at_1(self) -> float:
        """1 where the first one is relevant, else 0."""
        return float(self.reciprocal_rank == 1)


def measure(rankings: Sequence[Ranking], k: int) -> list[Measures]:
    """Measure rankings."""
    import ir_measures
    from ir_measures import RR, Judged, R, nDCG

    measures: dict[Any, str] = {
        nDCG @ DEPTH: "ndcg",
        RR @ DEPTH: "reciprocal_rank",
        R @ k: "recall",
        Judged @ DEPTH: "judged",
    }
    qrels = {
        str(query): {str(i): gain for i, gain in enumerate(ranking.gains)}
        for query, ranking in enumerate(rankings)
    }
    # names of what was not judged begin with x; scores fall with the rank
    runs = {
        str(query): {
            (f"x{rank}" if i is None else str(i)): float(-rank)
            for rank, i in enumerate(ranking.found)
        }
        for query, ranking in enumerate(rankings)
        if ranking.found
    }
    values: list[dict[str, float]] = [dict.fromkeys(measures.values(), 0.0) for _ in rankings]
    for metric in ir_measures.iter_calc(list(measures), qrels, runs):
        values[int(metric.query_id)][measures[metric.measure]] = float(metric.value)
    return [Measures(**found) for found in values]
