"""The vector index of each knowledge base, updated from the catalog.

An open `VectorStore` may not see writes of other processes. The catalog records the last chunk in
each collection (``knowledge_bases.applied_seq``). Searches score later chunks exactly; if there are
many, they open the store again. One lock guards opening and writing.
"""

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kbkit.errors import ConflictError, KbkitError, StoreUnreachableError, WorkspaceError
from kbkit.stores.backend import CollectionError, Locks, VectorStore, suffix_of
from kbkit.stores.catalog import corpus, knowledge_bases, outbox
from kbkit.stores.catalog.database import Database, Transaction, unpack
from kbkit.stores.catalog.knowledge_bases import KnowledgeBaseRow
from kbkit.stores.catalog.outbox import OutboxEntry

_REOPEN_BEHIND = 2_000
"""Maximum chunks missing in an open store; for more, it is opened again."""
_TASK = "writing to the index of vectors"
_MIN_CHANGES = 100
"""Pending changes that are applied together when updates are batched."""
_BATCH = 1_000
"""Chunks per call of the store, for which searches in other threads wait."""
_LOCK_SECONDS = 600.0
_CLOSING_LOCK_SECONDS = 1.0
_READER_LOCK_SECONDS = 0.02
_RETRY_SECONDS = 10.0
"""Seconds before an unreachable server is tried again."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class NearestIds:
    """Ids of the nearest chunks, some possibly removed; and the last indexed ``seq``."""

    ids: Sequence[str]
    indexed_seq: int


class VectorIndex:
    """The vector indexes of one workspace.

    `_seqs` has the ``applied_seq`` of each collection as far as the open store shows it, `_sound`
    the collections that were checked. `_mutex` guards these and calls of the store.
    """

    def __init__(self, store: VectorStore, database: Database, locks: Locks) -> None:
        self._store = store
        self._database = database
        self._locks = locks
        self._is_open = False
        self._seqs: dict[str, int] = {}
        self._sound: set[str] = set()
        self._away_until = 0.0  # `time.monotonic` until which an unreachable server is skipped
        self._mutex = threading.RLock()
        self._waiting: set[str] = set()
        self._min_changes = 1

    def close(self) -> None:
        """Flush pending updates and close the store."""
        self.gather(more=False)
        with self._mutex:
            self._forget()
            self._store.close()

    def _forget(self) -> None:
        self._is_open = False
        self._seqs.clear()
        self._sound.clear()

    def gather(self, *, more: bool = True) -> None:
        """Batch updates of single documents, as servers do; ``False`` flushes the batch."""
        self._min_changes = _MIN_CHANGES if more else 1
        for kb_id in () if more else tuple(self._waiting):
            # if this fails, the next write applies the rest
            with contextlib.suppress(KbkitError):
                self.apply(kb_id, wait=_CLOSING_LOCK_SECONDS)

    @property
    def gathers(self) -> bool:
        return self._min_changes > 1

    def apply(
        self,
        kb_id: str,
        on_progress: Callable[[int], None] | None = None,
        *,
        wait: float = _LOCK_SECONDS,
    ) -> int:
        """Apply pending changes; return their number.

        With batches, changes for an unreachable server stay pending.
        """
        applied = 0
        self._waiting.discard(kb_id)
        with self._database.read() as transaction:
            row = knowledge_bases.get_by_id(transaction, kb_id)
            if self._is_own(row.collection) and not outbox.holds(transaction, kb_id, 1):
                return applied
        try:
            if self.gathers and self._is_away:
                self._waiting.add(kb_id)
                return applied
            with self._locks.hold("chroma", wait=wait, task=_TASK), self._settle_after():
                while count := self._apply_next(kb_id):
                    applied += count
                    if on_progress is not None:
                        on_progress(applied)
        except StoreUnreachableError as error:
            self._forget()  # its collections may have changed meanwhile
            if not self.gathers:
                raise
            self._waiting.add(kb_id)
            self._note_unavailable(error)
        return applied

    def apply_gathered(self, kb_id: str) -> None:
        """Apply pending changes, or leave them to a batch unless the store also has texts."""
        self._waiting.add(kb_id)
        waits = self.gathers and not has_payloads(self._row(kb_id))
        if not waits or self._database.look_up(outbox.holds, kb_id, self._min_changes):
            self.apply(kb_id)

    def _apply_next(self, kb_id: str) -> int:
        # the caller holds the lock; the mutex is free between two calls, so that threads can search
        with self._mutex:
            row = self._row(kb_id)
            if self._seq(row) != row.applied_seq:
                self._open()  # another process wrote meanwhile
            try:
                return self._apply_batch(self._ensure_sound(row))
            except CollectionError:  # opening again repairs or rebuilds it
                self._open()
                row = self._row(kb_id)
                return self._apply_batch(self._ensure_sound(row))

    def faults(self, kb_id: str) -> list[str]:
        """Compare each id and vector with the catalog; return the differences.

        If files were changed from outside, return only that, because opening them would drop data.
        """
        with self._writing():
            if damage := self._store.damage():
                return [f"its index of vectors {damage}"]
            self._open()
            with self._database.read() as transaction:
                row = knowledge_bases.get_by_id(transaction, kb_id)
                if not self._is_own(row.collection):
                    return ["its index of vectors is not in the place that the settings name"]
                try:
                    return list(_faults(self._store, transaction, row))
                except CollectionError as error:
                    return [f"its index of vectors cannot be read ({error})"]

    def rebuild(self, kb_id: str) -> None:
        with self._writing():
            self._open()
            self._rebuild_collection(self._row(kb_id))

    def sweep(self) -> None:
        """Drop collections of deleted knowledge bases, unless another process writes."""
        if not self._marked_names():
            return
        with (
            contextlib.suppress(ConflictError, WorkspaceError),
            self._writing(wait=_READER_LOCK_SECONDS),
        ):
            if not self._is_open:
                self._open()
            self._drop_marked()

    def ask(self, row: KnowledgeBaseRow, query: NDArray[np.float32], k: int) -> NearestIds:
        """Query the index; the answer is empty if it is not open, or unavailable."""
        with self._mutex:
            if not self.is_open(row) or self._is_away:
                return NearestIds((), 0)
            try:
                if self._behind(row) > _REOPEN_BEHIND:
                    # while another process writes, query the open store
                    with contextlib.suppress(ConflictError):
                        self._refresh(row.id)
                ids = self._store.nearest(row.collection, query, k)
            except WorkspaceError as error:
                self._note_unavailable(error)
                return NearestIds((), 0)
            return NearestIds(ids, self._seq(row))

    @property
    def _is_away(self) -> bool:
        return time.monotonic() < self._away_until

    def _note_unavailable(self, error: WorkspaceError) -> None:
        self._forget()
        if not self._away_until:
            _log.warning("continuing without the index of vectors: %s", error)
        self._away_until = time.monotonic() + _RETRY_SECONDS

    def is_open(self, row: KnowledgeBaseRow) -> bool:
        return row.collection in self._sound

    def _behind(self, row: KnowledgeBaseRow) -> int:
        last_seq = self._seq(row)
        if row.applied_seq <= last_seq:
            return 0
        until = row.applied_seq
        return self._database.look_up(corpus.count_chunks, row.id, after=last_seq, until=until)

    def open(self, kb_id: str) -> None:
        """Open a collection for searches, unless another process writes or the server is down."""
        if self._is_away:
            return
        try:
            self._refresh(kb_id)
        except ConflictError:
            pass
        except StoreUnreachableError as error:
            self._note_unavailable(error)

    def _refresh(self, kb_id: str) -> None:
        with self._writing(wait=_READER_LOCK_SECONDS):
            row = self._row(kb_id)
            if row.applied_seq != self._seqs.get(row.collection, -1):
                self._open()
            self._ensure_sound(row)

    @contextlib.contextmanager
    def _writing(self, wait: float = _LOCK_SECONDS) -> Iterator[None]:
        # takes the mutex after the lock, so that threads can search meanwhile; callers that already
        # hold the mutex must use a short wait
        with self._locks.hold("chroma", wait=wait, task=_TASK), self._mutex, self._settle_after():
            yield

    @contextlib.contextmanager
    def _settle_after(self) -> Iterator[None]:
        try:
            yield
        finally:
            with self._mutex:
                self._store.settle()

    def _seq(self, row: KnowledgeBaseRow) -> int:
        return self._seqs.get(row.collection, 0)

    def _open(self) -> None:
        self._forget()
        self._store.reopen()
        self._is_open = True
        self._seqs.update(self._database.look_up(outbox.applied_seqs))

    def _ensure_sound(self, row: KnowledgeBaseRow) -> KnowledgeBaseRow:
        """Check a collection once, and rebuild it if it does not match the catalog."""
        if self.is_open(row):
            return row
        if not self._is_open:
            self._open()
        sound = self._is_sound(row)
        if not sound and row.applied_seq > 0:
            self._open()  # this process's view may be outdated
            sound = self._is_sound(row)
        if not sound:
            if row.applied_seq > 0 or not self._is_own(row.collection):
                return self._rebuild_collection(row)
            try:
                self._store.create(row.collection, row.dimensions)
            except CollectionError:  # the name is taken by a collection of other dimensions
                return self._rebuild_collection(row)
        self._trust(row)
        return row

    def _trust(self, row: KnowledgeBaseRow) -> None:
        self._sound.add(row.collection)
        self._away_until = 0.0

    def _is_own(self, collection: str) -> bool:
        return suffix_of(collection) == self._store.suffix

    def _is_sound(self, row: KnowledgeBaseRow) -> bool:
        if not self._is_own(row.collection):
            return False
        expected = self._database.look_up(corpus.count_chunks, row.id, until=row.applied_seq)
        try:
            # may be greater, because of deletions that are not applied yet
            if self._store.count(row.collection) < expected:
                return False
            # also finds unreadable files and other dimensions
            first = next(self._store.items(row.collection), None)
            return first is None or first[1].shape[1] == row.dimensions
        except CollectionError:
            return False

    def _rebuild_collection(self, row: KnowledgeBaseRow) -> KnowledgeBaseRow:
        """Rebuild a collection under a new name; return the changed row."""
        with self._database.write() as transaction:
            current_row = knowledge_bases.get_by_id(transaction, row.id)
            outbox.restart(transaction, current_row, self._store.suffix)
        row = self._row(row.id)
        self._store.create(row.collection, row.dimensions)
        self._seqs[row.collection] = 0
        self._trust(row)
        while self._apply_batch(self._row(row.id)):
            pass
        self._drop_marked()
        return self._row(row.id)

    def _marked_names(self) -> list[str]:
        return list(filter(self._is_own, self._database.look_up(outbox.dropped_names)))

    def _drop_marked(self) -> None:
        names = self._marked_names()
        for name in names:
            self._store.drop(name)
        self._database.commit(outbox.forget_dropped, names)

    def _row(self, kb_id: str) -> KnowledgeBaseRow:
        return self._database.look_up(knowledge_bases.get_by_id, kb_id)

    def _apply_batch(self, row: KnowledgeBaseRow) -> int:
        """Apply the oldest entries of the outbox; return their number."""
        batch = self._database.look_up(outbox.oldest, row.id, _BATCH, payloads=has_payloads(row))
        if not batch:
            return 0
        last = {entry.chunk_id: entry for entry in batch}  # the last entry of a chunk counts
        gone = [entry.chunk_id for entry in last.values() if entry.vector is None]
        self._store.delete(row.collection, gone)
        self._upsert(row, [entry for entry in last.values() if entry.vector is not None])
        self._seqs[row.collection] = self._database.commit(outbox.take, row, batch)
        return len(batch)

    def _upsert(self, row: KnowledgeBaseRow, entries: Sequence[OutboxEntry]) -> None:
        if not entries:
            return
        packed = [entry.vector for entry in entries if entry.vector is not None]
        payloads = [entry.payload for entry in entries if entry.payload is not None]
        ids = [entry.chunk_id for entry in entries]
        vectors = unpack(packed, row.dimensions)
        self._store.upsert(row.collection, ids, vectors, payloads or None)


def has_payloads(row: KnowledgeBaseRow) -> bool:
    return bool(row.config.get("storage", {}).get("text_in_chroma"))


_SAME = 0.999
"""Minimum cosine of vectors that differ only by rounding."""


def _faults(store: VectorStore, transaction: Transaction, row: KnowledgeBaseRow) -> Iterator[str]:
    """Compare a collection with the catalog; pending changes are not faults."""
    if type(store) is VectorStore:  # it stores nothing
        return
    waiting = outbox.waiting(transaction, row.id)
    applied = corpus.chunk_seqs(transaction, row.id, until=row.applied_seq)
    expected = {int(seq) for seq in applied}
    if not expected:
        return
    seen: set[int] = set()
    wrong = extra = 0
    for ids, vectors in store.items(row.collection):
        seq_of = corpus.seqs_by_id(transaction, ids)
        indexed = [place for place, each in enumerate(ids) if each in seq_of]
        extra += sum(each not in seq_of and each not in waiting for each in ids)
        seqs = [seq_of[ids[place]] for place in indexed]
        seen.update(seqs)
        if vectors.shape[1] != row.dimensions:
            wrong += len(indexed)
            continue
        in_catalog = corpus.vectors_of(transaction, row.dimensions, seqs)
        in_index = vectors[indexed]
        lengths = np.linalg.norm(in_index, axis=1) * np.linalg.norm(in_catalog, axis=1)
        is_close = np.einsum("ij,ij->i", in_index, in_catalog) >= _SAME * lengths
        is_pending = np.array([ids[place] in waiting for place in indexed], np.bool_)
        wrong += int(np.count_nonzero(~is_close & ~is_pending))
    missing = expected - seen - set(corpus.seqs_by_id(transaction, sorted(waiting)).values())
    if missing:
        yield f"its index of vectors lacks {len(missing):,} of {len(expected):,} chunks"
    if extra:
        yield f"its index of vectors has {extra:,} chunks that are gone"
    if wrong:
        yield f"its index of vectors has wrong vectors for {wrong:,} chunks"
