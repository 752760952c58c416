"""Laws of fusion, whatever the scores."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from kbkit.models import RatingTotal
from kbkit.retrieval.fusion import (
    Features,
    Weights,
    discounts,
    document_evidence,
    fuse,
    near_duplicates,
    normalise,
    rating_prior,
)

pytestmark = pytest.mark.local

shares = st.floats(0, 1)
candidate = st.fixed_dictionaries(
    {
        **dict.fromkeys(("cosine", "rating", "summary"), st.floats(-1, 1)),
        **dict.fromkeys(("bm25", "page"), st.floats(0, 200)),
        **dict.fromkeys(("title", "heading", "graph", "learned"), shares),
        "documents": st.integers(0, 4),
    }
)
candidates = st.lists(candidate, min_size=1, max_size=25)
OPTIONAL = ("title", "heading", "summary", "page", "graph", "learned")
PARTS = ("dense", "lexical", "document", *OPTIONAL)
COLUMNS = ("cosine", "bm25", "rating", *OPTIONAL)
RELATIVE = ("cosine", "bm25", "summary", "page")
NOTHING = dict.fromkeys(("rating", *OPTIONAL), 0)
PLAIN = Weights(0.4, 0.5, 0.2, 0.2, 0.1, 1.0, 0.5)
weights = st.builds(
    Weights, dense=shares, rating=shares, **dict.fromkeys(("document", *OPTIONAL), st.floats(0, 5))
)


def features(rows, extra=0):
    """Columns of rows; each document has ``extra`` chunks that are not among them."""
    documents = np.array([row["documents"] for row in rows], np.int64)
    columns = {name: np.array([row[name] for row in rows], float) for name in COLUMNS}
    for name in ("index", "bm25_full", "page_full", "summary_full"):
        columns[name] = np.zeros(len(rows))
    sizes = np.array([np.sum(documents == document) + extra for document in documents], np.int64)
    return Features(**columns, documents=documents, sizes=sizes)


@given(st.lists(st.floats(-1e6, 1e6), max_size=20))
def test_normalised_scores_lie_from_0_to_1_in_the_same_order(scores):
    values = normalise(np.array(scores, dtype=float))
    assert ((values >= 0) & (values <= 1)).all()
    if any(score > 0 for score in scores):
        assert values.max() == 1
    for i, j in itertools.combinations(range(len(scores)), 2):
        if scores[i] <= scores[j]:
            assert values[i] <= values[j]


def test_scores_below_the_full_one_are_measured_by_it():
    assert normalise(np.array([1.0, 2.0]), full=4.0).tolist() == [0.25, 0.5]
    assert normalise(np.array([1.0, 8.0]), full=4.0).tolist() == [0.125, 1]
    assert normalise(np.array([0.0]), full=4.0).tolist() == [0]


@given(candidates, weights)
def test_parts_add_up_to_a_bounded_score(rows, chosen):
    fused = fuse(features(rows), chosen)
    for i, row in enumerate(rows):
        parts = fused.parts(i)
        assert parts.total == pytest.approx(fused.total[i], abs=1e-12)
        most = 1 + chosen.learned
        assert 0 <= parts.total <= most * (1 + chosen.rating) + 1e-9
        assert parts.total - parts.rating - parts.learned <= 1 + 1e-9
        assert min(getattr(parts, name) for name in PARTS) >= 0
        assert (parts.cosine, parts.bm25) == (row["cosine"], row["bm25"])
        assert parts.rating * row["rating"] >= 0


@given(candidates, weights, st.randoms(use_true_random=False), st.integers(0, 6))
def test_score_does_not_depend_on_the_order_of_candidates(rows, chosen, random, extra):
    order = list(range(len(rows)))
    random.shuffle(order)
    fused = fuse(features(rows, extra), chosen)
    shuffled = fuse(features([rows[i] for i in order], extra), chosen)
    assert shuffled.total == pytest.approx(fused.total[order], abs=1e-12)
    for name, values in fused.scores.items():
        assert shuffled.scores[name] == pytest.approx(values[order], abs=1e-12)


def test_common_words_do_not_outweigh_meaning_if_the_rare_ones_are_missing():
    rows = [
        {"cosine": 0.5, "bm25": 0.5, **NOTHING, "documents": 0},
        {"cosine": 0.4, "bm25": 1.0, **NOTHING, "documents": 1},
    ]
    weights = replace(PLAIN, dense=0.5)
    relative = features(rows)
    assert fuse(relative, weights).total.argmax() == 1
    assert fuse(replace(relative, bm25_full=np.full(2, 5.0)), weights).total.argmax() == 0


@given(candidates, weights, st.data())
def test_larger_feature_scores_no_less(rows, chosen, data):
    """Except for a new maximum of the relative columns, which scales all others."""
    i = data.draw(st.integers(0, len(rows) - 1))
    name = data.draw(st.sampled_from(COLUMNS))
    top = max(row[name] for row in rows) if name in RELATIVE else 1.0
    before = fuse(features(rows), chosen).total[i]
    more = [dict(row) for row in rows]
    more[i][name] = data.draw(st.floats(rows[i][name], max(top, rows[i][name])))
    assert fuse(features(more), chosen).total[i] >= before - 1e-9


def test_dense_weight_decides_between_the_retrievers():
    rows = [
        {"cosine": 0.9, "bm25": 1.0, **NOTHING, "documents": 0},
        {"cosine": 0.1, "bm25": 9.0, **NOTHING, "documents": 1},
    ]
    for dense, best in ((1.0, 0), (0.0, 1)):
        total = fuse(features(rows), replace(PLAIN, dense=dense)).total
        assert total.argmax() == best


@given(candidates, weights, st.data())
def test_discounted_parts_add_up_exactly(rows, chosen, data):
    factors = data.draw(arrays.arrays(float, len(rows), elements=shares))
    fused = fuse(features(rows), chosen)
    less = fused.multiply(factors)
    for i in range(len(rows)):
        assert less.parts(i).total == less.total[i]
        assert less.total[i] == pytest.approx(fused.total[i] * factors[i], abs=1e-12)
    assert less.features is fused.features


def naive_evidence(scores, documents, sizes):
    """Four other chunks count; absent ones as 0 or as others usually do."""
    best, others, lacking, usual = {}, {}, {}, [1.0, 1.0, 1.0]
    for document, size in dict(zip(documents, sizes, strict=True)).items():
        own = sorted((s for s, d in zip(scores, documents, strict=True) if d == document))[::-1]
        best[document], others[document] = own[0], sum(own[1:5]) / 4
        lacking[document] = max(0, 5 - size) / 4
        if size >= 5 and own[0] > 0:
            usual.append(others[document] / own[0])
    share = sum(usual) / len(usual)
    return [others[d] + lacking[d] * share * best[d] for d in documents]


@given(st.lists(st.tuples(shares, st.integers(0, 3)), min_size=1, max_size=25), st.integers(0, 6))
def test_evidence_comes_from_the_other_chunks_of_the_document(rows, extra):
    scores, documents = (np.array(column) for column in zip(*rows, strict=True))
    documents = np.unique(documents, return_inverse=True)[1]
    sizes = np.bincount(documents)[documents] + extra
    expected = naive_evidence(scores, documents, sizes)
    assert document_evidence(scores, documents, sizes) == pytest.approx(expected)


@given(st.lists(st.integers(1, 5), min_size=1, max_size=30))
def test_rating_prior_is_the_distance_from_the_middle(scores):
    (prior,) = rating_prior([RatingTotal(len(scores), float(np.mean(scores)))])
    assert prior == pytest.approx((np.mean([*scores, 3, 3]) - 3) / 2)  # two more raters: 3 each
    assert -1 < prior < 1


def test_unrated_chunks_have_no_prior():
    totals = [RatingTotal(0, 0.0), RatingTotal(0, 5.0), RatingTotal(9, 3.0)]
    assert rating_prior(totals).tolist() == [0, 0, 0]


@given(
    st.lists(st.tuples(st.sampled_from([0.1, 0.2, 0.3, 0.4]), st.integers(0, 3), st.booleans())),
    st.integers(1, 4),
)
def test_further_hits_of_a_document_and_duplicates_are_discounted(rows, most):
    total = np.array([row[0] for row in rows], float)
    documents = np.array([row[1] for row in rows], np.int64)
    alike = np.array([row[2] for row in rows], bool)
    factors = discounts(total, documents, alike, most)
    before = dict.fromkeys(range(4), 0)
    for i in sorted(range(len(rows)), key=lambda i: (-total[i], i)):
        further = max(0, before[rows[i][1]] - most + 1)
        before[rows[i][1]] += 1
        assert factors[i] == pytest.approx(0.9**further * (0.5 if alike[i] else 1))


def naive_duplicates(vectors, threshold):
    kept, alike = [], []
    for vector in vectors:
        alike.append(any(float(vector @ other) > threshold for other in kept))
        if not alike[-1]:
            kept.append(vector)
    return alike


@given(
    st.lists(st.lists(st.integers(-2, 2), min_size=3, max_size=3), max_size=20),
    st.sampled_from([0.5, 0.8, 0.9, 0.98, 0.9999]),
)
def test_near_duplicates_are_found_greedily(rows, threshold):
    vectors = np.array(rows, np.float32).reshape(len(rows), 3)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    vectors = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
    assert near_duplicates(vectors, threshold).tolist() == naive_duplicates(vectors, threshold)


def test_near_duplicates_are_found_among_many():
    vectors = np.random.default_rng(0).standard_normal((1300, 4), np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    alike = near_duplicates(vectors, 0.97)
    assert alike.tolist() == naive_duplicates(vectors, 0.97)
    assert 100 < alike.sum() < 1200


def test_fusion_of_no_candidates_is_empty():
    none = fuse(features([]), PLAIN)
    assert {len(values) for values in (*none.scores.values(), none.total)} == {0}
    assert none.total.shape == none.multiply(none.total).total.shape == (0,)
    assert near_duplicates(np.zeros((0, 3), np.float32), 0.9).shape == (0,)
    nothing = np.zeros(0, np.int64)
    assert discounts(none.total, nothing, nothing.astype(bool), 2).shape == (0,)


def test_ratings_scale_scores():
    alike = NOTHING | {"cosine": 0.9, "bm25": 9.0, "title": 1, "heading": 1}
    rows = [alike | {"rating": r, "documents": i} for i, r in enumerate((0.0, 0.5, -0.5))]
    plain, good, bad = fuse(features(rows), PLAIN).total
    assert (good / plain, bad / plain) == (pytest.approx(1.05), pytest.approx(0.95))
    assert fuse(features(rows), replace(PLAIN, rating=0.0)).total == pytest.approx([plain] * 3)


def test_index_page_ranks_last_unless_people_chose_it():
    row = {**NOTHING, "cosine": 0.9, "bm25": 9, "documents": 0}
    index, learned = np.array([1.0, 0.0, 1.0]), np.array([0.0, 0.0, 0.5])
    pages = replace(features([row, row, row]), index=index, learned=learned)
    links, other, chosen = fuse(pages, Weights(0.5, 0, 0, 0, 0, 0, 0, learned=1.0)).total
    assert links == pytest.approx(other / 10)
    assert chosen > other
