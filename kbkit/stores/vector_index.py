"""The vector index of each knowledge base, kept level with the catalog.

An open `VectorStore` may not see what other processes write. The catalog numbers its chunks
(``chunks.seq``) and records how far each collection has come (``knowledge_bases.applied_seq``).
Chunks after that point are scored from the catalog, so a search is complete; when there are many,
the store is opened again. One lock guards opening and writing.
"""

from __future__ import annotations

import contextlib
import logging
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kbkit.errors import ConflictError, KbkitError, StoreUnreachableError, WorkspaceError
from kbkit.stores import vector_collections
from kbkit.stores.catalog import corpus, knowledge_bases, outbox
from kbkit.stores.catalog.database import Database, Transaction
from kbkit.stores.catalog.knowledge_bases import KnowledgeBaseRow
from kbkit.stores.locks import Locks
from kbkit.stores.vector_collections import VectorCollections, has_payloads
from kbkit.stores.vector_store import VectorStore

_REOPEN_BEHIND = 2_000
"""Chunks that are scored one by one before the store is opened afresh instead."""
_TASK = "writing to the index of vectors"
_MANY = 100
"""Chunks that came or went which are handed over together, where they are gathered."""
_LOCK_SECONDS = 600.0
"""Seconds that a writer waits for another process."""
_CLOSING_SECONDS = 1.0
"""Seconds that closing waits for it."""
_READER_LOCK_SECONDS = 0.02
"""Seconds that a search waits for it, before it goes on without."""
_AWAY_SECONDS = 10.0
"""Seconds before searches try an unreachable server again."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class NearestIds:
    """Ids of the nearest chunks, best first; some may be gone.

    `known` is the last ``chunks.seq`` in the index.
    """

    ids: Sequence[str]
    known: int


class VectorIndex:
    """The indexes of one workspace, as this process sees them."""

    def __init__(self, store: VectorStore, database: Database, locks: Locks) -> None:
        self._store = store
        self._database = database
        self._locks = locks
        self._collections = VectorCollections(store, database)
        self._known = self._collections.known
        self._waiting: set[str] = set()
        self._least = 1

    def close(self) -> None:
        """Flush pending updates and release the store; the last user closes it."""
        self.gather(more=False)
        self._collections.close()

    def gather(self, *, more: bool = True) -> None:
        """Batch updates of single documents, as servers do; ``False`` flushes the batch."""
        self._least = _MANY if more else 1
        for kb_id in () if more else tuple(self._waiting):
            # while others write, or where they deleted it, the next who writes sees to the rest
            with contextlib.suppress(KbkitError):
                self.apply(kb_id, wait=_CLOSING_SECONDS)

    @property
    def gathers(self) -> bool:
        return self._least > 1

    def apply(
        self,
        kb_id: str,
        on_progress: Callable[[int], None] | None = None,
        *,
        wait: float = _LOCK_SECONDS,
    ) -> int:
        """Update an index to the catalog. With batches, wait for an unreachable server, too."""
        done = 0
        self._waiting.discard(kb_id)
        with self._database.read() as transaction:
            row = knowledge_bases.get_by_id(transaction, kb_id)
            if outbox.is_empty(transaction, kb_id) and self._collections.is_own(row.collection):
                return done
        try:
            if self.gathers and self._is_away:
                self._waiting.add(kb_id)
                return done
            with self._locks.hold("chroma", wait=wait, task=_TASK), self._settled():
                while count := self._apply_next(kb_id):
                    done += count
                    if on_progress is not None:
                        on_progress(done)
        except StoreUnreachableError as error:
            if not self.gathers:
                raise
            self._waiting.add(kb_id)
            self._miss(error)
        return done

    def apply_gathered(self, kb_id: str) -> None:
        """Update an index to the catalog, or leave that to a batch.

        Where the store keeps texts too, for others who read it, it is always brought level.
        """
        self._waiting.add(kb_id)
        if self.gathers:
            with self._database.read() as transaction:
                row = knowledge_bases.get_by_id(transaction, kb_id)
                if not has_payloads(row) and not outbox.holds(transaction, kb_id, self._least):
                    return
        self.apply(kb_id)

    def _apply_next(self, kb_id: str) -> int:
        """Deal with the oldest entries; the lock must be held.

        The mutex is free between two calls, so that threads can search.
        """
        with self._known.mutex:
            row = self._collections.row(kb_id)
            if self._collections.seq(row) != row.applied_seq:
                self._collections.open()  # another process wrote since
            try:
                return self._collections.apply_batch(self._collections.made_sound(row))
            except StoreUnreachableError:
                raise
            except WorkspaceError:  # opening afresh mends or rebuilds
                self._collections.open()
                row = self._collections.row(kb_id)
                return self._collections.apply_batch(self._collections.made_sound(row))

    def faults(self, kb_id: str) -> list[str]:
        """Compare the index with the catalog; return the differences in words.

        Checks each id and vector, unless files changed: opening those would drop what `rebuild`
        restores.
        """
        with self._writing():
            damage = self._store.damage()
            if damage is None:
                self._collections.open()
            with self._database.read() as transaction:
                row = knowledge_bases.get_by_id(transaction, kb_id)
                if damage is not None:
                    message = f"its index of vectors {damage.fault}"
                    return [message] if damage.costs(row.collection) else []
                if not self._collections.is_own(row.collection):
                    return ["its index of vectors is in another place than settings name"]
                return list(vector_collections.faults(self._store, transaction, row))

    def rebuild(self, kb_id: str) -> None:
        with self._writing():
            self._collections.open()
            self._collections.rebuilt(self._collections.row(kb_id))

    def sweep(self) -> None:
        """Drop the collections of deleted knowledge bases, or leave them for a later call."""
        if not self._collections.marked():
            return
        with (
            contextlib.suppress(ConflictError, WorkspaceError),
            self._writing(wait=_READER_LOCK_SECONDS),
        ):
            if not self._known.is_open:
                self._collections.open()
            self._collections.drop_marked()

    def nearest(
        self, transaction: Transaction, row: KnowledgeBaseRow, query: NDArray[np.float32], k: int
    ) -> list[int]:
        """Return the ``seq`` of the chunks nearest to a query, best first.

        Chunks that the index lacks are scored from the catalog, and all are if it names too few.
        """
        if not query.any() or k < 1:
            return []  # without a direction nothing is near, nor where nothing is left
        answer = self.ask(row, query, k)
        seqs = corpus.nearest_chunks(
            transaction, row.id, query, among=answer.ids, after=answer.known
        )
        if len(seqs) < k:
            seqs = corpus.nearest_chunks(transaction, row.id, query, among=(), after=0)
        return seqs[:k]

    def ask(self, row: KnowledgeBaseRow, query: NDArray[np.float32], k: int) -> NearestIds:
        """Query the index; an empty answer while it is unavailable."""
        if not query.any() or k < 1:
            return NearestIds((), sys.maxsize)
        with self._known.mutex:
            if self._is_away:
                return NearestIds((), 0)
            try:
                if not self.is_open(row) or self._collections.behind(row) > _REOPEN_BEHIND:
                    # while another process writes, what is open has to do
                    with contextlib.suppress(ConflictError):
                        self._refresh(row.id)
                ids = self._query(row, query, k)
            except WorkspaceError as error:  # or it is to be made anew by who may only read
                self._miss(error)
                return NearestIds((), 0)
            return NearestIds(ids, self._collections.seq(row) if self.is_open(row) else 0)

    @property
    def _is_away(self) -> bool:
        return time.monotonic() < self._known.away_until

    def _miss(self, error: WorkspaceError) -> None:
        self._known.forget()
        if not self._known.away_until:
            _log.warning("going on without the index of vectors: %s", error)
        self._known.away_until = time.monotonic() + _AWAY_SECONDS

    def is_open(self, row: KnowledgeBaseRow) -> bool:
        return self._collections.is_open(row)

    def open(self, kb_id: str) -> None:
        """Open a collection for searching, unless another process writes or the server is away."""
        if self._is_away:
            return
        try:
            self._refresh(kb_id)
        except ConflictError:
            pass
        except StoreUnreachableError as error:
            self._miss(error)

    def _query(self, row: KnowledgeBaseRow, query: NDArray[np.float32], k: int) -> list[str]:
        if not self.is_open(row) or not self._collections.seq(row):
            return []
        try:
            return self._store.nearest(row.collection, query, k)
        except StoreUnreachableError:
            raise
        except WorkspaceError:  # opening afresh mends or rebuilds
            try:
                with self._writing(wait=_READER_LOCK_SECONDS):
                    self._collections.open()
                    row = self._collections.made_sound(self._collections.row(row.id))
                    return self._store.nearest(row.collection, query, k)
            except ConflictError:
                self._known.forget()  # all is scored from the catalog for now
                return []

    def _refresh(self, kb_id: str) -> None:
        with self._writing(wait=_READER_LOCK_SECONDS):
            row = self._collections.row(kb_id)
            if row.applied_seq != self._known.seqs.get(row.collection, -1):
                self._collections.open()
            self._collections.made_sound(row)

    @contextlib.contextmanager
    def _writing(self, wait: float = _LOCK_SECONDS) -> Iterator[None]:
        # the mutex comes second, so that threads can search while this one waits for the lock;
        # who has the mutex already must not wait for long
        with self._locks.hold("chroma", wait=wait, task=_TASK), self._known.mutex, self._settled():
            yield

    @contextlib.contextmanager
    def _settled(self) -> Iterator[None]:
        """Record completion at the end of the block; the caller holds the lock."""
        try:
            yield
        finally:
            with self._known.mutex:
                self._store.settle()


_SECONDS = 1.0


class WriteBatcher:
    """Does work at once, or, where a server gathers it, within about a second in a thread.

    What waits when the process is killed has to be found again by who needs it.
    """

    def __init__(self) -> None:
        self._waiting: dict[str, Callable[[], None]] = {}
        self._mutex = threading.Lock()
        self._at_work = threading.Lock()
        self._timer: threading.Timer | None = None
        self._gathers = False

    def gather(self, *, more: bool = True) -> None:
        """Delay work from now on; ``False`` does what waits."""
        self._gathers = more
        if not more:
            self.finish()

    def do(self, key: str, work: Callable[[], None]) -> None:
        if not self._gathers:
            work()
            return
        with self._mutex:
            self._waiting[key] = work
            if self._timer is None:
                self._timer = threading.Timer(_SECONDS, self.finish)
                self._timer.daemon = True
                self._timer.start()

    def finish(self) -> None:
        with self._at_work:
            with self._mutex:
                waiting, self._waiting, self._timer = self._waiting, {}, None
            for work in waiting.values():
                with contextlib.suppress(KbkitError):  # deleted meanwhile, or its model is away
                    work()
