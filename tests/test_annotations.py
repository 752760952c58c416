"""Annotations and subjects in Python and on the command line."""

import json

import pytest

from kbkit.errors import ConfigError, NotFoundError
from kbkit.knowledge_base import handle_of
from kbkit.knowledge_base.annotations import maker_of
from kbkit.models import SubjectKind
from kbkit.recipes import KnowledgeBaseSpec, NameSpec, RulesAnnotation
from kbkit.stores.catalog import chunk_annotations, subjects

POOL = """# Connection pool

A *connection pool* keeps connections open. It must be closed with `close_pool()`.

## Opening

1. Call `open_pool()`.
2. Wait until it answers.
3. Use it.
"""
SOCKET = """# Socket

Because the connection pool holds sockets, call `close_pool()` at the end.
"""


@pytest.fixture
def kb(workspace):
    kb = workspace.create("notes")
    kb.add("Connection pool", POOL, source="pool")
    kb.add("Socket", SOCKET, source="socket")
    return kb


def stored(kb) -> dict[str, object]:
    """Annotations by the chunk's text."""
    return {
        chunk.text: [each.to_dict() for each in kb.annotations.of(chunk.id)] for chunk in kb.chunks
    }


def from_scratch(workspace, kb) -> dict[str, object]:
    """Annotate copies of all documents at once."""
    other = workspace.create("copies", spec=kb.spec)
    for each in kb.documents:
        content = kb.documents[each.uri].content
        other.add(each.title, content, source=each.uri, tags=each.tags)
    handle = handle_of(other)
    with handle.stores.database.write() as transaction:
        subjects.note_annotated(transaction, other.id, subjects.pack_surfaces({}))
        annotated = chunk_annotations.iter_texts(
            transaction, other.id, maker_of(handle).annotator.fingerprint
        )
        chunk_annotations.remove(transaction, [seq for seq, _ in annotated])
    assert other.info().annotations_waiting == len(other.chunks)
    assert other.annotations.make().annotated == len(other.chunks)
    annotations = stored(other)
    workspace.delete("copies", forever=True)
    return annotations


def test_added_documents_are_annotated(kb):
    assert kb.info().annotations_waiting == 0
    assert len(kb.annotations) >= len(kb.chunks)
    entities = {name for each in kb.annotations.of("socket") for name in each.entities}
    assert {"close_pool", "Connection pool"} & {name.removesuffix("()") for name in entities}
    fingerprint = maker_of(handle_of(kb)).annotator.fingerprint
    assert {each.annotator for each in kb.annotations} == {fingerprint}
    for chunk in kb.chunks:
        for each in kb.annotations.of(chunk.id):
            assert each.text == chunk.text[each.start : each.end]
            assert 0 <= each.confidence <= 1
    frame = kb.annotations.to_frame()
    assert len(frame) == len(kb.annotations)
    assert set(frame["uri"]) == {"pool", "socket"}


def test_incremental_annotation_equals_annotation_from_scratch(workspace, kb):
    """Names that come and go with documents change annotations of other documents."""
    assert stored(kb) == from_scratch(workspace, kb)
    kb.add("Heron", "# Heron\n\n`open_pool()` is called by a heron pump.\n", source="heron")
    kb.add("Heron pump", "# Heron pump\n\nIt pumps.\n", source="pump")
    before = {name for each in kb.annotations.of("heron") for name in each.entities}
    assert "Heron pump" in before
    assert stored(kb) == from_scratch(workspace, kb)
    kb.documents.delete("pump")
    kb.annotations.make()
    assert "Heron pump" not in {n for each in kb.annotations.of("heron") for n in each.entities}
    assert stored(kb) == from_scratch(workspace, kb)
    kb.add("Connection pool", POOL.replace("close_pool", "shut_pool"), source="pool")
    assert stored(kb) == from_scratch(workspace, kb)


def test_names_of_the_recipe_are_known(workspace):
    spec = RulesAnnotation(names=(NameSpec(name="Kubernetes", aliases=("k8s",)),))
    kb = workspace.create("ops", spec=KnowledgeBaseSpec(annotation=spec))
    kb.add("Note", "# Note\n\nWe run k8s here.\n", source="note")
    (annotation,) = kb.annotations.of("note")
    assert "Kubernetes" in annotation.entities
    bare = kb.spec.model_copy(update={"annotation": RulesAnnotation()})
    kb.configure(bare)
    kb.annotations.make()
    assert "Kubernetes" not in [n for each in kb.annotations.of("note") for n in each.entities]


def test_annotation_can_be_turned_off(workspace):
    kb = workspace.create("bare", spec=KnowledgeBaseSpec(annotation="none"))
    kb.add("Pool", POOL, source="pool")
    assert len(kb.annotations) == kb.annotations.make().annotated == 0
    assert kb.info().annotations_waiting == 0


def test_stopped_annotation_continues(kb, monkeypatch):
    handle = handle_of(kb)
    with handle.stores.database.write() as transaction:
        fingerprint = maker_of(handle).annotator.fingerprint
        texts = chunk_annotations.iter_texts(transaction, kb.id, fingerprint)
        chunk_annotations.remove(transaction, [seq for seq, _ in texts])
    left = kb.info().annotations_waiting
    assert left == len(kb.chunks) > 1
    monkeypatch.setattr("kbkit.knowledge_base.annotations.CHUNKS", 1)
    asked = iter([False, True])
    assert kb.annotations.make(stop=lambda: next(asked, True)).annotated == 1
    assert kb.info().annotations_waiting == left - 1
    assert not kb.improve()
    assert kb.info().annotations_waiting == 0


def test_subject_is_found_by_any_form_of_its_name(workspace, kb):
    for query in ("connection pool", "Connection Pools", "ConnectionPool", "connection_pool"):
        found = workspace.about(query)
        assert {each.uri for each in found.documents} == {"pool", "socket"}
        assert found.documents[0].defines
        assert found.chunks[0].weight == 1.0
        assert [each.kind for each in found.subjects].count(SubjectKind.ENTITY) == 1
    assert "close_pool" in {each.name.removesuffix("()") for each in found.entities}
    with pytest.raises(NotFoundError, match="onnection pool"):
        workspace.about("connection puddle")
    for wrong in ("", "  "):
        with pytest.raises(ConfigError, match="query is empty"):
            workspace.about(wrong)
    with pytest.raises(ConfigError, match="limit"):
        workspace.about("pool", limit=0)


def test_subjects_are_listed_by_kind_and_name(workspace, kb):
    found = workspace.subjects(kind="entity", like="POOL")
    assert found
    assert all("pool" in each.name.lower() for each in found)
    assert found == sorted(found, key=lambda each: (-each.chunks, each.name))
    assert workspace.subjects(limit=1, kbs=["notes"]) == workspace.subjects()[:1]
    with pytest.raises(ConfigError, match="choose from domain"):
        workspace.subjects(kind="thing")


def test_search_filters_by_entity_subject_and_frame(kb):
    for filters in ({"entity": "close_pool"}, {"subject": "connection pools"}):
        assert {hit.uri for hit in kb.search("pool", filters=filters)} == {"pool", "socket"}
    assert not kb.search("pool", filters={"entity": ["close_pool", "open_pool"], "source": "soc"})
    with pytest.raises(ConfigError, match="frame='story': must be 'causal'"):
        kb.search("pool", filters={"frame": "story"})
    assert not kb.search("pool", filters={"subject": "nobody knows it"})


def test_subjects_and_about_on_the_command_line(kb, workspace, run_kbkit):
    def run(*words, code=0):
        outcome = run_kbkit("--workspace", workspace.path, *words)
        assert outcome.code == code
        return outcome

    assert "Connection pool" in run("subjects", "--kind", "entity").out
    listed = json.loads(run("subjects", "--like", "pool", "--json").out)
    assert {each["kind"] for each in listed} <= set(SubjectKind)
    assert "defines it" in run("about", "connection pool").out
    assert json.loads(run("about", "connection pool", "--json").out)["query"] == "connection pool"
    assert "there is no subject" in run("about", "connection puddle", code=1).err
    assert json.loads(run("search", "pool", "--entity", "open_pool", "--json").out)
