"""Which names a query has, how many of its words, and how sure that is; what relates to them."""

import math
from dataclasses import replace

import pytest

from kbkit.retrieval.candidates import documents as retriever
from kbkit.retrieval.query import entities_in
from kbkit.stores.catalog.graph_tables import EntityRow, GraphTable, RelationRow
from kbkit.stores.catalog.subjects import entity_id

pytestmark = pytest.mark.local

NAMES = ("pool", "pool opener", "a b c d e", "a b c d e f", "the", "drain_all", "heavy")
CHUNKS = {"pool": 3, "heavy": 0}


def table(names=NAMES, relations=()):
    entities = [EntityRow(entity_id(name), name, "", "", (), CHUNKS.get(name, 1)) for name in names]
    rows = {each.id: row for row, each in enumerate(entities)}
    return GraphTable((), entities, rows, relations, {}, ())


def found(query, frequency=lambda word: 10):
    return [
        (NAMES[each.row], each.words, each.share) for each in entities_in(query, table(), frequency)
    ]


@pytest.mark.parametrize(
    ("query", "named"),
    [
        ("who is the pool opener?", [("pool opener", 2, 1.0)]),
        ("pool opener, and a pool", [("pool opener", 2, 1.0), ("pool", 1, 0.3)]),
        ("opener of pool", [("pool", 1, 0.3)]),
        ("is (pool) that", [("pool", 1, 1.0)]),
        ("is pool. that", [("pool", 1, 0.3)]),
        ("is Pool that", [("pool", 1, 1.0)]),
        ("how `drain_all` ends", [("drain_all", 1, 1.0)]),
        ("a heavy one", [("heavy", 1, 0.0)]),
        ("a pool or `pool`", [("pool", 1, 1.0)]),
        ("`pool` or a pool", [("pool", 1, 1.0)]),
        ("say a b c d e f", [("a b c d e", 5, 1.0)]),  # no longer name is looked for
        ("the one", []),
        ("what is `the`", [("the", 1, 1.0)]),
        ("... ?", []),
        ("", []),
        (" ".join(["word"] * 59) + " Pool", [("pool", 1, 1.0)]),
        (" ".join(["word"] * 60) + " Pool", []),
    ],
)
def test_names_of_a_query(query, named):
    assert found(query) == named


def test_a_plain_word_means_a_name_as_often_as_chunks_do():
    assert found("a pool", lambda word: 4) == [("pool", 1, 0.75)]
    assert found("a pool", lambda word: 1) == [("pool", 1, 1.0)]
    assert found("a pool", lambda word: 0) == [("pool", 1, 1.0)]
    assert found("a drain_all", lambda word: 1) == [("drain_all", 1, 1.0)]


def test_an_entity_that_is_named_twice_counts_by_its_longest_name():
    graph = replace(table(), rows={entity_id("pool opener"): 1, entity_id("opener"): 1})
    (named,) = entities_in("`opener` is the pool opener", graph, lambda word: 1)
    assert (named.row, named.words) == (1, 2)


def test_the_strongest_relations_of_what_is_named_count_half_together():
    names = ("pool", *(f"x{n}" for n in range(11)))
    relations = [RelationRow(n, 0, "is", n, 1.0 if n < 10 else 0.5) for n in range(1, 10)]
    relations += [RelationRow(10, 10, "of", 0, 0.5), RelationRow(11, 0, "is", 11, 0.1)]
    graph = table(names, relations)
    weights = retriever._entities(entities_in("`pool`", graph, lambda word: 1), graph, 100)
    whole = math.log(1 + (100 - 3 + 0.5) / 3.5)
    assert weights[0] == pytest.approx(whole)
    assert weights[1] == pytest.approx(0.5 * whole / 9.5)
    assert weights[10] == pytest.approx(0.25 * whole / 9.5)
    assert 11 not in weights
    assert sum(weights.values()) == pytest.approx(1.5 * whole)
