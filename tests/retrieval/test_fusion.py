"""Laws that fusion keeps whatever the scores are."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbkit.models import ScoreParts
from kbkit.retrieval.fusion import Weights, document_evidence, fuse, normalised, ranking

cosines = st.floats(-1, 1, allow_nan=False)
bm25s = st.floats(0, 200, allow_nan=False)
shares = st.floats(0, 1)
candidate = st.tuples(cosines, bm25s, shares, st.sampled_from("abcd"))
candidates = st.lists(candidate, min_size=1, max_size=25)
weights = st.builds(Weights, dense=shares, document=st.floats(0, 5), title=st.floats(0, 5))


def fused(rows, chosen):
    """Parts and documents of (cosine, BM25, title share, document) rows."""
    cosine, bm25, title = (np.array([row[i] for row in rows], dtype=float) for i in range(3))
    documents = [row[3] for row in rows]
    return fuse(cosine, bm25, title, documents, chosen), documents


def part(score, title=0.0):
    return ScoreParts(cosine=score, bm25=0.0, dense=score, lexical=0.0, title=title)


@given(st.lists(st.floats(-1e6, 1e6), max_size=20))
def test_normalised_scores_lie_between_0_and_1_and_keep_their_order(scores):
    values = normalised(np.array(scores, dtype=float))
    assert ((values >= 0) & (values <= 1)).all()
    if any(score > 0 for score in scores):
        assert values.max() == 1
    for low, high in itertools.pairwise(scores):
        i = scores.index(low)
        j = scores.index(high)
        if low <= high:
            assert values[i] <= values[j]


def test_a_candidate_with_nothing_in_common_stays_at_0_whatever_the_worst_one_has():
    assert normalised(np.array([-0.5, 0.0, 0.25, 0.5])).tolist() == [0, 0, 0.5, 1]
    assert normalised(np.array([-0.5, -0.1])).tolist() == [0, 0]
    assert normalised(np.array([])).size == 0


@given(candidates, weights)
def test_the_parts_add_up_to_a_score_between_0_and_1(rows, chosen):
    parts, _ = fused(rows, chosen)
    for one, row in zip(parts, rows, strict=True):
        assert one.total == one.dense + one.lexical + one.document + one.title
        assert 0 <= one.total <= 1 + 1e-9
        assert min(one.dense, one.lexical, one.document, one.title) >= 0
        assert (one.cosine, one.bm25) == row[:2]


@given(candidates, weights, st.randoms(use_true_random=False))
def test_a_score_does_not_depend_on_the_order_of_candidates(rows, chosen, random):
    parts, _ = fused(rows, chosen)
    order = list(range(len(rows)))
    random.shuffle(order)
    shuffled, _ = fused([rows[i] for i in order], chosen)
    assert shuffled == [parts[i] for i in order]


@given(candidates, weights, st.integers(1, 30))
def test_a_ranking_is_a_permutation_of_those_that_have_something_in_common(rows, chosen, most):
    parts, documents = fused(rows, chosen)
    order = ranking(parts, documents, most)
    matching = [i for i, one in enumerate(parts) if one.dense + one.lexical > 0]
    assert sorted(order) == matching


@given(candidates, weights, st.integers(1, 4))
def test_a_document_gives_way_behind_its_first_hits_but_loses_none(rows, chosen, most):
    parts, documents = fused(rows, chosen)
    free = ranking(parts, documents, len(rows))
    capped = ranking(parts, documents, most)
    assert [parts[i].total for i in free] == sorted((parts[i].total for i in free), reverse=True)
    assert set(free) == set(capped)
    first = {d: [i for i in free if documents[i] == d][:most] for d in set(documents)}
    wanted = [i for i in free if i in first[documents[i]]]
    assert capped == wanted + [i for i in free if i not in wanted]


def test_one_document_fills_a_ranking_when_it_is_the_only_one():
    assert ranking([part(0.1), part(0.3), part(0.2)], "aaa", 1) == [1, 2, 0]


def test_equal_scores_keep_their_order():
    assert ranking([part(0.5)] * 4, "abcd", 3) == [0, 1, 2, 3]


def test_a_title_alone_is_no_reason_to_be_found():
    assert ranking([part(0.0, title=0.4), part(0.1)], "ab", 3) == [1]


def test_evidence_is_the_mean_of_the_next_three_of_the_document():
    scores = np.array([0.9, 0.6, 0.3, 0.3, 0.1, 0.8])
    evidence = document_evidence(scores, ["a", "a", "a", "a", "a", "b"])
    assert evidence == pytest.approx([0.4] * 5 + [0])


@pytest.mark.parametrize(("dense", "first"), [(1.0, 0), (0.0, 1)])
def test_the_weight_decides_between_the_legs(dense, first):
    rows = [(0.9, 1.0, 0.0, "a"), (0.1, 9.0, 0.0, "b")]
    parts, documents = fused(rows, Weights(dense, 0.5, 0.2))
    assert ranking(parts, documents, 3)[0] == first


def test_fusing_nothing_gives_nothing():
    none = np.zeros(0)
    assert fuse(none, none, none, [], Weights(0.4, 0.5, 0.2)) == []
    assert ranking([], [], 3) == []
