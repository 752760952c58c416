"""Check the files of a snapshot against the catalog."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from kbkit.stores.catalog.database import Transaction
from kbkit.stores.catalog.knowledge_bases import KnowledgeBaseRow
from kbkit.stores.snapshots import codes
from kbkit.stores.snapshots.advancing import advanced, slices
from kbkit.stores.snapshots.chunk_table import check
from kbkit.stores.snapshots.making import make
from kbkit.stores.snapshots.segment_files import SegmentFiles
from kbkit.stores.snapshots.segments import SegmentedSnapshot
from kbkit.stores.snapshots.snapshot import Snapshot


def faults(files: SegmentFiles, transaction: Transaction, row: KnowledgeBaseRow) -> Iterator[str]:
    """List the defects of a knowledge base's snapshot; none if it has no snapshot."""
    if files.stamp(row.id) is None:
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
    coded += [(part.coded, part.vectors) for part in held.card_parts() if part.coded is not None]
    if strange := sum(codes.strangers(path, vectors) for path, vectors in coded):
        yield f"its snapshot has codes of other vectors for {strange:,} of its own"
        return
    found = advanced(transaction, row, held)
    if found is None:
        return  # of another history, so that no search uses it
    if len(found) != sum(1 for _ in _seqs(transaction, row)):
        yield "its snapshot has other chunks than the catalog"
        return
    for low, high in slices(transaction, row, 0):
        made = make(transaction, row, None, after=low, until=high)
        if not _same(found, made):
            yield "its snapshot differs from the catalog"
            return


def _seqs(transaction: Transaction, row: KnowledgeBaseRow) -> Iterator[int]:
    from kbkit.stores.catalog import corpus

    return iter(corpus.chunk_seqs(transaction, row.id))


def _same(found: SegmentedSnapshot, made: Snapshot) -> bool:
    if not len(made):
        return True
    first = int(np.searchsorted(found.seqs, made.seqs[0]))
    rows = np.arange(first, first + len(made))
    if rows[-1] >= len(found) or not np.array_equal(found.seqs[rows], made.seqs):
        return False
    owners = [found.document_ids[number] for number in found.owners[rows].tolist()]
    return (
        np.array_equal(found.rows_of(list(made.ids)), rows)
        and owners == [made.document_ids[number] for number in made.owners.tolist()]
        and np.array_equal(found.lengths[rows], made.lengths)
        and np.array_equal(found.vectors_of(rows), made.vectors)
        and _same_words(found, made, first)
    )


def _same_words(found: SegmentedSnapshot, made: Snapshot, first: int) -> bool:
    terms = list(made.terms)
    held = found.holding(terms)
    for number, term in enumerate(terms):
        rows, counts = made.postings(number)
        if term not in held:
            return False
        own, times = held[term]
        part = (own >= first) & (own < first + len(made))
        if not np.array_equal(own[part], rows + first) or not np.array_equal(times[part], counts):
            return False
    return True
