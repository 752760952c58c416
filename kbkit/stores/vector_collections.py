"""Vector collections of a workspace: checked against the catalog, and rebuilt if needed."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from weakref import WeakKeyDictionary

import numpy as np

from kbkit.errors import StoreUnreachableError, WorkspaceError
from kbkit.stores.backend import MissingCollectionError, VectorStore, suffix_of
from kbkit.stores.catalog import corpus, knowledge_bases, outbox
from kbkit.stores.catalog.database import Database, Transaction, unpack
from kbkit.stores.catalog.knowledge_bases import KnowledgeBaseRow
from kbkit.stores.catalog.outbox import OutboxEntry

_BATCH = 1_000
"""Chunks per call of the store, for which searches in other threads wait."""


class StoreState:
    """State of an open store, shared by its users.

    Attributes:
        seqs: ``applied_seq`` of each collection as far as the open store shows it.
        sound: Collections that were checked.
        away_until: `time.monotonic` until which searches skip an unreachable server.
        mutex: Guards this state and calls of the store.
    """

    def __init__(self) -> None:
        self.is_open = False
        self.seqs: dict[str, int] = {}
        self.sound: set[str] = set()
        self.users = 0
        self.away_until = 0.0
        self.mutex = threading.RLock()

    def forget(self) -> None:
        self.is_open = False
        self.seqs.clear()
        self.sound.clear()


_states: WeakKeyDictionary[VectorStore, StoreState] = WeakKeyDictionary()
_states_mutex = threading.Lock()


class VectorCollections:
    """Collections of a store; callers that change them hold the file lock and the mutex."""

    def __init__(self, store: VectorStore, database: Database) -> None:
        self._store = store
        self._database = database
        with _states_mutex:
            self.state = _states.setdefault(store, StoreState())
            self.state.users += 1

    def close(self) -> None:
        with _states_mutex, self.state.mutex:
            self.state.users -= 1
            if not self.state.users:
                self.state.forget()
                self._store.close()

    def is_open(self, row: KnowledgeBaseRow) -> bool:
        return row.collection in self.state.sound

    def seq(self, row: KnowledgeBaseRow) -> int:
        return self.state.seqs.get(row.collection, 0)

    def open(self) -> None:
        self.state.forget()
        self._store.reopen()
        self.state.is_open = True
        with self._database.read() as transaction:
            self.state.seqs.update(outbox.applied_seqs(transaction))

    def behind(self, row: KnowledgeBaseRow) -> int:
        last_seq = self.seq(row)
        if row.applied_seq <= last_seq:
            return 0
        with self._database.read() as transaction:
            return corpus.count_chunks(transaction, row.id, after=last_seq, until=row.applied_seq)

    def made_sound(self, row: KnowledgeBaseRow) -> KnowledgeBaseRow:
        """Check a collection once, and rebuild it if it does not match the catalog."""
        if self.is_open(row):
            return row
        if not self.state.is_open:
            self.open()
        sound = self._is_sound(row)
        if not sound and row.applied_seq > 0:
            self.open()  # perhaps only this process's view is outdated
            sound = self._is_sound(row)
        if not sound:
            if row.applied_seq > 0 or not self.is_own(row.collection):
                return self.rebuilt(row)
            try:
                self._store.create(row.collection, row.dimensions)
            except StoreUnreachableError:
                raise
            except WorkspaceError:  # the name is taken by a collection of other dimensions
                return self.rebuilt(row)
        self._trust(row)
        return row

    def _trust(self, row: KnowledgeBaseRow) -> None:
        self.state.sound.add(row.collection)
        self.state.away_until = 0.0

    def is_own(self, collection: str) -> bool:
        return suffix_of(collection) == self._store.suffix

    def _is_sound(self, row: KnowledgeBaseRow) -> bool:
        if not self.is_own(row.collection):
            return False
        with self._database.read() as transaction:
            expected = corpus.count_chunks(transaction, row.id, until=row.applied_seq)
        try:
            # may be greater, because of deletions that are not applied yet
            if self._store.count(row.collection) < expected:
                return False
            # also finds unreadable files and other dimensions
            self._store.nearest(row.collection, np.ones(row.dimensions, np.float32), 1)
        except StoreUnreachableError:
            raise
        except WorkspaceError:
            return False
        return True

    def rebuilt(self, row: KnowledgeBaseRow) -> KnowledgeBaseRow:
        """Rebuild a collection under a new name; return the changed row."""
        with self._database.write() as transaction:
            fresh = knowledge_bases.get_by_id(transaction, row.id)
            outbox.restart(transaction, fresh, self._store.suffix)
        row = self.row(row.id)
        self._store.create(row.collection, row.dimensions)
        self.state.seqs[row.collection] = 0
        self._trust(row)
        while self.apply_batch(self.row(row.id)):
            pass
        self.drop_marked()
        return self.row(row.id)

    def marked(self) -> list[str]:
        with self._database.read() as transaction:
            return list(filter(self.is_own, outbox.dropped_names(transaction)))

    def drop_marked(self) -> None:
        names = self.marked()
        for name in names:
            self._store.drop(name)
        with self._database.write() as transaction:
            outbox.forget_dropped(transaction, names)

    def row(self, kb_id: str) -> KnowledgeBaseRow:
        with self._database.read() as transaction:
            return knowledge_bases.get_by_id(transaction, kb_id)

    def apply_batch(self, row: KnowledgeBaseRow) -> int:
        """Apply the oldest entries of the outbox; return their number."""
        with self._database.read() as transaction:
            batch = outbox.oldest(transaction, row.id, _BATCH, payloads=has_payloads(row))
        if not batch:
            return 0
        last = {entry.chunk_id: entry for entry in batch}  # the last entry of a chunk counts
        self._store.delete(
            row.collection, [entry.chunk_id for entry in last.values() if entry.vector is None]
        )
        self._upsert(row, [entry for entry in last.values() if entry.vector is not None])
        with self._database.write() as transaction:
            self.state.seqs[row.collection] = outbox.take(transaction, row, batch)
        return len(batch)

    def _upsert(self, row: KnowledgeBaseRow, entries: Sequence[OutboxEntry]) -> None:
        if not entries:
            return
        packed = [entry.vector for entry in entries if entry.vector is not None]
        payloads = [entry.payload for entry in entries if entry.payload is not None]
        self._store.upsert(
            row.collection,
            [entry.chunk_id for entry in entries],
            unpack(packed, row.dimensions),
            payloads or None,
        )


def has_payloads(row: KnowledgeBaseRow) -> bool:
    return bool(row.config.get("storage", {}).get("text_in_chroma"))


_SAME = 0.999
"""Minimum cosine of vectors that differ only by rounding."""


def faults(store: VectorStore, transaction: Transaction, row: KnowledgeBaseRow) -> Iterator[str]:
    """Compare a collection with the catalog; pending changes are not faults."""
    if type(store) is VectorStore:
        return
    try:
        yield from _faults(store, transaction, row)
    except StoreUnreachableError:
        raise
    except MissingCollectionError as error:
        yield f"its index of vectors is missing: {error}"
    except WorkspaceError as error:
        yield f"its index of vectors cannot be read ({error})"


def _faults(store: VectorStore, transaction: Transaction, row: KnowledgeBaseRow) -> Iterator[str]:
    waiting = outbox.waiting(transaction, row.id)
    expected = set(corpus.chunk_seqs(transaction, row.id)) if row.applied_seq else set()
    expected = {int(seq) for seq in expected if seq <= row.applied_seq}
    if not expected:
        return
    seen: set[int] = set()
    wrong = more = 0
    for ids, vectors in store.items(row.collection):
        seq_of = corpus.seqs_by_id(transaction, ids)
        indexed = [place for place, each in enumerate(ids) if each in seq_of]
        more += sum(each not in seq_of and each not in waiting for each in ids)
        if not indexed:
            continue
        seqs = [seq_of[ids[place]] for place in indexed]
        seen.update(seqs)
        own = corpus.vectors_of(transaction, row.dimensions, seqs)
        if vectors.shape[1] != row.dimensions:
            wrong += len(indexed)
            continue
        stored = vectors[indexed]
        lengths = np.linalg.norm(stored, axis=1) * np.linalg.norm(own, axis=1)
        near = np.einsum("ij,ij->i", stored, own) >= _SAME * lengths
        fresh = np.array([ids[place] in waiting for place in indexed])
        wrong += int(np.count_nonzero(~near & ~fresh))
    lacks = expected - seen - set(corpus.seqs_by_id(transaction, sorted(waiting)).values())
    if lacks:
        yield f"its index of vectors lacks {len(lacks):,} of {len(expected):,} chunks"
    if more:
        yield f"its index of vectors has {more:,} chunks that are gone"
    if wrong:
        yield f"its index of vectors has another vector of {wrong:,} chunks"
