"""Ranking, with candidates made up: laws of the order, and of what fills it up."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbkit.models import Mode
from kbkit.recipes import RetrievalSpec
from kbkit.retrieval.candidates.base import Candidates, WholeDocuments
from kbkit.retrieval.fusion import CorpusStatistics
from kbkit.retrieval.ranking import CandidatePool, document_factors, rank, with_joint_statistics

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
    """A pool of (cosine, BM25, document) rows, each with a direction of its own or a given one.

    There are ``of`` documents in the knowledge base.
    """
    n = len(rows)
    directions = [row[3] if len(row) > 3 else i + 10 for i, row in enumerate(rows)]
    vectors = np.zeros((n, max([*directions, 0]) + 1), np.float32)
    vectors[range(n), directions] = 1
    documents = [f"{kb}-{row[2]}" for row in rows]
    nothing = np.zeros(n)
    return CandidatePool(
        kb=kb,
        language="english",
        retrieval=retrieval,
        terms=("tea",),
        candidates=Candidates(
            seqs=np.arange(n) + 100,
            ranked=n if ranked is None else ranked,
            document_ids=documents,
            sizes=np.full(n, 9),
            title=np.zeros(n),
            heading=np.zeros(n),
            lengths=[1] * n,
            counts=[{}] * n,
            vectors=vectors,
            statistics=CorpusStatistics(n, 1.0, {}),
            pages=WholeDocuments(
                which=np.arange(n),
                counts=[{}] * n,
                lengths=[1] * n,
                statistics=CorpusStatistics(of, 1.0, {}),
                summary=np.zeros(n),
                embedder=embedder,
            ),
        ),
        columns={
            "cosine": np.array([row[0] for row in rows], float),
            "bm25": np.array([row[1] for row in rows], float),
            "title": nothing,
            "heading": nothing,
            "rating": nothing,
            "learned": nothing,
            "sizes": np.full(n, 60.0),
            "summary": nothing if summary is None else np.array(summary, float),
            "page": nothing if page is None else np.array(page, float),
            "graph": nothing,
            "index": nothing,
        },
    )


def order(ranked):
    return [place.row for place in ranked]


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
def test_a_ranking_holds_once_what_has_anything_in_common_and_descends(rows, ranked, mode, chosen):
    placed = rank([pool(*rows, ranked=min(ranked, len(rows)))], 100, mode, chosen)
    weight = {Mode.DENSE: 1.0, Mode.LEXICAL: 0.0}.get(mode, chosen.dense_weight)
    low = 1e-3  # what is smaller may vanish beside the best
    sure = {i for i, r in enumerate(rows) if weight * r[0] > low or (1 - weight) * r[1] > low}
    may = {i for i, r in enumerate(rows) if (weight and r[0] > 0) or (weight < 1 and r[1] > 0)}
    found = order(placed)
    assert len(found) == len(set(found))
    assert sure <= set(found) <= may
    scores = [place.parts.total for place in placed]
    assert scores == sorted(scores, reverse=True)  # to the last digit
    assert all(0 < place.parts.total <= 1 + 1e-9 for place in placed)


@given(rows, st.integers(1, 30), some_settings)
def test_a_longer_list_begins_like_a_shorter_one(rows, ranked, chosen):
    """With fewer of those that fill up, too, as there are where fewer are wanted."""
    rows = [(1.0, 50.0, "a", 0), *rows]  # the best of each retriever is always ranked
    ranked = min(ranked, len(rows))
    whole = rank([pool(*rows, ranked=ranked)], 10**6, retrieval=chosen)
    begun = [(place.row, place.parts.total) for place in whole]
    for limit in (1, 2, 3, 10, 29):
        for some in (rows, rows[: max(ranked, limit)]):
            shown = rank([pool(*some, ranked=ranked)], limit, retrieval=chosen)
            there = begun[: min(limit, len(shown))]
            assert [(place.row, pytest.approx(place.parts.total)) for place in shown] == there


@given(rows, rows, some_settings)
def test_the_order_of_pools_does_not_matter(first, second, chosen):
    one, two = pool(*first, kb="one"), pool(*second, kb="two")
    scores = [
        {(place.pool.kb, place.row): place.parts for place in rank(pools, 100, retrieval=chosen)}
        for pools in ([one, two], [two, one])
    ]
    assert scores[0].keys() == scores[1].keys()
    for place, parts in scores[0].items():
        assert parts.total == pytest.approx(scores[1][place].total)


@given(rows, rows)
def test_two_pools_rank_as_one_of_all(first, second):
    second = [(*row[:2], row[2].upper(), row[3]) for row in second]  # other documents
    apart = rank([pool(*first, kb="x", of=500), pool(*second, kb="x", of=500)], 100)
    together = rank([pool(*first, *second, kb="x")], 100)
    assert [p.parts.total for p in apart] == pytest.approx([p.parts.total for p in together])


OWN = RetrievalSpec(dense_weight=1, document_weight=0, summary_weight=0, page_weight=0)
"""By meaning alone; the other half of a pair is ranked by words alone."""


def test_each_pool_is_ranked_by_its_own_weights():
    words = OWN.model_copy(update={"dense_weight": 0})
    rows = [(0.9, 1.0, "a"), (0.3, 9.0, "b")]
    pools = [pool(*rows, kb="meaning", retrieval=OWN), pool(*rows, kb="words", retrieval=words)]
    for both in (pools, pools[::-1]):
        placed = rank(both, 9)
        totals = {(place.pool.kb, place.row): place.parts.total for place in placed}
        assert totals == pytest.approx(
            {("meaning", 0): 1, ("words", 1): 1, ("meaning", 1): 0.3 / 0.9, ("words", 0): 1 / 9}
        )


@given(rows, rows, some_settings, some_settings)
def test_what_others_want_changes_no_ranks_within_a_pool(first, second, mine, theirs):
    """But for what depends on all scores found: scaling, and how much short documents are given."""
    mine, theirs = (known.model_copy(update={"document_weight": 0}) for known in (mine, theirs))
    one, two = pool(*first, kb="one", retrieval=mine), pool(*second, kb="two", retrieval=theirs)
    alike = pool(*second, kb="two", retrieval=mine)
    shown, expected = (
        [(p.row, pytest.approx(p.parts.total)) for p in rank([one, other], 100) if p.pool is one]
        for other in (two, alike)
    )
    assert shown == expected


def test_hits_of_a_document_and_duplicates_give_way_as_their_own_pool_says():
    rows = [(0.9, 0, "a", 1), (0.89, 0, "a", 1), (0.88, 0, "a", 2)]
    strict = OWN.model_copy(update={"per_document": 1, "duplicates": 0.9})
    free = OWN.model_copy(update={"per_document": 1000, "duplicates": 1})
    placed = rank([pool(*rows, kb="x", retrieval=strict), pool(*rows, kb="y", retrieval=free)], 9)
    totals = {(place.pool.kb, place.row): place.parts.total for place in placed}
    assert totals["y", 1] == pytest.approx(0.89 / 0.9)
    assert totals["x", 1] < 0.5 < totals["x", 2] < 0.9


def test_static_summaries_of_one_pool_do_not_count_less_for_being_beside_a_models():
    rows = [(0.0, 0.0, "a"), (0.0, 0.0, "b")]
    kinds = {"static": "static:x", "model": "onnx:x"}
    pools = [
        pool(*rows, kb=kb, summary=[1, 0.5], embedder=embedder) for kb, embedder in kinds.items()
    ]
    parts = {(place.pool.kb, place.row): place.parts.summary for place in rank(pools, 9)}
    alone = rank([pools[0]], 9)[0].parts.summary
    assert parts["static", 0] < parts["model", 0]
    assert parts["static", 0] == pytest.approx(alone, rel=0.01)  # of twice as many documents


def test_what_fills_up_stands_behind_the_candidates_whatever_it_scores():
    rows = [(0.2, 0.0, "a"), (0.1, 1.0, "b"), (0.9, 9.0, "c"), (0.8, 9.0, "d")]
    placed = rank([pool(*rows, ranked=2)], 10)
    assert order(placed) == [1, 0, 2, 3]
    scores = [place.parts.total for place in placed]
    assert scores == sorted(scores, reverse=True)
    assert order(rank([pool(*rows, ranked=0)], 3)) == [0, 1, 2]  # as they come


def test_hits_of_one_document_give_way():
    rows = [(0.9, 0, "a"), (0.89, 0, "a"), (0.88, 0, "a"), (0.87, 0, "b")]
    assert order(rank([pool(*rows)], 9)) == [0, 1, 2, 3]
    retrieval = RetrievalSpec(document_weight=0, per_document=2)
    assert order(rank([pool(*rows, retrieval=retrieval)], 9)) == [0, 1, 3, 2]


def test_near_duplicates_give_way_to_other_texts_but_are_not_lost():
    rows = [(0.9, 0, "a", 1), (0.9, 0, "b", 1), (0.6, 0, "c", 2), (0.5, 0, "d", 1)]
    retrieval = RetrievalSpec(document_weight=0)
    placed = rank([pool(*rows, retrieval=retrieval)], 9)
    assert order(placed) == [0, 2, 1, 3]
    alone = retrieval.model_copy(update={"summary_weight": 0, "page_weight": 0})
    placed = rank([pool(*rows, retrieval=alone)], 9)
    other = pool(*rows[1:2], kb="other", retrieval=alone)
    assert rank([pool(*rows[:1], retrieval=alone), other], 9)[1].parts.dense == pytest.approx(
        placed[0].parts.dense
    )  # vectors of two knowledge bases are not compared


def test_equal_scores_keep_their_order_and_a_title_alone_is_no_reason():
    assert order(rank([pool(*[(0.5, 1, i) for i in range(5)])], 9)) == [0, 1, 2, 3, 4]
    made = pool((0.0, 0.0, "a"), (0.1, 0.0, "b"))
    made.columns["title"] = np.zeros(2)
    made.columns["title"][0] = 1.0
    assert order(rank([made], 9)) == [1]


def test_settings_are_those_given_or_of_the_first_pool():
    rows = [(0.9, 1.0, "a"), (0.1, 9.0, "b")]
    dense, lexical = (FREE.model_copy(update={"dense_weight": weight}) for weight in (1.0, 0.0))
    assert order(rank([pool(*rows, retrieval=dense)], 9)) == [0, 1]
    assert order(rank([pool(*rows, retrieval=lexical), pool(retrieval=dense)], 9)) == [1, 0]
    assert order(rank([pool(*rows, retrieval=dense)], 9, retrieval=lexical)) == [1, 0]
    assert order(rank([pool(*rows, retrieval=dense)], 9, Mode.LEXICAL)) == [1, 0]
    assert order(rank([pool(*rows, retrieval=lexical)], 9, Mode.DENSE)) == [0, 1]


@pytest.mark.parametrize(
    ("retriever", "weight", "silent"),
    [("summary", "summary_weight", Mode.LEXICAL), ("page", "page_weight", Mode.DENSE)],
)
def test_what_the_document_says_decides_between_like_chunks(retriever, weight, silent):
    rows = [(0.5, 5.0, "a"), (0.5, 5.0, "b"), (0.0, 0.0, "c")]
    made = pool(*rows, **{retriever: [0.1, 0.4, 0.2]})
    ranked = rank([made], 9)
    assert order(ranked) == [1, 0, 2]  # a document alone is a reason, too
    part = getattr(ranked[0].parts, retriever)
    assert part == pytest.approx(getattr(ranked[1].parts, retriever) * 4)
    assert part > 0
    assert order(rank([made], 9, silent)) == [0, 1]
    assert order(rank([made], 9, retrieval=FREE.model_copy(update={weight: 0}))) == [0, 1]


def test_summaries_by_static_vectors_weigh_less():
    rows, said = [(0.5, 5.0, "a"), (0.4, 5.0, "b")], {"summary": [0.1, 0.4], "page": [1.0, 2.0]}
    model, static = pool(*rows, **said), pool(*rows, **said, embedder="static:x")
    less = FREE.model_copy(update={"summary_weight": 0.3, "page_weight": 0.3})
    assert (FREE.summary_weight, FREE.page_weight) == (1.0, 0.5)
    for mode in (Mode.HYBRID, Mode.DENSE):
        found = [place.parts for place in rank([static], 9, mode)]
        assert found == [place.parts for place in rank([model], 9, mode, less)]
        assert found != [place.parts for place in rank([model], 9, mode)]
    both = rank([static, pool(*rows, kb="other", **said)], 9)  # on one scale: a model's
    assert both[0].parts == rank([model, pool(*rows, kb="other", **said)], 9)[0].parts


def test_what_documents_say_weighs_less_where_there_are_few():
    row = (0.5, 5.0, "a")
    found = document_factors([pool(row, of=10), pool(row, of=20, embedder="static:x")])
    np.testing.assert_allclose(found, [(0.75, 0.75), (0.225, 0.45)])


def test_what_fills_up_has_something_in_common_itself():
    """Else as many would follow as were asked for, whatever they say."""
    rows = [(0.9, 9.0, "a"), (-0.1, 0.0, "b"), (0.1, 0.0, "c")]
    assert order(rank([pool(*rows, ranked=1, summary=[0.5, 0.5, 0.5])], 9)) == [0, 2]


def test_nothing_is_ranked_as_nothing():
    assert rank([], 9) == []
    assert rank([pool(), pool()], 9) == []
    assert rank([pool((-0.5, 0.0, "a"), (0.0, 0.0, "b"), ranked=1)], 9) == []


def test_a_word_is_as_rare_as_in_all_knowledge_bases_together():
    def of(chunks, frequency):
        some = pool((0.5, 1.0, "a"))
        statistics = CorpusStatistics(chunks, 1.0, {"tea": frequency})
        candidates = replace(some.candidates, counts=[{"tea": 1}], statistics=statistics)
        return replace(some, candidates=candidates)

    small, large = with_joint_statistics([of(5, 1), of(5_000, 2_000)])
    assert small.columns["bm25"].tolist() == large.columns["bm25"].tolist()
    assert with_joint_statistics([small]) == [small]
