"""Edits of the graph by hand, their conflicts and errors."""

from concurrent.futures import ThreadPoolExecutor

import pytest
import sqlalchemy as sa
from sqlalchemy.dialects import sqlite

from kbkit.errors import ConfigError, ConflictError, NotFoundError
from kbkit.models import EntityType, Target, TargetKind
from kbkit.stores.catalog import entities

ODD_NAMES = [
    *("Go", "C", "R", "make", "C++", "a.*b", "[x]|(y)", "%_", "הגדרה", "مثال", "日本語", "don't"),
    *("'; drop table subjects; --", "<script>alert(1)</script>", "name with  spaces", "x" * 500),
]


@pytest.mark.parametrize("name", ODD_NAMES)
def test_entity_of_any_name_is_created_found_related_and_deleted(graph, name):
    entity = graph.create(name, type="term", description="What it is.", by="ann")
    assert entity.name == " ".join(name.split())
    assert graph.entity(name) == graph.entity(entity.id) == entity
    assert [each.name for each in graph.entities(name)] == [entity.name]
    other = graph.create("other thing")
    relation = graph.relate(name, "extends", "other thing")
    assert relation.source == Target(TargetKind.ENTITY, entity.id)
    assert [step.name for step in graph.neighbors("other thing")] == [entity.name]
    assert [step.name for step in graph.path(other.id, name)] == ["other thing", entity.name]
    graph.delete(name)
    with pytest.raises(NotFoundError):
        graph.entity(name)
    assert graph.neighbors("other thing") == []


def test_wildcards_of_sql_in_a_search_are_plain_text(graph):
    graph.create("plain")
    graph.create("100%")
    assert [each.name for each in graph.entities("%")] == ["100%"]
    assert graph.entities("_") == []


def test_renamed_entity_is_found_by_both_names(graph):
    entity = graph.create("ThreadPool")
    renamed = graph.update("ThreadPool", name="worker pool")
    assert (renamed.id, renamed.name) == (entity.id, "worker pool")
    assert graph.entity("thread_pool") == graph.entity("Worker Pool") == renamed


def test_taken_name_is_refused(graph):
    graph.create("pool")
    graph.create("queue", aliases=["line"])
    for name in ("POOL", "line"):
        with pytest.raises(ConflictError):
            graph.create(name)
    for changes in ({"name": "pool"}, {"aliases": ["pool"]}):
        with pytest.raises(ConflictError):
            graph.update("queue", **changes)
    assert graph.entity("queue").aliases == ("line",)
    assert graph.entity("pool").aliases == ()


def test_concurrent_changes_of_different_fields_are_all_kept(graph):
    graph.create("pool")
    changes = [{"description": "Said."}, {"type": EntityType.TERM}, {"properties": {"a": 1}}] * 3
    with ThreadPoolExecutor(len(changes)) as threads:
        list(threads.map(lambda change: graph.update("pool", **change), changes))
    pool = graph.entity("pool")
    assert (pool.description, pool.type, pool.properties) == ("Said.", "term", {"a": 1})


def test_entity_created_again_after_deletion_has_its_relations(graph):
    first = graph.create("pool", aliases=["conn pool"])
    graph.create("queue")
    graph.relate("pool", "uses", "queue")
    graph.delete("pool")
    assert [each.name for each in graph.entities()] == ["queue"]
    assert graph.relations() == []
    again = graph.create("pool")
    assert again.id == first.id
    assert [each.name for each in graph.relations("queue")] == ["uses"]


def test_name_of_a_deleted_entity_becomes_an_alias_with_its_aliases(graph):
    graph.create("pool", aliases=["conn pool"])
    graph.create("queue")
    graph.delete("pool")
    for edit in (
        lambda: graph.update("queue", aliases=["pool"]),
        lambda: graph.create("line", aliases=["pool"]),
    ):
        assert edit() == graph.entity("conn pool") == graph.entity("pool")
        graph.undo()
        with pytest.raises(NotFoundError):
            graph.entity("conn pool")


def test_relations_connect_all_kinds_of_targets(graph, kb, workspace):
    document = kb.add("Pools", "# Pools\n\nA pool keeps connections.", source="http://x.org/pools")
    chunk = next(iter(kb.chunks))
    graph.create("pool")
    note = Target(TargetKind.FILE, "notes/pools.md")
    workspace.entries.create("Mend", slug="fix-pools")
    for source, target in [
        ("pool", "http://x.org/pools"),
        (chunk.id, "pool"),
        (note, chunk.id),
        (document.id, note),
        (Target(TargetKind.ENTRY, "fix-pools"), Target(TargetKind.CHUNK, chunk.id)),
    ]:
        relation = graph.relate(source, "speaks of", target, weight=0.5, note="why", by="ann")
        assert (relation.name, relation.weight) == ("speaks_of", 0.5)
        assert (relation.note, relation.made_by) == ("why", "ann")
        assert relation.created_at == relation.seen_at
        assert relation.by_hand
        assert relation in graph.relations(source)
        assert relation in graph.relations(target)
    assert len(graph.relations(by="ann")) == 5
    assert {step.type for step in graph.neighbors(chunk.id)} == {"name", "file", "entry"}
    kb.documents.delete("http://x.org/pools")
    assert graph.relations() == []
    with pytest.raises(NotFoundError, match="pools"):
        graph.relate("pool", "speaks of", "http://x.org/pools")
    kb.documents.undelete("http://x.org/pools")
    assert len(graph.relations()) == 5


@pytest.mark.parametrize("kind", [TargetKind.CHUNK, TargetKind.DOCUMENT, TargetKind.ENTITY])
def test_relation_to_a_missing_target_is_refused(graph, kind):
    graph.create("pool")
    with pytest.raises(NotFoundError):
        graph.relate("pool", "uses", Target(kind, "no"))
    for weight in (-1, 1.5, True, "1", float("nan")):
        with pytest.raises(ConfigError, match="weight"):
            graph.relate("pool", "uses", "queue", weight=weight)
    assert graph.relations() == []


def test_neighbors_and_paths_by_relation_depth_and_weight_within_cycles(graph):
    for name in "abcde":
        graph.create(name)
    for ends, name, weight in [("ab", "needs", 0.2), ("bd", "needs", 1.0), ("ca", "extends", 0.9)]:
        graph.relate(ends[0], name, ends[1], weight=weight)
    steps = [(s.name, s.forward, s.relation.name) for s in graph.neighbors("a")]
    assert steps == [("c", False, "extends"), ("b", True, "needs")]
    assert [s.name for s in graph.neighbors("a", depth=2, relation="needs")] == ["b", "d"]
    assert [s.name for s in graph.neighbors("a", depth=2, limit=1)] == ["c"]
    assert [s.name for s in graph.path("c", "d")] == ["c", "a", "b", "d"]
    graph.relate("d", "needs", "a")
    assert {(s.name, s.depth) for s in graph.neighbors("a", depth=5)} == {(n, 1) for n in "bcd"}
    assert [s.name for s in graph.path("a", "a")] == ["a"]
    assert graph.path("a", "e") == []


def test_chain_of_merges_is_undone_in_order(graph):
    for name in "abc":
        graph.create(name)
    graph.merge("b", "c")
    graph.merge("a", "b")
    assert graph.entity("c").name == graph.entity("b").name == "a"
    last, first = graph.edits(limit=2)
    with pytest.raises(ConflictError, match="undo that first"):
        graph.undo(first)
    graph.undo(last)
    assert graph.entity("c").name == "b"
    graph.undo(first.id)
    assert graph.entity("c").name == "c"
    with pytest.raises(NotFoundError, match="no edit"):
        graph.undo(first)
    with pytest.raises(ConflictError, match="one entity already"):
        graph.merge("a", "a")


def test_alias_of_a_merge_is_removed_by_undo_only(graph):
    graph.create("a")
    graph.create("b")
    graph.merge("a", "b")
    with pytest.raises(ConflictError, match="undo that instead"):
        graph.update("a", aliases=[])
    assert graph.entity("b").name == "a"


def test_query_of_entities_compares_no_pairs(database):
    queries = []

    class Recorder:
        def __init__(self, transaction):
            self.transaction = transaction

        def execute(self, query):
            literal = {"literal_binds": True}
            queries.append(query.compile(dialect=sqlite.dialect(), compile_kwargs=literal))
            return self.transaction.execute(query)

        def __getattr__(self, name):
            return getattr(self.transaction, name)

    with database.read() as transaction:
        entities.list_entities(Recorder(transaction), limit=5)
        plan = transaction.execute(sa.text(f"EXPLAIN QUERY PLAN {queries[0]}"))
        steps = [row.detail for row in plan]
    assert any("anon_1 USING AUTOMATIC" in step for step in steps), steps
    assert not any(step.startswith("SCAN anon_1") for step in steps)
