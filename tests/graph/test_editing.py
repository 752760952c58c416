"""What people change by hand: kept, never silently lost, and refused where it cannot work."""

import threading

import pytest
import sqlalchemy as sa
from sqlalchemy.dialects import sqlite

from kbkit.errors import ConfigError, ConflictError, NotFoundError
from kbkit.models import EntityType, Target, TargetKind
from kbkit.stores.catalog import entities

ODD_NAMES = [
    "Go",
    "C",
    "R",
    "make",
    "C++",
    "a.*b",
    "[x]|(y)",
    "%_",
    "הגדרה",
    "مثال",
    "日本語",
    "don't",
    "'; drop table subjects; --",
    "<script>alert(1)</script>",
    "name with  spaces",
    "x" * 500,
]


@pytest.mark.parametrize("name", ODD_NAMES)
def test_any_name_can_be_made_found_changed_and_deleted(graph, name):
    made = graph.create(name, type="term", description="What it is.", by="ann")
    assert made.name == " ".join(name.split())
    assert graph.entity(name) == graph.entity(made.id) == made
    assert [each.name for each in graph.entities(name)] == [made.name]
    other = graph.create("other thing")
    assert graph.relate(name, "extends", "other thing").source == Target(TargetKind.ENTITY, made.id)
    assert [step.name for step in graph.neighbors("other thing")] == [made.name]
    assert [step.name for step in graph.path(other.id, name)] == ["other thing", made.name]
    graph.delete(name)
    with pytest.raises(NotFoundError):
        graph.entity(name)
    assert graph.neighbors("other thing") == []


@pytest.mark.parametrize("name", ["", "  ", "()", "x" * 501, None, 7])
def test_what_is_no_name_is_refused_and_leaves_nothing(graph, name):
    with pytest.raises(ConfigError, match="name"):
        graph.create(name)
    assert graph.entities() == []


def test_percent_signs_in_a_search_are_just_that(graph):
    graph.create("plain")
    graph.create("100%")
    assert [each.name for each in graph.entities("%")] == ["100%"]
    assert graph.entities("_") == []


def test_what_is_said_of_an_entity_is_changed_field_by_field(graph):
    made = graph.create("pool", type="term", properties={"a": [1]}, aliases=["connection pool"])
    changed = graph.update("pool", description="Connections kept open.", by="bob")
    assert (changed.type, changed.properties, changed.made_by) == ("term", {"a": [1]}, "bob")
    assert changed.aliases == ("connection pool",)
    assert changed.by_hand
    assert graph.entity("connection pool").id == made.id
    assert graph.update("pool", aliases=["conn pool"]).aliases == ("conn pool",)
    with pytest.raises(NotFoundError):
        graph.entity("connection pool")


def test_a_renamed_entity_is_found_by_both_names(graph):
    made = graph.create("ThreadPool")
    renamed = graph.update("ThreadPool", name="worker pool")
    assert (renamed.id, renamed.name) == (made.id, "worker pool")
    assert graph.entity("thread_pool") == graph.entity("Worker Pool") == renamed


def test_a_name_that_is_taken_is_refused(graph):
    graph.create("pool")
    graph.create("queue", aliases=["line"])
    for call in (
        lambda: graph.create("POOL"),
        lambda: graph.create("line"),
        lambda: graph.update("queue", name="pool"),
        lambda: graph.update("queue", aliases=["pool"]),
    ):
        with pytest.raises(ConflictError):
            call()
    assert graph.entity("queue").aliases == ("line",)
    assert graph.entity("pool").aliases == ()


@pytest.mark.parametrize(
    "wrong",
    [
        {"type": ""},
        {"type": "a;b"},
        {"properties": {"x": object()}},
        {"properties": []},
        {"properties": {"x": float("nan")}},
        {"aliases": "pool"},
        {"aliases": [""]},
    ],
)
def test_wrong_values_are_refused_and_leave_nothing(graph, wrong):
    with pytest.raises(ConfigError):
        graph.create("thing", **wrong)
    assert graph.entities() == []


def test_of_two_people_who_saw_the_same_the_second_is_told(graph):
    seen = graph.create("pool", by="ann")
    graph.update(seen, description="By Ann.", by="ann")
    with pytest.raises(ConflictError, match="'pool' was changed by ann"):
        graph.update(seen, description="By Bob.", by="bob")
    with pytest.raises(ConflictError):
        graph.delete(seen, by="bob")
    assert graph.entity("pool").description == "By Ann."
    graph.update(graph.entity("pool"), description="By Bob, who read it.", by="bob")


def test_two_threads_that_change_different_fields_lose_nothing(graph):
    graph.create("pool")
    changes = [{"description": "Said."}, {"type": EntityType.TERM}, {"properties": {"a": 1}}] * 3
    threads = [threading.Thread(target=graph.update, args=("pool",), kwargs=c) for c in changes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = graph.entity("pool")
    assert (found.description, found.type, found.properties) == ("Said.", "term", {"a": 1})


def test_a_deleted_entity_comes_back_when_it_is_made_again(graph):
    first = graph.create("pool", aliases=["conn pool"])
    graph.create("queue")
    graph.relate("pool", "uses", "queue")
    graph.delete("pool")
    assert [each.name for each in graph.entities()] == ["queue"]
    assert graph.relations() == []
    again = graph.create("pool")
    assert again.id == first.id
    assert [each.name for each in graph.relations("queue")] == ["uses"]


def test_relations_tie_anything_to_anything(graph, kb, workspace):
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
        made = graph.relate(source, "speaks of", target, weight=0.5, note="why", by="ann")
        assert (made.name, made.weight, made.note, made.made_by) == ("speaks_of", 0.5, "why", "ann")
        assert made.created_at == made.seen_at
        assert made.by_hand
        assert made in graph.relations(source)
        assert made in graph.relations(target)
    assert len(graph.relations(by="ann")) == 5
    assert {step.type for step in graph.neighbors(chunk.id)} == {"name", "file", "entry"}
    kb.documents.delete("http://x.org/pools")
    assert graph.relations() == []  # nothing leads to what is gone
    kb.documents.undelete("http://x.org/pools")
    assert len(graph.relations()) == 5


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (("pool", "uses", "pool"), ConfigError),
        (("pool", "", "queue"), ConfigError),
        (("pool", "a.b", "queue"), ConfigError),
        (("pool", "uses", "nothing"), NotFoundError),
        (("pool", "uses", Target(TargetKind.CHUNK, "no")), NotFoundError),
        (("pool", "uses", Target(TargetKind.DOCUMENT, "no")), NotFoundError),
        (("pool", "uses", Target(TargetKind.ENTITY, "no")), NotFoundError),
    ],
)
def test_relations_that_cannot_be_are_refused(graph, call, error):
    graph.create("pool")
    graph.create("queue")
    with pytest.raises(error):
        graph.relate(*call)
    for weight in (0, -1, 1.5, True, "1", float("nan")):
        with pytest.raises(ConfigError, match="weight"):
            graph.relate("pool", "uses", "queue", weight=weight)
    assert graph.relations() == []


def test_a_relation_of_somebody_else_is_not_overwritten_unseen(graph):
    graph.create("pool")
    graph.create("queue")
    first = graph.relate("pool", "uses", "queue", note="by Ann", by="ann")
    assert graph.relate("pool", "uses", "queue", note="by Ann", by="bob").id == first.id
    with pytest.raises(ConflictError, match="bob made this relation"):
        graph.relate("pool", "uses", "queue", note="by Cy", by="cy")
    with pytest.raises(ConflictError, match="was changed by bob"):
        graph.relate("pool", "uses", "queue", note="by Cy", by="cy", expected=first.seen_at)
    with pytest.raises(ConflictError, match="was changed by bob"):
        graph.delete(first)
    (seen,) = graph.relations("pool")
    changed = graph.relate("pool", "uses", "queue", note="by Cy", expected=seen.seen_at)
    assert (changed.id, changed.note) == (first.id, "by Cy")
    graph.delete(changed)
    assert graph.relations() == []
    assert graph.relate("pool", "uses", "queue").id == first.id


def test_cycles_of_relations_end(graph):
    for name in "abcd":
        graph.create(name)
    for source, target in ["ab", "bc", "ca", "ba"]:
        graph.relate(source, "needs", target)
    assert [(s.name, s.depth) for s in graph.neighbors("a", depth=5)] == [("b", 1), ("c", 1)]
    assert [s.name for s in graph.path("a", "c")] == ["a", "c"]
    assert graph.path("a", "d") == []
    assert [s.name for s in graph.path("a", "a")] == ["a"]


def test_neighbours_go_by_relation_depth_and_weight(graph):
    for name in ("a", "b", "c", "d"):
        graph.create(name)
    graph.relate("a", "needs", "b", weight=0.2)
    graph.relate("c", "extends", "a", weight=0.9)
    graph.relate("b", "needs", "d")
    near = graph.neighbors("a")
    assert [(s.name, s.forward, s.relation.name) for s in near] == [
        ("c", False, "extends"),
        ("b", True, "needs"),
    ]
    assert [s.name for s in graph.neighbors("a", depth=2, relation="needs")] == ["b", "d"]
    assert [s.name for s in graph.neighbors("a", depth=2, limit=1)] == ["c"]
    assert [s.name for s in graph.path("c", "d")] == ["c", "a", "b", "d"]
    for wrong in ({"depth": 0}, {"depth": 6}, {"limit": 0}):
        with pytest.raises(ConfigError):
            graph.neighbors("a", **wrong)


def test_a_merge_is_undone_in_one_step(graph):
    for name in ("hypertext transfer protocol", "HTTP", "browser", "server"):
        graph.create(name)
    graph.update("HTTP", aliases=["web protocol"])
    graph.relate("browser", "speaks", "HTTP")
    graph.relate("hypertext transfer protocol", "needs", "server")
    before = {each.name: each for each in graph.entities()}
    edges = graph.relations()
    kept = graph.merge("hypertext transfer protocol", "http")
    assert kept.aliases == ("HTTP", "web protocol")
    assert graph.entity("web protocol").id == kept.id
    assert {s.name for s in graph.neighbors("HTTP")} == {"browser", "server"}
    assert [s.name for s in graph.path("browser", "server")] == ["browser", kept.name, "server"]
    with pytest.raises(ConflictError):
        graph.merge("HTTP", kept.id)
    assert "HTTP" in graph.undo().what
    assert {each.name: each for each in graph.entities()} == before
    assert graph.relations() == edges
    assert graph.edits()[0].what == "related 'hypertext transfer protocol' needs 'server'"


def test_a_chain_of_merges_is_undone_in_order(graph):
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


def test_an_alias_that_came_by_a_merge_goes_by_undoing_it(graph):
    graph.create("a")
    graph.create("b")
    graph.merge("a", "b")
    with pytest.raises(ConflictError, match="undo that instead"):
        graph.update("a", aliases=[])
    assert graph.entity("b").name == "a"


def test_entities_are_not_each_compared_with_all_others(database):
    said = []

    class Noting:
        def __init__(self, transaction):
            self.transaction = transaction

        def execute(self, query):
            literal = {"literal_binds": True}
            said.append(query.compile(dialect=sqlite.dialect(), compile_kwargs=literal))
            return self.transaction.execute(query)

        def __getattr__(self, name):
            return getattr(self.transaction, name)

    with database.read() as transaction:
        entities.listed(Noting(transaction), limit=5)
        plan = transaction.execute(sa.text(f"EXPLAIN QUERY PLAN {said[0]}"))
        steps = [row.detail for row in plan]
    assert any("anon_1 USING AUTOMATIC" in step for step in steps), steps
    assert not any(step.startswith("SCAN anon_1") for step in steps)
