"""Pools for judging: every mode, some unshown, and no telling which is which."""

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
def test_a_pool_has_what_every_mode_shows_and_some_of_what_none_does(garden):
    pool = garden.feedback.pool("water the roses", limit=4, unshown=3)
    for mode in Mode:
        shown = {hit.chunk.id for hit in garden.search("water the roses", limit=4, mode=mode)}
        assert {one.hit.chunk.id for one in pool if mode in one.found_by} == shown
    assert sum(not one.found_by for one in pool) == 3
    assert len(set(ids(pool))) == len(pool)


@pytest.mark.slow
def test_the_order_is_the_same_each_time_and_tells_nothing(garden):
    first = garden.feedback.pool("water the roses")
    assert ids(first) == ids(garden.feedback.pool("water the roses"))
    assert ids(first) != ids(garden.feedback.pool("water the roses", seed=1))
    best = {mode: garden.search("water the roses", limit=1, mode=mode)[0].chunk.id for mode in Mode}
    starts = {ids(garden.feedback.pool("water the roses", seed=seed))[0] for seed in range(8)}
    assert not starts <= set(best.values())
    columns = set(first.to_frame().columns)
    assert columns == {"chunk_id", "title", "heading_path", "text", "url", "score", "raters"}


def test_what_was_rated_for_the_query_is_marked(kb, chunk):
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


def test_a_pool_is_read_as_a_sequence_and_comes_back_from_json(kb, chunk):
    kb.rate(chunk("Bread"), 2, query="bread", rater="ann")
    pool = kb.feedback.pool("bread", rater="ann")
    assert list(pool) == [pool[place] for place in range(len(pool))]
    assert (type(pool[1:]), list(pool[1:])) == (type(pool), list(pool)[1:])
    assert pool[1:].query == "bread"
    values = {
        "query": pool.query,
        "candidates": [
            {
                "hit": one.hit.to_dict(),
                "found_by": list(one.found_by),
                "score": one.score,
                "raters": one.raters,
            }
            for one in pool
        ],
    }
    again = JudgingPool.from_dict(json.loads(json.dumps(values)))
    assert [(one.score, one.raters, one.found_by) for one in again] == [
        (one.score, one.raters, one.found_by) for one in pool
    ]
    shown = pool._repr_html_()
    assert shown.count("<tr") == len(pool) + 1
    assert "<th>0</th>" not in shown
    assert "<td>...</td>" in JudgingPool("bread", (pool[0],) * 21)._repr_html_()


def test_pools_become_judgements(garden):
    pool = garden.feedback.pool("water the roses", limit=3)
    for one in pool:
        garden.rate(one.hit.chunk.id, 4, query=pool.query)
    assert set(garden.feedback.judgements().grades["water the roses"]) == set(ids(pool))


def test_little_to_find_gives_a_small_pool(kb):
    assert 0 < len(kb.feedback.pool("bread", limit=100, unshown=100)) <= len(list(kb.chunks))
    for document in list(kb.documents):
        kb.documents.delete(document.id)
    empty = kb.feedback.pool("bread")
    assert len(empty) == 0
    assert empty.to_frame().empty


@pytest.mark.parametrize(
    "arguments",
    [
        {"query": " "},
        {"query": None},
        {"limit": 0},
        {"limit": 101},
        {"limit": 1.5},
        {"unshown": -1},
        {"unshown": 10**9},
        {"seed": -1},
        {"seed": 2**63},
        {"seed": "x"},
    ],
    ids=json.dumps,
)
def test_what_cannot_be_asked_for_is_one_clear_error(shared, arguments):
    with pytest.raises(ConfigError):
        shared.feedback.pool(**{"query": "bread", **arguments})


@pytest.mark.slow
def test_what_people_said_changes_no_pool(garden):
    """Else those who judge would see what those before them liked."""
    query = "water the roses"
    before = ids(garden.feedback.pool(query, limit=1, unshown=0))
    shown = [hit.chunk.id for hit in garden.search(query, limit=10)]
    liked = next(known for known in shown if known not in before)
    for rater in ("ann", "bob", "cid"):
        garden.rate(liked, 5, query=query, rater=rater)
    assert garden.search(query, limit=1)[0].chunk.id == liked
    assert ids(garden.feedback.pool(query, limit=1, unshown=0)) == before
