"""The Chroma collections: nearest-neighbour indexes derived from the catalog.

Chroma's persistent client is made for one process, so kbkit never trusts what a client that
was opened some time ago knows. The catalog numbers its chunks (``chunks.seq``) and notes how far
each collection has come (``knowledge_bases.applied_seq``). A process remembers how far a
collection had come when it opened the client; chunks behind that point are scored exactly from
the catalog, so a search is complete whatever other processes do, and when there are many of
them the client is opened afresh. Opening and writing happen under one lock.
"""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray

from kbkit.errors import ConflictError
from kbkit.stores.catalog import knowledge_bases, reading
from kbkit.stores.catalog.knowledge_bases import KnowledgeBaseRow
from kbkit.stores.catalog.schema import (
    chunks,
    documents,
    dropped_collections,
    outbox,
)
from kbkit.stores.catalog.schema import knowledge_bases as knowledge_base_table
from kbkit.stores.catalog.schema import vectors as vector_table
from kbkit.stores.chroma.folder import ChromaFolder, ask, create
from kbkit.stores.locks import FolderLocks
from kbkit.stores.sqlite.database import Database

if TYPE_CHECKING:
    from kbkit.stores.chroma.folder import Client, Collection

_BATCH = 1_000
"""Chunks handed to Chroma at once; a search in another thread waits for as many."""
_REOPEN_BEHIND = 2_000
"""Chunks that are scored one by one before the client is opened afresh instead."""
_TASK = "writing to the Chroma index"
_LOCK_SECONDS = 600.0
"""How long a writer waits while another process writes to Chroma."""
_READER_LOCK_SECONDS = 0.02
"""How long a search waits for that, before it does without."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What Chroma says to a query.

    Attributes:
        ids: Of the nearest chunks, best first; some may be gone from the catalog.
        known: The last ``chunks.seq`` that it knows of.
    """

    ids: Sequence[str]
    known: int


class VectorIndex:
    """All Chroma collections of one workspace, as this process sees them."""

    def __init__(self, folder: Path, database: Database, locks: FolderLocks) -> None:
        self._database = database
        self._locks = locks
        self._chroma = ChromaFolder.of(folder)

    @property
    def folder(self) -> Path:
        """Where Chroma keeps the collections."""
        return self._chroma.folder

    def close(self) -> None:
        """Let go of Chroma."""
        self._chroma.release()

    def apply(self, kb_id: str, on_progress: Callable[[int], None] | None = None) -> int:
        """Bring a collection level with the catalog.

        Args:
            kb_id: The knowledge base.
            on_progress: Called with the number of entries done so far.

        Returns:
            Number of outbox entries that were dealt with.

        Raises:
            ConflictError: Another process wrote to Chroma for very long.
            NotFoundError: The knowledge base was deleted.
        """
        done = 0
        if not self._pending(kb_id):
            return done
        with self._locks.hold("chroma", wait=_LOCK_SECONDS, task=_TASK):
            while count := self._apply_next(kb_id):
                done += count
                if on_progress is not None:
                    on_progress(done)
        return done

    def _apply_next(self, kb_id: str) -> int:
        """Deal with the oldest entries; the lock must be held.

        The mutex is free between two calls, so that threads can search.
        """
        with self._chroma.mutex:
            row = self._row(kb_id)
            if self._chroma.opened_at.get(kb_id, 0) != row.applied_seq:
                self._open()  # another process wrote since
            collection = self._sound_collection(row)
            row = self._row(kb_id)  # as it is if that had to be rebuilt
            batch = self._outbox(row)
            if batch:
                self._apply_batch(collection, row, batch)
            return len(batch)

    def sweep(self) -> None:
        """Drop the collections of deleted knowledge bases.

        While another process writes to Chroma they stay marked, and go with the next sweep.
        """
        with self._database.read() as connection:
            if connection.execute(sa.select(dropped_collections)).first() is None:
                return
        with contextlib.suppress(ConflictError), self._writing(wait=_READER_LOCK_SECONDS):
            self._drop_marked(self._chroma.client or self._open())

    def nearest(
        self, connection: sa.Connection, row: KnowledgeBaseRow, query: NDArray[np.float32], k: int
    ) -> list[int]:
        """``seq`` of the chunks nearest to a query, best first.

        Chroma names them, but for those that it does not know yet. What it names may be gone;
        where that leaves too few, all are scored.

        Args:
            connection: A reading transaction, whose view of the catalog counts.
            row: The knowledge base in that view.
            query: Unit vector, shape ``(dimensions,)``.
            k: Number wanted; no more than there are chunks.
        """
        if not query.any() or k < 1:
            return []  # without a direction nothing is near, nor where nothing is left
        answer = self.ask(row, query, k)
        found = _scored(connection, row, query, answer)
        if len(found) < k:
            found = _scored(connection, row, query, Answer((), 0))
        return found[:k]

    def ask(self, row: KnowledgeBaseRow, query: NDArray[np.float32], k: int) -> Answer:
        """What Chroma knows of `nearest`."""
        if not query.any() or k < 1:
            return Answer((), sys.maxsize)
        with self._chroma.mutex:
            if not self._usable(row) or self._behind(row) > _REOPEN_BEHIND:
                # while another process writes, what is open has to do
                with contextlib.suppress(ConflictError):
                    self._refresh(row.id)
            ids = self._query(row, query, k)
            known = self._chroma.opened_at.get(row.id, 0) if self._usable(row) else 0
            return Answer(ids, known)

    def is_open(self, row: KnowledgeBaseRow) -> bool:
        """Whether this process has the collection open, so that asking it takes no time."""
        return self._usable(row)

    def open(self, kb_id: str) -> None:
        """Open a collection for searching, unless another process writes to Chroma just now.

        Raises:
            NotFoundError: The knowledge base was deleted.
        """
        with contextlib.suppress(ConflictError):
            self._refresh(kb_id)

    def _usable(self, row: KnowledgeBaseRow) -> bool:
        collection = self._chroma.collections.get(row.id)
        return collection is not None and collection.name == row.collection

    def _query(self, row: KnowledgeBaseRow, query: NDArray[np.float32], k: int) -> list[str]:
        if not self._usable(row) or not self._chroma.opened_at.get(row.id):
            return []
        try:
            return ask(self._chroma.collections[row.id], query, k)
        except Exception:  # Chroma raises many kinds; opening afresh mends or rebuilds
            try:
                with self._writing(wait=_READER_LOCK_SECONDS):
                    self._open()
                    return ask(self._sound_collection(self._row(row.id)), query, k)
            except ConflictError:
                self._chroma.forget()  # all is scored from the catalog for now
                return []

    def _behind(self, row: KnowledgeBaseRow) -> int:
        """Chunks in the collection by now that this process's client does not know."""
        known = self._chroma.opened_at.get(row.id, 0)
        if row.applied_seq <= known:
            return 0
        query = (
            sa.select(sa.func.count())
            .select_from(chunks)
            .where(chunks.c.kb_id == row.id, chunks.c.seq > known, chunks.c.seq <= row.applied_seq)
        )
        with self._database.read() as connection:
            return connection.execute(query).scalar_one()

    def _refresh(self, kb_id: str) -> None:
        """Open the client and a collection as they are now on disk."""
        with self._writing(wait=_READER_LOCK_SECONDS):
            row = self._row(kb_id)
            if row.applied_seq != self._chroma.opened_at.get(kb_id, -1):
                self._open()
            self._sound_collection(row)

    @contextlib.contextmanager
    def _writing(self, wait: float = _LOCK_SECONDS) -> Iterator[None]:
        # the mutex comes second, so that threads can search while this one waits for the lock;
        # who has the mutex already must not wait for long
        with self._locks.hold("chroma", wait=wait, task=_TASK), self._chroma.mutex:
            yield

    def _open(self) -> Client:
        """Open the client afresh; the lock must be held."""
        client = self._chroma.reopen()
        with self._database.read() as connection:
            rows = connection.execute(
                sa.select(knowledge_base_table.c.id, knowledge_base_table.c.applied_seq)
            )
            self._chroma.opened_at = {row.id: row.applied_seq for row in rows}
        return client

    def _sound_collection(self, row: KnowledgeBaseRow) -> Collection:
        """The collection, rebuilt if it does not hold what the catalog says it does."""
        if self._usable(row):
            return self._chroma.collections[row.id]
        collection = self._get(row)
        if collection is None and row.applied_seq > 0:
            self._open()  # perhaps it is only this process's client that is out of date
            collection = self._get(row)
        if collection is None:
            if row.applied_seq > 0:
                return self._rebuild(row)
            collection = create(self._chroma.client or self._open(), row.collection)
        self._chroma.collections[row.id] = collection
        return collection

    def _get(self, row: KnowledgeBaseRow) -> Collection | None:
        """The collection as it is on disk, ``None`` where it is not there or not sound."""
        client = self._chroma.client or self._open()
        try:
            collection = client.get_collection(row.collection, embedding_function=None)
            return collection if self._sound(collection, row) else None
        except Exception:  # Chroma raises many kinds of errors for a damaged folder
            return None

    def _sound(self, collection: Collection, row: KnowledgeBaseRow) -> bool:
        """Whether the collection can hold what it should, as far as counting and asking tell."""
        with self._database.read() as connection:
            expected = connection.execute(
                sa.select(sa.func.count())
                .select_from(chunks)
                .where(chunks.c.kb_id == row.id, chunks.c.seq <= row.applied_seq)
            ).scalar_one()
        # deletions that are still in the outbox, or half applied, may leave some too many
        if collection.count() < expected:
            return False
        if expected:
            ask(collection, np.ones(row.dimensions, dtype=np.float32), 1)  # also reads the files
        return True

    def _rebuild(self, row: KnowledgeBaseRow) -> Collection:
        client = self._chroma.client or self._open()
        with self._database.write() as connection:
            restart(connection, knowledge_bases.get_by_id(connection, row.id))
        row = self._row(row.id)
        collection = create(client, row.collection)
        self._chroma.opened_at[row.id] = 0
        self._chroma.collections[row.id] = collection
        while batch := self._outbox(row):
            self._apply_batch(collection, self._row(row.id), batch)
        self._drop_marked(client)
        return collection

    def _drop_marked(self, client: Client) -> None:
        with self._database.read() as connection:
            names = list(connection.execute(sa.select(dropped_collections)).scalars())
        there = {collection.name for collection in client.list_collections()}
        for name in there.intersection(names):
            client.delete_collection(name)
        with self._database.write() as connection:
            connection.execute(
                dropped_collections.delete().where(dropped_collections.c.name.in_(names))
            )

    def _row(self, kb_id: str) -> KnowledgeBaseRow:
        with self._database.read() as connection:
            return knowledge_bases.get_by_id(connection, kb_id)

    def _pending(self, kb_id: str) -> bool:
        with self._database.read() as connection:
            query = sa.select(outbox.c.id).where(outbox.c.kb_id == kb_id).limit(1)
            return connection.execute(query).first() is not None

    def _outbox(self, row: KnowledgeBaseRow) -> Sequence[Any]:
        """The oldest entries with what Chroma needs of the chunks they name."""
        columns: list[sa.ColumnElement[Any]] = [
            outbox.c.id, outbox.c.chunk_id, outbox.c.chunk_seq, vector_table.c.vector,
        ]  # fmt: skip
        tables = outbox.outerjoin(vector_table, vector_table.c.chunk_seq == outbox.c.chunk_seq)
        if _with_text(row):
            columns += [
                chunks.c.text, chunks.c.document_id, documents.c.document_type,
                documents.c.tags, documents.c.uri,
            ]  # fmt: skip
            tables = tables.outerjoin(chunks, chunks.c.seq == outbox.c.chunk_seq).outerjoin(
                documents, documents.c.id == chunks.c.document_id
            )
        query = sa.select(*columns).select_from(tables).where(outbox.c.kb_id == row.id)
        with self._database.read() as connection:
            return connection.execute(query.order_by(outbox.c.id).limit(_BATCH)).all()

    def _apply_batch(
        self, collection: Collection, row: KnowledgeBaseRow, batch: Sequence[Any]
    ) -> None:
        last = {entry.chunk_id: entry for entry in batch}  # a later entry of a chunk wins
        present = [entry for entry in last.values() if entry.vector is not None]
        absent = [entry.chunk_id for entry in last.values() if entry.vector is None]
        assert self._chroma.client is not None
        most = self._chroma.client.get_max_batch_size()
        for start in range(0, len(absent), most):
            collection.delete(ids=absent[start : start + most])
        with_text = _with_text(row)
        for start in range(0, len(present), most):
            part = present[start : start + most]
            collection.upsert(
                ids=[entry.chunk_id for entry in part],
                embeddings=reading.unpack([entry.vector for entry in part], row.dimensions),
                # each value costs Chroma as much as a vector, and nothing in kbkit reads them
                metadatas=[_metadata(entry) for entry in part] if with_text else None,
                documents=[entry.text for entry in part] if with_text else None,
            )
        applied = max([row.applied_seq, *(entry.chunk_seq or 0 for entry in batch)])
        with self._database.write() as connection:
            connection.execute(
                outbox.delete().where(outbox.c.kb_id == row.id, outbox.c.id <= batch[-1].id)
            )
            knowledge_bases.set_applied(connection, row.id, applied)
        self._chroma.opened_at[row.id] = applied


def restart(connection: sa.Connection, row: KnowledgeBaseRow) -> None:
    """Begin a new, empty collection for a knowledge base, with all its chunks in the outbox.

    Its name is new too, so that other processes notice that theirs is the old one.
    """
    knowledge_bases.replace_collection(connection, row, f"{row.name}.{uuid4().hex[:8]}")
    connection.execute(outbox.delete().where(outbox.c.kb_id == row.id))
    connection.execute(
        outbox.insert().from_select(
            ["kb_id", "chunk_seq", "chunk_id"],
            sa.select(chunks.c.kb_id, chunks.c.seq, chunks.c.id)
            .where(chunks.c.kb_id == row.id)
            .order_by(chunks.c.seq),
        )
    )


def _scored(
    connection: sa.Connection, row: KnowledgeBaseRow, query: NDArray[np.float32], answer: Answer
) -> list[int]:
    """``seq`` of the chunks that an answer names and of those new to it, by exact cosine."""
    named = sa.select(sa.func.json_each(json.dumps(list(answer.ids))).table_valued("value").c.value)
    found = connection.execute(
        sa.select(chunks.c.seq, vector_table.c.vector)
        .join(vector_table, vector_table.c.chunk_seq == chunks.c.seq)
        .where(
            chunks.c.kb_id == row.id,
            sa.or_(chunks.c.seq > answer.known, chunks.c.id.in_(named)),
        )
        .order_by(chunks.c.seq)
    ).all()
    scores = reading.unpack([entry.vector for entry in found], row.dimensions) @ query
    return [found[i].seq for i in np.argsort(-scores, kind="stable")]


def _with_text(row: KnowledgeBaseRow) -> bool:
    return bool(row.config.get("storage", {}).get("text_in_chroma"))


def _metadata(entry: Any) -> dict[str, Any]:
    values: dict[str, Any] = {
        "document_id": entry.document_id,
        "document_type": entry.document_type,
        "uri": entry.uri,
    }
    if entry.tags:  # Chroma refuses empty lists
        values["tags"] = list(entry.tags)
    return values
