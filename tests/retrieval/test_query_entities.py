"""Entities that a query names, and their relations."""

import math

import pytest

from kbkit.models import Entity, Target, TargetKind
from kbkit.retrieval import document_scores as retriever
from kbkit.retrieval.query import entities_in
from kbkit.stores.catalog.relations import Edge
from kbkit.stores.catalog.subjects import entity_id

pytestmark = pytest.mark.local

NAMES = ("pool", "pool opener", "a b c d e", "a b c d e f", "the", "drain_all", "heavy")
CHUNKS = {"pool": 3, "heavy": 0}


class Graph:
    """Entities and relations, in the place of a `GraphReader`."""

    def __init__(self, names=NAMES, relations=()):
        entities = [Entity(entity_id(name), name, "", chunks=CHUNKS.get(name, 1)) for name in names]
        self.by_id = {each.id: each for each in entities}
        self.relations = relations

    def entities(self, ids):
        return {id_: self.by_id[id_] for id_ in ids if id_ in self.by_id}

    def related(self, ids):
        return {id_: [r for r in self.relations if id_ in (r[1].id, r[3].id)] for id_ in ids}


def relation(number, source, name, target, weight):
    ends = (Target(TargetKind.ENTITY, entity_id(end)) for end in (source, target))
    source, target = ends
    return Edge(number, source, name, target, weight)


def named(query, frequency=lambda word: 10):
    entities = entities_in(query, Graph(), frequency)
    return [(each.entity.name, each.words, each.share) for each in entities]


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
    graph = Graph()
    opener = graph.by_id[entity_id("pool opener")]
    graph.by_id = {opener.id: opener, entity_id("opener"): opener}
    (entity,) = entities_in("`opener` is the pool opener", graph, lambda word: 1)
    assert (entity.entity, entity.words) == (opener, 2)


def test_strongest_relations_of_named_entities_count_half_in_all():
    names = ("pool", *(f"x{n}" for n in range(1, 12)))
    relations = [relation(n, "pool", "is", f"x{n}", 1.0) for n in range(1, 10)]
    relations += [relation(10, "x10", "of", "pool", 0.5), relation(11, "pool", "is", "x11", 0.1)]
    graph = Graph(names, relations)
    weights = retriever._entities(entities_in("`pool`", graph, lambda word: 1), graph, 100)
    whole = math.log(1 + (100 - 3 + 0.5) / 3.5)
    assert weights[entity_id("pool")] == pytest.approx(whole)
    assert weights[entity_id("x1")] == pytest.approx(0.5 * whole / 9.5)
    assert weights[entity_id("x10")] == pytest.approx(0.25 * whole / 9.5)
    assert entity_id("x11") not in weights
    assert sum(weights.values()) == pytest.approx(1.5 * whole)
