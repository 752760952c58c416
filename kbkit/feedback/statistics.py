"""How sure a mean is, and whether two configurations differ by more than chance."""

from __future__ import annotations

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
        p_value: How likely a difference as large is where there is none, 0 to 1.
    """

    mean: float
    low: float
    high: float
    p_value: float


def confidence_interval(values: Values, low: float = 0.0, high: float = 1.0) -> tuple[float, float]:
    """The 95 % confidence interval of a mean: percentiles of 9,999 bootstrap samples of queries.

    Efron and Tibshirani, "An Introduction to the Bootstrap" (1993), chapter 13. The samples are
    the same in each run. One figure or none tells nothing of others: then it is the whole range.

    Args:
        values: One a query.
        low: The least that a value can be.
        high: The most.
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

    Args:
        values: Of one configuration, one a query.
        others: Of the other, in the same order.
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
