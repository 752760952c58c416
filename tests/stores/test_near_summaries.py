"""Codes of the summaries of documents find what a scan of all summaries finds."""

from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

from kbkit.models import Mode
from kbkit.recipes import RetrievalSpec
from kbkit.retrieval import document_scores as documents
from kbkit.retrieval.candidates import EncodedQuery, cosines
from kbkit.retrieval.document_scores import SummaryScores
from kbkit.retrieval.query import Query, QueryVector
from kbkit.stores.snapshots import near_chunks
from kbkit.stores.snapshots import snapshot as codes
from kbkit.stores.snapshots.segment_files import SegmentFiles
from kbkit.stores.snapshots.segments import DocumentNumbers, SnapshotState, join_segments
from kbkit.stores.snapshots.snapshot import SummaryPart
from tests.stores.vector_segments import segment, unit_vectors

pytest.importorskip("faiss")
DOCUMENTS = 3_000
ABOUT = SnapshotState(1, "e", 1, "summaries", 0)


@pytest.fixture
def coded(tmp_path, monkeypatch):
    """Two files of summaries with codes, later ones, removed documents, and missing summaries."""
    monkeypatch.setattr(codes, "MIN", 1_000)
    summaries = unit_vectors(2 * DOCUMENTS, 5)
    summaries[7::50] = 0.0
    every = np.arange(2 * DOCUMENTS, dtype=np.int32)
    chunks = segment(np.zeros_like(summaries), 1, owners=every)
    files = SegmentFiles(tmp_path / "snapshots")
    written = join_segments(ABOUT, [chunks], DocumentNumbers())
    monkeypatch.setattr("kbkit.stores.snapshots.segment_files._TIER", 0.5)
    for part in (slice(0, DOCUMENTS), slice(DOCUMENTS, None)):
        added = SummaryPart(every[part], summaries[part])
        written = files.write("kb", replace(written, summaries=(*written.summaries, added)))
    assert len(written.summaries) == 2
    files.write_codes(written)
    left = [part.without(np.arange(3, 2 * DOCUMENTS, 11)) for part in written.segments]
    written = join_segments(ABOUT, left, written.numbers, written.summaries)
    later = np.arange(0, 2 * DOCUMENTS, 40, dtype=np.int32)
    behind = unit_vectors(len(later), 6)
    behind[::5] = 0.0
    return replace(written, summaries=(*written.summaries, SummaryPart(later, behind)))


def scored(snapshot, vector, mask=None):
    query = EncodedQuery(
        Query("", mode=Mode.DENSE),
        RetrievalSpec(),
        "english",
        (),
        None,
        summary=SimpleNamespace(result=lambda: QueryVector(vector=vector)),
        summary_embedder="summaries",
    )
    return SummaryScores.of(snapshot, query, mask)


@pytest.mark.parametrize("share", [1, 2, 20])
def test_codes_find_the_best_documents_of_a_scan(coded, monkeypatch, share):
    monkeypatch.setattr("kbkit.stores.snapshots.segments.SCAN_LIMIT", 0)
    monkeypatch.setattr(documents, "_FEW", 500)
    mask = None if share == 1 else np.arange(len(coded)) % share == 0
    open_ = (
        np.bincount(
            coded.owners if mask is None else coded.owners[mask], minlength=len(coded.sizes)
        )
        > 0
    )
    shares = []
    for vector in unit_vectors(20, 7):
        by_codes = scored(coded, vector, mask)
        assert by_codes.exact is not None
        with monkeypatch.context() as without:
            without.setattr(documents, "near_summaries", lambda chunks: None)
            by_scan = scored(coded, vector, mask)
        rows = np.flatnonzero(open_)
        best = rows[np.argsort(-by_scan.all[rows], kind="stable")][:30]
        nearest = rows[np.argsort(-by_codes.all[rows], kind="stable")][:30]
        shares.append(np.isin(best, nearest).mean())
        assert nearest[0] == best[0]
        everything = np.arange(len(coded.sizes))
        present = coded.sizes > 0
        np.testing.assert_allclose(
            by_codes.exact(everything)[present], by_scan.all[present], atol=1e-5
        )
        assert by_codes.usual == pytest.approx(by_scan.usual, abs=1e-5)
    assert np.mean(shares) > 0.99


def test_few_summaries_and_those_without_codes_are_scanned(coded, monkeypatch):
    monkeypatch.setattr(near_chunks, "_MAX_UNCODED_SUMMARIES", 100)
    assert near_chunks.near_summaries(coded) is None
    coded.cache.clear()
    monkeypatch.setattr(near_chunks, "_MAX_UNCODED_SUMMARIES", 1_000)
    near = near_chunks.near_summaries(coded)
    assert near is not None
    assert [len(part.vectors) for part in near.uncoded] == [len(near.parts[-1].vectors)]
    vector = unit_vectors(1, 8)[0]
    assert len(near.nearest(vector, 30, partial(lambda v, m: cosines(m, v), vector))) >= 30
