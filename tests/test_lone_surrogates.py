"""Lone surrogates, which JSON may hold and nothing can store, and very long names."""

import json

import httpx
import pytest

import kbkit
from kbkit.errors import ConfigError
from kbkit.models import SourceDocument
from kbkit.server import ServerSettings, running

HALF = "a\ud800b"
OPENAPI = {
    "openapi": "3.0.0",
    "info": {"title": HALF, "version": HALF},
    "paths": {f"/{HALF}": {"get": {"summary": HALF, "tags": [HALF], "responses": {}}}},
}
CELL = {"cell_type": "markdown", "metadata": {}, "source": [f"# {HALF}\n", "Mate."]}
NOTEBOOK = {"cells": [CELL], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
PAGES = {
    "front.md": f"---\ntitle: {json.dumps(HALF)}\ntags: [{json.dumps(HALF)}]\n---\n# Front\n\nTea.",
    "notebook.ipynb": json.dumps(NOTEBOOK),
    "values.json": json.dumps({"title": HALF, "drinks": [HALF]}),
    "good.md": "# Good\n\nCoffee.",
}


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    with kbkit.open(tmp_path_factory.mktemp("half") / "kb") as workspace:
        workspace.create("tea").add("Tea", "# Tea\n\nSteep it.")
        yield workspace


@pytest.fixture(scope="module")
def url(workspace):
    with running(workspace, ServerSettings(port=0, rate=0, search_processes=0)) as url:
        yield url


def test_lone_surrogates_become_question_marks(workspace):
    kb = workspace.create("added", description=HALF)
    kb.add(HALF, f"# {HALF}\n\nMate.", source=HALF, tags=[HALF], metadata={"description": HALF})
    (found,) = kb.documents
    assert (found.uri, found.title, found.tags) == ("a?b", "a?b", ("a?b",))
    assert found.content == "# a?b\n\nMate."
    assert found.metadata["description"] == "a?b"
    kb.documents.update(HALF, title=f"{HALF}c", tags=[HALF])
    assert kb.documents[HALF].title == "a?bc"
    assert kb.info().description == "a?b"


def test_files_with_lone_surrogates_are_read(workspace, tmp_path):
    for name, text in PAGES.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "api").write_text(json.dumps(OPENAPI))
    kb = workspace.create("read")
    report = kb.ingest(kbkit.FilesSource(path=str(tmp_path), exclude=["api"]))
    assert (report.new, report.failed) == (len(PAGES), ())
    assert kb.ingest(kbkit.OpenApiSource(path=str(tmp_path / "api"))).new > 0
    assert {"a?b", "Good"} <= {document.title for document in kb.documents}


def test_names_with_lone_surrogates_are_not_found(workspace):
    with pytest.raises(kbkit.KbkitError, match="no knowledge base"):
        workspace[HALF]
    with pytest.raises(kbkit.KbkitError, match="no document"):
        workspace["tea"].documents[HALF]
    assert workspace.graph.entities(type=HALF) == []


NEW = {"kb": "tea", "title": "New", "content": "New."}
BODIES = [
    ("documents", NEW | {"title": HALF}),
    ("documents", NEW | {"content": HALF}),
    ("documents", NEW | {"source": HALF}),
    ("documents", NEW | {"tags": [HALF]}),
    ("documents", NEW | {"metadata": {HALF: HALF}}),
    ("documents", NEW | {"kb": HALF}),
    ("bases", {"name": "new", "description": HALF}),
    ("import/openapi", {"kb": "tea", "description": OPENAPI}),
    ("search", {"query": HALF}),
    ("graph/entities", {"name": HALF, "description": HALF}),
]


def post(url, path, content, kind="application/json"):
    headers = {"Content-Type": kind}
    return httpx.post(f"{url}/api/knowledge/{path}", content=content, headers=headers, timeout=60)


@pytest.mark.parametrize(("path", "body"), BODIES)
def test_server_refuses_escaped_lone_surrogates(url, path, body):
    answer = post(url, path, json.dumps(body))
    assert answer.status_code == 422, answer.text
    assert answer.json()["error"] == "ArgumentError"


@pytest.mark.parametrize("size", [50_001, 200_000])
def test_names_longer_than_a_like_pattern_are_not_found(workspace, size):
    """SQLite's LIKE takes 50,000 bytes."""
    long = "%" * size
    assert workspace.graph.entities(query=long) == []
    assert workspace.subjects(like=long) == []
    for call in (workspace.graph.neighbors, workspace.about, workspace.graph.passages):
        with pytest.raises(kbkit.KbkitError):
            call(long)


@pytest.mark.parametrize(
    "body",
    [
        b'{"name": "new", "description": "\xed\xa0\x80"}',
        json.dumps({"name": "new", "description": HALF}, ensure_ascii=False).encode(
            "utf-16", "surrogatepass"
        ),
        '{"name": "new", "description": "\ud880"}'.encode("utf-16-be", "surrogatepass"),
    ],
)
def test_server_refuses_encoded_lone_surrogates(url, body):
    answer = post(url, "bases", body, kind="Application/JSON")
    assert answer.status_code == 422, answer.text


def test_server_accepts_surrogate_pairs(url):
    body = b'{"name": "emoji", "description": "\\ud83d\\ude00"}'
    answer = post(url, "bases", body)
    assert answer.status_code == 201, answer.text
    assert answer.json()["description"] == "😀"


@pytest.mark.parametrize("name", ["uri", "title", "content", "note"])
def test_fields_of_a_document_must_be_text(name):
    fields = {"uri": "x", "title": "Tea", "content": "# Tea"} | {name: b"Tea"}
    with pytest.raises(ConfigError, match=f"{name}=b'Tea': give a text"):
        SourceDocument(**fields)


def test_numeric_tags_become_text(tmp_path):
    with kbkit.open(tmp_path / "kb") as workspace:
        kb = workspace.create("tea")
        assert kb.add("Tea", "# Tea", tags=["green", 3]).tags == ("green", "3")
