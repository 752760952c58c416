"""Update segments to the catalog: later changes become a small segment."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from kbkit.stores.catalog import corpus, removed_chunks, statement_vectors, summaries
from kbkit.stores.catalog.database import Transaction, unpack
from kbkit.stores.catalog.knowledge_bases import KnowledgeBaseRow
from kbkit.stores.snapshots.making import make, related
from kbkit.stores.snapshots.segments import (
    DocumentNumbers,
    LaterSummaries,
    Segment,
    SegmentedSnapshot,
    SegmentsVersion,
    joined,
)

MAX = 1_000
"""Chunks that may have come, or got other vectors, for a search to wait for a new segment."""
_MAX_SUMMARIES = 2_000
"""Summaries that may have got other vectors, likewise."""
SLICE = 25_000
"""Chunks of a slice, which bounds memory."""

Keep = Callable[[Segment], Segment]
"""Puts a segment where it takes no memory, if it can."""


def _held(segment: Segment) -> Segment:
    return segment


def shown(row: KnowledgeBaseRow, removed: int) -> SegmentsVersion:
    return SegmentsVersion(
        row.version, row.embedder, row.summaries_version, row.summary_embedder, removed
    )


def follows(transaction: Transaction, row: KnowledgeBaseRow, held: SegmentedSnapshot) -> bool:
    if held.embedder != row.embedder or held.version > row.version:
        return False
    if not removed_chunks.is_known(transaction, row.id, held.removed):
        return False
    if not held.segments:
        return True
    after = int(held.segments[-2].snapshot.seqs[-1]) if len(held.segments) > 1 else 0
    return related(transaction, row.id, held.segments[-1].snapshot, after=after)


def advanced(
    transaction: Transaction,
    row: KnowledgeBaseRow,
    held: SegmentedSnapshot,
    *,
    quickly: bool = False,
    keep: Keep = _held,
) -> SegmentedSnapshot | None:
    """Update segments to a transaction's state; ``None`` if they must be rebuilt."""
    if not follows(transaction, row, held):
        return None
    gone = removed_chunks.since(transaction, row.id, held.removed)
    if gone is None:
        return None
    filed = [segment for segment in held.segments if segment.file and len(segment)]
    after = int(filed[-1].snapshot.seqs[-1]) if filed else 0
    last_seq = int(held.segments[-1].snapshot.seqs[-1]) if len(held) else 0
    many = (
        corpus.count_chunks(transaction, row.id, after=last_seq) > MAX
        or statement_vectors.count_changed(transaction, row.id, held.version) > MAX
        or (
            held.summary_embedder != row.summary_embedder
            and len(held.document_ids) > _MAX_SUMMARIES
            if held.summary_embedder != row.summary_embedder
            else summaries.count_changed(transaction, row, held.summaries_version) > _MAX_SUMMARIES
        )
    )
    if quickly and many:
        return None
    segments = [segment for segment in held.segments if len(segment.snapshot)]
    if gone.seqs:
        seqs = np.array(sorted(gone.seqs), np.int64)
        segments = [segment.without(seqs) for segment in segments]
    changed = statement_vectors.changed_since(transaction, row.id, held.version)
    if changed:
        vectors = {seq: unpack([packed], row.dimensions)[0] for seq, packed in changed.items()}
        segments = [segment.with_vectors(vectors) for segment in segments]
    if many or corpus.count_chunks(transaction, row.id, after=last_seq):
        segments = _with_later(
            transaction, row, segments, last_seq if changed else after, keep if many else _held
        )
    version = shown(row, gone.last)
    snapshot = joined(version, segments, held.numbers, held.summaries)
    return replace(snapshot, summaries=_summaries(transaction, row, held, snapshot))


def _with_later(
    transaction: Transaction,
    row: KnowledgeBaseRow,
    segments: Sequence[Segment],
    after: int,
    keep: Keep,
) -> list[Segment]:
    """Append later chunks to segments; rewrites a small last segment."""
    held = [segment for segment in segments if segment.snapshot.seqs[-1] <= after]
    rest = segments[len(held) :]
    if sum(len(segment.snapshot) for segment in rest) > MAX:
        held, rest, after = list(segments), [], int(segments[-1].snapshot.seqs[-1])
    before = rest[0].snapshot if len(rest) == 1 else None
    parts = slices(transaction, row, after)
    for low, high in parts:
        made = make(transaction, row, before, after=low, until=high)
        before = None
        if len(made):
            held.append(keep(Segment(made)))
    return held


def slices(
    transaction: Transaction, row: KnowledgeBaseRow, after: int
) -> Iterator[tuple[int, int]]:
    seqs = corpus.chunk_seqs(transaction, row.id, after=after)
    for end in range(SLICE, len(seqs), SLICE):
        yield after, int(seqs[end - 1])
        after = int(seqs[end - 1])
    yield after, corpus.LAST


def _summaries(
    transaction: Transaction,
    row: KnowledgeBaseRow,
    held: SegmentedSnapshot,
    snapshot: SegmentedSnapshot,
) -> tuple[LaterSummaries, ...]:
    if held.summaries_version == row.summaries_version:
        return held.summaries
    same = held.summary_embedder == row.summary_embedder
    came = (
        summaries.changed_since(transaction, row, held.summaries_version)
        if same
        else summaries.vectors_of(transaction, row)
    )
    if not len(came.document_ids):
        return held.summaries if same else ()
    numbers = snapshot.numbers.find(came.document_ids)
    there = [i for i, document_id in enumerate(came.document_ids) if document_id in numbers]
    vectors = came.vectors[there]
    if not vectors.shape[1]:  # none of them has a vector now
        width = max((part.vectors.shape[1] for part in snapshot.summary_parts()), default=0)
        vectors = np.zeros((len(there), width), np.float32)
    newest = LaterSummaries(
        row.summaries_version,
        row.summary_embedder,
        np.array(list(numbers.values()), np.int32),
        vectors,
    )
    return (*held.summaries, newest) if same else (newest,)


def anew(
    transaction: Transaction, row: KnowledgeBaseRow, *, keep: Keep = _held
) -> SegmentedSnapshot:
    """Build segments from the catalog alone."""
    last = removed_chunks.last(transaction, row.id)
    made = [
        keep(Segment(make(transaction, row, None, after=low, until=high)))
        for low, high in slices(transaction, row, 0)
    ]
    return joined(shown(row, last), made, DocumentNumbers())
