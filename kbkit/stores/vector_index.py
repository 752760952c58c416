"""An index of vectors for each knowledge base, kept level with the catalog.

A `VectorStore` is never trusted to know what other processes wrote since it was opened. The catalog
numbers its chunks (``chunks.seq``) and notes how far each collection has come
(``knowledge_bases.applied_seq``). A process remembers how far a collection had come when it opened
the store; chunks behind that point are scored exactly from the catalog, so a search is complete
whatever other processes do, and when there are many of them the store is opened afresh. Opening and
writing happen under one lock.
"""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from kbkit.errors import ConflictError, KbkitError, WorkspaceError
from kbkit.stores.catalog import corpus, knowledge_bases, outbox
from kbkit.stores.catalog.database import Database, Transaction
from kbkit.stores.catalog.knowledge_bases import KnowledgeBaseRow
from kbkit.stores.catalog.outbox import OutboxEntry
from kbkit.stores.catalog.packing import unpack
from kbkit.stores.locks import Locks
from kbkit.stores.vector_store import VectorStore

_BATCH = 1_000
"""Chunks handed to the store at once; a search in another thread waits for as many."""
_REOPEN_BEHIND = 2_000
"""Chunks that are scored one by one before the store is opened afresh instead."""
_TASK = "writing to the index of vectors"
_MANY = 100
"""Chunks that came or went which are handed over together, where they are gathered."""
_LOCK_SECONDS = 600.0
"""How long a writer waits while another process writes."""
_CLOSING_SECONDS = 1.0
"""How long who closes the workspace waits for that."""
_READER_LOCK_SECONDS = 0.02
"""How long a search waits for that, before it does without."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What the index says to a query.

    Attributes:
        ids: Of the nearest chunks, best first; some may be gone from the catalog.
        known: The last ``chunks.seq`` that it knows of.
    """

    ids: Sequence[str]
    known: int


@dataclass(slots=True)
class _Knowledge:
    """What a store that is open knows; all who share the store share this.

    Attributes:
        is_open: Whether it was opened at all.
        seqs: By collection, ``applied_seq`` when the store was opened.
        sound: Collections that were found to hold what they should.
        users: Number of `VectorIndex` objects that share this.
    """

    is_open: bool = False
    seqs: dict[str, int] = field(default_factory=dict)
    sound: set[str] = field(default_factory=set)
    users: int = 0
    mutex: threading.RLock = field(default_factory=threading.RLock)


_knowledge: WeakKeyDictionary[VectorStore, _Knowledge] = WeakKeyDictionary()
_knowledge_mutex = threading.Lock()


class VectorIndex:
    """The indexes of one workspace, as this process sees them.

    Args:
        store: Where vectors are kept.
        database: The catalog.
        locks: Between processes.
    """

    def __init__(self, store: VectorStore, database: Database, locks: Locks) -> None:
        self._store = store
        self._database = database
        self._locks = locks
        self._waiting: set[str] = set()
        self._least = 1
        with _knowledge_mutex:
            self._known = _knowledge.setdefault(store, _Knowledge())
            self._known.users += 1

    def close(self) -> None:
        """Hand over what waits, and let go of the store; the last one who shares it closes it."""
        self.gather(more=False)
        with _knowledge_mutex, self._known.mutex:
            self._known.users -= 1
            if not self._known.users:
                self._forget()
                self._store.close()

    def gather(self, *, more: bool = True) -> None:
        """Hand over what single documents bring when it is much; or no more, and what waits now.

        A server does so: its searches score what waits, as they do what other processes wrote, and
        to hand over a hundred chunks takes as long as one.
        """
        self._least = _MANY if more else 1
        for kb_id in () if more else tuple(self._waiting):
            # while others write, or where they deleted it, the next who writes sees to the rest
            with contextlib.suppress(KbkitError):
                self.apply(kb_id, wait=_CLOSING_SECONDS)

    @property
    def gathers(self) -> bool:
        """Whether it waits for more of what single documents bring."""
        return self._least > 1

    def apply(
        self,
        kb_id: str,
        on_progress: Callable[[int], None] | None = None,
        *,
        wait: float = _LOCK_SECONDS,
    ) -> int:
        """Bring an index level with the catalog.

        Args:
            kb_id: The knowledge base.
            on_progress: Called with the number of entries done so far.
            wait: Seconds to wait while another process writes.

        Returns:
            Number of outbox entries that were dealt with.

        Raises:
            ConflictError: Another process wrote to the index for very long.
            NotFoundError: The knowledge base was deleted.
            WorkspaceError: The store failed.
        """
        done = 0
        self._waiting.discard(kb_id)
        with self._database.read() as transaction:
            if outbox.is_empty(transaction, kb_id):
                return done
        with self._locks.hold("chroma", wait=wait, task=_TASK):
            while count := self._apply_next(kb_id):
                done += count
                if on_progress is not None:
                    on_progress(done)
        return done

    def apply_gathered(self, kb_id: str) -> None:
        """Bring an index level with the catalog, or wait for more where that is gathered.

        Where the store keeps texts too, for others who read it, it is always brought level.

        Raises:
            ConflictError: Another process wrote to the index for very long.
            NotFoundError: The knowledge base was deleted.
            WorkspaceError: The store failed.
        """
        self._waiting.add(kb_id)
        if self.gathers:
            with self._database.read() as transaction:
                row = knowledge_bases.get_by_id(transaction, kb_id)
                if not _has_payloads(row) and not outbox.holds(transaction, kb_id, self._least):
                    return
        self.apply(kb_id)

    def _apply_next(self, kb_id: str) -> int:
        """Deal with the oldest entries; the lock must be held.

        The mutex is free between two calls, so that threads can search.
        """
        with self._known.mutex:
            row = self._row(kb_id)
            if self._known.seqs.get(row.collection, 0) != row.applied_seq:
                self._open()  # another process wrote since
            row = self._made_sound(row)
            return self._apply_batch(row)

    def sweep(self) -> None:
        """Drop the collections of deleted knowledge bases.

        While another process writes they stay marked, and go with the next sweep.
        """
        with self._database.read() as transaction:
            if not outbox.dropped_names(transaction):
                return
        with contextlib.suppress(ConflictError), self._writing(wait=_READER_LOCK_SECONDS):
            if not self._known.is_open:
                self._open()
            self._drop_marked()

    def nearest(
        self, transaction: Transaction, row: KnowledgeBaseRow, query: NDArray[np.float32], k: int
    ) -> list[int]:
        """``seq`` of the chunks nearest to a query, best first.

        The index names them, but for those that it does not know yet. What it names may be gone;
        where that leaves too few, all are scored.

        Args:
            transaction: One that reads, whose view of the catalog counts.
            row: The knowledge base in that view.
            query: Unit vector, shape ``(dimensions,)``.
            k: Number wanted; no more than there are chunks.
        """
        if not query.any() or k < 1:
            return []  # without a direction nothing is near, nor where nothing is left
        answer = self.ask(row, query, k)
        found = corpus.nearest_chunks(
            transaction, row.id, query, among=answer.ids, after=answer.known
        )
        if len(found) < k:
            found = corpus.nearest_chunks(transaction, row.id, query, among=(), after=0)
        return found[:k]

    def ask(self, row: KnowledgeBaseRow, query: NDArray[np.float32], k: int) -> Answer:
        """What the index knows of `nearest`."""
        if not query.any() or k < 1:
            return Answer((), sys.maxsize)
        with self._known.mutex:
            if not self.is_open(row) or self._behind(row) > _REOPEN_BEHIND:
                # while another process writes, what is open has to do
                with contextlib.suppress(ConflictError):
                    self._refresh(row.id)
            ids = self._query(row, query, k)
            known = self._known.seqs.get(row.collection, 0) if self.is_open(row) else 0
            return Answer(ids, known)

    def is_open(self, row: KnowledgeBaseRow) -> bool:
        """Whether this process has the collection open, so that asking it takes no time."""
        return row.collection in self._known.sound

    def open(self, kb_id: str) -> None:
        """Open a collection for searching, unless another process writes just now.

        Raises:
            NotFoundError: The knowledge base was deleted.
        """
        with contextlib.suppress(ConflictError):
            self._refresh(kb_id)

    def _query(self, row: KnowledgeBaseRow, query: NDArray[np.float32], k: int) -> list[str]:
        if not self.is_open(row) or not self._known.seqs.get(row.collection):
            return []
        try:
            return self._store.nearest(row.collection, query, k)
        except WorkspaceError:  # opening afresh mends or rebuilds
            try:
                with self._writing(wait=_READER_LOCK_SECONDS):
                    self._open()
                    row = self._made_sound(self._row(row.id))
                    return self._store.nearest(row.collection, query, k)
            except ConflictError:
                self._forget()  # all is scored from the catalog for now
                return []

    def _behind(self, row: KnowledgeBaseRow) -> int:
        """Chunks in the collection by now that the store, as it is open, does not know."""
        known = self._known.seqs.get(row.collection, 0)
        if row.applied_seq <= known:
            return 0
        with self._database.read() as transaction:
            return corpus.count_chunks(transaction, row.id, after=known, until=row.applied_seq)

    def _refresh(self, kb_id: str) -> None:
        """Open the store and a collection as they are now."""
        with self._writing(wait=_READER_LOCK_SECONDS):
            row = self._row(kb_id)
            if row.applied_seq != self._known.seqs.get(row.collection, -1):
                self._open()
            self._made_sound(row)

    @contextlib.contextmanager
    def _writing(self, wait: float = _LOCK_SECONDS) -> Iterator[None]:
        # the mutex comes second, so that threads can search while this one waits for the lock;
        # who has the mutex already must not wait for long
        with self._locks.hold("chroma", wait=wait, task=_TASK), self._known.mutex:
            yield

    def _open(self) -> None:
        """Open the store afresh; the lock must be held."""
        self._forget()
        self._store.reopen()
        self._known.is_open = True
        with self._database.read() as transaction:
            self._known.seqs.update(outbox.applied_seqs(transaction))

    def _forget(self) -> None:
        self._known.is_open = False
        self._known.seqs.clear()
        self._known.sound.clear()

    def _made_sound(self, row: KnowledgeBaseRow) -> KnowledgeBaseRow:
        """See to it that a collection holds what the catalog says it does; rebuild it if not.

        Returns:
            The knowledge base as it is then.
        """
        if self.is_open(row):
            return row
        if not self._known.is_open:
            self._open()
        sound = self._is_sound(row)
        if not sound and row.applied_seq > 0:
            self._open()  # perhaps it is only what this process has open that is out of date
            sound = self._is_sound(row)
        if not sound:
            if row.applied_seq > 0:
                return self._rebuilt(row)
            self._store.create(row.collection, row.dimensions)
        self._known.sound.add(row.collection)
        return row

    def _is_sound(self, row: KnowledgeBaseRow) -> bool:
        """Whether a collection can hold what it should, as far as counting and asking tell."""
        with self._database.read() as transaction:
            expected = corpus.count_chunks(transaction, row.id, until=row.applied_seq)
        try:
            # deletions that are still in the outbox, or half applied, may leave some too many
            if self._store.count(row.collection) < expected:
                return False
            if expected:  # which also reads the files
                self._store.nearest(row.collection, np.ones(row.dimensions, np.float32), 1)
        except WorkspaceError:
            return False
        return True

    def _rebuilt(self, row: KnowledgeBaseRow) -> KnowledgeBaseRow:
        with self._database.write() as transaction:
            outbox.restart(transaction, knowledge_bases.get_by_id(transaction, row.id))
        row = self._row(row.id)
        self._store.create(row.collection, row.dimensions)
        self._known.seqs[row.collection] = 0
        self._known.sound.add(row.collection)
        while self._apply_batch(self._row(row.id)):
            pass
        self._drop_marked()
        return self._row(row.id)

    def _drop_marked(self) -> None:
        with self._database.read() as transaction:
            names = outbox.dropped_names(transaction)
        for name in names:
            self._store.drop(name)
        with self._database.write() as transaction:
            outbox.forget_dropped(transaction, names)

    def _row(self, kb_id: str) -> KnowledgeBaseRow:
        with self._database.read() as transaction:
            return knowledge_bases.get_by_id(transaction, kb_id)

    def _apply_batch(self, row: KnowledgeBaseRow) -> int:
        """Hand the oldest entries of the outbox to the store; their number."""
        with self._database.read() as transaction:
            batch = outbox.oldest(transaction, row.id, _BATCH, payloads=_has_payloads(row))
        if not batch:
            return 0
        last = {entry.chunk_id: entry for entry in batch}  # a later entry of a chunk wins
        self._store.delete(
            row.collection, [entry.chunk_id for entry in last.values() if entry.vector is None]
        )
        self._upsert(row, [entry for entry in last.values() if entry.vector is not None])
        with self._database.write() as transaction:
            self._known.seqs[row.collection] = outbox.take(transaction, row, batch)
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


def _has_payloads(row: KnowledgeBaseRow) -> bool:
    """Whether the store keeps more than vectors."""
    return bool(row.config.get("storage", {}).get("text_in_chroma"))
