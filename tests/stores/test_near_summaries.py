"""Codes of the summaries of documents find what a scan of all summaries finds."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from kbkit.models import Filters, Mode
from kbkit.retrieval.candidates import documents
from kbkit.retrieval.candidates.base import EncodedQuery, cosines
from kbkit.retrieval.candidates.documents import SummaryScores
from kbkit.retrieval.query import QueryVector
from kbkit.stores.snapshots import codes, near_chunks
from kbkit.stores.snapshots.segment_files import SegmentFiles
from kbkit.stores.snapshots.segments import (
    DocumentNumbers,
    LaterSummaries,
    Segment,
    SegmentsVersion,
    joined,
)
from kbkit.stores.snapshots.snapshot import Lists, Snapshot

pytest.importorskip("faiss")
DIMENSIONS = 32
DOCUMENTS = 3_000
ABOUT = SegmentsVersion(1, "e", 1, "summaries", 0)


class Done:
    """The vector of a query, ready."""

    def __init__(self, vector):
        self._vector = vector

    def result(self):
        return QueryVector(vector=self._vector)


def unit(number, seed):
    rng = np.random.default_rng(seed)
    made = rng.normal(size=(number, DIMENSIONS)) * np.linspace(2, 0.2, DIMENSIONS)
    return (made / np.linalg.norm(made, axis=1, keepdims=True)).astype(np.float32)


def of(summaries, start):
    """A segment of documents of one chunk each, with these summaries."""
    number = len(summaries)
    none = Lists(np.zeros(number + 1, np.int64), np.zeros(0, np.int32))
    return Segment(
        Snapshot(
            version=1,
            embedder="e",
            summaries_version=1,
            summary_embedder="summaries",
            seqs=np.arange(start, start + number),
            owners=np.arange(number, dtype=np.int32),
            lengths=np.ones(number, np.int32),
            headings=np.zeros(number, np.int32),
            document_ids=[f"d{start + i}" for i in range(number)],
            titles=[""] * number,
            sizes=np.ones(number, np.int64),
            heading_texts=("",),
            title_terms=none,
            heading_terms=Lists(np.zeros(2, np.int64), none.values),
            average_length=1.0,
            document_lengths=np.ones(number, np.int64),
            summary_vectors=summaries,
            ids=[f"c{start + i}" for i in range(number)],
            vectors=np.zeros((number, DIMENSIONS), np.float32),
            terms=[],
            starts=np.zeros(1, np.int64),
            rows=np.zeros(0, np.int32),
            counts=np.zeros(0, np.uint16),
        )
    )


@pytest.fixture
def made(tmp_path, monkeypatch):
    """Two segments with codes, a few later summaries, documents that are gone or have none."""
    monkeypatch.setattr(codes, "MIN", 1_000)
    summaries = unit(2 * DOCUMENTS, 5)
    summaries[7::50] = 0.0
    segments = [of(summaries[:DOCUMENTS], 1), of(summaries[DOCUMENTS:], DOCUMENTS + 1)]
    files = SegmentFiles(tmp_path / "snapshots")
    found = files.write("kb", joined(ABOUT, segments, DocumentNumbers()))
    files.write_codes(found)
    left = [part.without(np.arange(3, 2 * DOCUMENTS, 11)) for part in found.segments]
    found = joined(ABOUT, left, found.numbers)
    later = np.arange(0, 2 * DOCUMENTS, 40, dtype=np.int32)
    behind = unit(len(later), 6)
    behind[::5] = 0.0
    return replace(found, summaries=(LaterSummaries(2, "summaries", later, behind),))


def scored(found, vector, mask=None):
    query = EncodedQuery(
        (),
        "english",
        None,
        Mode.DENSE,
        10,
        10,
        Filters(),
        summary=Done(vector),
        summary_embedder="summaries",
    )
    return SummaryScores.of(found, query, mask)


@pytest.mark.parametrize("share", [1, 2, 20])
def test_the_best_documents_are_those_of_a_scan(made, monkeypatch, share):
    monkeypatch.setattr(documents, "_FEW", 500)
    mask = None if share == 1 else np.arange(len(made)) % share == 0
    open_ = (
        np.bincount(made.owners if mask is None else made.owners[mask], minlength=len(made.sizes))
        > 0
    )
    shares = []
    for vector in unit(20, 7):
        by_codes = scored(made, vector, mask)
        assert by_codes.exact is not None
        with monkeypatch.context() as without:
            without.setattr(documents, "near_summaries", lambda chunks: None)
            by_scan = scored(made, vector, mask)
        there = np.flatnonzero(open_)
        best = there[np.argsort(-by_scan.all[there], kind="stable")][:30]
        found = there[np.argsort(-by_codes.all[there], kind="stable")][:30]
        shares.append(np.isin(best, found).mean())
        assert found[0] == best[0]
        everything = np.arange(len(made.sizes))
        held = made.sizes > 0  # of what has gone nobody asks
        np.testing.assert_allclose(by_codes.exact(everything)[held], by_scan.all[held], atol=1e-5)
        assert by_codes.usual == pytest.approx(by_scan.usual, abs=1e-5)
    assert np.mean(shares) > 0.99


def test_few_summaries_and_those_without_codes_are_scanned(made, monkeypatch):
    monkeypatch.setattr(near_chunks, "_MAX_UNCODED_SUMMARIES", 100)
    assert near_chunks.near_summaries(made) is None
    near_chunks.forget(made)
    monkeypatch.setattr(near_chunks, "_MAX_UNCODED_SUMMARIES", 1_000)
    found = near_chunks.near_summaries(made)
    assert found is not None
    assert [len(part.vectors) for part in found.uncoded] == [len(found.parts[-1].vectors)]
    vector = unit(1, 8)[0]
    assert len(found.nearest(vector, 30, partial(lambda v, m: cosines(m, v), vector))) >= 30
