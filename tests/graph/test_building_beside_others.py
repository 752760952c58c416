"""A graph is built while others write: they do not wait for it, and what they do counts."""

import json
import sqlite3
from contextlib import closing

import pytest

import kbkit
from kbkit.graph import building
from kbkit.graph.extraction import co_occurrence, named
from kbkit.knowledge_base import handle_of
from kbkit.recipes import GraphSpec
from kbkit.stores.catalog import graph as graph_reads
from kbkit.stores.catalog import graph_writing, knowledge_bases
from tests.graph.test_building import GUIDE, POOL, built, edges, fill

NEW = "# New\n\n`shelf.Pool.put()` requires `shelf.Pool`, and raises `shelf.BaseError`."


def before(monkeypatch, step, action):
    """Have something done once, after a build found what differs and before it writes that."""
    written = knowledge_bases.write_in_batches

    def write_in_batches(database, kb_id, found, put):
        nonlocal action
        if found and put.__name__ == step and action is not None:
            action, do = None, action
            do()
        written(database, kb_id, found, put)

    monkeypatch.setattr(knowledge_bases, "write_in_batches", write_in_batches)


def said(workspace):
    """What a graph says, without what is another in each workspace."""
    return (
        edges(workspace),
        sorted(
            (each.name, round(each.weight, 9), len(each.evidence))
            for each in workspace.graph.relations(limit=1_000)
        ),
        {
            (each.name, each.type, each.description)
            for each in workspace.graph.entities(limit=1_000)
        },
    )


def of_pairs(kb, count, folder):
    rows = []
    for number in range(count):
        pair = ("shelf.RedThing", "shelf.BlueThing") if number % 2 else ("shelf.GreyThing", "x_y")
        text = f"# Page {number}\n\nHere `{pair[0]}` meets `{pair[1]}` ({number})."
        rows.append({"uri": f"http://x.org/{number}", "title": f"d{number}", "text": text})
    (folder / "pairs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    kb.ingest({"type": "jsonl", "path": str(folder / "pairs.jsonl")})


@pytest.mark.slow
@pytest.mark.parametrize("step", ["drop_evidence", "put_entities"])
def test_what_others_do_while_a_graph_is_built_counts(workspace, kb, tmp_path, monkeypatch, step):
    def first(kb, other):
        fill(kb)
        of_pairs(kb, 6, tmp_path)
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
        built(other)
        workspace.graph.update("shelf.Pool", description="Ours.")

    first(kb, workspace.create("other"))
    built(kb)
    then(kb)
    steps = []
    before(monkeypatch, step, lambda: (steps.append(step), meanwhile(workspace)))
    built(kb)
    assert steps == [step]
    assert built(kb), "others are there than were looked at"
    with kbkit.open(tmp_path / "other") as anew:
        kb = anew.create("manual")
        first(kb, anew.create("other"))
        built(kb)
        then(kb)
        meanwhile(anew)
        built(kb)
        assert said(anew) == said(workspace)
    assert workspace.graph.entity("shelf.Pool").description == "Ours."


@pytest.mark.local
def test_others_can_write_whenever_a_build_reads(workspace, kb, tmp_path, monkeypatch):
    fill(kb)
    asked = []

    def beside(module, name):
        plain = getattr(module, name)

        def reading(*arguments):
            asked.append(name)
            with closing(sqlite3.connect(tmp_path / "kb" / "catalog.db", timeout=0)) as other:
                other.execute("BEGIN IMMEDIATE")  # an error at once where a build holds the lock
            return plain(*arguments)

        monkeypatch.setattr(module, name, reading)

    reads = {
        "graph_writing": ("co_occurrence_changes", "unsettled", "differing_entities"),
        "graph": ("mentions", "places", "given_names"),
    }
    for module, names in reads.items():
        for name in names:
            beside(getattr(building, module), name)
    for name in ("co_occurrence", "_described", "facts_of", "_define"):
        beside(building, name)
    built(kb)
    assert set(asked) >= {*reads["graph_writing"], *reads["graph"], "_described", "facts_of"}


def test_a_build_writes_no_more_than_what_differs(workspace, kb, monkeypatch):
    fill(kb)
    built(kb)
    kb.add("plain", "# Plain words\n\nNothing is here.", source="http://x.org/plain.html")
    kb.documents.delete("http://x.org/plain.html")
    written, plain = [], knowledge_bases.write_in_batches

    def write_in_batches(database, kb_id, found, put):
        written.extend(put.__name__ for _ in found)
        plain(database, kb_id, found, put)

    monkeypatch.setattr(knowledge_bases, "write_in_batches", write_in_batches)
    handle = handle_of(kb)
    building.build(handle.stores.database, handle.id)
    assert written == ["note_built"]
    written.clear()
    building.build(handle.stores.database, handle.id)
    assert written == []


def test_a_relation_stays_that_another_knowledge_base_supports_meanwhile(
    workspace, kb, monkeypatch
):
    other = workspace.create("other")
    text = "# Part\n\n`shelf.get()` raises `shelf.Error` ({})."
    kb.add("d", text.format(0), source="http://x.org")
    kb.add("e", "# Other\n\nNothing.", source="http://x.org/e")
    built(kb)
    (found,) = workspace.graph.relations(name="raises")
    kb.documents.delete("http://x.org")

    def support():
        other.add("d", text.format(1), source="http://x.org")
        built(other)

    before(monkeypatch, "settle", support)
    built(kb)
    (now,) = workspace.graph.relations(name="raises")
    assert (now.id, now.weight, len(now.evidence)) == (found.id, pytest.approx(1 / 2), 1)


def test_what_a_person_said_meanwhile_stays_and_chunks_that_went_support_nothing(
    workspace, kb, database
):
    fill(kb)
    built(kb)
    before = edges(workspace)
    kb_id, known = handle_of(kb).id, workspace.graph.entity("shelf.Pool").id
    described = {known: ("term", "Another.")}
    with database.read() as transaction:
        found = graph_writing.differing_entities(transaction, kb_id, described)
        gone = max(place.seq for place in graph_reads.places(transaction, kb_id)) + 1
    assert known in found
    workspace.graph.update("shelf.Pool", description="Ours.")
    with database.write() as transaction:
        graph_writing.put_entities(transaction, kb_id, described, found, ())
        fact = graph_reads.ChunkRelation(gone, "entity", known, "calls", "entity", known, 1.0)
        graph_writing.add_evidence(transaction, [fact])
    assert workspace.graph.entity("shelf.Pool").description == "Ours."
    assert edges(workspace) == before


def test_an_entity_whose_name_was_swept_meanwhile_is_there_if_a_document_defines_it(kb, database):
    kb_id, names = handle_of(kb).id, [named("shelf.defined"), named("shelf.mentioned")]
    described = {name.id: ("symbol", "What it is.") for name in names}
    with database.write() as transaction:
        graph_writing.put_entities(transaction, kb_id, described, list(described), names[:1])
        found = graph_writing.differing_entities(transaction, kb_id, described)
    assert found == [names[1].id]


def test_a_graph_that_is_wanted_otherwise_while_it_is_built_waits(
    workspace, kb, database, monkeypatch
):
    def forget():
        with database.write() as transaction:
            graph_reads.forget_built(transaction, handle_of(kb).id)

    def waits():
        with database.read() as transaction:
            return graph_reads.waits(transaction, handle_of(kb).id)

    fill(kb)
    before(monkeypatch, "note_built", forget)
    built(kb)
    assert waits()
    built(kb)
    assert not waits()


def test_a_name_that_becomes_an_entity_meanwhile_is_no_other_name(tmp_path, monkeypatch):
    recipe = {
        "annotation": {
            "names": [{"name": "shelf.Pool", "type": "symbol", "aliases": ["the basin"]}]
        }
    }
    with kbkit.open(tmp_path) as workspace:
        kb = workspace.create("manual", spec=kbkit.recipes.KnowledgeBaseSpec(**recipe))
        fill(kb)
        before(
            monkeypatch,
            "put_aliases",
            lambda: workspace.graph.create("the basin", description="Of its own."),
        )
        built(kb)
        assert workspace.graph.entity("the basin").description == "Of its own."


def test_one_more_document_leaves_most_weights_of_what_stands_together():
    names = {f"n{number:03}": f"Name{chr(97 + number % 26)}{number}x" for number in range(120)}
    ids = list(names)
    mentions = {seq: [ids[seq % 120], ids[(seq % 120 + 1 + seq % 3) % 120]] for seq in range(3_000)}
    spec = GraphSpec()
    found = set(co_occurrence([[seq] for seq in range(3_000)], mentions, names, spec))
    more = set(
        co_occurrence([[seq] for seq in range(3_001)], mentions | {3_000: ["n000"]}, names, spec)
    )
    assert len(found) > 100
    assert len(found & more) > 0.8 * len(found)
