"""Codes of vectors find what a scan finds, and are rebuilt when lost."""

from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest

from kbkit.retrieval import corpora as retriever
from kbkit.retrieval.candidates import cosines
from kbkit.retrieval.corpora import SnapshotCorpus
from kbkit.stores.snapshots import snapshot as codes
from kbkit.stores.snapshots.near_chunks import is_coded
from kbkit.stores.snapshots.segment_files import SegmentFiles
from kbkit.stores.snapshots.segments import DocumentNumbers, SnapshotState, join_segments
from tests.stores.vector_segments import DIMENSIONS, segment, unit_vectors

pytestmark = pytest.mark.local

pytest.importorskip("faiss")
ABOUT = SnapshotState(1, "e", 1, "", 0)


def of(vectors, start):
    """A segment of one document."""
    owners = np.zeros(len(vectors), np.int32)
    return segment(vectors, start, owners=owners)


@pytest.fixture
def files(tmp_path):
    return SegmentFiles(tmp_path / "snapshots")


@pytest.fixture
def coded(files, monkeypatch):
    """Two segments with codes and removed rows, and a small one without codes."""
    monkeypatch.setattr(codes, "MIN", 2_000)
    monkeypatch.setattr("kbkit.stores.snapshots.segments.SCAN_LIMIT", 0)
    vectors = unit_vectors(6_300, 5)
    ends = (0, 3_000, 6_000, 6_300)
    segments = [of(vectors[i:j], i + 1) for i, j in pairwise(ends)]
    written = files.write("kb", join_segments(ABOUT, segments, DocumentNumbers()))
    files.write_codes(written)
    removed = np.arange(1, 3_000, 5)
    left = [segment.without(removed) for segment in written.segments]
    return join_segments(ABOUT, left, written.numbers)


def corpus_of(snapshot, vector):
    index = SimpleNamespace(is_open=lambda row: False)
    return SnapshotCorpus(snapshot, SimpleNamespace(dimensions=DIMENSIONS), index, vector)


def searched(snapshot, vector, mask=None, most=50):
    corpus = corpus_of(snapshot, vector)
    return corpus.nearest(most, most, mask), corpus._cosines is not None


def exact(snapshot, vector, mask=None, most=50):
    scores = snapshot.score(lambda vectors: cosines(vectors, vector))
    rows = np.arange(len(snapshot)) if mask is None else np.flatnonzero(mask)
    return rows[np.argsort(-scores[rows], kind="stable")][:most]


def test_codes_find_what_a_scan_finds(coded, monkeypatch):
    assert is_coded(coded)
    monkeypatch.setattr(retriever, "_FEW", 100)
    masks = [None, np.arange(len(coded)) % 3 == 0]
    shares = []
    for mask in masks:
        for vector in unit_vectors(20, 6):
            rows, scanned = searched(coded, vector, mask)
            assert not scanned
            expected = exact(coded, vector, mask)
            shares.append(np.isin(expected, rows).mean())
            assert rows[0] == expected[0]
    assert np.mean(shares) > 0.99


def test_few_filtered_chunks_are_scanned(coded):
    mask = np.zeros(len(coded), np.bool_)
    mask[::40] = True
    vector = unit_vectors(1, 6)[0]
    assert searched(coded, vector, mask)[0].tolist() == exact(coded, vector, mask).tolist()


def test_longer_list_starts_with_the_shorter_one(coded):
    corpus = corpus_of(coded, unit_vectors(1, 6)[0])
    short, long = corpus.nearest(20, 20, None), corpus.nearest(20, 200, None)
    assert long[:20].tolist() == short.tolist()
    assert len(set(long.tolist())) == 200


@pytest.mark.parametrize("damage", [lambda f: f.unlink(), lambda f: f.write_bytes(b"\x08" * 99)])
def test_lost_codes_are_bypassed_and_rebuilt(files, coded, damage):
    for file in files.folder.glob("*.codes.*"):
        damage(file)
    reopened = SegmentFiles(files.folder)
    loaded = reopened.read("kb")
    assert [codes.codes_of(segment.snapshot) for segment in loaded.segments] == [None] * 3
    vector = unit_vectors(1, 6)[0]
    assert searched(loaded, vector)[0].tolist() == exact(loaded, vector).tolist()
    reopened.write_codes(loaded)
    have_codes = [codes.codes_of(segment.snapshot) is not None for segment in loaded.segments]
    assert have_codes == [True, True, False]


def test_vectors_that_are_scanned_get_no_codes(files, coded, monkeypatch):
    for file in files.folder.glob("*.codes.*"):
        file.unlink()
    reopened = SegmentFiles(files.folder)
    monkeypatch.setattr("kbkit.stores.snapshots.segments.SCAN_LIMIT", 6_300 * DIMENSIONS)
    reopened.write_codes(reopened.read("kb"))
    assert not list(files.folder.glob("*.codes.*"))
    monkeypatch.setattr("kbkit.stores.snapshots.segments.SCAN_LIMIT", 6_300 * DIMENSIONS - 1)
    reopened.write_codes(reopened.read("kb"))
    assert len(list(files.folder.glob("*.codes.*"))) == 2


def test_codes_are_removed_with_their_segment(files, coded):
    kept = {file.name for file in files.folder.iterdir()}
    assert sum(".codes." in name for name in kept) == 2
    assert {codes.codes_path(files.folder / s.file).name for s in coded.segments[:2]} <= kept
    files.sweep(["kb"])
    assert {file.name for file in files.folder.iterdir()} == kept
    files.drop("kb")
    assert not list(files.folder.iterdir())


def test_nothing_is_coded_without_faiss(coded, monkeypatch):
    monkeypatch.setattr("kbkit.stores.snapshots.near_chunks.available", lambda: False)
    assert not is_coded(coded)
    vector = unit_vectors(1, 6)[0]
    assert searched(coded, vector)[0].tolist() == exact(coded, vector).tolist()
