"""Snapshots: one version of a knowledge base in memory, as arrays that search reads.

The catalog is the truth and FTS5 and Chroma can answer by themselves; a snapshot answers in less
time. It is never behind: it serves searches of the catalog's version that it was made of, and no
other. Chunks keep their ``seq`` for life and what a snapshot holds of one never changes, so the
snapshot of a version is made of the one before and of the chunks that came since. The newest one
of each knowledge base lies on disk too, so that a fresh process need not read all chunks.
"""

from __future__ import annotations

import contextlib
import json
import os
import threading
from array import array
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray

from kbkit.stores import registry
from kbkit.stores.contents import heading_text, unpack
from kbkit.stores.database import Database
from kbkit.stores.registry import KnowledgeBaseRow
from kbkit.stores.schema import chunks, documents, vectors

_FORMAT = "1"
_ROWS_AT_ONCE = 2_000
"""Chunks read at once, so that their copies stay small."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The chunks of a knowledge base, in order of ``seq``.

    Attributes:
        version: ``knowledge_bases.version`` that it shows.
        embedder: Fingerprint of what made the vectors.
        seqs: ``chunks.seq``, shape ``(n,)``, ascending.
        ids: ``chunks.id`` of the same.
        owners: Which of `document_ids` each chunk is part of, shape ``(n,)``.
        lengths: Number of terms of each chunk, shape ``(n,)``.
        headings: Which of `heading_texts` stands above each chunk, shape ``(n,)``.
        vectors: Unit vectors, shape ``(n, dimensions)``.
        document_ids: Of all documents that have chunks.
        titles: Of the same.
        sizes: Number of chunks of the same.
        heading_texts: Heading paths without the documents' titles, each on one line.
        terms: All terms, sorted.
        starts: Where the postings of each term begin; one longer than `terms`.
        rows: The chunk of each posting, ascending within a term.
        counts: How often the term stands in it.
        average_length: Mean of `lengths`.
    """

    version: int
    embedder: str
    seqs: NDArray[np.int64]
    ids: Sequence[str]
    owners: NDArray[np.int32]
    lengths: NDArray[np.int32]
    headings: NDArray[np.int32]
    vectors: NDArray[np.float32]
    document_ids: Sequence[str]
    titles: Sequence[str]
    sizes: NDArray[np.int64]
    heading_texts: Sequence[str]
    terms: Sequence[str]
    starts: NDArray[np.int64]
    rows: NDArray[np.int32]
    counts: NDArray[np.uint16]
    average_length: float
    _rows: dict[str, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.seqs)

    def rows_of(self, ids: Sequence[str]) -> NDArray[np.int64]:
        """Rows of chunks by id, in that order; those that are gone are left out."""
        if len(self._rows) < len(self):
            self._rows.update({known: row for row, known in enumerate(self.ids)})
        rows = self._rows
        return np.array([rows[known] for known in ids if known in rows], np.int64)

    def postings(self, term: str) -> tuple[NDArray[np.int32], NDArray[np.uint16]]:
        """The chunks that hold a term, by row, and how often each does."""
        place = bisect_left(self.terms, term)
        if place == len(self.terms) or self.terms[place] != term:
            return self.rows[:0], self.counts[:0]
        part = slice(int(self.starts[place]), int(self.starts[place + 1]))
        return self.rows[part], self.counts[part]


@dataclass(slots=True)
class Snapshots:
    """The snapshots of one workspace, as far as this process has use for them."""

    folder: Path
    database: Database
    _held: dict[str, Snapshot] = field(default_factory=dict)
    _making: threading.Lock = field(default_factory=threading.Lock)

    def get(self, row: KnowledgeBaseRow) -> Snapshot | None:
        """The snapshot of that very version, from memory or disk; ``None`` where none is."""
        held = self._held.get(row.id)
        if held is None:
            with self._making:
                held = self._held.get(row.id) or _load(self._path(row.id))
                if held is None:
                    return None
                self._held[row.id] = held
        return held if _shows(held, row) else None

    def made(self, connection: sa.Connection, row: KnowledgeBaseRow) -> Snapshot:
        """The snapshot of what a reading transaction sees, made where there is none."""
        with self._making:
            held = self._held.get(row.id) or _load(self._path(row.id))
            if held is None or not _shows(held, row):
                held = _make(connection, row, held)
            self._held[row.id] = held
            return held

    def renew(self, kb_id: str) -> Snapshot:
        """Bring the snapshot in memory level with the catalog.

        Raises:
            NotFoundError: The knowledge base was deleted.
        """
        with self.database.read() as connection:
            return self.made(connection, registry.get_by_id(connection, kb_id))

    def save(self, kb_id: str) -> None:
        """Bring memory and disk level with the catalog.

        Raises:
            NotFoundError: The knowledge base was deleted.
        """
        made = self.renew(kb_id)
        there = _load(self._path(kb_id))
        if there is None or (there.version, there.embedder) != (made.version, made.embedder):
            with contextlib.suppress(OSError):  # a full or read-only disk costs speed, no more
                _save(made, self._path(kb_id))

    def drop(self, kb_id: str) -> None:
        """Forget a knowledge base that was deleted."""
        self._held.pop(kb_id, None)
        with contextlib.suppress(OSError):
            self._path(kb_id).unlink(missing_ok=True)

    def _path(self, kb_id: str) -> Path:
        return self.folder / f"{kb_id}.safetensors"


def _shows(snapshot: Snapshot, row: KnowledgeBaseRow) -> bool:
    return snapshot.version == row.version and snapshot.embedder == row.embedder


def _make(connection: sa.Connection, row: KnowledgeBaseRow, before: Snapshot | None) -> Snapshot:
    """The snapshot of what a transaction sees, out of an older one and what is new since."""
    alive = np.fromiter(
        connection.execute(
            sa.select(chunks.c.seq).where(chunks.c.kb_id == row.id).order_by(chunks.c.seq)
        ).scalars(),
        np.int64,
    )
    found = connection.execute(
        sa.select(documents.c.id, documents.c.title).where(documents.c.kb_id == row.id)
    ).all()
    ordinals = {document.id: i for i, document in enumerate(found)}
    if before is None or before.embedder != row.embedder:
        before = _empty(row.dimensions)
    kept = np.isin(before.seqs, alive)
    new = _read(connection, row, before, ordinals)
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
        vectors=np.concatenate([before.vectors[kept], new.vectors]),
        document_ids=tuple(ordinals),
        titles=tuple(document.title for document in found),
        sizes=np.bincount(owners, minlength=len(found)),
        heading_texts=new.heading_texts,
        terms=terms,
        starts=starts,
        rows=rows,
        counts=counts,
        average_length=float(lengths.mean()) if len(lengths) else 0.0,
    )


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
        terms=[],
        starts=np.zeros(1, np.int64),
        rows=np.zeros(0, np.int32),
        counts=np.zeros(0, np.uint16),
        average_length=0.0,
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
    connection: sa.Connection,
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
    query = (
        sa.select(
            chunks.c.seq,
            chunks.c.id,
            chunks.c.document_id,
            chunks.c.length,
            chunks.c.heading_path,
            chunks.c.terms,
            vectors.c.vector,
            documents.c.title,
        )
        .join(documents, documents.c.id == chunks.c.document_id)
        .join(vectors, vectors.c.chunk_seq == chunks.c.seq)
        .where(chunks.c.kb_id == row.id, chunks.c.seq > last)
        .order_by(chunks.c.seq)
    )
    for chunk in connection.execute(query).yield_per(_ROWS_AT_ONCE):
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


_ARRAYS = (
    "seqs", "owners", "lengths", "headings", "vectors", "sizes", "starts", "rows", "counts",
)  # fmt: skip
_TEXTS = ("ids", "document_ids", "titles", "heading_texts", "terms")


def _save(snapshot: Snapshot, path: Path) -> None:
    from safetensors.numpy import save_file

    path.parent.mkdir(exist_ok=True)
    part = path.with_suffix(f".{os.getpid()}.part")
    tensors = {name: getattr(snapshot, name) for name in _ARRAYS}
    for name in _TEXTS:
        text = "".join(text.replace("\0", " ") + "\0" for text in getattr(snapshot, name))
        tensors[name] = np.frombuffer(text.encode(), np.uint8)
    about = {
        "format": _FORMAT,
        "version": str(snapshot.version),
        "embedder": snapshot.embedder,
        "average_length": repr(snapshot.average_length),
    }
    try:
        save_file(tensors, part, about)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def _load(path: Path) -> Snapshot | None:
    """Map what `_save` wrote; ``None`` for a file that is missing, damaged or of another kbkit.

    The file is mapped rather than read, so that only the pages a search touches are, and several
    processes share them. Its format begins with the length of a JSON header, 8 bytes little
    endian, that says where each array lies.
    """
    try:
        data = np.memmap(path, np.uint8, "r")
        start = 8 + int.from_bytes(data[:8].tobytes(), "little")
        header = json.loads(data[8:start].tobytes())
        about = header["__metadata__"]
        if about["format"] != _FORMAT:
            return None
        values: dict[str, Any] = {
            name: _mapped(data[start:], header[name]) for name in (*_ARRAYS, *_TEXTS)
        }
        for name in _TEXTS:
            values[name] = values[name].tobytes().decode().split("\0")[:-1]
        return Snapshot(
            version=int(about["version"]),
            embedder=about["embedder"],
            average_length=float(about["average_length"]),
            **values,
        )
    except (OSError, KeyError, TypeError, ValueError):
        return None


_DTYPES = {"F32": "<f4", "I64": "<i8", "I32": "<i4", "U16": "<u2", "U8": "|u1"}


def _mapped(data: NDArray[np.uint8], place: Any) -> NDArray[Any]:
    start, end = place["data_offsets"]
    return np.asarray(data[start:end]).view(_DTYPES[place["dtype"]]).reshape(place["shape"])
