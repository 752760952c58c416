"""Intervals and tests, against what can be worked out, and where there is little to go by."""

import math

import numpy as np
import pytest

from kbkit.feedback.statistics import confidence_interval, difference

SOME = np.array([0.1, 0.4, 0.5, 0.7, 0.8, 1.0, 0.3, 0.6])


def test_an_interval_is_about_two_standard_errors_either_side():
    values = np.random.default_rng(0).random(200)
    error = values.std(ddof=1) / math.sqrt(len(values))
    low, high = confidence_interval(values)
    assert low == pytest.approx(values.mean() - 1.96 * error, abs=error / 10)
    assert high == pytest.approx(values.mean() + 1.96 * error, abs=error / 10)
    assert confidence_interval(values) == (low, high)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("values", [[], [0.5], [0.5, 0.5], [0.0] * 30, [1.0, 0.0]])
def test_little_to_go_by_gives_finite_intervals_without_warnings(values):
    low, high = confidence_interval(np.array(values))
    assert 0 <= low <= high <= 1
    assert ((low, high) == (0, 1)) == (len(values) < 2 or values == [1.0, 0.0])


def test_the_p_value_is_the_share_of_signs_that_give_as_much():
    better = np.array([0.2, 0.3, 0.4, 0.5])
    # of 16 ways to toss the signs, two have a mean as far from 0
    assert difference(better, np.zeros(4)).p_value == pytest.approx(2 / 16)
    assert difference(SOME + 0.1, SOME).p_value == pytest.approx(2 / 2**8)


def test_a_difference_has_its_sign_and_interval():
    found = difference(SOME, SOME - 0.2)
    assert found.mean == pytest.approx(0.2)
    assert found.low == pytest.approx(0.2)
    assert difference(SOME - 0.2, SOME).mean == pytest.approx(-0.2)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("count", [0, 1, 2, 14, 100])
def test_equal_figures_do_not_differ(count):
    found = difference(np.full(count, 0.3), np.full(count, 0.3))
    assert (found.mean, found.p_value) == (0, 1)


def test_noise_is_rarely_significant():
    generator = np.random.default_rng(1)
    found = [difference(generator.random(30), generator.random(30)).p_value for _ in range(40)]
    assert sum(p < 0.05 for p in found) <= 6
    assert min(found) > 0


def test_one_query_tells_nothing_of_others():
    found = difference(np.array([1.0]), np.array([0.0]))
    assert (found.mean, found.low, found.high, found.p_value) == (1, -1, 1, 1)
