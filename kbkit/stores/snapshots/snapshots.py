"""Snapshots in memory, and their updates.

A snapshot answers faster than FTS5 and Chroma do. It serves only searches of its own version of the
catalog, so it is never behind.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import numpy as np

from kbkit.stores.catalog import corpus, knowledge_bases, removed_chunks
from kbkit.stores.catalog.database import Database, Transaction
from kbkit.stores.catalog.knowledge_bases import KnowledgeBaseRow
from kbkit.stores.snapshots import codes, near_chunks
from kbkit.stores.snapshots.advancing import MAX, advanced, anew, follows, slices
from kbkit.stores.snapshots.chunk_table import ChunkTable, check, forget_pages, read, with_summaries
from kbkit.stores.snapshots.making import LARGEST, make, merged, to_merge
from kbkit.stores.snapshots.segment_files import SegmentFiles
from kbkit.stores.snapshots.segments import Segment, SegmentedSnapshot, joined
from kbkit.stores.snapshots.snapshot import Snapshot
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
            continue  # of vectors in codes, which not every segment has
        except (OSError, ValueError) as error:
            damaged = True
            yield f"its snapshot is damaged ({error})"
    held = None if damaged else files.read(row.id)
    if held is None:
        if not damaged:
            yield "its snapshot cannot be read"
        return
    coded = [(codes.path_of(files.folder / s.file), s.snapshot.vectors) for s in held.segments]
    coded += [(part.coded, part.vectors) for part in held.summary_parts() if part.coded is not None]
    if strange := sum(codes.strangers(path, vectors) for path, vectors in coded):
        yield f"its snapshot has codes of other vectors for {strange:,} of its own"
        return
    current = advanced(transaction, row, held)
    if current is None:
        return  # of another history, so that no search uses it
    if len(current) != corpus.count_chunks(transaction, row.id):
        yield "its snapshot has other chunks than the catalog"
        return
    for low, high in slices(transaction, row, 0):
        made = make(transaction, row, None, after=low, until=high)
        if not _same(current, made):
            yield "its snapshot differs from the catalog"
            return


def _same(snapshot: SegmentedSnapshot, made: Snapshot) -> bool:
    if not len(made):
        return True
    first = int(np.searchsorted(snapshot.seqs, made.seqs[0]))
    rows = np.arange(first, first + len(made))
    if rows[-1] >= len(snapshot) or not np.array_equal(snapshot.seqs[rows], made.seqs):
        return False
    owners = [snapshot.document_ids[number] for number in snapshot.owners[rows].tolist()]
    return (
        np.array_equal(snapshot.rows_of(list(made.ids)), rows)
        and owners == [made.document_ids[number] for number in made.owners.tolist()]
        and np.array_equal(snapshot.lengths[rows], made.lengths)
        and np.array_equal(snapshot.vectors_of(rows), made.vectors)
        and _same_words(snapshot, made, first)
    )


def _same_words(snapshot: SegmentedSnapshot, made: Snapshot, first: int) -> bool:
    terms = list(made.terms)
    held = snapshot.holding(terms)
    for number, term in enumerate(terms):
        rows, counts = made.postings(number)
        if term not in held:
            return False
        own, times = held[term]
        part = (own >= first) & (own < first + len(made))
        if not np.array_equal(own[part], rows + first) or not np.array_equal(times[part], counts):
            return False
    return True


_SOON = 8 * MAX
"""Maximum chunks merged while a caller waits, beyond the new ones."""

_Stamp = tuple[int, int] | None
_Shown = tuple[int, str, int]


@dataclass(slots=True)
class Snapshots:
    """The snapshots of one workspace, as far as this process has use for them."""

    folder: Path
    database: Database
    _files: SegmentFiles = field(init=False)
    _held: dict[str, SegmentedSnapshot] = field(default_factory=dict)
    _kept: dict[str, tuple[_Stamp, _Shown | None]] = field(default_factory=dict)
    _tables: dict[str, ChunkTable] = field(default_factory=dict)
    _making: threading.Lock = field(default_factory=threading.Lock)
    _advancing: threading.RLock = field(default_factory=threading.RLock)
    _tabling: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self._files = SegmentFiles(self.folder)

    def get(self, row: KnowledgeBaseRow) -> SegmentedSnapshot | None:
        """Return the snapshot of this version, from memory or disk; ``None`` if there is none.

        After small changes it is updated while the search waits, which takes milliseconds.
        """
        held = self._held.get(row.id)
        if held is not None and _is_of(held, row):
            return held
        with self._advancing:
            held = self._held.get(row.id)
            if held is None or not _is_of(held, row):
                with self.database.read() as transaction:
                    now = knowledge_bases.get_by_id(transaction, row.id)
                    held = self._level(transaction, now)
        return held if held is not None and _is_of(held, row) else None

    def seen(self, transaction: Transaction, row: KnowledgeBaseRow) -> SegmentedSnapshot | None:
        """Return the transaction's snapshot if it is in memory or quickly made."""
        held = self._held.get(row.id)
        if held is None:
            return None
        if _is_of(held, row):
            return held
        with self._advancing:
            return self._level(transaction, row)

    def table(self, transaction: Transaction, row: KnowledgeBaseRow) -> ChunkTable:
        """Return the transaction's chunk table, read once a version."""
        if (snapshot := self.seen(transaction, row)) is not None:
            return snapshot
        with self._tabling:  # of threads that search at once, one reads it
            chunk_table = self._tables.get(row.id)
            if chunk_table is None or not chunk_table.shows(row):
                chunk_table = read(transaction, row)
            chunk_table = self._tables[row.id] = with_summaries(transaction, row, chunk_table)
            return chunk_table

    def _level(self, transaction: Transaction, row: KnowledgeBaseRow) -> SegmentedSnapshot | None:
        """Return the snapshot if it is quickly made; the caller holds `_advancing`."""
        held = self._newest(transaction, row)
        if held is None or _is_of(held, row):
            return held
        snapshot = advanced(transaction, row, held, quickly=True)
        if snapshot is not None:
            self._hold(row.id, snapshot)
        return snapshot

    def _newest(self, transaction: Transaction, row: KnowledgeBaseRow) -> SegmentedSnapshot | None:
        held = self._held.get(row.id)
        if held is not None and held.version == row.version:
            return held
        stamp = self._files.stamp(row.id)
        if row.id in self._kept and self._kept[row.id][0] == stamp:
            return held
        kept = self._files.read(row.id, held.numbers if held else None)
        if kept is None or kept.version <= row.version:
            self._kept[row.id] = stamp, None if kept is None else _shown(kept)
        if kept is None or not follows(transaction, row, kept):
            return held
        if held is None or held.version < kept.version:
            self._hold(row.id, kept)
            return kept
        return held

    def _hold(self, kb_id: str, snapshot: SegmentedSnapshot) -> None:
        held = self._held.get(kb_id)
        newer = held is None or (held.version, held.summaries_version) <= (
            snapshot.version,
            snapshot.summaries_version,
        )
        if newer or (held is not None and held.embedder != snapshot.embedder):
            self._held[kb_id] = snapshot
            self._tables.pop(kb_id, None)

    def made(self, transaction: Transaction, row: KnowledgeBaseRow) -> Snapshot:
        """Return the transaction's snapshot with all documents."""
        with self._making:
            with self._advancing:
                held = self._newest(transaction, row)
            fits = held is not None and follows(transaction, row, held) and len(held.segments)
            before = merged(held.segments) if held is not None and fits else None
            return make(transaction, row, before)

    def renew(self, kb_id: str) -> SegmentedSnapshot:
        """Update the snapshot in memory to the catalog, whatever it takes."""
        with self._making:
            return self._renewed(kb_id)

    def _renewed(self, kb_id: str) -> SegmentedSnapshot:
        with self.database.read() as transaction:
            row = knowledge_bases.get_by_id(transaction, kb_id)
            with self._advancing:  # soon had, it is had once
                snapshot = self._level(transaction, row)
            if snapshot is None:
                with self._advancing:
                    held = self._newest(transaction, row)
                keep = partial(self._mapped, kb_id)
                if held is not None:
                    snapshot = advanced(transaction, row, held, keep=keep)
                snapshot = snapshot or anew(transaction, row, keep=keep)
        with self._advancing:
            self._hold(kb_id, snapshot)
        return snapshot

    def _mapped(self, kb_id: str, segment: Segment) -> Segment:
        with contextlib.suppress(OSError):  # a full disk costs memory, no more
            return self._files.kept(kb_id, segment)
        return segment

    def save(self, kb_id: str, *, merging: bool = False) -> None:
        with self._making, contextlib.suppress(OSError):  # a full or read-only disk costs speed
            snapshot = self._renewed(kb_id)
            most = LARGEST if merging else _SOON + 2 * snapshot.later
            whole = self._merged(kb_id, snapshot, most)
            stamp = self._files.stamp(kb_id)
            there = stamp is not None and self._kept.get(kb_id) == (stamp, _shown(whole))
            if not there or whole is not snapshot:
                whole = self._files.write(kb_id, whole)
                with self._advancing:
                    self._kept[kb_id] = self._files.stamp(kb_id), _shown(whole)
                    held = self._held.get(kb_id)
                    if held is not None and _shown(held) == _shown(whole):
                        self._held[kb_id] = whole
            self._files.write_codes(whole)
            with self.database.read() as transaction:
                kb_ids = knowledge_bases.ids(transaction)
                long = removed_chunks.is_long(transaction, kb_id)
            if long:
                with self.database.write() as transaction:
                    removed_chunks.forget_oldest(transaction, kb_id)
            self._files.sweep(kb_ids)

    def _merged(self, kb_id: str, snapshot: SegmentedSnapshot, limit: int) -> SegmentedSnapshot:
        while (part := to_merge(snapshot.segments, limit)) is not None:
            one = merged(snapshot.segments[part])
            one = replace(
                one,
                version=snapshot.version,
                summaries_version=snapshot.summaries_version,
                summary_embedder=snapshot.summary_embedder,
                summary_vectors=snapshot.summaries_of(one.document_ids),
            )
            segments = list(snapshot.segments)
            for segment in segments[part]:
                forget_pages(segment.snapshot.vectors)
            segments[part] = [self._mapped(kb_id, Segment(one))] if len(one) else []
            del one
            snapshot = joined(snapshot.about, segments, snapshot.numbers, snapshot.summaries)
        return snapshot

    def faults(self, kb_id: str) -> list[str]:
        """Compare all snapshot files with the catalog; return the faults in words."""
        with self.database.read() as transaction:
            row = knowledge_bases.get_by_id(transaction, kb_id)
            return list(faults(SegmentFiles(self.folder), transaction, row))

    def make_anew(self, kb_id: str) -> None:
        with self._making:
            self.drop(kb_id)
        self.save(kb_id, merging=True)

    def is_useless(self, kb_id: str) -> bool:
        """Whether files were unreadable: of another version, or damaged."""
        stamp, shown = self._kept.get(kb_id, (None, None))
        return stamp is not None and shown is None

    def is_coded(self, kb_id: str) -> bool:
        held = self._held.get(kb_id)
        return held is not None and near_chunks.is_coded(held)

    def drop(self, kb_id: str) -> None:
        for cache in (self._held, self._tables, self._kept):
            cache.pop(kb_id, None)
        self._files.drop(kb_id)


def _is_of(table: ChunkTable, row: KnowledgeBaseRow) -> bool:
    return table.shows(row) and table.summaries_version == row.summaries_version


def _shown(snapshot: SegmentedSnapshot) -> _Shown:
    return snapshot.version, snapshot.embedder, snapshot.summaries_version


_WORN_PAUSE = 20
"""Seconds until the next one is begun where the last one still answers quickly."""
_PAUSE = 9
"""Pause after making a snapshot, as a multiple of the time it took."""


@dataclass(slots=True)
class Warmer:
    """Makes snapshots and opens collections in the background, one at a time.

    While documents keep coming, this takes at most a tenth of the time.
    """

    snapshots: Snapshots
    vectors: VectorIndex
    _seen: set[str] = field(default_factory=set)
    _thread: threading.Thread | None = None
    _again: float = 0.0
    _mutex: threading.Lock = field(default_factory=threading.Lock)

    def searched(self, kb_id: str, *, ready: bool, worn: bool = False) -> None:
        """Record a search; the second one that finds something missing starts its preparation.

        The first one does if the snapshot on disk cannot be used, as after an upgrade.
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
            # no daemon: importing chromadb must not be cut off by the end of the process
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
        # Whatever is in the way (the knowledge base was deleted, the interpreter is about to end
        # and lets chromadb start nothing any more): searches do without, or say so themselves.
        with contextlib.suppress(Exception):
            began = time.monotonic()
            self.snapshots.save(kb_id, merging=True)
            self._again = time.monotonic() + _PAUSE * (time.monotonic() - began)
            if opening and not self.snapshots.is_coded(kb_id):
                self.vectors.open(kb_id)
