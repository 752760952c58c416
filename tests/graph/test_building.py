"""Relations of documents, with their evidence, after full and partial builds."""

import dataclasses
import itertools

import pytest

import kbkit
from kbkit.graph import building
from kbkit.knowledge_base import handle_of
from kbkit.models import Target, TargetKind


def build(kb):
    """Build the graph of a knowledge base, and return the number of chunks read."""
    return building.build_waiting(handle_of(kb).stores)


POOL = """# shelf.Pool {#shelf.Pool}

`shelf.Pool` keeps connections open. It is described in [the guide](http://x.org/guide.html).

## shelf.Pool.get(timeout) {#shelf.Pool.get}

Take a connection. Raises `shelf.PoolError` if there is none, and never raises `shelf.OtherError`.
Returns `None` if it was closed.

## shelf.Pool.put(connection) {#shelf.Pool.put}

Give it back. `shelf.Pool.put()` calls `shelf.Pool.get()` first.
"""
ERRORS = """# Errors

## shelf.PoolError {#shelf.PoolError}

A subclass of `shelf.OtherError`. See [`shelf.Pool`](http://x.org/pool.html#shelf.Pool).

## shelf.OtherError {#shelf.OtherError}

`shelf.OtherError` is an alias for `shelf.BaseError`.

## shelf.BaseError {#shelf.BaseError}

The base of all.
"""
GUIDE = """# Guide

Use [`shelf.Pool`](http://x.org/pool.html#shelf.Pool), see [errors](errors.html).
`shelf.BaseError` is deprecated in favour of `shelf.PoolError`.

```python
# shelf.Pool.get raises shelf.BaseError
```
"""


def fill(kb, **more):
    for name, text in ({"pool": POOL, "errors": ERRORS, "guide": GUIDE} | more).items():
        kb.add(name, text, source=f"http://x.org/{name}.html")


def edges(workspace, *names):
    graph = workspace.graph
    labels = {each.id: each.name for each in graph.entities(limit=10_000)}
    labels |= {each.id: each.title for kb in workspace for each in workspace[kb].documents}
    return {
        (labels[each.source.id], each.name, labels[each.target.id])
        for each in graph.relations(limit=10_000)
        if not names or each.name in names
    }


def stored(workspace):
    """All of a graph except ids and times of relations."""
    graph = workspace.graph
    relations = {
        (each.source, each.name, each.target, round(each.weight, 9), each.evidence)
        for each in graph.relations(limit=100_000)
    }
    entities = {
        (each.id, each.name, each.type, each.description, each.aliases, each.chunks)
        for each in graph.entities(limit=100_000)
    }
    return relations, entities


def test_verbs_containment_definitions_and_links_give_relations(workspace, kb):
    fill(kb)
    build(kb)
    names = ("raises", "extends", "calls", "alias_of", "deprecated_by", "returns")
    assert edges(workspace, *names) == {
        ("shelf.Pool.get", "raises", "shelf.PoolError"),
        ("shelf.PoolError", "extends", "shelf.OtherError"),
        ("shelf.Pool.put", "calls", "shelf.Pool.get"),
        ("shelf.OtherError", "alias_of", "shelf.BaseError"),
        ("shelf.BaseError", "deprecated_by", "shelf.PoolError"),
    }
    assert edges(workspace, "contains") == {
        ("shelf.Pool", "contains", "shelf.Pool.get"),
        ("shelf.Pool", "contains", "shelf.Pool.put"),
    }
    assert edges(workspace, "links_to") == {
        ("pool", "links_to", "guide"),
        ("errors", "links_to", "pool"),
        ("guide", "links_to", "pool"),
        ("guide", "links_to", "errors"),
    }
    assert ("shelf.PoolError", "refers_to", "shelf.Pool") in edges(workspace)
    assert ("shelf.Pool", "defined_in", "pool") in edges(workspace)


def test_relations_have_their_chunks_as_evidence(workspace, kb):
    fill(kb)
    build(kb)
    by_id = {chunk.id: chunk.text for chunk in kb.chunks}
    relations = workspace.graph.relations(limit=1_000)
    assert all(each.evidence and set(each.evidence) <= set(by_id) for each in relations)
    (raises,) = workspace.graph.relations("shelf.Pool.get", name="raises")
    assert ["Raises `shelf.PoolError`" in by_id[each] for each in raises.evidence] == [True]
    assert raises.made_by == "kbkit"
    assert not raises.by_hand


def test_entities_have_type_and_description(workspace, kb):
    fill(kb)
    build(kb)
    entity = workspace.graph.entity("shelf.BaseError")
    assert (entity.type, entity.description) == ("error", "The base of all.")
    assert workspace.graph.entity("shelf.Pool").type == "symbol"
    first, *_ = workspace.graph.passages("shelf.PoolError")
    assert first.chunk.anchor == "shelf.PoolError", "the definition, not a mention"


@pytest.mark.slow
def test_rebuild_reads_changed_chunks_and_equals_a_full_build(workspace, kb, tmp_path):
    fill(kb)
    assert build(kb) == len(kb.chunks)
    assert build(kb) == 0
    changed = POOL.replace("shelf.PoolError", "shelf.BaseError")
    new = "# New\n\n`shelf.Pool.put()` requires `shelf.Pool`."
    kb.add("pool", changed, source="http://x.org/pool.html")
    kb.add("new", new, source="http://x.org/n.html")
    assert 0 < build(kb) < len(kb.chunks)
    kb.documents.delete("http://x.org/guide.html")
    build(kb)
    with kbkit.open(tmp_path / "other") as other:
        full = other.create("manual")
        fill(full, pool=changed)
        full.documents.delete("http://x.org/guide.html")
        full.add("new", new, source="http://x.org/n.html")
        build(full)
        assert edges(other) == edges(workspace)
        weights = [
            sorted((each.name, round(each.weight, 9)) for each in ws.graph.relations(limit=1_000))
            for ws in (workspace, other)
        ]
        assert weights[0] == weights[1]
    assert ("shelf.Pool.put", "requires", "shelf.Pool") in edges(workspace)
    assert ("shelf.Pool.get", "raises", "shelf.PoolError") not in edges(workspace)
    assert not {each for each in edges(workspace) if "guide" in each}


def test_deleted_evidence_lowers_the_weight_and_ends_the_relation(workspace, kb):
    for number in range(3):
        text = f"# Part {number}\n\n`shelf.get()` raises `shelf.Error` ({number})."
        kb.add(f"d{number}", text, source=f"http://x.org/{number}")
    weights = []
    for number in range(3):
        build(kb)
        (relation,) = workspace.graph.relations(name="raises")
        assert len(relation.evidence) == 3 - number
        weights.append(relation.weight)
        kb.documents.delete(f"http://x.org/{number}")
    build(kb)
    assert workspace.graph.relations(name="raises") == []
    assert weights == pytest.approx([3 / 4, 2 / 3, 1 / 2])


def test_merge_joins_relations_and_outlives_rebuilds(workspace, kb):
    graph = workspace.graph
    fill(kb)
    build(kb)
    before = stored(workspace)
    graph.merge("shelf.BaseError", "shelf.OtherError")
    build(kb)
    assert {step.name for step in graph.neighbors("shelf.OtherError")} >= {"shelf.PoolError"}
    graph.undo()
    assert build(kb) == 0
    assert stored(workspace) == before


def test_names_in_the_same_chunks_co_occur_with_bounded_evidence(workspace, kb):
    words = [f"shelf.{word}Thing" for word in ("Red", "Green", "Blue", "Grey")]
    for number in range(12):
        one, other = words[:2] if number % 2 else words[2:]
        text = f"# Page {number}\n\nHere `{one}` meets `{other}` ({number})."
        kb.add(f"d{number}", text, source=f"http://x.org/{number}")
    build(kb)
    (relation,) = (e for e in workspace.graph.relations(words[0]) if e.name == "co_occurs")
    ends = {workspace.graph.entity(end.id).name for end in (relation.source, relation.target)}
    assert ends == set(words[:2])
    assert 0.5 < relation.weight < 1
    assert len(relation.evidence) == 3


def test_relations_of_api_descriptions(workspace, kb, tmp_path):
    (tmp_path / "api.yaml").write_text("""
openapi: 3.0.0
info: {title: Pets, version: "1"}
security: [{keyAuth: []}]
paths:
  /pets:
    get:
      operationId: listPets
      responses:
        "200":
          description: ok
          content:
            application/json:
              schema: {type: array, items: {$ref: "#/components/schemas/PetItem"}}
components:
  schemas:
    PetItem:
      type: object
      properties: {name: {type: string}, owner: {$ref: "#/components/schemas/PetOwner"}}
    PetOwner: {type: object, properties: {name: {type: string}}}
  securitySchemes:
    keyAuth: {type: apiKey, in: header, name: X-Key}
""")
    kb.ingest({"type": "openapi", "path": str(tmp_path / "api.yaml")})
    build(kb)
    assert edges(workspace, "uses", "requires") == {
        ("GET /pets", "uses", "PetItem"),
        ("GET /pets", "uses", "PetOwner"),
        ("PetItem", "uses", "PetOwner"),
        ("GET /pets", "requires", "keyAuth"),
    }


def test_relations_of_packages(workspace, kb):
    kb.ingest({"type": "package", "name": "json"})
    build(kb)
    relations = edges(workspace)
    assert ("json.JSONDecodeError", "inherits", "ValueError") in relations
    assert {name for _, name, _ in relations} >= {"contains", "inherits", "defined_in"}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "```python\nx raises y\n```",
        "| a | b |\n| --- | --- |\n| `c` | raises `d` |",
        "](((" * 500,
        "[" * 2_000,
        "`" * 2_000,
        "مثال `shelf.Pool` raises `shelf.Error` שלום",
        "\ue0005\ue001 raises `shelf.Error`, calls \ue0007\ue001",
    ],
)
def test_graph_of_odd_texts_is_built(workspace, kb, text):
    kb.add("odd", f"# Odd\n\n{text or 'nothing'}\n", source="http://x.org/odd.html")
    assert build(kb) == len(kb.chunks)


def test_link_to_a_document_added_later_becomes_a_relation(workspace, kb):
    kb.add("guide", GUIDE, source="http://x.org/guide.html")
    build(kb)
    assert edges(workspace, "links_to") == set()
    kb.add("errors", ERRORS, source="http://x.org/errors.html")
    build(kb)
    assert edges(workspace, "links_to") == {("guide", "links_to", "errors")}


def test_two_knowledge_bases_support_one_relation(workspace, kb):
    other = workspace.create("other")
    for number, each in enumerate((kb, other)):
        text = f"# Part\n\n`shelf.get()` raises `shelf.Error` ({number})."
        each.add("d", text, source="http://x.org")
        build(each)
    (relation,) = workspace.graph.relations(name="raises")
    assert relation.weight == pytest.approx(2 / 3)
    workspace.delete("other", forever=True)
    build(kb)
    (relation,) = workspace.graph.relations(name="raises")
    assert relation.weight == pytest.approx(1 / 2)


def test_stopped_build_is_resumed(workspace, kb, monkeypatch):
    monkeypatch.setattr(building, "_BATCH", 2)
    fill(kb)
    build(kb)
    whole = stored(workspace)
    kb.add("pool", POOL + "\nMore.\n", source="http://x.org/pool.html")
    calls = itertools.count()
    handle = handle_of(kb)
    building.build(handle.stores.database, handle.id, stop=lambda: next(calls) > 0)
    kb.add("pool", POOL, source="http://x.org/pool.html")
    build(kb)
    assert stored(workspace) == whole


def test_entities_are_searched_by_type_and_knowledge_base(workspace, kb):
    fill(kb)
    build(kb)
    other = workspace.create("other")
    other.add("d", "# Other\n\n`shelf.Pool` and `shelf.BaseError`.", source="http://x.org/o")
    build(other)
    graph = workspace.graph
    assert {each.type for each in graph.entities(type="error")} == {"error"}
    names = {each.name for each in graph.entities("shelf.", kbs=["other"])}
    assert names == {"shelf.Pool", "shelf.BaseError"}
    assert graph.entities("base", type=["term"]) == []
    assert Target(TargetKind.ENTITY, graph.entity("shelf.Pool").id)


def test_knowledge_base_in_the_trash_supports_no_relations(workspace, kb):
    other = workspace.create("other")
    text = "# Part\n\n`shelf.get()` raises `shelf.Error` ({})."
    kb.add("d", text.format(0), source="http://x.org")
    other.add("d", text.format(1), source="http://x.org")
    other.add("e", "# Own\n\n`shelf.own()` raises `shelf.Other`.", source="http://x.org/own")
    build(kb)
    both, alone = workspace.graph.relations(name="raises")
    assert (both.weight, len(both.evidence)) == (pytest.approx(2 / 3), 2)
    workspace.delete("other")
    (one,) = workspace.graph.relations(name="raises")
    assert (one.id, one.weight, len(one.evidence)) == (both.id, pytest.approx(1 / 2), 1)
    assert not workspace.graph.neighbors("shelf.get()", relation="raises", depth=2)[1:]
    assert "shelf.Other" not in {each.name for each in workspace.graph.entities()}
    kb.add("d", text.format(2), source="http://x.org")
    build(kb)  # a rebuild meanwhile loses nothing
    workspace.undelete("other")
    relations = workspace.graph.relations(name="raises")
    assert relations == [dataclasses.replace(both, evidence=relations[0].evidence), alone]


def test_relations_in_the_trash_are_not_walked(workspace, kb):
    kb.add("a", "# One\n\n`shelf.own()`.\n\n## Two\n\n`shelf.Other`.")
    other = workspace.create("other")
    other.add("b", "# Own\n\n`shelf.own()` raises `shelf.Other`.")
    build(kb)
    assert workspace.graph.neighbors("shelf.own()", relation="raises")
    workspace.delete("other")
    assert workspace.graph.neighbors("shelf.own()", relation="raises") == []
    assert workspace.graph.path("shelf.own()", "shelf.Other") == []


def test_refused_merge_is_not_suggested_for_readded_documents(workspace, kb):
    graph = workspace.graph
    pages = {
        "http://x.org/a": "# Structured Query Language {#sql}\n\nStructured Query Language asks.",
        "http://x.org/b": "# Use\n\n`SQL` is `SQL`. Structured Query Language (`SQL`).",
    }
    for source, text in pages.items():
        kb.add(source[-1], text, source=source)
    build(kb)
    (suggestion,) = graph.suggestions()
    graph.refuse(*suggestion.names)
    for source in pages:
        kb.documents.delete(source)
    kb.add("c", "# Nothing\n\nOf the kind.", source="http://x.org/c")
    kb.improve()
    build(kb)
    for source, text in pages.items():
        kb.add(source[-1], text, source=source)
    build(kb)
    assert all(graph.entity(name).chunks for name in suggestion.names)
    assert graph.suggestions() == []
    graph.undo()
    assert [each.names for each in graph.suggestions()] == [suggestion.names]


def test_context_builds_only_small_graphs(workspace, monkeypatch):
    kb = workspace.create("small")
    for n in range(3):
        kb.add(f"Page {n}", f"# Page {n}\n\n`shelf.page_{n}` is here.", source=f"http://x.org/{n}")
    assert kb.info().chunks == 3
    built = []
    monkeypatch.setattr(building, "build_waiting", lambda _stores, kb_ids: built.extend(kb_ids))
    for small in (2, 3, 4):
        monkeypatch.setattr(building, "SMALL", small)
        building.build_small(handle_of(kb).stores, handle_of(kb).id)
    assert len(built) == 2
