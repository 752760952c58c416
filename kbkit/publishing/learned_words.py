"""Learned questions as words of their chunks, for the index of a site that is to have them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from kbkit.stores.snapshots.snapshot import Lists, Snapshot
from kbkit.text import analyzer


def with_questions(
    snapshot: Snapshot, asked: Mapping[str, Sequence[int]], language: str
) -> Snapshot:
    """A snapshot whose chunks hold the words of their questions once more.

    Lengths stay, so that other queries find the chunks as before.

    Args:
        snapshot: Of the knowledge base.
        asked: The questions, and ``seq`` of the chunks of each.
        language: Of the analyzer.
    """
    of = analyzer(language)
    rows = {int(seq): row for row, seq in enumerate(snapshot.seqs)}
    pairs = {
        (term, rows[seq])
        for question, seqs in asked.items()
        for term in of.query_terms(question)
        for seq in seqs
        if seq in rows
    }
    if not pairs:
        return snapshot
    terms = sorted({*snapshot.terms, *(term for term, _ in pairs)})
    places = {term: place for place, term in enumerate(terms)}
    moved = np.array([places[term] for term in snapshot.terms], np.int64)
    held = np.repeat(moved, np.diff(snapshot.starts)) * len(snapshot) + snapshot.rows
    more = np.array([places[term] * len(snapshot) + row for term, row in pairs], np.int64)
    keys, which = np.unique(np.concatenate([held, more]), return_inverse=True)
    once = np.ones(len(more), np.int64)
    counts = np.bincount(which, np.concatenate([snapshot.counts.astype(np.int64), once]))
    return replace(
        snapshot,
        terms=terms,
        starts=np.searchsorted(keys, np.arange(len(terms) + 1) * len(snapshot)),
        rows=(keys % len(snapshot)).astype(np.int32),
        counts=np.minimum(counts, np.iinfo(np.uint16).max).astype(np.uint16),
        title_terms=_moved(snapshot.title_terms, moved),
        heading_terms=_moved(snapshot.heading_terms, moved),
    )


def _moved(lists: Lists, moved: np.ndarray[tuple[int], np.dtype[np.int64]]) -> Lists:
    return Lists(lists.starts, moved[lists.values].astype(np.int32))
