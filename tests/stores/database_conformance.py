"""What a database that keeps a catalog has to pass."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from kbkit.errors import NotFoundError
from kbkit.models import Chunk, Document, DocumentState, DocumentType, Labels
from kbkit.stores.catalog import (
    copying,
    corpus,
    knowledge_bases,
    outbox,
    ratings,
    reading,
    summaries,
    writing,
)
from kbkit.stores.catalog.database import Database, Transaction, pack
from kbkit.stores.catalog.knowledge_bases import KnowledgeBaseRow
from kbkit.stores.catalog.summaries import NewSummary
from kbkit.stores.catalog.writing import NewChunk, NewDocument
from tests.stores.workspaces import create_row, rate_row


def _document(
    kb_id: str, name: str, *terms: str, tags: Sequence[str] = (), title: str = ""
) -> NewDocument:
    doc_id = f"{kb_id}-{name}"
    document = Document(
        id=doc_id,
        uri=f"a:/{name}",
        title=title or name,
        content="\n".join(terms),
        document_type=DocumentType.MANUAL,
        tags=tuple(tags),
        metadata={"n": 1},
        state=DocumentState.CURRENT,
        fetched_at=datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC),
        content_hash="|".join(terms),
    )
    chunks = [
        NewChunk(
            Chunk(f"{doc_id}-{text}", doc_id, place, 0, 7, text, (name, "Part"), "part", None),
            text,
            len(text.split()),
            text,
        )
        for place, text in enumerate(terms)
    ]
    return NewDocument(document, chunks, None, None, Labels())


def _store(transaction: Transaction, kb_id: str, *new: NewDocument) -> None:
    packed = pack(np.array([[1, 0]], np.float32))[0]
    hashes = {chunk.embed_hash: packed for each in new for chunk in each.chunks}
    writing.replace_documents(transaction, kb_id, new, hashes)


def _terms(transaction: Transaction, kb_id: str) -> list[str]:
    """The terms of each chunk, as snapshots read them."""
    return [each.terms for each in corpus.iter_indexed(transaction, kb_id)]


class DatabaseConformance(ABC):
    """Tests of a `kbkit.stores.catalog.database.Database`, which a subclass opens."""

    @abstractmethod
    def open_database(self, folder: Path) -> Database:
        """Open the catalog of a folder; the same folder again is the same catalog."""

    @pytest.fixture
    def database(self, tmp_path: Path) -> Iterator[Database]:
        opened = self.open_database(tmp_path)
        yield opened
        opened.close()

    @pytest.fixture
    def kb_id(self, database: Database) -> str:
        with database.write() as transaction:
            return create_row(transaction, "notes").id

    def test_failed_transaction_changes_nothing(self, database: Database, kb_id: str) -> None:
        def fail() -> None:
            with database.write() as transaction:
                create_row(transaction, "half")
                _store(transaction, kb_id, _document(kb_id, "d", "tea"))
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            fail()
        with database.read() as transaction:
            assert knowledge_bases.names(transaction) == ["notes"]
            assert list(reading.iter_documents(transaction, kb_id)) == []
            assert _terms(transaction, kb_id) == []
            assert not outbox.holds(transaction, kb_id, 1)

    def test_reader_sees_one_state(self, database: Database, kb_id: str) -> None:
        with database.read() as reader:
            assert corpus.count_chunks(reader, kb_id) == 0
            with database.write() as transaction:
                _store(transaction, kb_id, _document(kb_id, "d", "tea"))
            assert corpus.count_chunks(reader, kb_id) == 0
            assert _terms(reader, kb_id) == []
        with database.read() as reader:
            assert corpus.count_chunks(reader, kb_id) == 1

    def test_writers_wait_for_one_another(self, database: Database, kb_id: str) -> None:
        began, order = threading.Event(), []

        def second() -> None:
            began.wait(10)
            with database.write() as transaction:
                order.append("second")
                create_row(transaction, "b")

        thread = threading.Thread(target=second)
        thread.start()
        with database.write() as transaction:
            began.set()
            thread.join(0.2)
            create_row(transaction, "a")
            order.append("first")
        thread.join(30)
        assert order == ["first", "second"]

    def test_changes_are_noticed(self, database: Database, tmp_path: Path) -> None:
        first = database.changes()
        with database.read() as transaction:
            knowledge_bases.names(transaction)
        assert database.changes() == first
        with database.write() as transaction:
            create_row(transaction, "one")
        second = database.changes()
        assert second != first
        assert database.changes() == second
        other = self.open_database(tmp_path)
        with other.write() as transaction:
            create_row(transaction, "two")
        assert database.changes() not in (first, second)
        with database.read() as transaction:
            assert knowledge_bases.names(transaction) == ["one", "two"]
        other.close()

    def test_replacing_a_document(self, database: Database, kb_id: str) -> None:
        with database.write() as transaction:
            _store(transaction, kb_id, _document(kb_id, "d", "stays", "goes", tags=["x"]))
            before = corpus.chunk_seqs(transaction, kb_id).tolist()
        with database.write() as transaction:
            _store(transaction, kb_id, _document(kb_id, "d", "comes", "stays", tags=["x", "y"]))
        with database.read() as transaction:
            after = corpus.chunk_seqs(transaction, kb_id).tolist()
            assert after == [before[0], max(before) + 1]  # an equal chunk keeps its number
            texts = [chunk.text for chunk in reading.iter_chunks(transaction, kb_id)]
            assert texts == ["comes", "stays"]
            assert _terms(transaction, kb_id) == ["stays", "comes"]
            assert reading.tag_counts(transaction, kb_id) == {"x": 1, "y": 1}

    def test_numbers_are_never_reused(self, database: Database, kb_id: str) -> None:
        seen: list[int] = []
        for name in ("a", "b", "c"):
            new = _document(kb_id, name, f"{name} one", f"{name} two")
            with database.write() as transaction:
                _store(transaction, kb_id, new)
                seqs = corpus.chunk_seqs(transaction, kb_id).tolist()
                assert min(seqs) > max(seen, default=0)
                seen += seqs
            with database.write() as transaction:
                writing.delete_document(transaction, kb_id, new.document.id)

    def test_numbers_continue_after_those_of_another_catalog(self, database: Database) -> None:
        column = next(each for each in copying.numbered_columns() if each.table.name == "chunks")
        with database.write() as transaction:
            assert transaction.last_number(column) == 0
            transaction.number_after(column, 41)
            transaction.number_after(column, 7)
        with database.write() as transaction:
            assert transaction.last_number(column) == 41
            assert transaction.reserve_seqs(1) == 42

    def test_chunks_come_with_their_documents(self, database: Database, kb_id: str) -> None:
        new = _document(kb_id, "d", "tea", "milk", tags=["ü"])
        with database.write() as transaction:
            _store(transaction, kb_id, new)
        with database.read() as transaction:
            seqs = corpus.chunk_seqs(transaction, kb_id).tolist()
            chunks = reading.get_chunks(transaction, [*seqs, 10**6])
            (listed,) = reading.list_documents(transaction, kb_id)
            document = reading.get_document(transaction, kb_id, "a:/d")
        assert document == new.document
        assert database.chunks([*seqs, 10**6]) == chunks
        assert [chunks[seq][0] for seq in seqs] == [each.chunk for each in new.chunks]
        assert all(each == listed for _, each in chunks.values())
        assert (listed.tags, listed.metadata, listed.content) == (("ü",), {"n": 1}, "")
        assert listed.fetched_at == new.document.fetched_at
        assert database.chunks([]) == {}

    def test_many_documents_at_once(self, database: Database, kb_id: str) -> None:
        new = [_document(kb_id, f"d{n:05}", f"text {n}") for n in range(600)]
        with database.write() as transaction:
            _store(transaction, kb_id, *new)
        with database.read() as transaction:
            ids = [each.document.id for each in new]
            many = [*ids, *map(str, range(40_000))]
            assert len(writing.stored_versions(transaction, many)) == 600
            assert len(database.chunks(corpus.chunk_seqs(transaction, kb_id).tolist())) == 600
            uris = [document.uri for document in reading.list_documents(transaction, kb_id)]
            assert uris == sorted(uris)

    def test_summaries_follow_their_documents(self, database: Database, kb_id: str) -> None:
        names = {name: f"{kb_id}-{name}" for name in ("a", "b", "c")}
        with database.write() as transaction:
            _store(transaction, kb_id, *(_document(kb_id, name, "tea") for name in names))
            assert len(summaries.outdated_documents(transaction, kb_id, 1, 2, None)) == 2
            new = {
                document_id: NewSummary("tea", f"summary of {name}", name)
                for name, document_id in names.items()
            }
            assert summaries.put(transaction, kb_id, 1, new) == 3
            assert summaries.outdated_documents(transaction, kb_id, 1, 9, None) == []
            assert len(summaries.outdated_documents(transaction, kb_id, 2, 9, None)) == 3
            assert summaries.put(transaction, kb_id, 2, new) == 3
            _store(transaction, kb_id, _document(kb_id, "a", "milk"))
            writing.retire_document(transaction, kb_id, names["b"])
            writing.delete_document(transaction, kb_id, names["c"])
        with database.write() as transaction:
            assert summaries.texts(transaction, kb_id) == {}
            (outdated,) = summaries.outdated_documents(transaction, kb_id, 2, 9, None)
            assert outdated.id == names["a"]
            # summaries of older content or deleted documents are dropped
            assert summaries.put(transaction, kb_id, 2, new) == 0
            fresh = {names["a"]: NewSummary("milk", "summary of a", "a")}
            assert summaries.put(transaction, kb_id, 2, fresh) == 1
            assert summaries.texts(transaction, kb_id) == {names["a"]: "summary of a"}

    def test_summary_vectors_come_from_the_searched_model(
        self, database: Database, kb_id: str
    ) -> None:
        packed = dict(zip("xy", pack(np.array([[1, 0], [0.6, 0.8]], np.float32)), strict=True))

        def row() -> KnowledgeBaseRow:
            return knowledge_bases.get_by_id(transaction, kb_id)

        def waiting() -> list[int]:
            return [info.summaries_waiting for info in knowledge_bases.describe_all(transaction)]

        with database.write() as transaction:
            other = create_row(transaction, "other").id
            for each in (kb_id, other):
                _store(transaction, each, *(_document(each, name, "tea") for name in "abc"))
                # two documents may have equal summaries
                new = {
                    f"{each}-{name}": NewSummary("tea", f"summary {key}", key)
                    for name, key in zip("abc", "xyx", strict=True)
                }
                assert summaries.put(transaction, each, 1, new) == 3
            texts = {"x": "summary x", "y": "summary y"}
            assert summaries.lacking(transaction, kb_id, "m") == texts
            assert summaries.counts(transaction, kb_id, "m") == (3, 3)
            assert waiting() == [0, 0]  # no model is known yet
            assert summaries.vectors_of(transaction, row()).embedder == ""
            summaries.add_vectors(transaction, kb_id, "s", packed)
            summaries.add_vectors(transaction, kb_id, "m", {"x": packed["x"]})
            summaries.add_vectors(transaction, kb_id, "m", {"x": packed["x"]})  # twice is harmless
            summaries.search_with(transaction, kb_id, "s", "m")
            assert summaries.lacking(transaction, kb_id, "m") == {"y": "summary y"}
            assert summaries.counts(transaction, kb_id, "m") == (3, 1)
            assert sorted(waiting()) == [0, 1]
            assert summaries.vectors_of(transaction, row()).embedder == "s"
        with database.write() as transaction:
            before = row()
            summaries.add_vectors(transaction, kb_id, "m", {"y": packed["y"], "old": packed["y"]})
            summaries.search_with(transaction, kb_id, "m", "m")
            assert row().summaries_version == before.summaries_version + 1
            assert row().version == before.version
            assert waiting() == [0, 0]
            vectors = summaries.vectors_of(transaction, row())
            assert vectors.embedder == "m"
            order = [vectors.document_ids.index(f"{kb_id}-{name}") for name in "abc"]
            expected = np.array([[1, 0], [0.6, 0.8], [1, 0]])
            assert np.allclose(vectors.vectors[order], expected, atol=1e-3)
            # vectors of the old model and of no summary are dropped
            assert summaries.counts(transaction, kb_id, "s") == (3, 3)
            changed = {f"{kb_id}-a": NewSummary("tea", "old", "old")}
            assert summaries.put(transaction, kb_id, 1, changed) == 1
            assert summaries.lacking(transaction, kb_id, "m") == {"old": "old"}
            assert sorted(waiting()) == [0, 1]
            knowledge_bases.delete(transaction, kb_id)
        with database.read() as transaction:
            assert summaries.counts(transaction, kb_id, "m") == (0, 0)
            assert summaries.counts(transaction, other, "m") == (3, 3)

    def test_deleting_a_knowledge_base_deletes_its_rows(
        self, database: Database, kb_id: str
    ) -> None:
        with database.write() as transaction:
            other = create_row(transaction, "other").id
            for each in (kb_id, other):
                _store(transaction, each, _document(each, "d", "tea"))
                rate_row(transaction, each, f"{each}-d-tea", "ann", 4)
                corpus.add_pending(transaction, each, "e", {"hash": b"\0\0\0\0"})
        with database.write() as transaction:
            knowledge_bases.delete(transaction, kb_id)
        with database.write() as transaction:
            assert knowledge_bases.names(transaction) == ["other"]
            assert len(outbox.dropped_names(transaction)) == 1
            with pytest.raises(NotFoundError):
                knowledge_bases.get_by_id(transaction, kb_id)
            assert reading.kind_of(transaction, kb_id, f"{kb_id}-d") is None
            assert corpus.pending_vectors(transaction, kb_id, "e", ["hash"]) == {}
            assert ratings.list_ratings(transaction, kb_id) == []
            assert corpus.count_chunks(transaction, other) == 1
            assert _terms(transaction, other) == ["tea"]
            assert create_row(transaction, "notes").id != kb_id

    def test_outbox_lists_changes(self, database: Database, kb_id: str) -> None:
        with database.write() as transaction:
            _store(transaction, kb_id, _document(kb_id, "d", "tea", "milk", tags=["x"]))
        with database.read() as transaction:
            row = knowledge_bases.get_by_id(transaction, kb_id)
            entries = outbox.oldest(transaction, kb_id, 10, payloads=True)
        assert [entry.chunk_id for entry in entries] == [f"{kb_id}-d-tea", f"{kb_id}-d-milk"]
        assert entries[0].payload is not None
        assert entries[0].payload.metadata["tags"] == ["x"]
        with database.write() as transaction:
            assert outbox.take(transaction, row, entries[:1]) == entries[0].seq
            (left,) = outbox.oldest(transaction, kb_id, 10, payloads=False)
            assert left == entries[1].__class__(left.id, left.chunk_id, left.seq, left.vector, None)
            writing.delete_document(transaction, kb_id, f"{kb_id}-d")
        with database.write() as transaction:
            deleted = outbox.oldest(transaction, kb_id, 10, payloads=False)
            assert {entry.vector for entry in deleted} == {None}
            outbox.restart(transaction, row)
            assert not outbox.holds(transaction, kb_id, 1)
            assert knowledge_bases.get_by_id(transaction, kb_id).applied_seq == 0
            assert outbox.dropped_names(transaction) == [row.collection]

    def test_vectors_wait_for_their_chunks(self, database: Database, kb_id: str) -> None:
        first, second = pack(np.array([[1, 0], [0, 1]], np.float32))
        with database.write() as transaction:
            corpus.add_pending(transaction, kb_id, "new", {"tea": first})
            corpus.add_pending(transaction, kb_id, "new", {"tea": second, "milk": second})
            waiting = corpus.pending_vectors(transaction, kb_id, "new", ["tea", "milk", "rum"])
            assert waiting == {"tea": first, "milk": second}
            _store(transaction, kb_id, _document(kb_id, "d", "tea", "rum"))
            assert corpus.count_without_pending(transaction, kb_id, "new") == 1
            corpus.remove_pending(transaction, kb_id, "new", ["milk"])
            assert set(corpus.pending_vectors(transaction, kb_id, "new", ["milk", "tea"])) == {
                "tea"
            }
