"""Undo of edits by hand, without loss of other edits."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

import kbkit
from kbkit.errors import ConfigError, ConflictError, NotFoundError
from kbkit.models import Target, TargetKind
from tests.graph.test_building import build

PAGE = """# shelf.Pool {#shelf.Pool}

`shelf.Pool` keeps connections open.

## shelf.Pool.get(timeout) {#shelf.Pool.get}

Take a connection. Raises `shelf.PoolError` if there is none.

## shelf.PoolError {#shelf.PoolError}

No connection is left.
"""


def fill(kb, more=""):
    kb.add("pool", PAGE + more, source="http://x.org/pool.html")
    build(kb)


def stored(graph):
    """All of a graph except times."""
    relations = graph.relations(limit=10_000)
    return (
        [replace(each, created_at=None, seen_at=None) for each in relations],
        [replace(each, updated_at=None) for each in graph.entities(limit=10_000)],
        graph.suggestions(),
    )


def chunk_of(kb):
    return Target(TargetKind.CHUNK, next(iter(kb.chunks)).id)


def relation_by_hand(graph):
    return graph.relations("made", name="uses")[0]


EDITS = {
    "create": lambda graph, _: graph.create("queue", type="term", aliases=["line"]),
    "create with words of the text": lambda graph, _: graph.create(
        "pool of things", aliases=["connections"]
    ),
    "update": lambda graph, _: graph.update(
        "shelf.Pool",
        name="The Pool",
        type="term",
        description="Ours.",
        properties={"a": 1},
        aliases=["pool"],
    ),
    "aliases": lambda graph, _: graph.update("made", aliases=["other alias"]),
    "rename by hand": lambda graph, _: graph.update("made", name="made otherwise"),
    "delete an entity of documents": lambda graph, _: graph.delete("shelf.PoolError"),
    "delete an entity by hand": lambda graph, _: graph.delete("made"),
    "relate": lambda graph, kb: graph.relate("shelf.Pool", "explained_by", chunk_of(kb)),
    "relate as documents do": lambda graph, _: graph.relate(
        "shelf.Pool.get", "raises", "shelf.PoolError", weight=0.1, note="by hand"
    ),
    "change a relation": lambda graph, _: graph.relate("made", "uses", "shelf.Pool", weight=0.1),
    "delete a relation of documents": lambda graph, _: graph.delete(
        graph.relations("shelf.Pool.get", name="raises")[0]
    ),
    "delete a relation by hand": lambda graph, _: graph.delete(relation_by_hand(graph)),
    "merge": lambda graph, _: graph.merge("shelf.Pool", "made"),
    "merge a refused pair": lambda graph, _: graph.merge("made thing", "made things too"),
    "refuse": lambda graph, _: graph.refuse("shelf.Pool", "made"),
}


@pytest.fixture
def filled(kb, graph):
    """A graph of documents and of edits by hand."""
    fill(kb)
    graph.create("made", aliases=["an alias"], description="By hand.")
    graph.create("made thing")
    graph.create("made things too")
    graph.refuse("made thing", "made things too")
    graph.relate("made", "uses", "shelf.Pool", weight=0.5, note="why")
    return graph


@pytest.mark.parametrize("edit", EDITS)
def test_each_kind_of_edit_is_undone_in_one_step(filled, kb, edit):
    before, edits = stored(filled), filled.edits()
    EDITS[edit](filled, kb)
    assert stored(filled) != before or edit == "refuse"
    (last, *rest) = filled.edits()
    assert rest == edits
    assert filled.undo() == last
    assert stored(filled) == before
    assert filled.edits() == edits


@pytest.mark.soak
@pytest.mark.parametrize("edit", EDITS)
def test_all_edits_are_undone_after_documents_changed(filled, kb, edit, tmp_path):
    EDITS[edit](filled, kb)
    more = "\n## shelf.Queue {#shelf.Queue}\n\n`shelf.Queue` requires `shelf.Pool`.\n"
    fill(kb, more)
    filled.undo()
    while filled.edits():
        filled.undo()
    with kbkit.open(tmp_path / "other") as workspace:
        fill(workspace.create("manual"), more)
        assert content(filled) == content(workspace.graph)


def content(graph):
    """All of a graph except ids and times."""
    relations = {
        (_name(graph, each.source), each.name, _name(graph, each.target), round(each.weight, 9))
        for each in graph.relations(limit=10_000)
    }
    entities = {
        (each.name, each.type, each.description, each.aliases, each.by_hand)
        for each in graph.entities(limit=10_000)
    }
    return relations, entities


def _name(graph, target):
    return graph.entity(target.id).name if target.kind is TargetKind.ENTITY else target.kind


def test_edits_are_undone_one_after_another(filled, kb):
    steps = []
    for edit in ("create", "update", "delete an entity by hand", "relate as documents do", "merge"):
        steps.append(stored(filled))
        if edit == "merge":
            filled.merge("The Pool", "queue")
        else:
            EDITS[edit](filled, kb)
    for before in reversed(steps):
        filled.undo()
        assert stored(filled) == before


def test_each_person_undoes_their_own_edits(graph):
    graph.create("pool", by="ann")
    graph.create("queue", by="bob")
    assert [(each.what, each.made_by) for each in graph.edits()] == [
        ("created 'queue'", "bob"),
        ("created 'pool'", "ann"),
    ]
    assert graph.undo(by="ann").what == "created 'pool'"
    assert [each.name for each in graph.entities()] == ["queue"]
    with pytest.raises(NotFoundError, match="ann changed nothing"):
        graph.undo(by="ann")
    assert [each.made_by for each in graph.edits(by="bob")] == ["bob"]
    graph.undo(graph.edits()[0])
    assert graph.entities() == []
    for wrong in (0, -1, "x", True):
        with pytest.raises(ConfigError):
            graph.undo(wrong)


def test_edit_changed_by_somebody_else_since_is_not_undone(graph):
    graph.create("pool", by="ann")
    graph.create("queue", by="ann")
    graph.relate("pool", "uses", "queue", by="ann")
    graph.update("pool", description="By Bob.", by="bob")
    (uses,) = graph.relations("pool")
    graph.delete(uses, by="bob")
    related, _, created = graph.edits(by="ann")
    for edit in (related, created):
        with pytest.raises(ConflictError, match="changed again by bob"):
            graph.undo(edit)
    assert graph.entity("pool").description == "By Bob."
    assert graph.relations("pool") == []
    graph.undo(by="bob")
    graph.undo(by="bob")
    graph.undo(by="ann")
    assert graph.relations("pool") == []
    assert graph.entity("pool").description == ""


def test_creation_of_an_entity_merged_since_is_not_undone(graph):
    graph.create("pool", by="ann")
    graph.create("queue", by="bob")
    graph.merge("queue", "pool", by="bob")
    with pytest.raises(ConflictError, match="undo that first"):
        graph.undo(by="ann")
    assert graph.entity("pool").name == "queue"


def test_entity_related_by_others_outlives_undo_of_its_creation(graph):
    graph.create("pool", by="ann")
    graph.create("queue", by="bob")
    graph.relate("queue", "uses", "pool", by="bob")
    graph.undo(by="ann")
    assert [step.name for step in graph.neighbors("queue")] == ["pool"]


def test_concurrent_edits_and_undos_lose_nothing(graph):
    names = {"ann": [f"a{n}" for n in range(8)], "bob": [f"b{n}" for n in range(8)]}

    def work(by):
        for name in names[by]:
            graph.create(name, by=by)
        for _ in range(4):
            graph.undo(by=by)

    with ThreadPoolExecutor(2) as threads:
        list(threads.map(work, names))
    assert {each.name for each in graph.entities()} == {*names["ann"][:4], *names["bob"][:4]}


def test_edits_are_undone_in_a_reopened_workspace(tmp_path):
    with kbkit.open(tmp_path / "kb") as workspace:
        workspace.graph.create("pool")
    with kbkit.open(tmp_path / "kb") as workspace:
        assert workspace.graph.undo().what == "created 'pool'"
        assert workspace.graph.entities() == []
