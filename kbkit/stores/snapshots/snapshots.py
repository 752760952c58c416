"""Snapshots in memory, and their updates.

A snapshot answers faster than FTS5 and Chroma. It serves only searches of its own version of the
catalog, so it is never outdated.
"""

from __future__ import annotations

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
from kbkit.stores.snapshots.chunk_table import ChunkTable, check, forget_pages, read, with_summaries
from kbkit.stores.snapshots.making import LARGEST, MAX, advanced, build, follows, merged, to_merge
from kbkit.stores.snapshots.segment_files import SegmentFiles
from kbkit.stores.snapshots.segments import Segment, SegmentedSnapshot, joined
from kbkit.stores.vector_index import VectorIndex


def faults(files: SegmentFiles, transaction: Transaction, row: KnowledgeBaseRow) -> Iterator[str]:
    """List the defects of a knowledge base's snapshot; none if it has no current one."""
    if files.stamp(row.id) is None or files.is_outdated(row.id):
        return
    damaged = False
    for path in files.named(row.id):
        try:
            check(path)
        except FileNotFoundError:
            continue  # not every segment has a file of codes
        except (OSError, ValueError) as error:
            damaged = True
            yield f"its snapshot is damaged ({error})"
    stored = None if damaged else files.read(row.id)
    if stored is None:
        if not damaged:
            yield "its snapshot cannot be read"
        return
    seqs = corpus.chunk_seqs(transaction, row.id)
    if stored.shows(row) and not np.array_equal(stored.seqs, seqs):
        yield "its snapshot has other chunks than the catalog"


_SOON = 8 * MAX
"""Maximum chunks merged while a caller waits, besides the new ones."""

_Stamp = tuple[int, int] | None
_Shown = tuple[int, str, int]


@dataclass(slots=True)
class Snapshots:
    """The snapshots of one workspace."""

    folder: Path
    database: Database
    _files: SegmentFiles = field(init=False)
    _cached: dict[str, SegmentedSnapshot] = field(default_factory=dict)
    _stored: dict[str, tuple[_Stamp, _Shown | None]] = field(default_factory=dict)
    _tables: dict[str, ChunkTable] = field(default_factory=dict)
    _making: threading.Lock = field(default_factory=threading.Lock)
    _advancing: threading.RLock = field(default_factory=threading.RLock)
    _table_lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self._files = SegmentFiles(self.folder)

    def get(self, row: KnowledgeBaseRow) -> SegmentedSnapshot | None:
        """Return the snapshot of this version; ``None`` if it takes more than a small update."""
        cached = self._cached.get(row.id)
        if cached is not None and _is_of(cached, row):
            return cached
        with self._advancing:
            cached = self._cached.get(row.id)
            if cached is None or not _is_of(cached, row):
                with self.database.read() as transaction:
                    now = knowledge_bases.get_by_id(transaction, row.id)
                    cached = self._quickly_updated(transaction, now)
        return cached if cached is not None and _is_of(cached, row) else None

    def seen(self, transaction: Transaction, row: KnowledgeBaseRow) -> SegmentedSnapshot | None:
        """Return the transaction's snapshot if it is in memory, perhaps after a small update."""
        cached = self._cached.get(row.id)
        if cached is None:
            return None
        if _is_of(cached, row):
            return cached
        with self._advancing:
            return self._quickly_updated(transaction, row)

    def table(self, transaction: Transaction, row: KnowledgeBaseRow) -> ChunkTable:
        """Return the transaction's chunk table, which is read once per version."""
        if (snapshot := self.seen(transaction, row)) is not None:
            return snapshot
        with self._table_lock:  # one of several threads reads it
            chunk_table = self._tables.get(row.id)
            if chunk_table is None or not chunk_table.shows(row):
                chunk_table = read(transaction, row)
            chunk_table = self._tables[row.id] = with_summaries(transaction, row, chunk_table)
            return chunk_table

    def _quickly_updated(
        self, transaction: Transaction, row: KnowledgeBaseRow
    ) -> SegmentedSnapshot | None:
        """Return the snapshot after at most a small update; the caller holds `_advancing`."""
        cached = self._newest(transaction, row)
        if cached is None or _is_of(cached, row):
            return cached
        snapshot = advanced(transaction, row, cached, quickly=True)
        if snapshot is not None:
            self._hold(row.id, snapshot)
        return snapshot

    def _newest(self, transaction: Transaction, row: KnowledgeBaseRow) -> SegmentedSnapshot | None:
        cached = self._cached.get(row.id)
        if cached is not None and cached.version == row.version:
            return cached
        stamp = self._files.stamp(row.id)
        if row.id in self._stored and self._stored[row.id][0] == stamp:
            return cached
        stored = self._files.read(row.id, cached.numbers if cached else None)
        if stored is None or stored.version <= row.version:
            self._stored[row.id] = stamp, None if stored is None else _shown(stored)
        if stored is None or not follows(transaction, row, stored):
            return cached
        if cached is None or cached.version < stored.version:
            self._hold(row.id, stored)
            return stored
        return cached

    def _hold(self, kb_id: str, snapshot: SegmentedSnapshot) -> None:
        cached = self._cached.get(kb_id)
        newer = cached is None or (cached.version, cached.summaries_version) <= (
            snapshot.version,
            snapshot.summaries_version,
        )
        if newer or (cached is not None and cached.embedder != snapshot.embedder):
            self._cached[kb_id] = snapshot
            self._tables.pop(kb_id, None)

    def renew(self, kb_id: str) -> SegmentedSnapshot:
        """Update the snapshot in memory, whatever it takes."""
        with self._making:
            return self._renewed(kb_id)

    def _renewed(self, kb_id: str) -> SegmentedSnapshot:
        with self.database.read() as transaction:
            row = knowledge_bases.get_by_id(transaction, kb_id)
            with self._advancing:
                snapshot = self._quickly_updated(transaction, row)
            if snapshot is None:
                with self._advancing:
                    cached = self._newest(transaction, row)
                keep = partial(self._mapped, kb_id)
                if cached is not None:
                    snapshot = advanced(transaction, row, cached, keep=keep)
                snapshot = snapshot or build(transaction, row, keep=keep)
        with self._advancing:
            self._hold(kb_id, snapshot)
        return snapshot

    def _mapped(self, kb_id: str, segment: Segment) -> Segment:
        with contextlib.suppress(OSError):  # on a full disk the segment stays in memory
            return self._files.kept(kb_id, segment)
        return segment

    def save(self, kb_id: str, *, merging: bool = False) -> None:
        with self._making, contextlib.suppress(OSError):  # the disk is full or read-only
            snapshot = self._renewed(kb_id)
            most = LARGEST if merging else _SOON + 2 * snapshot.later
            whole = self._merged(kb_id, snapshot, most)
            stamp = self._files.stamp(kb_id)
            is_stored = stamp is not None and self._stored.get(kb_id) == (stamp, _shown(whole))
            if not is_stored or whole is not snapshot:
                whole = self._files.write(kb_id, whole)
                with self._advancing:
                    self._stored[kb_id] = self._files.stamp(kb_id), _shown(whole)
                    cached = self._cached.get(kb_id)
                    if cached is not None and _shown(cached) == _shown(whole):
                        self._cached[kb_id] = whole
            self._files.write_codes(whole)
            with self.database.read() as transaction:
                kb_ids = knowledge_bases.ids(transaction)
                long = outbox.is_removal_log_long(transaction, kb_id)
            if long:
                with self.database.write() as transaction:
                    outbox.forget_oldest_removals(transaction, kb_id)
            self._files.sweep(kb_ids)

    def _merged(self, kb_id: str, snapshot: SegmentedSnapshot, limit: int) -> SegmentedSnapshot:
        while (part := to_merge(snapshot.segments, limit)) is not None:
            one = merged(snapshot.segments[part], snapshot.summary_columns_of)
            segments = list(snapshot.segments)
            for segment in segments[part]:
                forget_pages(segment.snapshot.vectors)
            segments[part] = [self._mapped(kb_id, Segment(one))] if len(one) else []
            del one
            snapshot = joined(snapshot.about, segments, snapshot.numbers, snapshot.summaries)
        return snapshot

    def faults(self, kb_id: str) -> list[str]:
        """Compare the snapshot's files with the catalog; return the faults."""
        with self.database.read() as transaction:
            row = knowledge_bases.get_by_id(transaction, kb_id)
            return list(faults(SegmentFiles(self.folder), transaction, row))

    def make_anew(self, kb_id: str) -> None:
        with self._making:
            self.drop(kb_id)
        self.save(kb_id, merging=True)

    def is_useless(self, kb_id: str) -> bool:
        """Whether the files are damaged or of another version."""
        stamp, shown = self._stored.get(kb_id, (None, None))
        return stamp is not None and shown is None

    def is_coded(self, kb_id: str) -> bool:
        cached = self._cached.get(kb_id)
        return cached is not None and near_chunks.is_coded(cached)

    def drop(self, kb_id: str) -> None:
        for cache in (self._cached, self._tables, self._stored):
            cache.pop(kb_id, None)
        self._files.drop(kb_id)


def _is_of(table: ChunkTable, row: KnowledgeBaseRow) -> bool:
    return table.shows(row) and table.summaries_version == row.summaries_version


def _shown(snapshot: SegmentedSnapshot) -> _Shown:
    return snapshot.version, snapshot.embedder, snapshot.summaries_version


_WORN_PAUSE = 20
"""Additional pause in seconds while the last snapshot still serves searches."""
_PAUSE = 9
"""Pause after making a snapshot, as a multiple of the time it took."""


@dataclass(slots=True)
class Warmer:
    """Makes snapshots and opens collections in one background thread, at most 1/10 of the time."""

    snapshots: Snapshots
    vectors: VectorIndex
    _seen: set[str] = field(default_factory=set)
    _thread: threading.Thread | None = None
    _again: float = 0.0
    _mutex: threading.Lock = field(default_factory=threading.Lock)

    def searched(self, kb_id: str, *, ready: bool, worn: bool = False) -> None:
        """Record a search; the second one without a ready snapshot starts the thread.

        The first one does if the snapshot on disk is unusable, as after an upgrade.
        """
        if ready and not worn:
            return
        useless = self.snapshots.is_useless(kb_id)
        with self._mutex:
            first = kb_id not in self._seen
            self._seen.add(kb_id)
            busy = self._thread is not None and self._thread.is_alive()
            wait = self._again + (_WORN_PAUSE if ready else 0)
            if (first and not useless) or busy or time.monotonic() < wait:
                return
            # not a daemon: the end of the process must not interrupt the import of chromadb
            self._thread = threading.Thread(
                target=self._warm, args=(kb_id, not first), name="kbkit-warmer"
            )
            self._thread.start()

    def close(self) -> None:
        with self._mutex:
            thread = self._thread
        if thread is not None:
            thread.join()

    def _warm(self, kb_id: str, opening: bool) -> None:
        # fails if the knowledge base was deleted or the interpreter is shutting down; searches then
        # work without a snapshot, or report the error themselves
        with contextlib.suppress(Exception):
            began = time.monotonic()
            self.snapshots.save(kb_id, merging=True)
            self._again = time.monotonic() + _PAUSE * (time.monotonic() - began)
            if opening and not self.snapshots.is_coded(kb_id):
                self.vectors.open(kb_id)
