"""Segments of snapshots that have vectors and no words, as tests of codes need them."""

import numpy as np

from kbkit.stores.snapshots.segments import Segment
from kbkit.stores.snapshots.snapshot import Lists, Snapshot

DIMENSIONS = 32


def unit_vectors(number, seed):
    """Random directions, of which the first dimensions say most."""
    vectors = np.random.default_rng(seed).normal(size=(number, DIMENSIONS))
    vectors *= np.linspace(2, 0.2, DIMENSIONS)
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def _no_terms(number):
    return Lists(np.zeros(number + 1, np.int64), np.zeros(0, np.int32))


def segment(vectors, start, *, owners):
    """A segment with a chunk for each vector, of the documents that own them."""
    number, documents = len(vectors), int(owners[-1]) + 1
    return Segment(
        Snapshot(
            embedder="e",
            seqs=np.arange(start, start + number),
            owners=owners,
            lengths=np.ones(number, np.int32),
            headings=np.zeros(number, np.int32),
            document_ids=[f"d{start + i}" for i in range(documents)],
            titles=[""] * documents,
            heading_texts=("",),
            heading_terms=_no_terms(1),
            title_terms=_no_terms(documents),
            ids=[f"c{start + i}" for i in range(number)],
            vectors=vectors,
            terms=[],
            starts=np.zeros(1, np.int64),
            rows=np.zeros(0, np.int32),
            counts=np.zeros(0, np.uint16),
        )
    )
