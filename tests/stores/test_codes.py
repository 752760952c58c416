"""Codes of vectors find what a scan finds, and are made again where they are lost."""

from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest

from kbkit.retrieval.candidates import snapshot as retriever
from kbkit.retrieval.candidates.base import cosines
from kbkit.retrieval.candidates.snapshot import SnapshotCorpus
from kbkit.stores.snapshots import codes
from kbkit.stores.snapshots.near_chunks import is_coded
from kbkit.stores.snapshots.segment_files import SegmentFiles
from kbkit.stores.snapshots.segments import DocumentNumbers, Segment, SegmentsVersion, joined
from kbkit.stores.snapshots.snapshot import Lists, Snapshot

pytestmark = pytest.mark.local

pytest.importorskip("faiss")
DIMENSIONS = 32
NONE = Lists(np.zeros(1, np.int64), np.zeros(0, np.int32))
ABOUT = SegmentsVersion(1, "e", 1, "", 0)


def of(vectors, start):
    """A segment of one document, with these vectors and no words."""
    number = len(vectors)
    return Segment(
        Snapshot(
            version=1,
            embedder="e",
            summaries_version=1,
            summary_embedder="",
            seqs=np.arange(start, start + number),
            owners=np.zeros(number, np.int32),
            lengths=np.ones(number, np.int32),
            headings=np.zeros(number, np.int32),
            document_ids=(f"d{start}",),
            titles=("",),
            sizes=np.array([number]),
            heading_texts=("",),
            heading_terms=Lists(np.zeros(2, np.int64), NONE.values),
            title_terms=Lists(np.zeros(2, np.int64), NONE.values),
            average_length=1.0,
            document_lengths=np.array([number]),
            summary_vectors=np.zeros((1, 0), np.float32),
            ids=[f"c{start + i}" for i in range(number)],
            vectors=vectors,
            terms=[],
            starts=np.zeros(1, np.int64),
            rows=np.zeros(0, np.int32),
            counts=np.zeros(0, np.uint16),
        )
    )


@pytest.fixture
def files(tmp_path):
    return SegmentFiles(tmp_path / "snapshots")


@pytest.fixture
def made(files, monkeypatch):
    """Two segments with codes, of which rows have gone, and a small one without."""
    monkeypatch.setattr(codes, "MIN", 2_000)
    monkeypatch.setattr(retriever, "_SCAN_LIMIT", 0)
    rng = np.random.default_rng(5)
    vectors = rng.normal(size=(6_300, DIMENSIONS)) * np.linspace(2, 0.2, DIMENSIONS)
    vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    ends = (0, 3_000, 6_000, 6_300)
    segments = [of(vectors[i:j], i + 1) for i, j in pairwise(ends)]
    found = files.write("kb", joined(ABOUT, segments, DocumentNumbers()))
    files.write_codes(found)
    gone = np.arange(1, 3_000, 5)
    left = [segment.without(gone) for segment in found.segments]
    return joined(ABOUT, left, found.numbers)


def searched(found, vector, mask=None, most=50):
    index = SimpleNamespace(is_open=lambda row: False)
    corpus = SnapshotCorpus(found, SimpleNamespace(dimensions=DIMENSIONS), index, vector)
    return corpus.nearest(most, most, mask), corpus._cosines is not None


def exact(found, vector, mask=None, most=50):
    scores = found.scored(lambda vectors: cosines(vectors, vector))
    rows = np.arange(len(found)) if mask is None else np.flatnonzero(mask)
    return rows[np.argsort(-scores[rows], kind="stable")][:most]


def queries(number=20):
    rng = np.random.default_rng(6)
    asked = rng.normal(size=(number, DIMENSIONS)) * np.linspace(2, 0.2, DIMENSIONS)
    return (asked / np.linalg.norm(asked, axis=1, keepdims=True)).astype(np.float32)


def test_codes_find_what_a_scan_finds(made, monkeypatch):
    assert is_coded(made)
    monkeypatch.setattr(retriever, "_FEW", 100)
    masks = [None, np.arange(len(made)) % 3 == 0]
    shares = []
    for mask in masks:
        for vector in queries():
            rows, scanned = searched(made, vector, mask)
            assert not scanned
            expected = exact(made, vector, mask)
            shares.append(np.isin(expected, rows).mean())
            assert rows[0] == expected[0]  # scored by the vectors themselves, so best first
    assert np.mean(shares) > 0.99


def test_few_that_a_filter_lets_through_are_scanned(made):
    mask = np.zeros(len(made), np.bool_)
    mask[::40] = True
    vector = queries(1)[0]
    assert searched(made, vector, mask)[0].tolist() == exact(made, vector, mask).tolist()


def test_a_longer_list_begins_like_a_shorter_one(made):
    vector = queries(1)[0]
    index = SimpleNamespace(is_open=lambda row: False)
    corpus = SnapshotCorpus(made, SimpleNamespace(dimensions=DIMENSIONS), index, vector)
    short, long = corpus.nearest(20, 20, None), corpus.nearest(20, 200, None)
    assert long[:20].tolist() == short.tolist()
    assert len(set(long.tolist())) == 200


@pytest.mark.parametrize("damage", [lambda f: f.unlink(), lambda f: f.write_bytes(b"\x08" * 99)])
def test_codes_that_are_lost_are_scanned_around_and_made_again(files, made, damage):
    for file in files.folder.glob("*.codes.*"):
        damage(file)
    again = SegmentFiles(files.folder)
    found = again.read("kb")
    assert [codes.codes_of(segment.snapshot) for segment in found.segments] == [None] * 3
    vector = queries(1)[0]
    assert searched(found, vector)[0].tolist() == exact(found, vector).tolist()
    again.write_codes(found)
    held = [codes.codes_of(segment.snapshot) is not None for segment in found.segments]
    assert held == [True, True, False]


def test_codes_go_with_their_segment(files, made):
    kept = {file.name for file in files.folder.iterdir()}
    assert sum(".codes." in name for name in kept) == 2
    assert {codes.path_of(files.folder / s.file).name for s in made.segments[:2]} <= kept
    files.sweep(["kb"])
    assert {file.name for file in files.folder.iterdir()} == kept
    files.drop("kb")
    assert not list(files.folder.iterdir())


def test_without_faiss_nothing_is_coded(made, monkeypatch):
    monkeypatch.setattr("kbkit.stores.snapshots.near_chunks.available", lambda: False)
    assert not is_coded(made)
    vector = queries(1)[0]
    assert searched(made, vector)[0].tolist() == exact(made, vector).tolist()
