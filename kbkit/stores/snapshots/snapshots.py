"""Snapshots in memory, and their updates.

All searches read a snapshot of the catalog's version. A missing one is built from the catalog, an
older one is updated with the changes.
"""

import contextlib
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np

from kbkit.stores.catalog import corpus, knowledge_bases, outbox
from kbkit.stores.catalog.database import Database, Transaction
from kbkit.stores.catalog.knowledge_bases import KnowledgeBaseRow
from kbkit.stores.snapshots import near_chunks
from kbkit.stores.snapshots.array_files import forget_pages
from kbkit.stores.snapshots.making import MAX, advance, build, merge_segments
from kbkit.stores.snapshots.segment_files import SegmentFiles
from kbkit.stores.snapshots.segments import (
    LARGEST,
    Segment,
    SegmentedSnapshot,
    SnapshotState,
    join_segments,
    to_merge,
)
from kbkit.stores.vector_index import VectorIndex

_SOON = 8 * MAX
"""Maximum chunks merged while a caller waits, besides the new ones."""

_Stamp = tuple[int, int] | None


@dataclass(slots=True)
class Snapshots:
    """The snapshots of one workspace."""

    folder: Path
    database: Database
    _files: SegmentFiles = field(init=False)
    _cached: dict[str, SegmentedSnapshot] = field(default_factory=dict)
    _lists: dict[str, tuple[_Stamp, SnapshotState | None]] = field(default_factory=dict)
    _saving: threading.Lock = field(default_factory=threading.Lock)
    _locks: dict[str, threading.RLock] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._files = SegmentFiles(self.folder)

    def cached(self, row: KnowledgeBaseRow) -> SegmentedSnapshot | None:
        """Return the snapshot of this version, if it is in memory."""
        cached = self._cached.get(row.id)
        if cached is None or not cached.shows(row):
            return None
        return cached if cached.state.summaries_version == row.summaries_version else None

    @contextlib.contextmanager
    def read(self, kb_id: str) -> Iterator[tuple[Transaction, SegmentedSnapshot]]:
        """Open a transaction; yield it and the snapshot of its version."""
        with contextlib.ExitStack() as stack:
            with self._lock(kb_id):
                self._take_stored(kb_id)  # first, so that it is not newer than the transaction
                transaction = stack.enter_context(self.database.read())
                row = knowledge_bases.get_by_id(transaction, kb_id)
                snapshot = self.cached(row)
                if snapshot is None:
                    snapshot = self._update(transaction, row)
            yield transaction, snapshot

    def renew(self, kb_id: str) -> SegmentedSnapshot:
        """Return the snapshot of the newest version."""
        with self.read(kb_id) as (_, snapshot):
            return snapshot

    def _lock(self, kb_id: str) -> threading.RLock:
        return self._locks.setdefault(kb_id, threading.RLock())

    def _take_stored(self, kb_id: str) -> None:
        stamp = self._files.stamp(kb_id)
        if kb_id in self._lists and self._lists[kb_id][0] == stamp:
            return
        cached = self._cached.get(kb_id)
        snapshot = self._files.read(kb_id, cached.numbers if cached else None)
        self._lists[kb_id] = stamp, None if snapshot is None else snapshot.state
        if snapshot is not None and (
            cached is None or cached.state.version < snapshot.state.version
        ):
            self._cached[kb_id] = snapshot

    def _update(self, transaction: Transaction, row: KnowledgeBaseRow) -> SegmentedSnapshot:
        before, keep = self._cached.get(row.id), partial(self._map, row.id)
        advanced = None if before is None else advance(transaction, row, before, keep=keep)
        snapshot = build(transaction, row, keep=keep) if advanced is None else advanced
        self._cached[row.id] = snapshot
        summaries = sum(len(part.numbers) for part in snapshot.summaries if not part.file)
        added = len(snapshot) - len(before) if before is not None else 0
        if advanced is None or added > MAX or summaries > MAX:
            with contextlib.suppress(OSError):  # the disk is full or read-only
                snapshot = self._write(row.id, snapshot)  # other processes need it, too
        return snapshot

    def _write(self, kb_id: str, snapshot: SegmentedSnapshot) -> SegmentedSnapshot:
        written = self._files.write(kb_id, snapshot)
        with self._lock(kb_id):
            self._lists[kb_id] = self._files.stamp(kb_id), written.state
            cached = self._cached.get(kb_id)
            if cached is not None and cached.state == written.state:
                self._cached[kb_id] = written
        return written

    def _map(self, kb_id: str, segment: Segment) -> Segment:
        with contextlib.suppress(OSError):  # on a full disk the segment stays in memory
            return self._files.keep(kb_id, segment)
        return segment

    def save(self, kb_id: str, *, merging: bool = False) -> None:
        with self._saving, contextlib.suppress(OSError):  # the disk is full or read-only
            snapshot = self.renew(kb_id)
            later = sum(len(segment) for segment in snapshot.segments if not segment.file)
            limit = LARGEST if merging else _SOON + 2 * later
            merged = self._merge(kb_id, snapshot, limit)
            stamp = self._files.stamp(kb_id)
            is_listed = stamp is not None and self._lists.get(kb_id) == (stamp, merged.state)
            if not is_listed or merged is not snapshot:
                merged = self._write(kb_id, merged)
            self._files.write_codes(merged)
            with self.database.read() as transaction:
                kb_ids = knowledge_bases.ids(transaction)
                is_long = outbox.is_removal_log_long(transaction, kb_id)
            if is_long:
                self.database.commit(outbox.forget_oldest_removals, kb_id)
            self._files.sweep(kb_ids)

    def _merge(self, kb_id: str, snapshot: SegmentedSnapshot, limit: int) -> SegmentedSnapshot:
        while (part := to_merge(snapshot.segments, limit)) is not None:
            merged = merge_segments(snapshot.segments[part])
            segments = list(snapshot.segments)
            for segment in segments[part]:
                forget_pages(segment.snapshot.vectors)
            segments[part] = [self._map(kb_id, Segment(merged))] if len(merged) else []
            del merged
            snapshot = join_segments(snapshot.state, segments, snapshot.numbers, snapshot.summaries)
        return snapshot

    def faults(self, kb_id: str) -> list[str]:
        """Compare the snapshot's files with the catalog; missing files are no fault."""
        files = SegmentFiles(self.folder)
        if not files.has_list(kb_id):
            return []
        if damaged := files.damaged(kb_id):
            return [f"its snapshot is damaged ({reason})" for reason in damaged]
        snapshot = files.read(kb_id)
        if snapshot is None:
            return ["its snapshot cannot be read"]
        with self.database.read() as transaction:
            row = knowledge_bases.get_by_id(transaction, kb_id)
            seqs = corpus.chunk_seqs(transaction, kb_id)
        if snapshot.shows(row) and not np.array_equal(snapshot.seqs, seqs):
            return ["the chunks in its snapshot differ from the catalog"]
        return []

    def rebuild(self, kb_id: str) -> None:
        with self._saving:
            self.drop(kb_id)
        self.save(kb_id, merging=True)

    def needs_index(self, kb_id: str) -> bool:
        cached = self._cached.get(kb_id)
        return cached is None or not (cached.is_small or near_chunks.is_coded(cached))

    def drop(self, kb_id: str) -> None:
        for cache in (self._cached, self._lists):
            cache.pop(kb_id, None)
        self._files.drop(kb_id)


_PAUSE = 9
"""Pause after making a snapshot, as a multiple of the time it took."""


@dataclass(slots=True)
class Warmer:
    """Merges snapshots and opens collections in a background thread, at most 1/10 of the time."""

    snapshots: Snapshots
    vectors: VectorIndex
    _seen: set[str] = field(default_factory=set)
    _thread: threading.Thread | None = None
    _again: float = 0.0
    _mutex: threading.Lock = field(default_factory=threading.Lock)

    def record_search(self, kb_id: str, *, ready: bool) -> None:
        """Record a search; the second one that could be faster starts the thread."""
        if ready:
            return
        with self._mutex:
            first = kb_id not in self._seen
            self._seen.add(kb_id)
            busy = self._thread is not None and self._thread.is_alive()
            if first or busy or time.monotonic() < self._again:
                return
            # not a daemon: the end of the process must not interrupt the import of chromadb
            self._thread = threading.Thread(target=self._warm, args=(kb_id,), name="kbkit-warmer")
            self._thread.start()

    def close(self) -> None:
        with self._mutex:
            thread = self._thread
        if thread is not None:
            thread.join()

    def _warm(self, kb_id: str) -> None:
        # fails if the knowledge base was deleted or the interpreter is shutting down; searches
        # report the error themselves
        with contextlib.suppress(Exception):
            began = time.monotonic()
            self.snapshots.save(kb_id, merging=True)
            self._again = time.monotonic() + _PAUSE * (time.monotonic() - began)
            if self.snapshots.needs_index(kb_id):
                self.vectors.open(kb_id)
