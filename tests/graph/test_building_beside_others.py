"""Graphs built while others write, who neither wait nor lose changes."""

import sqlite3
from contextlib import closing

import pytest

import kbkit
from kbkit.graph import building
from kbkit.knowledge_base import handle_of
from kbkit.models import SourceDocument
from kbkit.recipes import KnowledgeBaseSpec
from kbkit.stores.catalog import graph as graph_reads
from kbkit.stores.catalog import knowledge_bases
from tests.graph.test_building import GUIDE, POOL, build, edges, fill

NEW = "# New\n\n`shelf.Pool.put()` requires `shelf.Pool`, and raises `shelf.BaseError`."


def before(monkeypatch, step, action):
    """Call an action once, between finding differences and writing them."""
    original = knowledge_bases.write_in_batches

    def write_in_batches(database, kb_id, rows, put):
        nonlocal action
        if rows and put.__name__ == step and action is not None:
            action, do = None, action
            do()
        original(database, kb_id, rows, put)

    monkeypatch.setattr(knowledge_bases, "write_in_batches", write_in_batches)


def content(workspace):
    """All of a graph that is the same in another workspace."""
    relations = workspace.graph.relations(limit=1_000)
    entities = workspace.graph.entities(limit=1_000)
    return (
        edges(workspace),
        sorted((each.name, round(each.weight, 9), len(each.evidence)) for each in relations),
        {(each.name, each.type, each.description) for each in entities},
    )


def add_pairs(kb, count):
    pages = []
    for number in range(count):
        pair = ("shelf.RedThing", "shelf.BlueThing") if number % 2 else ("shelf.GreyThing", "x_y")
        text = f"# Page {number}\n\nHere `{pair[0]}` meets `{pair[1]}` ({number})."
        pages.append(SourceDocument(f"http://x.org/{number}", f"d{number}", text))
    kb.ingest(pages)


@pytest.mark.slow
@pytest.mark.parametrize("step", ["drop_evidence", "put_entities"])
def test_changes_during_a_build_reach_the_graph(workspace, kb, tmp_path, monkeypatch, step):
    def first(kb, other):
        fill(kb)
        add_pairs(kb, 6)
        other.add("d", "# Part\n\n`shelf.get()` raises `shelf.Error`.", source="http://x.org/o")

    def then(kb):
        kb.documents.delete("http://x.org/errors.html")
        kb.documents.delete("http://x.org/3")
        kb.add("pool", POOL.replace("calls", "requires"), source="http://x.org/pool.html")

    def meanwhile(workspace):
        kb, other = workspace["manual"], workspace["other"]
        kb.documents.delete("http://x.org/guide.html")
        kb.documents.delete("http://x.org/5")
        kb.add("new", NEW, source="http://x.org/n.html")
        other.add("errors", GUIDE, source="http://x.org/errors")
        build(other)
        workspace.graph.update("shelf.Pool", description="Ours.")

    first(kb, workspace.create("other"))
    build(kb)
    then(kb)
    steps = []
    before(monkeypatch, step, lambda: (steps.append(step), meanwhile(workspace)))
    build(kb)
    assert steps == [step]
    assert build(kb), "chunks were added meanwhile"
    with kbkit.open(tmp_path / "other") as other:
        kb = other.create("manual")
        first(kb, other.create("other"))
        build(kb)
        then(kb)
        meanwhile(other)
        build(kb)
        assert content(other) == content(workspace)
    assert workspace.graph.entity("shelf.Pool").description == "Ours."


@pytest.mark.local
def test_others_can_write_while_a_build_reads(workspace, kb, tmp_path, monkeypatch):
    fill(kb)
    beside = []

    def watched(module, name):
        original = getattr(module, name)

        def reading(*arguments):
            with closing(sqlite3.connect(tmp_path / "kb" / "catalog.db", timeout=0)) as other:
                other.execute("BEGIN IMMEDIATE")  # fails at once where a build holds the lock
            beside.append(name)
            return original(*arguments)

        monkeypatch.setattr(module, name, reading)

    watched(building.graph_writing, "differing_entities")
    watched(building.graph, "places")
    watched(building.reading, "mentions")
    watched(building.extraction, "facts_of")
    build(kb)
    assert set(beside) == {"differing_entities", "places", "mentions", "facts_of"}


def test_build_writes_only_differences(workspace, kb, monkeypatch):
    fill(kb)
    build(kb)
    kb.add("plain", "# Plain words\n\nNothing is here.", source="http://x.org/plain.html")
    kb.documents.delete("http://x.org/plain.html")
    written, original = [], knowledge_bases.write_in_batches

    def write_in_batches(database, kb_id, rows, put):
        written.extend(put.__name__ for _ in rows)
        original(database, kb_id, rows, put)

    monkeypatch.setattr(knowledge_bases, "write_in_batches", write_in_batches)
    handle = handle_of(kb)
    building.build(handle.stores.database, handle.id)
    assert written == ["note_built"]
    written.clear()
    building.build(handle.stores.database, handle.id)
    assert written == []


def test_relation_supported_elsewhere_meanwhile_is_kept(workspace, kb, monkeypatch):
    other = workspace.create("other")
    text = "# Part\n\n`shelf.get()` raises `shelf.Error` ({})."
    kb.add("d", text.format(0), source="http://x.org")
    kb.add("e", "# Other\n\nNothing.", source="http://x.org/e")
    build(kb)
    (first,) = workspace.graph.relations(name="raises")
    kb.documents.delete("http://x.org")

    def support():
        other.add("d", text.format(1), source="http://x.org")
        build(other)

    before(monkeypatch, "settle", support)
    build(kb)
    (now,) = workspace.graph.relations(name="raises")
    assert (now.id, now.weight, len(now.evidence)) == (first.id, pytest.approx(1 / 2), 1)


def test_edit_by_hand_during_a_build_is_kept(workspace, kb, monkeypatch):
    fill(kb)
    graph = workspace.graph
    before(monkeypatch, "put_entities", lambda: graph.update("shelf.Pool", description="Ours."))
    build(kb)
    assert graph.entity("shelf.Pool").description == "Ours."


def test_graph_whose_settings_change_during_a_build_waits_for_another(kb, database, monkeypatch):
    def forget():
        with database.write() as transaction:
            graph_reads.forget_built(transaction, handle_of(kb).id)

    def waits():
        with database.read() as transaction:
            return graph_reads.waits(transaction, handle_of(kb).id)

    fill(kb)
    before(monkeypatch, "note_built", forget)
    build(kb)
    assert waits()
    build(kb)
    assert not waits()


def test_alias_that_becomes_an_entity_meanwhile_is_dropped(workspace, monkeypatch):
    names = [{"name": "shelf.Pool", "type": "symbol", "aliases": ["the basin"]}]
    kb = workspace.create("manual", spec=KnowledgeBaseSpec(annotation={"names": names}))
    fill(kb)
    graph = workspace.graph
    before(monkeypatch, "put_aliases", lambda: graph.create("the basin", description="Of its own."))
    build(kb)
    assert graph.entity("the basin").description == "Of its own."
