"""Merges segments, so that there are few, and none that mostly holds what has gone.

By tiers of size, as Lucene does: segments of about the same size are merged when there are several
of them, so that each chunk is written again as often as the logarithm of what comes. Chunks of one
merged segment stay in order, so those that are merged are neighbours. None gets larger than
`LARGEST`: what a merge takes, and the memory for it, has a bound.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from kbkit.stores.snapshots.segments import Segment, SegmentedSnapshot
from kbkit.stores.snapshots.snapshot import Lists, Snapshot

LARGEST = 100_000
"""Chunks of a segment that is merged no more."""
_TIER = 8
"""Segments of about the same size that are there before they are merged."""
_SMALLEST = 1_000
"""Chunks below which all segments are of one tier."""
_GONE = 0.3
"""Share of a segment's chunks that may have gone before it is written anew."""


def to_merge(segments: Sequence[Segment], most: int = LARGEST) -> slice | None:
    """The next segments to merge, neighbours; ``None`` where it is well as it is.

    Args:
        segments: In order of ``seq``.
        most: Chunks that they may have in all.
    """
    for i, segment in enumerate(segments):
        if len(segment) <= most and len(segment.gone) > _GONE * len(segment.snapshot):
            return slice(i, i + 1)
    tiers = [_tier(len(segment)) for segment in segments]
    for end in range(len(segments), 0, -1):
        start = end  # the longest row of neighbours, the last one's tier or a smaller one's
        while start and tiers[start - 1] <= tiers[end - 1]:
            start -= 1
        if end - start >= _TIER:
            while sum(map(len, segments[start:end])) > most and end - start > 1:
                start += 1
            if end - start > 1:
                return slice(start, end)
    return None


def is_worn(found: SegmentedSnapshot) -> bool:
    """Whether it is time to merge segments, behind what is searched."""
    return to_merge(found.segments) is not None


def _tier(size: int) -> int:
    tier = 0
    while size > _SMALLEST:
        size //= _TIER
        tier += 1
    return tier


def merged(segments: Sequence[Segment]) -> Snapshot:
    """Segments as one snapshot, of what is left of them.

    Args:
        segments: One at least, in order of ``seq``, whose vectors are of one embedder.
    """
    newest = max((segment.snapshot for segment in segments), key=lambda s: s.version)
    oldest = min((segment.snapshot for segment in segments), key=lambda s: s.cards_version)
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
        held, texts = s.document_ids, list(s.heading_texts)
        own = s.owners[rows]
        for known in np.unique(own).tolist():
            documents[held[known]] = i, known  # the latest one's title counts
        owners.append([held[known] for known in own.tolist()])
        of = s.headings[rows]
        for known in np.unique(of).tolist():
            headings.setdefault(texts[known], (i, known))
        heads.append([texts[known] for known in of.tolist()])
        places = np.full(len(s), -1, np.int64)
        places[rows] = np.arange(len(rows)) + firsts[i]
        of_posting = places[s.rows]
        there = of_posting >= 0
        term = np.repeat(of_terms[i], np.diff(s.starts))[there]
        posted.append((term, of_posting[there], s.counts[there]))
    term = np.concatenate([part[0] for part in posted])
    order = np.argsort(term, kind="stable")  # rows of a term are in order already
    per_term = np.bincount(term, minlength=len(terms))
    used = np.flatnonzero(per_term)
    renumbered = np.cumsum(per_term > 0) - 1
    starts = np.zeros(len(used) + 1, np.int64)
    np.cumsum(per_term[used], out=starts[1:])
    document_numbers = {known: i for i, known in enumerate(documents)}
    heading_numbers = {text: i for i, text in enumerate(headings)}
    owner = np.array([document_numbers[known] for known in chain(*owners)], np.int32)
    lengths = np.concatenate([s.snapshot.lengths[k] for s, k in zip(segments, kept, strict=True)])
    snapshots = [segment.snapshot for segment in segments]
    titles = [snapshots[i].titles[known] for i, known in documents.values()]
    width = max(s.card_vectors.shape[1] for s in snapshots)
    cards = np.zeros((len(documents), width), np.float32)
    for number, (i, known) in enumerate(documents.values()):
        if snapshots[i].card_embedder == newest.card_embedder:
            row = snapshots[i].card_vectors[known]
            cards[number, : len(row)] = row

    def lists(name: str, which: Sequence[tuple[int, int]]) -> Lists:
        found = []
        for i, known in which:
            known_lists = getattr(snapshots[i], name)
            part = slice(int(known_lists.starts[known]), int(known_lists.starts[known + 1]))
            of = of_terms[i][known_lists.values[part]]
            found.append(renumbered[of[per_term[of] > 0]])
        ends = np.cumsum([0, *map(len, found)])
        return Lists(
            ends.astype(np.int64), np.concatenate([*found, np.zeros(0, int)]).astype(np.int32)
        )

    return Snapshot(
        version=newest.version,
        embedder=newest.embedder,
        seqs=np.concatenate([s.seqs[k] for s, k in zip(snapshots, kept, strict=True)]),
        ids=[s.ids[i] for s, k in zip(snapshots, kept, strict=True) for i in k.tolist()],
        owners=owner,
        lengths=lengths,
        headings=np.array([heading_numbers[text] for text in chain(*heads)], np.int32),
        vectors=_rows([s.vectors for s in snapshots], kept),
        document_ids=list(documents),
        titles=titles,
        sizes=np.bincount(owner, minlength=len(documents)),
        heading_texts=list(headings),
        title_terms=lists("title_terms", list(documents.values())),
        heading_terms=lists("heading_terms", list(headings.values())),
        terms=[terms[i] for i in used.tolist()],
        starts=starts,
        rows=np.concatenate([part[1] for part in posted])[order].astype(np.int32),
        counts=np.concatenate([part[2] for part in posted])[order],
        average_length=float(lengths.mean()) if len(lengths) else 0.0,
        document_lengths=np.bincount(owner, lengths, len(documents)).astype(np.int64),
        cards_version=oldest.cards_version,
        card_embedder=newest.card_embedder,
        card_vectors=cards,
    )


def _rows(
    columns: Sequence[NDArray[np.float32]], kept: Sequence[NDArray[np.int64]]
) -> NDArray[np.float32]:
    parts = [column[rows] for column, rows in zip(columns, kept, strict=True)]
    return np.concatenate(parts)
