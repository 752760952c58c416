"""Entities that a query names, and their relations."""

import math
from dataclasses import replace

import pytest

from kbkit.retrieval import document_scores as retriever
from kbkit.retrieval.query import entities_in
from kbkit.stores.catalog.graph_tables import EntityRow, GraphTable, RelationRow
from kbkit.stores.catalog.subjects import entity_id

pytestmark = pytest.mark.local

NAMES = ("pool", "pool opener", "a b c d e", "a b c d e f", "the", "drain_all", "heavy")
CHUNKS = {"pool": 3, "heavy": 0}


def table(names=NAMES, relations=()):
    entities = [EntityRow(entity_id(name), name, "", "", (), CHUNKS.get(name, 1)) for name in names]
    rows = {each.id: row for row, each in enumerate(entities)}
    return GraphTable(entities, rows, relations, {}, ())


def named(query, frequency=lambda word: 10):
    entities = entities_in(query, table(), frequency)
    return [(NAMES[each.row], each.words, each.share) for each in entities]


@pytest.mark.parametrize(
    ("query", "entities"),
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
        ("say a b c d e f", [("a b c d e", 5, 1.0)]),  # the longest name has five words
        ("the one", []),
        ("what is `the`", [("the", 1, 1.0)]),
        ("... ?", []),
        ("", []),
        (" ".join(["word"] * 59) + " Pool", [("pool", 1, 1.0)]),
        (" ".join(["word"] * 60) + " Pool", []),
    ],
)
def test_entities_in_a_query(query, entities):
    assert named(query) == entities


def test_share_of_a_plain_word_is_that_of_chunks_with_the_entity():
    assert named("a pool", lambda word: 4) == [("pool", 1, 0.75)]
    assert named("a pool", lambda word: 1) == [("pool", 1, 1.0)]
    assert named("a pool", lambda word: 0) == [("pool", 1, 1.0)]
    assert named("a drain_all", lambda word: 1) == [("drain_all", 1, 1.0)]


def test_entity_named_twice_counts_by_its_longest_name():
    graph = replace(table(), rows={entity_id("pool opener"): 1, entity_id("opener"): 1})
    (entity,) = entities_in("`opener` is the pool opener", graph, lambda word: 1)
    assert (entity.row, entity.words) == (1, 2)


def test_strongest_relations_of_named_entities_count_half_in_all():
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
