"""Agreement between raters, by figures that others published."""

import math

import pytest

from kbkit.feedback.statistics import ordinal_alpha


def test_the_published_example_has_its_published_alpha():
    """Krippendorff 2011, part C: four observers, twelve units, some not seen by all."""
    observers = [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, 0, 0, 0],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, 0, 3],
        [0, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, 0],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, 0],
    ]
    units = [[value for value in unit if value] for unit in zip(*observers, strict=True)]
    assert ordinal_alpha(units) == pytest.approx(0.815, abs=0.0005)


@pytest.mark.parametrize(
    ("units", "alpha"),
    [
        ([[1, 1], [5, 5], [3, 3, 3]], 1.0),
        ([[4, 4], [4, 4]], 1.0),
        ([[1], [2], []], math.nan),
        ([], math.nan),
        ([[1, 2], [2, 1]], -0.5),  # 1 - 3 * 4 / 8: each disagrees, two of each value
    ],
    ids=str,
)
def test_ends(units, alpha):
    assert ordinal_alpha(units) == pytest.approx(alpha, nan_ok=True)


def test_near_scores_agree_more_than_far_ones():
    near = [[1, 2], [4, 5], [3, 3], [2, 2], [5, 5]]
    far = [[1, 5], [4, 1], [3, 3], [2, 2], [5, 5]]
    assert ordinal_alpha(near) > ordinal_alpha(far)


def test_what_several_people_rated_for_a_query_counts(kb, chunk):
    bread, milk, coffee = chunk("Bread"), chunk("kept cold"), chunk("ground")
    for rater, scores in {"ann": (5, 2, 1), "bob": (4, 2, 4), "query": (5, 2, 1)}.items():
        for target, score in zip((bread, milk, coffee), scores, strict=True):
            if (rater, target) != ("query", milk):
                kb.rate(target, 1, query="bread", rater=rater)
                kb.rate(target, score, query=" Bread", rater=rater)
    kb.rate(bread, 1, query="other", rater="ann")
    kb.rate(bread, 1, rater="bob")
    found = kb.feedback.agreement()
    assert found.raters == ("ann", "bob", "query")
    assert [passage.spread for passage in found.passages] == [3, 1, 0]
    assert 0 < found.alpha < 1
    pairs = {pair.raters: pair for pair in found.pairs}
    assert pairs["ann", "query"].alpha == pairs["ann", "query"].same == 1
    assert (pairs["ann", "bob"].passages, pairs["ann", "bob"].near) == (3, 2 / 3)
    frame = found.to_frame()
    assert frame["by bob"].tolist() == [4, 4, 2]
    assert frame["by query"].isna().tolist() == [False, False, True]
    assert found.to_dict()["passages"] == 3


def test_nobody_to_agree_with(shared):
    found = shared.feedback.agreement()
    assert (found.passages, found.pairs, found.to_dict()["alpha"]) == ((), (), None)
    assert found.to_frame().empty
    assert "0 raters" in repr(found)
