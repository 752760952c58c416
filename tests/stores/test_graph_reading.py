"""The part of a graph that a query needs."""

import pytest

from kbkit.knowledge_base import handle_of
from kbkit.models import TargetKind
from kbkit.stores.catalog import graph_reading
from kbkit.stores.catalog.subjects import entity_id

SAW, AXE = entity_id("saw.cut"), entity_id("axe.split")
BASE = "http://x.org/"


@pytest.fixture
def kb(workspace):
    kb = workspace.create("tools")
    kb.add("Saw", "# Saw\n\n`saw.cut()` cuts wood.")
    kb.add("Axe", "# Axe\n\n`axe.split()` splits wood; `saw.cut()` does not.")
    return kb


@pytest.fixture
def graph(kb):
    return handle_of(kb).graph()


def chunk_count(graph, id_):
    return graph.entities([id_])[id_].chunks


def test_entities_have_the_chunks_of_their_knowledge_base(workspace, graph):
    other = workspace.create("other")
    other.add("Saw", "# Saw\n\n`saw.cut()` and `drill.turn()`.")
    assert {id_: entity.chunks for id_, entity in graph.entities([SAW, AXE]).items()} == {
        SAW: 2,
        AXE: 1,
    }
    assert not graph.entities([entity_id("drill.turn"), entity_id("unknown"), ""])
    assert not graph.entities([])


def test_only_a_description_by_a_person_is_returned(workspace, graph):
    assert graph.entities([AXE])[AXE].description == ""
    workspace.graph.update("axe.split", description="Splits.")
    assert graph.entities([AXE])[AXE].description == "Splits."


def test_an_alias_stands_for_its_entity(workspace, graph):
    workspace.graph.merge("saw.cut", "axe.split")
    assert {entity.id for entity in graph.entities([SAW, AXE]).values()} == {SAW}
    assert chunk_count(graph, AXE) == 2
    assert len(graph.mentions([SAW])[SAW]) == 2


def test_entity_without_chunks_is_found_by_its_relations(workspace, graph):
    workspace.graph.create("workbench")
    bench = entity_id("workbench")
    assert not graph.entities([bench])
    workspace.graph.relate("workbench", "holds", "saw.cut", weight=0.9)
    assert graph.entities([bench])[bench].chunks == 0
    strongest = graph.related([SAW, bench])
    assert strongest[SAW][0] == strongest[bench][0]
    assert strongest[bench][0].name == "holds"
    workspace.graph.delete("workbench")
    assert not graph.entities([bench])
    assert "holds" not in {edge.name for edge in graph.related([SAW])[SAW]}


def test_relations_of_other_knowledge_bases_are_left_out(workspace, graph):
    other = workspace.create("other")
    other.add("Saw", "# saw.cut\n\n`saw.cut()` calls `drill.turn()`; see `drill.turn()`.")
    there, here = (each.related([SAW])[SAW] for each in (handle_of(other).graph(), graph))
    assert entity_id("drill.turn") in {edge.target.id for edge in there}
    assert entity_id("drill.turn") not in {edge.target.id for edge in here}
    assert {edge.target.kind for edge in there} == {TargetKind.ENTITY}


def test_links_of_deleted_documents_are_left_out(kb, graph):
    kb.add("End", "# End\n\nNothing.", source=f"{BASE}end.html")
    start = kb.add("Start", f"# Start\n\nSee [the end]({BASE}end.html).", source=f"{BASE}s.html")
    graph = handle_of(kb).graph()
    assert len(graph.linked()) == 2
    kb.documents.delete(start.id)
    assert not handle_of(kb).graph().linked()


def test_mentions_that_take_long_are_reused_but_edits_show_at_once(
    workspace, kb, graph, monkeypatch
):
    monkeypatch.setattr(graph_reading, "_LONG", -1.0)
    monkeypatch.setattr(graph_reading, "_REUSED", 1e12)
    assert chunk_count(graph, SAW) == 2
    kb.add("Plane", "# Plane\n\n`plane.smooth()` is no `saw.cut()`.")
    assert chunk_count(graph, SAW) == 2
    workspace.graph.relate("saw.cut", "precedes", "axe.split")
    assert "precedes" in {edge.name for edge in graph.related([SAW])[SAW]}
    monkeypatch.setattr(graph_reading, "_MAX_CACHED", 0)
    graph.mentions([AXE])  # clears the cache
    assert chunk_count(graph, SAW) == 3


def test_new_mentions_show_at_once(kb, graph):
    assert chunk_count(graph, SAW) == 2
    kb.add("Plane", "# Plane\n\n`plane.smooth()` is no `saw.cut()`.")
    assert chunk_count(handle_of(kb).graph(), SAW) == 3
