"""The graph of local and served workspaces."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from kbkit import errors
from kbkit.models import Target, TargetKind

AWKWARD = ["C/C++", "a b", "100%", "..", "ünï?x=1&y#z", "x/neighbors", "C/neighbors", "+1"]


@pytest.fixture(scope="module")
def graph(workspace):
    graph = workspace.graph
    graph.create("Pool", type="term", description="Keeps connections.", aliases=["store"], by="ann")
    graph.create("Engine", type="symbol", properties={"since": [1, {"a": None}]}, by="ann")
    graph.create("Driver", by="ann")
    graph.relate("Engine", "uses", "Pool", weight=0.5, note="by default", by="ann")
    graph.relate("Pool", "needs", "Driver", by="ann")
    return graph


def test_entities_are_created_listed_changed_and_deleted(graph):
    pool = graph.entity("store")
    assert (pool.name, pool.type, pool.made_by, pool.by_hand) == ("Pool", "term", "ann", True)
    assert graph.entity(pool.id) == pool
    assert [each.name for each in graph.entities("engi", type="symbol")] == ["Engine"]
    assert [each.name for each in graph.entities(type=["symbol", "term"], limit=1)] != []
    assert graph.entity("Engine").properties == {"since": [1, {"a": None}]}
    changed = graph.update(pool, description="Holds connections.", by="bob")
    assert (changed.description, changed.aliases) == ("Holds connections.", pool.aliases)
    with pytest.raises(errors.ConflictError, match="was changed by bob"):
        graph.update(pool, description="x")
    with pytest.raises(errors.ConflictError, match="was changed by bob"):
        graph.delete(pool)
    assert graph.update("Pool", aliases=["store", "keeper"]).aliases == ("keeper", "store")
    gone = graph.create("Gone")
    graph.delete(gone)
    with pytest.raises(errors.NotFoundError, match="no entity with id or name 'Gone'"):
        graph.entity("Gone")


@pytest.mark.parametrize("name", AWKWARD)
def test_awkward_entity_names(graph, name):
    assert graph.create(name) == graph.entity(name)
    assert graph.update(name, description="d").description == "d"
    graph.relate(name, "is_like", "Driver")
    assert [step.name for step in graph.neighbors(name)] == ["Driver"]
    graph.delete(name)


def test_relations_are_created_found_changed_and_deleted(graph):
    used = graph.relation("Engine", "uses", "Pool")
    assert (used.weight, used.note, used.made_by) == (0.5, "by default", "ann")
    assert used in graph.relations("Engine")
    assert graph.relations(by="nobody") == []
    assert (used.source_name, used.target_name) == ("Engine", "Pool")
    with pytest.raises(errors.ConflictError, match="delete it first"):
        graph.relate("Engine", "uses", "Pool", weight=0.9, by="bob")
    assert graph.relate("Engine", "uses", "Pool", weight=0.9, by="ann").weight == 0.9
    with pytest.raises(errors.VersionConflictError, match="was changed by ann"):
        graph.delete(used)
    extra = graph.relate(Target(TargetKind.ENTITY, graph.entity("Driver").id), "knows", "Engine")
    graph.delete(extra)
    with pytest.raises(errors.NotFoundError, match="has no relation"):
        graph.relation("Driver", "knows", "Engine")


def test_neighbors_and_paths(graph):
    steps = graph.neighbors("Engine", depth=2)
    assert [(step.name, step.depth) for step in steps[:2]] == [("Pool", 1), ("Driver", 2)]
    assert steps[0].relation.name == "uses"
    assert [step.name for step in graph.neighbors("Engine", relation="none")] == []
    assert [step.name for step in graph.path("Engine", "Driver")] == ["Engine", "Pool", "Driver"]
    assert graph.neighbors(steps[0].target) == graph.neighbors("Pool")
    assert graph.passages("Pool") == []


def test_merges_and_edits_are_undone(graph):
    graph.create("Pol")
    kept = graph.merge("Pool", "Pol", by="cid")
    assert "Pol" in kept.aliases
    last = graph.edits(by="cid")[0]
    assert last.what == "merged 'Pol' into 'Pool'"
    assert graph.undo(last, by="cid") == last
    assert graph.entity("Pol").name == "Pol"
    graph.refuse("Pool", "Pol", by="cid")
    assert graph.undo(by="cid").what.startswith("refused")
    with pytest.raises(errors.NotFoundError):
        graph.undo(by="nobody")
    graph.delete("Pol")


def test_gaps_suggestions_and_layout(graph):
    assert graph.gaps(kind="missing") == []
    assert isinstance(graph.suggestions(limit=3), list)
    picture = graph.layout("Engine", depth=1)
    assert [node.name for node in picture.nodes].count("Pool") == 1
    assert graph.layout("Engine", depth=1) == picture
    assert graph.layout(["Engine", graph.entity("Driver")], type=["term"]).total >= 1


def test_graph_is_exported(graph, tmp_path):
    data = graph.to_json()
    assert {node["name"] for node in data["nodes"]} >= {"Engine", "Pool", "Driver"}
    written = graph.export(tmp_path / "graph.json")
    assert json.loads(written.read_text()) == data
    assert list(graph.to_frame()["relation"]).count("needs") == 1
    assert graph.to_networkx().number_of_edges() == len(data["edges"])
    assert b"graphml" in graph.export(tmp_path / "g.graphml").read_bytes()
    with pytest.raises(errors.ConfigError, match="ends with"):
        graph.export(tmp_path / "g.txt")


def test_subjects_are_listed(workspace, graph):
    assert isinstance(workspace.subjects(kind="entity", limit=3), list)
    with pytest.raises(errors.NotFoundError, match="there is no subject 'nothing at all'"):
        workspace.about("nothing at all")
    for call in (
        lambda: workspace.about(" "),
        lambda: workspace.subjects(kind="x"),
        lambda: workspace.subjects(limit=0),
        lambda: workspace.subjects(kbs=[]),
    ):
        with pytest.raises(errors.ConfigError, match=r"query|kind|limit|kbs"):
            call()


def test_graph_errors(graph):
    engine = graph.entity("Engine")
    cases = [
        (errors.ImpossibleError, "^name=' '", lambda: graph.create(" ")),
        (errors.ConfigError, "^aliases='x'", lambda: graph.create("A", aliases="x")),
        (errors.ConfigError, "^aliases=7", lambda: graph.create("A", aliases=7)),
        (errors.ConfigError, "^type='x!'", lambda: graph.create("A", type="x!")),
        (errors.ConfigError, "^description=7", lambda: graph.create("A", description=7)),
        (errors.ConfigError, "^properties", lambda: graph.create("A", properties={"x": {1}})),
        (errors.ConfigError, "^properties", lambda: graph.create("A", properties=[])),
        (errors.ConflictError, "Pool", lambda: graph.create("Pool")),
        (errors.ConflictError, "Pool", lambda: graph.update(engine, name="Pool")),
        (errors.ConfigError, "^weight=0", lambda: graph.relate("Pool", "x", "Driver", weight=0)),
        (errors.ImpossibleError, "itself", lambda: graph.relate("Pool", "x", "Pool")),
        (errors.NotFoundError, "'none'", lambda: graph.relate("Pool", "x", "none")),
        (errors.NotFoundError, "did you mean", lambda: graph.entity("Engi")),
        (errors.ConfigError, "^limit='?0", lambda: graph.entities(limit=0)),
        (errors.ConfigError, "^depth='?9", lambda: graph.neighbors("Pool", depth=9)),
        (errors.ConfigError, "^kind='x'", lambda: graph.gaps(kind="x")),
        (errors.NotFoundError, "'none'", lambda: graph.gaps(kbs=["none"])),
        (errors.ConfigError, "^limit", lambda: graph.layout(limit=9_999)),
        (errors.ConfigError, "^edit=0", lambda: graph.undo(0)),
        (errors.ConfigError, "^entity=7", lambda: graph.entity(7)),
        (errors.NotFoundError, "'none'", lambda: graph.delete(replace(engine, id="none"))),
    ]
    for kind, message, call in cases:
        with pytest.raises(kind, match=message) as caught:
            call()
        assert type(caught.value) is kind, caught.value
