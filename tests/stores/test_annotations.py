"""Names, annotations and subjects in the catalog."""

from __future__ import annotations

import pytest

from kbkit.knowledge_base import handle_of
from kbkit.models import Annotation, EntityType, Name, StatementType, SubjectKind
from kbkit.recipes import KnowledgeBaseSpec
from kbkit.stores.catalog import chunk_annotations, corpus, subjects
from kbkit.stores.catalog.subjects import SubjectName

POOL = "# Pool\n\nThe pool must be closed.\n"


BARE = KnowledgeBaseSpec(annotation="none")


@pytest.fixture
def kb(workspace):
    kb = workspace.create("notes", spec=BARE)
    kb.add("Pool", POOL, source="pool")
    kb.add("Socket", "# Socket\n\nA socket is opened by the pool.\n", source="socket")
    return kb


@pytest.fixture
def database(kb):
    return handle_of(kb).stores.database


def annotate(database, kb, uri, *annotations):
    (chunk,) = kb.chunks.of(uri)
    with database.write() as transaction:
        seq = corpus.seqs_by_id(transaction, [chunk.id])[chunk.id]
        chunk_annotations.put(transaction, kb.id, {seq: annotations})
    return seq


def test_annotation_round_trip(kb, database):
    text = kb.chunks.of("pool")[0].text
    full = Annotation(
        text=text[2:6],
        normalized_text="the pool must be closed",
        frame=StatementType.CONSTRAINT,
        domains=("Connections",),
        entities=("Pool", "Socket"),
        problems=("leaks",),
        resolutions=("close it",),
        contexts=("2.0", "Linux"),
        confidence=0.75,
        start=2,
        end=6,
        annotator="test:1",
    )
    bare = Annotation(text="", normalized_text="", annotator="test:1")
    seq = annotate(database, kb, "pool", full, bare)
    with database.read() as transaction:
        assert chunk_annotations.annotations_of(transaction, [seq]) == {seq: (full, bare)}
        counts = chunk_annotations.statement_type_counts(transaction, kb.id)
        assert counts == {StatementType.CONSTRAINT: 1}
        for frame, seqs in ((StatementType.CONSTRAINT, [seq]), (StatementType.CAUSAL, [])):
            assert chunk_annotations.seqs_with_frame(transaction, kb.id, [frame]) == seqs
        assert chunk_annotations.count_lacking(transaction, kb.id, "test:1") == 1
        assert chunk_annotations.count_lacking(transaction, kb.id, "test:2") == 2
        texts = chunk_annotations.iter_texts(transaction, kb.id, "test:1")
        assert [each[0] for each in texts] == [seq]


def test_new_annotations_replace_old_ones(kb, database):
    first = Annotation("", "", entities=("Pool",), annotator="test:1")
    seq = annotate(database, kb, "pool", first, first)
    annotate(database, kb, "pool", Annotation("", "new", annotator="test:1"))
    with database.read() as transaction:
        (only,) = chunk_annotations.annotations_of(transaction, [seq])[seq]
        assert (only.normalized_text, only.entities) == ("new", ())
        assert subjects.list_subjects(transaction) == []


def test_changed_or_deleted_document_loses_names_and_annotations(kb, database):
    named = [(kb.documents["pool"], [Name("Thing", EntityType.TERM, defines=True)])]
    for change in (
        lambda: kb.add("Pool", POOL, source="pool", tags=["new"]),
        lambda: kb.documents.delete("pool"),
    ):
        seq = annotate(database, kb, "pool", Annotation("", "", annotator="test:1"))
        with database.write() as transaction:
            subjects.put_names(transaction, kb.id, 1, named)
        change()
        with database.read() as transaction:
            left = chunk_annotations.annotations_of(transaction, [seq]).get(seq, ())
            assert "test:1" not in [each.annotator for each in left]
            assert subjects.defining(transaction, kb.id, ["thing"]) == set()


def test_names_are_counted_over_documents(kb, database):
    pool, socket = kb.documents["pool"], kb.documents["socket"]
    with database.write() as transaction:
        subjects.remove_names(transaction, [pool.id, socket.id])
        subjects.put_names(
            transaction,
            kb.id,
            99,
            [
                (pool, [Name("Pool", EntityType.TERM, True, "pool"), Name("Big", EntityType.NAME)]),
                (socket, [Name("Pool", EntityType.SYMBOL, confirmed=False)]),
            ],
        )
    with database.read() as transaction:
        counted = {each.name: each for each in subjects.given_names(transaction, kb.id)}
        assert counted["Pool"] == ("Pool", EntityType.TERM, True, 2, 1)
        assert counted["Big"].documents == 1
        assert subjects.defining(transaction, kb.id, ["pool", "Big"]) == {pool.id}
        assert subjects.unread(transaction, kb.id, 99, 10) == []
        assert len(subjects.unread(transaction, kb.id, 100, 10)) == 2


def test_document_changed_meanwhile_is_read_again(kb, database):
    before = kb.documents["pool"]
    kb.add("Pool", "# Pool\n\nIt is another pool.\n", source="pool")
    with database.write() as transaction:
        subjects.remove_names(transaction, [before.id])
        subjects.put_names(transaction, kb.id, 99, [(before, [Name("Old", EntityType.TERM)])])
    with database.read() as transaction:
        assert [each.id for each in subjects.unread(transaction, kb.id, 99, 1)]
        assert "Old" not in {each.name for each in subjects.given_names(transaction, kb.id)}


def test_annotated_names_are_remembered(kb, database):
    spellings = {"pool": ("Pool", "pool"), "c++": ("C++",), "עברית": ("עברית",), "\ud800": ("x",)}
    with database.write() as transaction:
        subjects.note_annotated(transaction, kb.id, subjects.pack_surfaces(spellings))
        subjects.note_annotated(transaction, kb.id, subjects.pack_surfaces(spellings))
    with database.read() as transaction:
        assert subjects.annotated_with(transaction, kb.id) == spellings
        assert subjects.annotated_with(transaction, "other") == {}


def test_subjects_are_shared_and_counted(workspace, kb, database):
    other = workspace.create("other", spec=BARE)
    other.add("Pool", POOL, source="pool")
    annotation = Annotation("", "", entities=("Pool",), domains=("Pool",), annotator="test:1")
    annotate(database, kb, "pool", annotation, annotation)
    annotate(database, kb, "socket", annotation)
    annotate(database, other, "pool", Annotation("", "", entities=("POOL",), annotator="test:1"))
    with database.read() as transaction:
        (entity,) = subjects.list_subjects(transaction, kinds=[SubjectKind.ENTITY], like="ool")
        assert (entity.name, entity.chunks, entity.documents) == ("Pool", 3, 3)
        assert entity.id == SubjectName(SubjectKind.ENTITY, "pool", "").id
        (own,) = subjects.list_subjects(
            transaction, kinds=[SubjectKind.ENTITY], kb_ids=[other.id], like="pool"
        )
        assert own.chunks == 1
        assert subjects.list_subjects(transaction, like="%") == []
        assert len(subjects.chunk_seqs(transaction, [entity.id])) == 3
        assert len(subjects.chunk_seqs(transaction, [entity.id], kb_id=kb.id)) == 2
    workspace.delete("other")
    with database.read() as transaction:
        (entity,) = subjects.list_subjects(transaction, ids=[entity.id])
        assert entity.chunks == 2


def test_sweep_removes_unused_subjects(kb, database):
    annotation = Annotation("", "", entities=("Onlyhere",), annotator="test:1")
    annotate(database, kb, "pool", annotation)
    with database.write() as transaction:
        subjects.sweep(transaction, subjects.unused_ids(transaction))
        assert subjects.list_subjects(transaction, like="onlyhere")
    annotate(database, kb, "pool", Annotation("", "", annotator="test:1"))
    subject_id = SubjectName(SubjectKind.ENTITY, "onlyhere", "").id
    with database.write() as transaction:
        subjects.sweep(transaction, subjects.unused_ids(transaction))
        assert subjects.ids_of(transaction, [subject_id]) == set()
