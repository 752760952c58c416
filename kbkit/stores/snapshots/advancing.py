"""Update segments from the catalog: new chunks become a small segment."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from kbkit.stores.catalog import chunk_vectors, corpus, outbox, summaries
from kbkit.stores.catalog.database import Transaction, unpack
from kbkit.stores.catalog.knowledge_bases import KnowledgeBaseRow
from kbkit.stores.snapshots.chunk_table import summary_columns
from kbkit.stores.snapshots.making import make, merged, related
from kbkit.stores.snapshots.segments import (
    DocumentNumbers,
    LaterSummaries,
    Segment,
    SegmentedSnapshot,
    SegmentsVersion,
    joined,
)

MAX = 1_000
"""New chunks, or changed vectors, up to which a search waits for a new segment."""
_MAX_SUMMARIES = 2_000
"""Changed summary vectors up to which a search waits."""
SLICE = 25_000
"""Chunks read at once, to limit memory."""

Keep = Callable[[Segment], Segment]
"""Moves a segment from memory to a file, if possible."""


def _in_memory(segment: Segment) -> Segment:
    return segment


def shown(row: KnowledgeBaseRow, removed: int) -> SegmentsVersion:
    return SegmentsVersion(
        row.version, row.embedder, row.summaries_version, row.summary_embedder, removed
    )


def follows(transaction: Transaction, row: KnowledgeBaseRow, before: SegmentedSnapshot) -> bool:
    if before.embedder != row.embedder or before.version > row.version:
        return False
    if not outbox.is_known_removal(transaction, row.id, before.removed):
        return False
    if not before.segments:
        return True
    after = int(before.segments[-2].snapshot.seqs[-1]) if len(before.segments) > 1 else 0
    return related(transaction, row.id, before.segments[-1].snapshot, after=after)


def advanced(
    transaction: Transaction,
    row: KnowledgeBaseRow,
    before: SegmentedSnapshot,
    *,
    quickly: bool = False,
    keep: Keep = _in_memory,
) -> SegmentedSnapshot | None:
    """Update segments to the transaction's state; ``None`` if they must be rebuilt.

    `quickly` also returns ``None`` if there are many changes.
    """
    if not follows(transaction, row, before):
        return None
    gone = outbox.removed_since(transaction, row.id, before.removed)
    if gone is None:
        return None
    last_seq = int(before.segments[-1].snapshot.seqs[-1]) if len(before) else 0
    added = corpus.count_chunks(transaction, row.id, after=last_seq)
    changed_summaries = (
        summaries.count_changed(transaction, row, before.summaries_version)
        if before.summary_embedder == row.summary_embedder
        else len(before.document_ids)
    )
    many = (
        added > MAX
        or chunk_vectors.count_changed(transaction, row.id, before.version) > MAX
        or changed_summaries > _MAX_SUMMARIES
    )
    if quickly and many:
        return None
    segments = [segment for segment in before.segments if len(segment.snapshot)]
    if gone.seqs:
        seqs = np.array(sorted(gone.seqs), np.int64)
        segments = [segment.without(seqs) for segment in segments]
    changed = chunk_vectors.changed_since(transaction, row.id, before.version)
    if changed:
        vectors = {seq: unpack([packed], row.dimensions)[0] for seq, packed in changed.items()}
        segments = [segment.with_vectors(vectors) for segment in segments]
    for low, high in slices(transaction, row, last_seq) if added else ():
        made = Segment(make(transaction, row, after=low, until=high))
        segments.append(keep(made) if many else made)
    segments = _with_merged_end(transaction, row, segments)
    version = shown(row, gone.last)
    snapshot = joined(version, segments, before.numbers, before.summaries)
    return replace(snapshot, summaries=_summaries(transaction, row, before, snapshot))


def _with_merged_end(
    transaction: Transaction, row: KnowledgeBaseRow, segments: Sequence[Segment]
) -> list[Segment]:
    """Merge the last segments in memory if they are small."""
    first, size = len(segments), 0
    while first and not segments[first - 1].file:
        size += len(segments[first - 1].snapshot)
        if size > 2 * MAX:
            break
        first -= 1
    if len(segments) - first < 2:
        return list(segments)

    def summaries_of(ids: Sequence[str]) -> Mapping[str, Any]:
        ordinals = {document_id: i for i, document_id in enumerate(ids)}
        return summary_columns(transaction, row, ordinals, some=True)

    return [*segments[:first], Segment(merged(segments[first:], summaries_of))]


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
    before: SegmentedSnapshot,
    snapshot: SegmentedSnapshot,
) -> tuple[LaterSummaries, ...]:
    if before.summaries_version == row.summaries_version:
        return before.summaries
    same = before.summary_embedder == row.summary_embedder
    changed = (
        summaries.changed_since(transaction, row, before.summaries_version)
        if same
        else summaries.vectors_of(transaction, row)
    )
    if not len(changed.document_ids):
        return before.summaries if same else ()
    numbers = snapshot.numbers.find(changed.document_ids)
    known = [i for i, document_id in enumerate(changed.document_ids) if document_id in numbers]
    vectors = changed.vectors[known]
    if not vectors.shape[1]:  # none has a vector
        width = max((part.vectors.shape[1] for part in snapshot.summary_parts()), default=0)
        vectors = np.zeros((len(known), width), np.float32)
    newest = LaterSummaries(
        row.summaries_version,
        row.summary_embedder,
        np.array(list(numbers.values()), np.int32),
        vectors,
    )
    return (*before.summaries, newest) if same else (newest,)


def build(
    transaction: Transaction, row: KnowledgeBaseRow, *, keep: Keep = _in_memory
) -> SegmentedSnapshot:
    last = outbox.last_removed(transaction, row.id)
    made = [
        keep(Segment(make(transaction, row, after=low, until=high)))
        for low, high in slices(transaction, row, 0)
    ]
    return joined(shown(row, last), made, DocumentNumbers())
