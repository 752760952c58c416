"""Make a snapshot from an older one and later changes."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from kbkit.stores.catalog import chunk_vectors, corpus
from kbkit.stores.catalog.database import Transaction, unpack
from kbkit.stores.catalog.knowledge_bases import KnowledgeBaseRow, spec_of
from kbkit.stores.catalog.reading import heading_text
from kbkit.stores.snapshots.chunk_table import owner_columns, summary_columns
from kbkit.stores.snapshots.segments import Segment, SegmentedSnapshot
from kbkit.stores.snapshots.snapshot import Lists, Snapshot
from kbkit.text.analysis import analyzer

_MAX_TIMES = np.iinfo(np.uint16).max
"""Maximum count of a term in a chunk."""
_COMPARED = 10
"""Last chunks whose ids are compared."""


def related(transaction: Transaction, kb_id: str, snapshot: Snapshot, *, after: int = 0) -> bool:
    """Whether a snapshot belongs to this catalog's history.

    A catalog restored from a copy reuses versions and ``seq``, so the last chunks are compared.
    """
    if not len(snapshot):
        return True
    until = int(snapshot.seqs[-1])
    last = corpus.last_chunks(transaction, kb_id, after=after, until=until, limit=_COMPARED)
    places = np.searchsorted(snapshot.seqs, [seq for seq, _ in last])
    ids = [snapshot.ids[place] for place in places.tolist()]
    return ids == [id_ for _, id_ in last]


def make(
    transaction: Transaction,
    row: KnowledgeBaseRow,
    before: Snapshot | None,
    *,
    after: int = 0,
    until: int = corpus.LAST,
) -> Snapshot:
    alive = corpus.chunk_seqs(transaction, row.id, after=after, until=until)
    titles_by_id = corpus.titles(transaction, row.id, after=after, until=until)
    ordinals = {document_id: i for i, document_id in enumerate(titles_by_id)}
    if (
        before is None
        or before.embedder != row.embedder
        or before.version > row.version  # may lack chunks of the older version
        or not related(transaction, row.id, before, after=after)
    ):
        before = _empty(row.dimensions)
    kept = np.isin(before.seqs, alive)
    new = _read(transaction, row, before, ordinals, (after, until))
    moved = np.array(
        [ordinals.get(document_id, -1) for document_id in before.document_ids], np.int32
    )
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
        headings=np.concatenate([before.headings[kept], new.headings]),
        vectors=np.concatenate([_changed(transaction, row, before)[kept], new.vectors]),
        document_ids=tuple(ordinals),
        titles=titles,
        heading_texts=new.heading_texts,
        title_terms=_listed(titles, language, numbers),
        heading_terms=_listed(new.heading_texts, language, numbers),
        terms=terms,
        starts=starts,
        rows=rows,
        counts=counts,
        **owner_columns(owners, lengths, len(titles)),
        **summary_columns(transaction, row, ordinals, some=after > 0 or until != corpus.LAST),
    )


def _changed(
    transaction: Transaction, row: KnowledgeBaseRow, before: Snapshot
) -> NDArray[np.float32]:
    """Return a snapshot's vectors, with changed ones replaced."""
    changed = chunk_vectors.changed_since(transaction, row.id, before.version)
    places = {seq: place for place, seq in enumerate(before.seqs.tolist()) if seq in changed}
    if not places:
        return before.vectors
    vectors = before.vectors.copy()
    vectors[list(places.values())] = unpack([changed[seq] for seq in places], row.dimensions)
    return vectors


def _listed(texts: Sequence[str], language: str, numbers: Mapping[str, int]) -> Lists:
    lists = [
        [numbers[term] for term in _terms_of(text, language) if term in numbers] for text in texts
    ]
    starts = np.zeros(len(lists) + 1, np.int64)
    np.cumsum([len(term_numbers) for term_numbers in lists], out=starts[1:])
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
        headings=np.zeros(0, np.int32),
        vectors=np.zeros((0, dimensions), np.float32),
        document_ids=(),
        titles=(),
        heading_texts=(),
        title_terms=Lists(np.zeros(1, np.int64), np.zeros(0, np.int32)),
        heading_terms=Lists(np.zeros(1, np.int64), np.zeros(0, np.int32)),
        terms=[],
        starts=np.zeros(1, np.int64),
        rows=np.zeros(0, np.int32),
        counts=np.zeros(0, np.uint16),
        **owner_columns(np.zeros(0, np.int32), np.zeros(0, np.int32), 0),
        summaries_version=-1,
        summary_embedder="",
        summary_vectors=np.zeros((0, 0), np.float32),
    )


@dataclass(frozen=True, slots=True)
class _New:
    """New chunks; `term_ids`, `rows` and `counts` have one item per posting."""

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
    """Read the chunks after a snapshot; its terms and headings keep their numbers."""
    last = int(before.seqs[-1]) if len(before) else between[0]
    vocabulary = {term: i for i, term in enumerate(before.terms)}
    texts = {text: i for i, text in enumerate(before.heading_texts)}
    seqs, owners, lengths, headings = (array(code) for code in "qiii")
    term_ids, counts, per_chunk = (array(code) for code in "iHi")
    ids: list[str] = []
    packed: list[bytes] = []
    for chunk in corpus.iter_indexed(transaction, row.id, after=last, until=between[1]):
        count_of = Counter(chunk.terms.split(" ") if chunk.terms else ())
        heading = heading_text(chunk.title, chunk.heading_path)
        seqs.append(chunk.seq)
        ids.append(chunk.id)
        owners.append(ordinals[chunk.document_id])
        lengths.append(chunk.length)
        headings.append(texts.setdefault(heading, len(texts)))
        term_ids.extend([vocabulary.setdefault(term, len(vocabulary)) for term in count_of])
        counts.extend([min(times, _MAX_TIMES) for times in count_of.values()])
        per_chunk.append(len(count_of))
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
    return np.repeat(np.arange(len(starts) - 1, dtype=np.int32), np.diff(starts))


def _postings(
    vocabulary: dict[str, int],
    term_ids: NDArray[np.int32],
    rows: NDArray[np.int32],
    counts: NDArray[np.uint16],
) -> tuple[list[str], NDArray[np.int64], NDArray[np.int32], NDArray[np.uint16]]:
    """Sort postings by term; within a term they are already in row order."""
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


LARGEST = 100_000
"""Chunks from which a segment is not merged any more."""
_TIER = 8
"""Neighbouring segments of about the same size that are merged."""
_SMALLEST = 1_000
"""Chunks up to which all segments are of the lowest tier."""
_MAX_REMOVED = 0.3
"""Share of removed chunks at which a segment is rewritten."""


def to_merge(segments: Sequence[Segment], limit: int = LARGEST) -> slice | None:
    """Return the next neighbouring segments to merge; ``None`` if there are none."""
    for i, segment in enumerate(segments):
        if len(segment) <= limit and len(segment.gone) > _MAX_REMOVED * len(segment.snapshot):
            return slice(i, i + 1)
    tiers = [_tier(len(segment)) for segment in segments]
    for end in range(len(segments), 0, -1):
        start = end  # longest run of neighbours that ends here, of at most the last one's tier
        while start and tiers[start - 1] <= tiers[end - 1]:
            start -= 1
        if end - start >= _TIER:
            while sum(map(len, segments[start:end])) > limit and end - start > 1:
                start += 1
            if end - start > 1:
                return slice(start, end)
    return None


def is_worn(snapshot: SegmentedSnapshot) -> bool:
    return to_merge(snapshot.segments) is not None


def _tier(size: int) -> int:
    tier = 0
    while size > _SMALLEST:
        size //= _TIER
        tier += 1
    return tier


def merged(segments: Sequence[Segment]) -> Snapshot:
    newest = max((segment.snapshot for segment in segments), key=lambda s: s.version)
    oldest = min((segment.snapshot for segment in segments), key=lambda s: s.summaries_version)
    kept = [segment.kept for segment in segments]
    firsts = np.cumsum([0, *map(len, kept)])
    terms = sorted(set[str]().union(*(segment.snapshot.terms for segment in segments)))
    numbers = {term: i for i, term in enumerate(terms)}
    documents: dict[str, tuple[int, int]] = {}
    headings: dict[str, tuple[int, int]] = {}
    of_terms, owners, heads, posted = [], [], [], []
    for i, segment in enumerate(segments):
        s, rows = segment.snapshot, kept[i]
        of_terms.append(np.fromiter((numbers[term] for term in s.terms), np.int64, len(s.terms)))
        ids, texts = s.document_ids, list(s.heading_texts)
        own = s.owners[rows]
        for own_number in np.unique(own).tolist():
            documents[ids[own_number]] = i, own_number  # the last segment has the current title
        owners.append([ids[own_number] for own_number in own.tolist()])
        of = s.headings[rows]
        for own_number in np.unique(of).tolist():
            headings.setdefault(texts[own_number], (i, own_number))
        heads.append([texts[own_number] for own_number in of.tolist()])
        places = np.full(len(s), -1, np.int64)
        places[rows] = np.arange(len(rows)) + firsts[i]
        of_posting = places[s.rows]
        alive = of_posting >= 0
        term = np.repeat(of_terms[i], np.diff(s.starts))[alive]
        posted.append((term, of_posting[alive], s.counts[alive]))
    term = np.concatenate([part[0] for part in posted])
    order = np.argsort(term, kind="stable")  # keeps the row order within a term
    per_term = np.bincount(term, minlength=len(terms))
    used = np.flatnonzero(per_term)
    renumbered = np.cumsum(per_term > 0) - 1
    starts = np.zeros(len(used) + 1, np.int64)
    np.cumsum(per_term[used], out=starts[1:])
    document_numbers = {own_number: i for i, own_number in enumerate(documents)}
    heading_numbers = {text: i for i, text in enumerate(headings)}
    owner = np.array([document_numbers[own_number] for own_number in chain(*owners)], np.int32)
    lengths = np.concatenate([s.snapshot.lengths[k] for s, k in zip(segments, kept, strict=True)])
    snapshots = [segment.snapshot for segment in segments]
    titles = [snapshots[i].titles[own_number] for i, own_number in documents.values()]
    width = max(s.summary_vectors.shape[1] for s in snapshots)
    summaries = np.zeros((len(documents), width), np.float32)
    for number, (i, own_number) in enumerate(documents.values()):
        if snapshots[i].summary_embedder == newest.summary_embedder:
            row = snapshots[i].summary_vectors[own_number]
            summaries[number, : len(row)] = row

    def lists(name: str, which: Sequence[tuple[int, int]]) -> Lists:
        parts = []
        for i, number in which:
            old_lists = getattr(snapshots[i], name)
            part = slice(int(old_lists.starts[number]), int(old_lists.starts[number + 1]))
            of = of_terms[i][old_lists.values[part]]
            parts.append(renumbered[of[per_term[of] > 0]])
        ends = np.cumsum([0, *map(len, parts)])
        return Lists(
            ends.astype(np.int64), np.concatenate([*parts, np.zeros(0, int)]).astype(np.int32)
        )

    return Snapshot(
        version=newest.version,
        embedder=newest.embedder,
        seqs=np.concatenate([s.seqs[k] for s, k in zip(snapshots, kept, strict=True)]),
        ids=[s.ids[i] for s, k in zip(snapshots, kept, strict=True) for i in k.tolist()],
        headings=np.array([heading_numbers[text] for text in chain(*heads)], np.int32),
        vectors=_rows([s.vectors for s in snapshots], kept),
        document_ids=list(documents),
        titles=titles,
        heading_texts=list(headings),
        title_terms=lists("title_terms", list(documents.values())),
        heading_terms=lists("heading_terms", list(headings.values())),
        terms=[terms[i] for i in used.tolist()],
        starts=starts,
        rows=np.concatenate([part[1] for part in posted])[order].astype(np.int32),
        counts=np.concatenate([part[2] for part in posted])[order],
        **owner_columns(owner, lengths, len(documents)),
        summaries_version=oldest.summaries_version,
        summary_embedder=newest.summary_embedder,
        summary_vectors=summaries,
    )


def _rows(
    columns: Sequence[NDArray[np.float32]], kept: Sequence[NDArray[np.int64]]
) -> NDArray[np.float32]:
    parts = [column[rows] for column, rows in zip(columns, kept, strict=True)]
    return np.concatenate(parts)
