"""Agreement between raters, against published figures."""

import math

import pytest

from kbkit.feedback.statistics import ordinal_alpha


def test_alpha_is_that_of_a_published_example():
    # Krippendorff 2011, part C: four observers, twelve units, 0 where not seen
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
def test_alpha_of_full_and_no_agreement_and_of_too_few_ratings(units, alpha):
    assert ordinal_alpha(units) == pytest.approx(alpha, nan_ok=True)


def test_near_scores_agree_more_than_distant_ones():
    near = [[1, 2], [4, 5], [3, 3], [2, 2], [5, 5]]
    far = [[1, 5], [4, 1], [3, 3], [2, 2], [5, 5]]
    assert ordinal_alpha(near) > ordinal_alpha(far)


def test_agreement_of_several_raters(kb, chunk):
    bread, milk, coffee = chunk("Bread"), chunk("kept cold"), chunk("ground")
    for rater, scores in {"ann": (5, 2, 1), "bob": (4, 2, 4), "query": (5, 2, 1)}.items():
        for target, score in zip((bread, milk, coffee), scores, strict=True):
            if (rater, target) != ("query", milk):
                kb.rate(target, 1, query="bread", rater=rater)
                kb.rate(target, score, query=" Bread", rater=rater)
    kb.rate(bread, 1, query="other", rater="ann")
    kb.rate(bread, 1, rater="bob")
    agreement = kb.feedback.agreement()
    assert agreement.raters == ("ann", "bob", "query")
    assert [passage.spread for passage in agreement.passages] == [3, 1, 0]
    assert 0 < agreement.alpha < 1
    frame = agreement.to_frame()
    assert frame["by bob"].tolist() == [4, 4, 2]
    assert frame["by query"].isna().tolist() == [False, False, True]
    assert agreement.to_dict()["passages"] == 3


def test_agreement_without_ratings_is_empty(shared):
    agreement = shared.feedback.agreement()
    assert agreement.passages == ()
    assert agreement.to_dict()["alpha"] is None
    assert agreement.to_frame().empty
    assert "0 raters" in repr(agreement)
