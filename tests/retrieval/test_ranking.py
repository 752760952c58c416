"""Laws of ranking, over candidates made up."""

from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbkit.models import Mode
from kbkit.recipes import RetrievalSpec
from kbkit.retrieval.candidates import CandidatePool, TermCounts
from kbkit.retrieval.fusion import CorpusStatistics, Features
from kbkit.retrieval.ranking import document_factors, rank, with_joint_statistics

pytestmark = pytest.mark.local

FREE = RetrievalSpec(duplicates=1, per_document=1000)


def pool(
    *rows,
    ranked=None,
    retrieval=FREE,
    kb="kb",
    summary=None,
    page=None,
    embedder="onnx:x",
    of=1_000,
):
    """A pool of (cosine, BM25, document[, direction]) rows out of `of` documents."""
    n = len(rows)
    directions = [row[3] if len(row) > 3 else i + 10 for i, row in enumerate(rows)]
    vectors = np.zeros((n, max([*directions, 0]) + 1), np.float32)
    vectors[range(n), directions] = 1
    documents = [f"{kb}-{row[2]}" for row in rows]
    columns = {part.name: np.zeros(n) for part in fields(Features) if part.name != "documents"}
    if summary is not None:
        columns["summary"] = np.array(summary, float)
    if page is not None:
        columns["page"] = np.array(page, float)
    return CandidatePool(
        kb=kb,
        language="english",
        retrieval=retrieval,
        terms=("tea",),
        seqs=np.arange(n) + 100,
        ranked=n if ranked is None else ranked,
        document_ids=documents,
        vectors=vectors,
        words=TermCounts([{}] * n, [1] * n, CorpusStatistics(n, 1.0, {})),
        pages=TermCounts([{}] * n, [1] * n, CorpusStatistics(of, 1.0, {})),
        which=np.arange(n),
        embedder=embedder,
        columns={
            **columns,
            "cosine": np.array([row[0] for row in rows], float),
            "bm25": np.array([row[1] for row in rows], float),
            "sizes": np.full(n, 60.0),
        },
    )


def order(ranked):
    return [place.row for place in ranked]


def by_place(ranked):
    return {(place.pool.kb, place.row): place.parts for place in ranked}


row = st.tuples(st.floats(-1, 1), st.floats(0, 50), st.sampled_from("abc"), st.integers(0, 9))
rows = st.lists(row, max_size=30)
some_settings = st.builds(
    RetrievalSpec,
    dense_weight=st.floats(0, 1),
    document_weight=st.floats(0, 5),
    per_document=st.integers(1, 4),
    duplicates=st.sampled_from([0.9, 1.0]),
)


@given(rows, st.integers(0, 30), st.sampled_from(Mode), some_settings)
def test_ranking_has_each_matching_candidate_once_in_descending_order(rows, ranked, mode, chosen):
    placed = rank([pool(*rows, ranked=min(ranked, len(rows)), retrieval=chosen)], 100, mode)
    weight = {Mode.DENSE: 1.0, Mode.LEXICAL: 0.0}.get(mode, chosen.dense_weight)
    low = 1e-3  # smaller scores may vanish beside the best
    sure = {i for i, r in enumerate(rows) if weight * r[0] > low or (1 - weight) * r[1] > low}
    may = {i for i, r in enumerate(rows) if (weight and r[0] > 0) or (weight < 1 and r[1] > 0)}
    ranks = order(placed)
    assert len(ranks) == len(set(ranks))
    assert sure <= set(ranks) <= may
    scores = [place.parts.total for place in placed]
    assert scores == sorted(scores, reverse=True)  # to the last digit
    assert all(0 < place.parts.total <= 1 + 1e-9 for place in placed)


@given(rows, rows)
def test_two_pools_rank_as_one_of_all(first, second):
    second = [(*row[:2], row[2].upper(), row[3]) for row in second]  # other documents
    apart = rank([pool(*first, kb="x", of=500), pool(*second, kb="x", of=500)], 100)
    together = rank([pool(*first, *second, kb="x")], 100)
    assert [p.parts.total for p in apart] == pytest.approx([p.parts.total for p in together])


BY_MEANING = RetrievalSpec(dense_weight=1, document_weight=0, summary_weight=0, page_weight=0)


def test_each_pool_is_ranked_by_its_own_weights():
    words = BY_MEANING.model_copy(update={"dense_weight": 0})
    rows = [(0.9, 1.0, "a"), (0.3, 9.0, "b")]
    pools = [
        pool(*rows, kb="meaning", retrieval=BY_MEANING),
        pool(*rows, kb="words", retrieval=words),
    ]
    for both in (pools, pools[::-1]):
        totals = {place: parts.total for place, parts in by_place(rank(both, 9)).items()}
        assert totals == pytest.approx(
            {("meaning", 0): 1, ("words", 1): 1, ("meaning", 1): 0.3 / 0.9, ("words", 0): 1 / 9}
        )


def test_discounts_follow_the_settings_of_each_pool():
    rows = [(0.9, 0, "a", 1), (0.89, 0, "a", 1), (0.88, 0, "a", 2)]
    strict = BY_MEANING.model_copy(update={"per_document": 1, "duplicates": 0.9})
    free = BY_MEANING.model_copy(update={"per_document": 1000, "duplicates": 1})
    pools = [pool(*rows, kb="x", retrieval=strict), pool(*rows, kb="y", retrieval=free)]
    parts = by_place(rank(pools, 9))
    assert parts["y", 1].total == pytest.approx(0.89 / 0.9)
    assert parts["x", 1].total < 0.5 < parts["x", 2].total < 0.9


def test_static_summaries_weigh_the_same_beside_a_model():
    rows = [(0.0, 0.0, "a"), (0.0, 0.0, "b")]
    pools = [pool(*rows, kb=kb, summary=[1, 0.5], embedder=f"{kb}:x") for kb in ("static", "onnx")]
    parts = by_place(rank(pools, 9))
    alone = rank([pools[0]], 9)[0].parts.summary
    assert parts["static", 0].summary < parts["onnx", 0].summary
    assert parts["static", 0].summary == pytest.approx(alone, rel=0.01)  # with twice the documents


def test_fillers_rank_behind_candidates_and_match_something():
    rows = [(0.2, 0.0, "a"), (0.1, 1.0, "b"), (0.9, 9.0, "c"), (0.8, 9.0, "d")]
    placed = rank([pool(*rows, ranked=2)], 10)
    assert order(placed) == [1, 0, 2, 3]
    scores = [place.parts.total for place in placed]
    assert scores == sorted(scores, reverse=True)
    assert order(rank([pool(*rows, ranked=0)], 3)) == [0, 1, 2]  # unsorted
    rows = [(0.9, 9.0, "a"), (-0.1, 0.0, "b"), (0.1, 0.0, "c")]
    assert order(rank([pool(*rows, ranked=1, summary=[0.5, 0.5, 0.5])], 9)) == [0, 2]


def test_near_duplicates_within_a_knowledge_base_rank_lower():
    rows = [(0.9, 0, "a", 1), (0.9, 0, "b", 1), (0.6, 0, "c", 2), (0.5, 0, "d", 1)]
    retrieval = RetrievalSpec(document_weight=0)
    assert order(rank([pool(*rows, retrieval=retrieval)], 9)) == [0, 2, 1, 3]
    alone = retrieval.model_copy(update={"summary_weight": 0, "page_weight": 0})
    best = rank([pool(*rows, retrieval=alone)], 9)[0]
    both = [pool(*rows[:1], retrieval=alone), pool(*rows[1:2], kb="other", retrieval=alone)]
    # vectors of two knowledge bases are not compared
    assert rank(both, 9)[1].parts.dense == pytest.approx(best.parts.dense)


def test_title_alone_is_no_match():
    candidates = pool((0.0, 0.0, "a"), (0.1, 0.0, "b"))
    candidates.columns["title"][0] = 1.0
    assert order(rank([candidates], 9)) == [1]


def test_settings_are_those_of_each_pool_and_the_mode():
    rows = [(0.9, 1.0, "a"), (0.1, 9.0, "b")]
    dense, lexical = (FREE.model_copy(update={"dense_weight": weight}) for weight in (1.0, 0.0))
    assert order(rank([pool(*rows, retrieval=dense)], 9)) == [0, 1]
    assert order(rank([pool(*rows, retrieval=lexical), pool(retrieval=dense)], 9)) == [1, 0]
    assert order(rank([pool(*rows, retrieval=dense)], 9, Mode.LEXICAL)) == [1, 0]
    assert order(rank([pool(*rows, retrieval=lexical)], 9, Mode.DENSE)) == [0, 1]


@pytest.mark.parametrize(
    ("retriever", "weight", "silent"),
    [("summary", "summary_weight", Mode.LEXICAL), ("page", "page_weight", Mode.DENSE)],
)
def test_document_scores_decide_between_like_chunks(retriever, weight, silent):
    rows = [(0.5, 5.0, "a"), (0.5, 5.0, "b"), (0.0, 0.0, "c")]
    candidates = pool(*rows, **{retriever: [0.1, 0.4, 0.2]})
    ranked = rank([candidates], 9)
    assert order(ranked) == [1, 0, 2]  # the last matches by its document alone
    part = getattr(ranked[0].parts, retriever)
    assert part == pytest.approx(getattr(ranked[1].parts, retriever) * 4)
    assert part > 0
    assert order(rank([candidates], 9, silent)) == [0, 1]
    assert order(rank([replace(candidates, retrieval=FREE.model_copy(update={weight: 0}))], 9)) == [
        0,
        1,
    ]


def test_summaries_with_static_vectors_weigh_less():
    rows, scores = [(0.5, 5.0, "a"), (0.4, 5.0, "b")], {"summary": [0.1, 0.4], "page": [1.0, 2.0]}
    model, static = pool(*rows, **scores), pool(*rows, **scores, embedder="static:x")
    less = FREE.model_copy(update={"summary_weight": 0.3, "page_weight": 0.3})
    assert (FREE.summary_weight, FREE.page_weight) == (1.0, 0.5)
    for mode in (Mode.HYBRID, Mode.DENSE):
        parts = [place.parts for place in rank([static], 9, mode)]
        assert parts == [place.parts for place in rank([replace(model, retrieval=less)], 9, mode)]
        assert parts != [place.parts for place in rank([model], 9, mode)]
    other = pool(*rows, kb="other", **scores)
    # both are on the scale of the model
    assert rank([static, other], 9)[0].parts == rank([model, other], 9)[0].parts


def test_document_scores_weigh_less_where_there_are_few_documents():
    row = (0.5, 5.0, "a")
    factors = document_factors([pool(row, of=10), pool(row, of=20, embedder="static:x")])
    np.testing.assert_allclose(factors, [(0.75, 0.75), (0.225, 0.45)])


def test_ranking_without_matches_is_empty():
    assert rank([], 9) == []
    assert rank([pool(), pool()], 9) == []
    assert rank([pool((-0.5, 0.0, "a"), (0.0, 0.0, "b"), ranked=1)], 9) == []


def test_word_rarity_is_that_of_all_pools_together():
    def of(chunks, frequency):
        one = pool((0.5, 1.0, "a"))
        words = TermCounts([{"tea": 1}], [1], CorpusStatistics(chunks, 1.0, {"tea": frequency}))
        return replace(one, words=words)

    small, large = with_joint_statistics([of(5, 1), of(5_000, 2_000)])
    assert small.columns["bm25"].tolist() == large.columns["bm25"].tolist()
    assert with_joint_statistics([small]) == [small]
