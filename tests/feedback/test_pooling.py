"""Pools for judging: hits of all modes and some unshown chunks, in a neutral order."""

import json

import pytest

from kbkit.errors import ConfigError
from kbkit.feedback.judging import JudgingPool
from kbkit.models import Mode, SourceDocument


@pytest.fixture
def garden(kb):
    text = "Bed {0} is for roses and thyme, watered on day {0}."
    kb.ingest([SourceDocument(f"text:{n}", f"Bed {n}", text.format(n)) for n in range(40)])
    return kb


def ids(pool):
    return [one.hit.chunk.id for one in pool]


@pytest.mark.slow
def test_pool_has_hits_of_all_modes_and_unshown_chunks(garden):
    pool = garden.feedback.pool("water the roses", limit=4, unshown=3)
    for mode in Mode:
        shown = {hit.chunk.id for hit in garden.search("water the roses", limit=4, mode=mode)}
        assert {one.hit.chunk.id for one in pool if mode in one.found_by} == shown
    assert sum(not one.found_by for one in pool) == 3
    assert len(set(ids(pool))) == len(pool)


@pytest.mark.slow
def test_order_of_a_pool_is_reproducible_and_neutral(garden):
    first = garden.feedback.pool("water the roses")
    assert ids(first) == ids(garden.feedback.pool("water the roses"))
    assert ids(first) != ids(garden.feedback.pool("water the roses", seed=1))
    best = {mode: garden.search("water the roses", limit=1, mode=mode)[0].chunk.id for mode in Mode}
    starts = {ids(garden.feedback.pool("water the roses", seed=seed))[0] for seed in range(8)}
    assert not starts <= set(best.values())
    columns = set(first.to_frame().columns)
    assert columns == {"chunk_id", "title", "heading_path", "text", "url", "score", "raters"}


def test_ratings_for_the_query_are_marked(kb, chunk):
    target = chunk("Bread")
    kb.rate(target, 2, query="bread", rater="ann")
    kb.rate(target, 4, query=" BREAD", rater="ann")
    kb.rate(target, 5, query="bread", rater="bob")
    kb.rate(target, 1, query="other", rater="cid")
    by_id = {one.hit.chunk.id: one for one in kb.feedback.pool("bread", rater="ann")}
    assert (by_id[target].score, by_id[target].raters) == (4, 2)
    assert {one.score for known, one in by_id.items() if known != target} == {None}
    assert kb.feedback.pool("bread", rater="dan")[0].score is None
    assert "1 rated" in repr(kb.feedback.pool("bread", rater="bob"))
    assert not kb.feedback.pool("bread").to_frame()["score"].notna().any()


def test_pool_is_a_sequence_and_restored_from_json(kb, chunk):
    kb.rate(chunk("Bread"), 2, query="bread", rater="ann")
    pool = kb.feedback.pool("bread", rater="ann")
    assert list(pool) == [pool[place] for place in range(len(pool))]
    assert (type(pool[1:]), list(pool[1:])) == (type(pool), list(pool)[1:])
    assert pool[1:].query == "bread"
    candidates = [
        {"found_by": list(one.found_by), "score": one.score, "raters": one.raters} for one in pool
    ]
    for values, one in zip(candidates, pool, strict=True):
        values["hit"] = one.hit.to_dict()
    values = json.loads(json.dumps({"query": pool.query, "candidates": candidates}))
    for one, other in zip(JudgingPool.from_dict(values), pool, strict=True):
        assert (one.score, one.raters, one.found_by) == (other.score, other.raters, other.found_by)
    shown = pool._repr_html_()
    assert shown.count("<tr") == len(pool) + 1
    assert "<th>0</th>" not in shown
    assert "<td>...</td>" in JudgingPool("bread", (pool[0],) * 21)._repr_html_()


def test_pools_become_judgements(garden):
    pool = garden.feedback.pool("water the roses", limit=3)
    for one in pool:
        garden.rate(one.hit.chunk.id, 4, query=pool.query)
    assert set(garden.feedback.judgements().grades["water the roses"]) == set(ids(pool))


def test_pool_of_few_or_no_chunks(kb):
    assert 0 < len(kb.feedback.pool("bread", limit=100, unshown=100)) <= len(list(kb.chunks))
    for document in list(kb.documents):
        kb.documents.delete(document.id)
    empty = kb.feedback.pool("bread")
    assert len(empty) == 0
    assert empty.to_frame().empty


@pytest.mark.parametrize(
    "arguments",
    [
        *({"query": query} for query in (" ", None)),
        *({"limit": limit} for limit in (0, 101, 1.5)),
        *({"unshown": unshown} for unshown in (-1, 10**9)),
        *({"seed": seed} for seed in (-1, 2**63, "x")),
    ],
    ids=json.dumps,
)
def test_invalid_options_of_a_pool_are_errors(shared, arguments):
    with pytest.raises(ConfigError):
        shared.feedback.pool(**{"query": "bread", **arguments})


@pytest.mark.slow
def test_ratings_do_not_bring_chunks_into_a_pool(garden):
    query = "water the roses"
    before = ids(garden.feedback.pool(query, limit=1, unshown=0))
    shown = [hit.chunk.id for hit in garden.search(query, limit=10)]
    liked = next(known for known in shown if known not in before)
    for rater in ("ann", "bob", "cid"):
        garden.rate(liked, 5, query=query, rater=rater)
    assert garden.search(query, limit=1)[0].chunk.id == liked
    assert ids(garden.feedback.pool(query, limit=1, unshown=0)) == before
