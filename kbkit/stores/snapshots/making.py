"""Make segments from the catalog, update and merge them; new chunks become a small segment."""

from array import array
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kbkit.stores.catalog import corpus, outbox, summaries
from kbkit.stores.catalog.database import Transaction, unpack
from kbkit.stores.catalog.knowledge_bases import KnowledgeBaseRow, spec_of
from kbkit.stores.catalog.reading import heading_text
from kbkit.stores.snapshots.segments import (
    DocumentNumbers,
    Segment,
    SegmentedSnapshot,
    SnapshotState,
    join_segments,
    merge_summaries,
)
from kbkit.stores.snapshots.snapshot import Lists, Snapshot, SummaryPart
from kbkit.text.analysis import analyzer

_MAX_TIMES = np.iinfo(np.uint16).max
"""Maximum count of a term in a chunk."""
_COMPARED = 10
"""Last chunks whose ids are compared."""


def make(
    transaction: Transaction,
    row: KnowledgeBaseRow,
    *,
    after: int = 0,
    until: int = corpus.LAST,
    added: Mapping[int, Collection[str]] | None = None,
) -> Snapshot:
    """Read the chunks with ``after < seq <= until``, and all documents or those of the chunks.

    ``added`` has further terms of chunks, by ``seq``.
    """
    titles = corpus.titles(transaction, row.id, after=after, until=until)
    packed: list[bytes] = []

    def chunks() -> Iterator[corpus.ChunkTerms]:
        for chunk in corpus.iter_indexed(transaction, row.id, after=after, until=until):
            packed.append(chunk.vector)
            yield chunk

    columns = chunk_columns(chunks(), titles, spec_of(row).language, added or {})
    return Snapshot(embedder=row.embedder, vectors=unpack(packed, row.dimensions), **columns)


def chunk_columns(
    chunks: Iterable[corpus.ChunkTerms],
    titles_by_id: Mapping[str, str],
    language: str,
    added: Mapping[int, Collection[str]],
) -> dict[str, Any]:
    """Return the columns of a snapshot that follow from its chunks and the documents' titles."""
    ordinals = {document_id: i for i, document_id in enumerate(titles_by_id)}
    vocabulary: dict[str, int] = {}
    texts: dict[str, int] = {}
    seqs, owners, lengths, headings = (array(code) for code in "qiii")
    term_ids, counts, per_chunk = (array(code) for code in "iHi")
    ids: list[str] = []
    for chunk in chunks:
        count_of = Counter(chunk.terms.split(" ") if chunk.terms else ())
        count_of.update(added.get(chunk.seq, ()))
        heading = heading_text(chunk.title, chunk.heading_path)
        seqs.append(chunk.seq)
        ids.append(chunk.id)
        owners.append(ordinals[chunk.document_id])
        lengths.append(chunk.length)
        headings.append(texts.setdefault(heading, len(texts)))
        term_ids.extend([vocabulary.setdefault(term, len(vocabulary)) for term in count_of])
        counts.extend([min(times, _MAX_TIMES) for times in count_of.values()])
        per_chunk.append(len(count_of))
    numbers = {term: i for i, term in enumerate(sorted(vocabulary))}
    places = np.fromiter((numbers[term] for term in vocabulary), np.int64, len(vocabulary))
    titles = tuple(titles_by_id.values())
    return {
        "seqs": np.array(seqs, np.int64),
        "ids": ids,
        "headings": np.array(headings, np.int32),
        "document_ids": tuple(ordinals),
        "titles": titles,
        "heading_texts": tuple(texts),
        "title_terms": _term_lists(titles, language, numbers),
        "heading_terms": _term_lists(texts, language, numbers),
        **_posting_columns(
            list(numbers),
            places[np.array(term_ids, np.int64)],
            np.repeat(np.arange(len(seqs)), np.array(per_chunk, np.int64)),
            np.array(counts, np.uint16),
        ),
        "owners": np.array(owners, np.int32),
        "lengths": np.array(lengths, np.int32),
    }


def _posting_columns(
    terms: Sequence[str],
    term_ids: NDArray[np.int64],
    rows: NDArray[np.int64],
    counts: NDArray[np.uint16],
) -> dict[str, Any]:
    """Sort postings by term; within a term they are already in row order."""
    per_term = np.bincount(term_ids, minlength=len(terms))
    used = np.flatnonzero(per_term)
    order = np.argsort(term_ids, kind="stable")
    return {
        "terms": [terms[i] for i in used.tolist()],
        "starts": np.cumsum([0, *per_term[used].tolist()], dtype=np.int64),
        "rows": rows[order].astype(np.int32),
        "counts": counts[order],
    }


def _term_lists(texts: Collection[str], language: str, numbers: Mapping[str, int]) -> Lists:
    return _lists(
        [numbers[term] for term in _terms_of(text, language) if term in numbers] for text in texts
    )


def _lists(parts: Iterable[Sequence[int]]) -> Lists:
    lists = list(parts)
    starts = np.cumsum([0, *map(len, lists)], dtype=np.int64)
    return Lists(starts, np.fromiter(chain.from_iterable(lists), np.int32, int(starts[-1])))


@lru_cache(maxsize=100_000)
def _terms_of(text: str, language: str) -> frozenset[str]:
    return frozenset(analyzer(language).terms(text))


def merge_segments(segments: Sequence[Segment]) -> Snapshot:
    live = [segment.live for segment in segments]
    firsts = np.cumsum([0, *map(len, live)])
    terms = sorted(set[str]().union(*(segment.snapshot.terms for segment in segments)))
    numbers = {term: i for i, term in enumerate(terms)}
    documents: dict[str, tuple[int, int]] = {}
    headings: dict[str, tuple[int, int]] = {}
    of_terms, owners, heads, posted = [], [], [], []
    for i, segment in enumerate(segments):
        s, rows = segment.snapshot, live[i]
        of_terms.append(np.fromiter((numbers[term] for term in s.terms), np.int64, len(s.terms)))
        ids, texts = s.document_ids, list(s.heading_texts)
        local_owners = s.owners[rows]
        for local in np.unique(local_owners).tolist():
            documents[ids[local]] = i, local  # the last segment has the current title
        owners.append([ids[local] for local in local_owners.tolist()])
        local_headings = s.headings[rows]
        for local in np.unique(local_headings).tolist():
            headings.setdefault(texts[local], (i, local))
        heads.append([texts[local] for local in local_headings.tolist()])
        places = np.full(len(s), -1, np.int64)
        places[rows] = np.arange(len(rows)) + firsts[i]
        of_posting = places[s.rows]
        alive = of_posting >= 0
        term = np.repeat(of_terms[i], np.diff(s.starts))[alive]
        posted.append((term, of_posting[alive], s.counts[alive]))
    term_ids, rows, counts = map(np.concatenate, zip(*posted, strict=True))
    used = np.bincount(term_ids, minlength=len(terms)) > 0
    renumbered = np.cumsum(used) - 1
    document_numbers = {id_: i for i, id_ in enumerate(documents)}
    heading_numbers = {text: i for i, text in enumerate(headings)}
    snapshots = [segment.snapshot for segment in segments]
    titles = [snapshots[i].titles[local] for i, local in documents.values()]

    def lists(name: str, sources: Iterable[tuple[int, int]]) -> Lists:
        parts = []
        for i, number in sources:
            source = getattr(snapshots[i], name)
            part = slice(int(source.starts[number]), int(source.starts[number + 1]))
            ids = of_terms[i][source.values[part]]
            parts.append(renumbered[ids[used[ids]]].tolist())
        return _lists(parts)

    return Snapshot(
        embedder=snapshots[-1].embedder,
        seqs=np.concatenate([s.seqs[k] for s, k in zip(snapshots, live, strict=True)]),
        owners=np.array([document_numbers[id_] for id_ in chain(*owners)], np.int32),
        lengths=np.concatenate([s.lengths[k] for s, k in zip(snapshots, live, strict=True)]),
        ids=[s.ids[i] for s, k in zip(snapshots, live, strict=True) for i in k.tolist()],
        headings=np.array([heading_numbers[text] for text in chain(*heads)], np.int32),
        vectors=np.concatenate([s.vectors[k] for s, k in zip(snapshots, live, strict=True)]),
        document_ids=list(documents),
        titles=titles,
        heading_texts=list(headings),
        title_terms=lists("title_terms", documents.values()),
        heading_terms=lists("heading_terms", headings.values()),
        **_posting_columns(terms, term_ids, rows, counts),
    )


MAX = 1_000
"""Maximum of new chunks, and of summaries, that stay in memory."""
SLICE = 25_000
"""Chunks read at once, to limit memory."""

Keep = Callable[[Segment], Segment]
"""Moves a segment from memory to a file, if possible."""


def follows(transaction: Transaction, row: KnowledgeBaseRow, before: SegmentedSnapshot) -> bool:
    """Whether a snapshot is of an earlier version in this catalog's history.

    A catalog restored from a copy reuses versions and ``seq``, so the last chunks are compared.
    """
    if before.state.embedder != row.embedder or before.state.version > row.version:
        return False
    if not before.segments or not len(before.segments[-1].snapshot):
        return True
    after = int(before.segments[-2].snapshot.seqs[-1]) if len(before.segments) > 1 else 0
    snapshot = before.segments[-1].snapshot
    until = int(snapshot.seqs[-1])
    last = corpus.last_chunks(transaction, row.id, after=after, until=until, limit=_COMPARED)
    places = np.searchsorted(snapshot.seqs, [seq for seq, _ in last])
    ids = [snapshot.ids[place] for place in places.tolist()]
    return ids == [id_ for _, id_ in last]


def advance(
    transaction: Transaction,
    row: KnowledgeBaseRow,
    before: SegmentedSnapshot,
    *,
    keep: Keep = lambda segment: segment,
) -> SegmentedSnapshot | None:
    """Update segments to the transaction's state; ``None`` if they must be rebuilt."""
    removals = outbox.removed_since(transaction, row.id, before.state.removed)
    if removals is None or not follows(transaction, row, before):
        return None
    removed_seqs, last_removal = removals
    last_seq = int(before.segments[-1].snapshot.seqs[-1]) if len(before) else 0
    added = corpus.count_chunks(transaction, row.id, after=last_seq)
    segments = [segment for segment in before.segments if len(segment.snapshot)]
    if removed_seqs:
        seqs = np.array(sorted(removed_seqs), np.int64)
        segments = [segment.without(seqs) for segment in segments]
    changed = corpus.changed_vectors(transaction, row.id, before.state.version)
    if changed:
        vectors = {seq: unpack([packed], row.dimensions)[0] for seq, packed in changed.items()}
        segments = [segment.with_vectors(vectors) for segment in segments]
    for low, high in slices(transaction, row, last_seq) if added else ():
        new_segment = Segment(make(transaction, row, after=low, until=high))
        segments.append(keep(new_segment) if added > MAX else new_segment)
    segments = _with_merged_end(segments)
    before.numbers.add(segments)
    parts = _summaries(transaction, row, before)
    return join_segments(SnapshotState.of(row, last_removal), segments, before.numbers, parts)


def _with_merged_end(segments: Sequence[Segment]) -> list[Segment]:
    """Merge the last segments in memory if they are small."""
    first, size = len(segments), 0
    while first and not segments[first - 1].file:
        size += len(segments[first - 1].snapshot)
        if size > 2 * MAX:
            break
        first -= 1
    if len(segments) - first < 2:
        return list(segments)
    return [*segments[:first], Segment(merge_segments(segments[first:]))]


def slices(
    transaction: Transaction, row: KnowledgeBaseRow, after: int
) -> Iterator[tuple[int, int]]:
    seqs = corpus.chunk_seqs(transaction, row.id, after=after)
    for end in range(SLICE, len(seqs), SLICE):
        yield after, int(seqs[end - 1])
        after = int(seqs[end - 1])
    yield after, corpus.LAST


def _summaries(
    transaction: Transaction, row: KnowledgeBaseRow, before: SegmentedSnapshot
) -> tuple[SummaryPart, ...]:
    if before.state.summaries_version == row.summaries_version:
        return before.summaries
    if before.state.summary_embedder != row.summary_embedder:
        return _all_summaries(transaction, row, before.numbers)
    changed = summaries.changed_since(transaction, row, before.state.summaries_version)
    width = max((part.vectors.shape[1] for part in before.summaries), default=0)
    vectors = changed.vectors
    if not vectors.shape[1]:
        vectors = np.zeros((len(vectors), width), np.float32)
    if not vectors.size:
        return before.summaries
    in_files = [part for part in before.summaries if part.file]
    newest = SummaryPart(before.numbers.of_ids(changed.document_ids), vectors)
    in_memory = [part for part in before.summaries if not part.file]
    return (*in_files, merge_summaries([*in_memory, newest]))


def _all_summaries(
    transaction: Transaction, row: KnowledgeBaseRow, numbers: DocumentNumbers
) -> tuple[SummaryPart, ...]:
    embedded = summaries.vectors_of(transaction, row)
    if not embedded.vectors.size:
        return ()
    return (SummaryPart(numbers.of_ids(embedded.document_ids), embedded.vectors),)


def build(
    transaction: Transaction, row: KnowledgeBaseRow, *, keep: Keep = lambda segment: segment
) -> SegmentedSnapshot:
    last = outbox.last_removed(transaction, row.id)
    segments = [
        keep(Segment(make(transaction, row, after=low, until=high)))
        for low, high in slices(transaction, row, 0)
    ]
    numbers = DocumentNumbers()
    numbers.add(segments)
    parts = _all_summaries(transaction, row, numbers)
    return join_segments(SnapshotState.of(row, last), segments, numbers, parts)
