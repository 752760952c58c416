"""Snapshots: one version of a knowledge base in memory, as arrays that search reads.

The catalog is the truth and FTS5 and Chroma can answer by themselves; a snapshot answers in less
time. It is never behind: it serves searches of the catalog's version that it was made of, and no
other. Chunks keep their ``seq`` for life and what a snapshot holds of one never changes, but for
vectors of statements, so the snapshot of a version is made of the one before, and of the chunks and
those vectors that came since. The newest one
of each knowledge base lies on disk too, so that a fresh process need not read all chunks.
"""

from __future__ import annotations

import contextlib
import threading
import time
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from kbkit.recipes import KnowledgeBaseSpec
from kbkit.stores.catalog import corpus, knowledge_bases, statement_vectors
from kbkit.stores.catalog.database import Database, Transaction
from kbkit.stores.catalog.knowledge_bases import KnowledgeBaseRow
from kbkit.stores.catalog.packing import unpack
from kbkit.stores.catalog.reading import heading_text
from kbkit.stores.snapshots.chunk_table import ChunkTable, card_columns, read, with_cards
from kbkit.stores.snapshots.snapshot import PART, Lists, Snapshot, load, save
from kbkit.text import analyzer

_COMPARED = 10
"""Chunks that a snapshot and the catalog must have in common."""
_PART_SECONDS = 3600
"""Age of a file half written that nobody is writing any more."""


@dataclass(slots=True)
class Snapshots:
    """The snapshots of one workspace, as far as this process has use for them."""

    folder: Path
    database: Database
    _held: dict[str, Snapshot] = field(default_factory=dict)
    _tables: dict[str, ChunkTable] = field(default_factory=dict)
    _making: threading.Lock = field(default_factory=threading.Lock)

    def get(self, row: KnowledgeBaseRow) -> Snapshot | None:
        """The snapshot of that very version, from memory or disk; ``None`` where none is.

        Where only the vectors of cards are others by now, they are read: that takes milliseconds.
        """
        held = self._held.get(row.id)
        if held is None:
            with self.database.read() as transaction:
                held = self._loaded(transaction, row.id)
            if held is None:
                return None
            held = self._held.setdefault(row.id, held)
        if not held.shows(row):
            return None
        if held.cards_version != row.cards_version:
            with self.database.read() as transaction:
                row = knowledge_bases.get_by_id(transaction, row.id)
                held = self._with_cards(transaction, row, held)
        return held

    def table(self, transaction: Transaction, row: KnowledgeBaseRow) -> ChunkTable:
        """The chunk table of what a reading transaction sees, read once for each version."""
        held = self._held.get(row.id)
        if held is not None and held.shows(row):
            return self._with_cards(transaction, row, held)
        found = self._tables.get(row.id)
        if found is None or not found.shows(row):
            found = read(transaction, row)
        found = self._tables[row.id] = with_cards(transaction, row, found)
        return found

    def made(self, transaction: Transaction, row: KnowledgeBaseRow) -> Snapshot:
        """The snapshot of what a reading transaction sees, made where there is none."""
        with self._making:
            held = self._held.get(row.id) or self._loaded(transaction, row.id)
            if held is not None and held.shows(row):
                return self._with_cards(transaction, row, held)
            made = _make(transaction, row, held)
            if held is None or held.version < made.version:  # a transaction may see what was
                self._held[row.id] = made
                self._tables.pop(row.id, None)
            return made

    def _with_cards(
        self, transaction: Transaction, row: KnowledgeBaseRow, held: Snapshot
    ) -> Snapshot:
        """A snapshot, with the vectors of cards that a transaction sees, which is kept."""
        held = with_cards(transaction, row, held)
        if held.shows(row):
            self._held[row.id] = held
        return held

    def renew(self, kb_id: str) -> Snapshot:
        """Bring the snapshot in memory level with the catalog.

        Raises:
            NotFoundError: The knowledge base was deleted.
        """
        with self.database.read() as transaction:
            return self.made(transaction, knowledge_bases.get_by_id(transaction, kb_id))

    def save(self, kb_id: str) -> None:
        """Bring memory and disk level with the catalog.

        Raises:
            NotFoundError: The knowledge base was deleted.
        """
        made = self.renew(kb_id)
        with contextlib.suppress(OSError):  # a full or read-only disk costs speed, no more
            with self.database.read() as transaction:
                there = self._loaded(transaction, kb_id)
            if there is None or _shown(there) != _shown(made):
                save(made, self._path(kb_id))
            self._sweep()

    def drop(self, kb_id: str) -> None:
        """Forget a knowledge base that was deleted."""
        self._held.pop(kb_id, None)
        self._tables.pop(kb_id, None)
        with contextlib.suppress(OSError):
            self._path(kb_id).unlink(missing_ok=True)

    def _sweep(self) -> None:
        """Remove what a kill left: files of deleted knowledge bases, and files half written."""
        files = list(self.folder.iterdir())
        with self.database.read() as transaction:
            there = knowledge_bases.ids(transaction)
        for file in files:
            old = file.suffix == PART and file.stat().st_mtime < time.time() - _PART_SECONDS
            if old or file.name.partition(".")[0] not in there:
                file.unlink(missing_ok=True)

    def _loaded(self, transaction: Transaction, kb_id: str) -> Snapshot | None:
        """The one on disk, unless it is not of this catalog."""
        found = load(self._path(kb_id))
        return found if found is not None and _related(transaction, kb_id, found) else None

    def _path(self, kb_id: str) -> Path:
        return self.folder / f"{kb_id}.safetensors"


def _shown(snapshot: Snapshot) -> tuple[int, str, int]:
    return snapshot.version, snapshot.embedder, snapshot.cards_version


def _related(transaction: Transaction, kb_id: str, snapshot: Snapshot) -> bool:
    """Whether a snapshot is of this catalog's history.

    A catalog that was restored from a copy counts on from there, and gives versions and ``seq``
    again that a snapshot has seen; its last chunks tell.
    """
    if not len(snapshot):
        return True
    until = int(snapshot.seqs[-1])
    last = corpus.last_chunks(transaction, kb_id, until=until, limit=_COMPARED)
    places = np.searchsorted(snapshot.seqs, [seq for seq, _ in last])
    ids = [snapshot.ids[place] for place in places.tolist()]
    return ids == [known for _, known in last]


def _make(transaction: Transaction, row: KnowledgeBaseRow, before: Snapshot | None) -> Snapshot:
    """The snapshot of what a transaction sees, out of an older one and what is new since."""
    alive = corpus.chunk_seqs(transaction, row.id)
    titles_by_id = corpus.titles(transaction, row.id)
    ordinals = {known: i for i, known in enumerate(titles_by_id)}
    if (
        before is None
        or before.embedder != row.embedder
        or before.version > row.version  # which lacks what has gone since
        or not _related(transaction, row.id, before)
    ):
        before = _empty(row.dimensions)
    kept = np.isin(before.seqs, alive)
    new = _read(transaction, row, before, ordinals)
    moved = np.array([ordinals.get(known, -1) for known in before.document_ids], np.int32)
    first = int(kept.sum())
    renumbered = np.cumsum(kept) - 1
    posted = kept[before.rows]
    terms, starts, rows, counts = _postings(
        new.vocabulary,
        np.concatenate([np.repeat(np.arange(len(before.terms)), np.diff(before.starts))[posted],
                        new.term_ids]),
        np.concatenate([renumbered[before.rows[posted]], new.rows + first]),
        np.concatenate([before.counts[posted], np.ones(len(new.rows), np.uint16)]),
    )  # fmt: skip
    titles = tuple(titles_by_id.values())
    language = KnowledgeBaseSpec.model_validate(row.config).language
    numbers = {term: i for i, term in enumerate(terms)}
    owners = np.concatenate([moved[before.owners[kept]], new.owners])
    lengths = np.concatenate([before.lengths[kept], new.lengths])
    return Snapshot(
        version=row.version,
        embedder=row.embedder,
        seqs=np.concatenate([before.seqs[kept], new.seqs]),
        ids=(*(before.ids[i] for i in np.flatnonzero(kept).tolist()), *new.ids),
        owners=owners,
        lengths=lengths,
        headings=np.concatenate([before.headings[kept], new.headings]),
        vectors=np.concatenate([_changed(transaction, row, before)[kept], new.vectors]),
        document_ids=tuple(ordinals),
        titles=titles,
        sizes=np.bincount(owners, minlength=len(titles)),
        heading_texts=new.heading_texts,
        title_terms=_listed(titles, language, numbers),
        heading_terms=_listed(new.heading_texts, language, numbers),
        terms=terms,
        starts=starts,
        rows=rows,
        counts=counts,
        average_length=float(lengths.mean()) if len(lengths) else 0.0,
        document_lengths=np.bincount(owners, lengths, len(titles)).astype(np.int64),
        **card_columns(transaction, row, ordinals),
    )


def _changed(
    transaction: Transaction, row: KnowledgeBaseRow, before: Snapshot
) -> NDArray[np.float32]:
    """The vectors of a snapshot, with those that are made of other texts since."""
    changed = statement_vectors.changed_since(transaction, row.id, before.version)
    places = {seq: place for place, seq in enumerate(before.seqs.tolist()) if seq in changed}
    if not places:
        return before.vectors
    vectors = before.vectors.copy()
    vectors[list(places.values())] = unpack([changed[seq] for seq in places], row.dimensions)
    return vectors


def _listed(texts: Sequence[str], language: str, numbers: Mapping[str, int]) -> Lists:
    """The terms of each text, by number; those that no chunk has are left out."""
    lists = [
        [numbers[term] for term in _terms_of(text, language) if term in numbers] for text in texts
    ]
    starts = np.zeros(len(lists) + 1, np.int64)
    np.cumsum([len(found) for found in lists], out=starts[1:])
    return Lists(starts, np.fromiter(chain.from_iterable(lists), np.int32, int(starts[-1])))


@lru_cache(maxsize=100_000)
def _terms_of(text: str, language: str) -> frozenset[str]:
    return frozenset(analyzer(language).terms(text))


def _empty(dimensions: int) -> Snapshot:
    return Snapshot(
        version=-1,
        embedder="",
        seqs=np.zeros(0, np.int64),
        ids=(),
        owners=np.zeros(0, np.int32),
        lengths=np.zeros(0, np.int32),
        headings=np.zeros(0, np.int32),
        vectors=np.zeros((0, dimensions), np.float32),
        document_ids=(),
        titles=(),
        sizes=np.zeros(0, np.int64),
        heading_texts=(),
        title_terms=Lists(np.zeros(1, np.int64), np.zeros(0, np.int32)),
        heading_terms=Lists(np.zeros(1, np.int64), np.zeros(0, np.int32)),
        terms=[],
        starts=np.zeros(1, np.int64),
        rows=np.zeros(0, np.int32),
        counts=np.zeros(0, np.uint16),
        average_length=0.0,
        document_lengths=np.zeros(0, np.int64),
        cards_version=-1,
        card_embedder="",
        card_vectors=np.zeros((0, 0), np.float32),
    )


@dataclass(frozen=True, slots=True)
class _New:
    """Chunks as they are read; `term_ids` and `rows` have an item for every single term."""

    seqs: NDArray[np.int64]
    ids: Sequence[str]
    owners: NDArray[np.int32]
    lengths: NDArray[np.int32]
    headings: NDArray[np.int32]
    heading_texts: Sequence[str]
    vectors: NDArray[np.float32]
    vocabulary: dict[str, int]
    term_ids: NDArray[np.int64]
    rows: NDArray[np.int64]


def _read(
    transaction: Transaction,
    row: KnowledgeBaseRow,
    before: Snapshot,
    ordinals: dict[str, int],
) -> _New:
    """The chunks that a snapshot does not have yet; texts that it knows keep their numbers."""
    last = int(before.seqs[-1]) if len(before) else 0
    vocabulary = {term: i for i, term in enumerate(before.terms)}
    texts = {text: i for i, text in enumerate(before.heading_texts)}
    seqs, owners, lengths, headings, term_ids, per_chunk = (array(code) for code in "qiiiqq")
    ids: list[str] = []
    packed: list[bytes] = []
    for chunk in corpus.iter_indexed(transaction, row.id, after=last):
        held = chunk.terms.split(" ") if chunk.terms else []
        heading = heading_text(chunk.title, chunk.heading_path)
        seqs.append(chunk.seq)
        ids.append(chunk.id)
        owners.append(ordinals[chunk.document_id])
        lengths.append(chunk.length)
        headings.append(texts.setdefault(heading, len(texts)))
        term_ids.extend([vocabulary.setdefault(term, len(vocabulary)) for term in held])
        per_chunk.append(len(held))
        packed.append(chunk.vector)
    return _New(
        seqs=np.array(seqs, np.int64),
        ids=ids,
        owners=np.array(owners, np.int32),
        lengths=np.array(lengths, np.int32),
        headings=np.array(headings, np.int32),
        heading_texts=tuple(texts),
        vectors=unpack(packed, row.dimensions),
        vocabulary=vocabulary,
        term_ids=np.array(term_ids, np.int64),
        rows=np.repeat(np.arange(len(seqs)), np.array(per_chunk, np.int64)),
    )


def _postings(
    vocabulary: dict[str, int],
    term_ids: NDArray[np.int64],
    rows: NDArray[np.int64],
    counts: NDArray[np.uint16],
) -> tuple[list[str], NDArray[np.int64], NDArray[np.int32], NDArray[np.uint16]]:
    """Sort postings by term and row, and add up those of one term in one chunk."""
    terms = sorted(vocabulary)
    places = np.empty(len(terms), np.int64)
    places[[vocabulary[term] for term in terms]] = np.arange(len(terms))
    height = int(rows.max(initial=0)) + 1
    keys, where = np.unique(places[term_ids] * height + rows, return_inverse=True)
    totals = np.bincount(where, counts, len(keys))
    used, per_term = np.unique(keys // height, return_counts=True)
    starts = np.zeros(len(used) + 1, np.int64)
    np.cumsum(per_term, out=starts[1:])
    most = np.iinfo(np.uint16).max
    return (
        [terms[i] for i in used],
        starts,
        (keys % height).astype(np.int32),
        np.minimum(totals, most).astype(np.uint16),
    )
