"""Whatever people change by hand is taken back in one step, and nothing of others is lost by it."""

import threading

import pytest

import kbkit
from kbkit.errors import ConfigError, ConflictError, NotFoundError
from kbkit.graph import building
from kbkit.knowledge_base import handle_of
from kbkit.models import Target, TargetKind

PAGE = """# shelf.Pool {#shelf.Pool}

`shelf.Pool` keeps connections open.

## shelf.Pool.get(timeout) {#shelf.Pool.get}

Take a connection. Raises `shelf.PoolError` if there is none.

## shelf.PoolError {#shelf.PoolError}

No connection is left.
"""


def fill(kb, more=""):
    kb.add("pool", PAGE + more, source="http://x.org/pool.html")
    building.build_waiting(handle_of(kb).stores)


def stored(graph):
    """All that a graph has, but for when it was last read."""
    return (
        [
            (
                each.id,
                each.source,
                each.name,
                each.target,
                each.weight,
                each.evidence,
                each.note,
                each.made_by,
                each.by_hand,
            )
            for each in graph.relations(limit=10_000)
        ],
        [
            (
                each.id,
                each.name,
                each.type,
                each.description,
                each.aliases,
                each.properties,
                each.chunks,
                each.made_by,
                each.by_hand,
            )
            for each in graph.entities(limit=10_000)
        ],
        graph.suggestions(),
    )


def chunk_of(kb):
    return Target(TargetKind.CHUNK, next(iter(kb.chunks)).id)


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
    "delete what is read": lambda graph, _: graph.delete("shelf.PoolError"),
    "delete what was made": lambda graph, _: graph.delete("made"),
    "relate": lambda graph, kb: graph.relate("shelf.Pool", "explained_by", chunk_of(kb)),
    "relate as is read": lambda graph, _: graph.relate(
        "shelf.Pool.get", "raises", "shelf.PoolError", weight=0.1, note="by hand"
    ),
    "change a relation": lambda graph, _: graph.relate(
        "made",
        "uses",
        "shelf.Pool",
        weight=0.1,
        expected=graph.relations("made", name="uses")[0].seen_at,
    ),
    "delete a relation that is read": lambda graph, _: graph.delete(
        graph.relations("shelf.Pool.get", name="raises")[0]
    ),
    "delete a relation that was made": lambda graph, _: graph.delete(
        graph.relations("made", name="uses")[0]
    ),
    "merge": lambda graph, _: graph.merge("shelf.Pool", "made"),
    "merge what was refused": lambda graph, _: graph.merge("made thing", "made things too"),
    "refuse": lambda graph, _: graph.refuse("shelf.Pool", "made"),
}


@pytest.fixture
def filled(kb, graph):
    """A graph of what is read and of what a person made."""
    fill(kb)
    graph.create("made", aliases=["an alias"], description="By hand.")
    graph.create("made thing")
    graph.create("made things too")
    graph.refuse("made thing", "made things too")
    graph.relate("made", "uses", "shelf.Pool", weight=0.5, note="why")
    return graph


@pytest.mark.parametrize("edit", EDITS)
def test_each_kind_of_edit_is_taken_back_in_one_step(filled, kb, edit):
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
def test_it_is_taken_back_after_the_documents_changed(filled, kb, edit, tmp_path):
    """What is left is what there would be if nobody had edited anything."""
    EDITS[edit](filled, kb)
    more = "\n## shelf.Queue {#shelf.Queue}\n\n`shelf.Queue` requires `shelf.Pool`.\n"
    fill(kb, more)
    filled.undo()
    while filled.edits():
        filled.undo()
    with kbkit.open(tmp_path / "other") as workspace:
        anew = workspace.create("manual")
        fill(anew, more)
        assert said(filled) == said(workspace.graph)


def said(graph):
    """What a graph says, whatever the ids of its documents are."""
    return (
        {
            (_name(graph, each.source), each.name, _name(graph, each.target), round(each.weight, 9))
            for each in graph.relations(limit=10_000)
        },
        {
            (each.name, each.type, each.description, each.aliases, each.by_hand)
            for each in graph.entities(limit=10_000)
        },
    )


def _name(graph, target):
    return graph.entity(target.id).name if target.kind is TargetKind.ENTITY else target.kind


def test_all_edits_are_taken_back_one_after_another(filled, kb):
    steps = []
    for edit in ("create", "update", "delete what was made", "relate as is read", "merge"):
        steps.append(stored(filled))
        if edit == "merge":
            filled.merge("The Pool", "queue")
        else:
            EDITS[edit](filled, kb)
    for before in reversed(steps):
        filled.undo()
        assert stored(filled) == before


def test_everybody_takes_back_what_is_their_own(graph):
    graph.create("pool", by="ann")
    graph.create("queue", by="bob")
    assert [(each.what, each.made_by) for each in graph.edits()] == [
        ("made 'queue'", "bob"),
        ("made 'pool'", "ann"),
    ]
    assert graph.undo(by="ann").what == "made 'pool'"
    assert [each.name for each in graph.entities()] == ["queue"]
    with pytest.raises(NotFoundError, match="ann changed nothing"):
        graph.undo(by="ann")
    assert [each.made_by for each in graph.edits(by="bob")] == ["bob"]
    graph.undo(graph.edits()[0])
    assert graph.entities() == []
    for wrong in (0, -1, "x", True):
        with pytest.raises(ConfigError):
            graph.undo(wrong)


def test_what_somebody_else_changed_since_is_not_taken_back(graph):
    graph.create("pool", by="ann")
    graph.create("queue", by="ann")
    graph.relate("pool", "uses", "queue", by="ann")
    graph.update("pool", description="By Bob.", by="bob")
    (uses,) = graph.relations("pool")
    graph.relate("pool", "uses", "queue", weight=0.5, expected=uses.seen_at, by="bob")
    related, _, made = graph.edits(by="ann")
    for edit in (related, made):
        with pytest.raises(ConflictError, match="changed again by bob"):
            graph.undo(edit)
    assert graph.entity("pool").description == "By Bob."
    assert graph.relations("pool")[0].weight == 0.5
    graph.undo(by="bob")
    graph.undo(by="bob")
    graph.undo(by="ann")
    assert graph.relations("pool") == []
    assert graph.entity("pool").description == ""


def test_a_name_that_was_merged_since_is_not_taken_back(graph):
    graph.create("pool", by="ann")
    graph.create("queue", by="bob")
    graph.merge("queue", "pool", by="bob")
    with pytest.raises(ConflictError, match="take that back first"):
        graph.undo(by="ann")
    assert graph.entity("pool").name == "queue"


def test_what_others_related_to_a_thing_outlives_that_its_making_is_taken_back(graph):
    graph.create("pool", by="ann")
    graph.create("queue", by="bob")
    graph.relate("queue", "uses", "pool", by="bob")
    graph.undo(by="ann")
    assert [step.name for step in graph.neighbors("queue")] == ["pool"]


def test_two_people_who_edit_and_undo_at_once_lose_nothing(graph):
    names = {"ann": [f"a{n}" for n in range(8)], "bob": [f"b{n}" for n in range(8)]}

    def work(by):
        for name in names[by]:
            graph.create(name, by=by)
        for _ in range(4):
            graph.undo(by=by)

    threads = [threading.Thread(target=work, args=(by,)) for by in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {each.name for each in graph.entities()} == {
        name for made in names.values() for name in made[:4]
    }


def test_a_workspace_that_is_opened_again_knows_its_edits(tmp_path):
    with kbkit.open(tmp_path / "kb") as workspace:
        workspace.graph.create("pool")
    with kbkit.open(tmp_path / "kb") as workspace:
        assert workspace.graph.undo().what == "made 'pool'"
        assert workspace.graph.entities() == []
