"""Confidence intervals and tests, against computed figures and with few values."""

import math

import numpy as np
import pytest

from kbkit.feedback.statistics import confidence_interval, difference

SOME = np.array([0.1, 0.4, 0.5, 0.7, 0.8, 1.0, 0.3, 0.6])


def test_interval_is_about_two_standard_errors_on_either_side():
    values = np.random.default_rng(0).random(200)
    error = values.std(ddof=1) / math.sqrt(len(values))
    low, high = confidence_interval(values)
    assert low == pytest.approx(values.mean() - 1.96 * error, abs=error / 10)
    assert high == pytest.approx(values.mean() + 1.96 * error, abs=error / 10)
    assert confidence_interval(values) == (low, high)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("values", [[], [0.5], [0.5, 0.5], [0.0] * 30, [1.0, 0.0]])
def test_few_values_give_finite_intervals_without_warnings(values):
    low, high = confidence_interval(np.array(values))
    assert 0 <= low <= high <= 1
    assert ((low, high) == (0, 1)) == (len(values) < 2 or values == [1.0, 0.0])


def test_p_value_is_the_share_of_signs_with_as_large_a_mean():
    better = np.array([0.2, 0.3, 0.4, 0.5])
    # of 16 ways to toss the signs, two have a mean as far from 0
    assert difference(better, np.zeros(4)).p_value == pytest.approx(2 / 16)
    assert difference(SOME + 0.1, SOME).p_value == pytest.approx(2 / 2**8)


def test_difference_has_its_sign_and_interval():
    gain = difference(SOME, SOME - 0.2)
    assert gain.mean == pytest.approx(0.2)
    assert gain.low == pytest.approx(0.2)
    assert difference(SOME - 0.2, SOME).mean == pytest.approx(-0.2)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("count", [0, 1, 2, 14, 100])
def test_equal_figures_do_not_differ(count):
    equal = difference(np.full(count, 0.3), np.full(count, 0.3))
    assert (equal.mean, equal.p_value) == (0, 1)


def test_noise_is_rarely_significant():
    generator = np.random.default_rng(1)
    p_values = [difference(generator.random(30), generator.random(30)).p_value for _ in range(40)]
    assert sum(p < 0.05 for p in p_values) <= 6
    assert min(p_values) > 0


def test_difference_of_one_query_is_not_significant():
    single = difference(np.array([1.0]), np.array([0.0]))
    assert (single.mean, single.low, single.high, single.p_value) == (1, -1, 1, 1)
