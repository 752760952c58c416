"""Makes a snapshot of what a transaction sees, out of an older one and what is new since."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from kbkit.stores.catalog import corpus, statement_vectors
from kbkit.stores.catalog.configs import spec_of
from kbkit.stores.catalog.database import Transaction
from kbkit.stores.catalog.knowledge_bases import KnowledgeBaseRow
from kbkit.stores.catalog.packing import unpack
from kbkit.stores.catalog.reading import heading_text
from kbkit.stores.snapshots.chunk_table import card_columns
from kbkit.stores.snapshots.snapshot import Lists, Snapshot
from kbkit.text import analyzer

_MOST_TIMES = np.iinfo(np.uint16).max
"""How often a term stands in a chunk, as far as it is counted."""
_COMPARED = 10
"""Chunks that a snapshot and the catalog must have in common."""


def related(transaction: Transaction, kb_id: str, snapshot: Snapshot, *, after: int = 0) -> bool:
    """Whether a snapshot is of this catalog's history.

    A catalog that was restored from a copy counts on from there, and gives versions and ``seq``
    again that a snapshot has seen; its last chunks tell.
    """
    if not len(snapshot):
        return True
    until = int(snapshot.seqs[-1])
    last = corpus.last_chunks(transaction, kb_id, after=after, until=until, limit=_COMPARED)
    places = np.searchsorted(snapshot.seqs, [seq for seq, _ in last])
    ids = [snapshot.ids[place] for place in places.tolist()]
    return ids == [known for _, known in last]


def make(
    transaction: Transaction,
    row: KnowledgeBaseRow,
    before: Snapshot | None,
    *,
    after: int = 0,
    until: int = corpus.LAST,
) -> Snapshot:
    """The snapshot of what a transaction sees, out of an older one and what is new since.

    Args:
        transaction: One that reads.
        row: The knowledge base as it sees it.
        before: The older one.
        after: Only chunks with a greater ``seq`` are in either.
        until: And none with a greater one than this.
    """
    alive = corpus.chunk_seqs(transaction, row.id, after=after, until=until)
    titles_by_id = corpus.titles(transaction, row.id, after=after, until=until)
    ordinals = {known: i for i, known in enumerate(titles_by_id)}
    if (
        before is None
        or before.embedder != row.embedder
        or before.version > row.version  # which lacks what has gone since
        or not related(transaction, row.id, before, after=after)
    ):
        before = _empty(row.dimensions)
    kept = np.isin(before.seqs, alive)
    new = _read(transaction, row, before, ordinals, (after, until))
    moved = np.array([ordinals.get(known, -1) for known in before.document_ids], np.int32)
    first = int(kept.sum())
    renumbered = np.cumsum(kept, dtype=np.int32) - np.int32(1)
    posted = kept[before.rows]
    terms, starts, rows, counts = _postings(
        new.vocabulary,
        np.concatenate([_numbered(before.starts)[posted], new.term_ids]),
        np.concatenate([renumbered[before.rows[posted]], new.rows + first]),
        np.concatenate([before.counts[posted], new.counts]),
    )
    titles = tuple(titles_by_id.values())
    language = spec_of(row).language
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
        **card_columns(transaction, row, ordinals, some=after > 0 or until != corpus.LAST),
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
    """Chunks as they are read; `term_ids`, `rows` and `counts` are of the terms of each."""

    seqs: NDArray[np.int64]
    ids: Sequence[str]
    owners: NDArray[np.int32]
    lengths: NDArray[np.int32]
    headings: NDArray[np.int32]
    heading_texts: Sequence[str]
    vectors: NDArray[np.float32]
    vocabulary: dict[str, int]
    term_ids: NDArray[np.int32]
    rows: NDArray[np.int32]
    counts: NDArray[np.uint16]


def _read(
    transaction: Transaction,
    row: KnowledgeBaseRow,
    before: Snapshot,
    ordinals: dict[str, int],
    between: tuple[int, int],
) -> _New:
    """The chunks that a snapshot does not have yet; texts that it knows keep their numbers."""
    last = int(before.seqs[-1]) if len(before) else between[0]
    vocabulary = {term: i for i, term in enumerate(before.terms)}
    texts = {text: i for i, text in enumerate(before.heading_texts)}
    seqs, owners, lengths, headings = (array(code) for code in "qiii")
    term_ids, counts, per_chunk = (array(code) for code in "iHi")
    ids: list[str] = []
    packed: list[bytes] = []
    for chunk in corpus.iter_indexed(transaction, row.id, after=last, until=between[1]):
        held = Counter(chunk.terms.split(" ") if chunk.terms else ())
        heading = heading_text(chunk.title, chunk.heading_path)
        seqs.append(chunk.seq)
        ids.append(chunk.id)
        owners.append(ordinals[chunk.document_id])
        lengths.append(chunk.length)
        headings.append(texts.setdefault(heading, len(texts)))
        term_ids.extend([vocabulary.setdefault(term, len(vocabulary)) for term in held])
        counts.extend([min(times, _MOST_TIMES) for times in held.values()])
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
        term_ids=np.array(term_ids, np.int32),
        rows=np.repeat(np.arange(len(seqs), dtype=np.int32), np.array(per_chunk, np.int32)),
        counts=np.array(counts, np.uint16),
    )


def _numbered(starts: NDArray[np.int64]) -> NDArray[np.int32]:
    """The term of each posting."""
    return np.repeat(np.arange(len(starts) - 1, dtype=np.int32), np.diff(starts))


def _postings(
    vocabulary: dict[str, int],
    term_ids: NDArray[np.int32],
    rows: NDArray[np.int32],
    counts: NDArray[np.uint16],
) -> tuple[list[str], NDArray[np.int64], NDArray[np.int32], NDArray[np.uint16]]:
    """Sort postings by term; those of each term are in order of rows already."""
    terms = sorted(vocabulary)
    places = np.empty(len(terms), np.int32)
    places[[vocabulary[term] for term in terms]] = np.arange(len(terms), dtype=np.int32)
    placed = places[term_ids]
    per_term = np.bincount(placed, minlength=len(terms))
    used = np.flatnonzero(per_term)
    starts = np.zeros(len(used) + 1, np.int64)
    np.cumsum(per_term[used], out=starts[1:])
    order = np.argsort(placed, kind="stable")
    return [terms[i] for i in used.tolist()], starts, rows[order], counts[order]
