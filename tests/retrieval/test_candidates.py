"""Candidates of snapshot and Chroma against those of an exact search."""

import random
import threading
from dataclasses import replace
from datetime import UTC, datetime
from types import SimpleNamespace

import numpy as np
import pytest
from sqlalchemy import select

import kbkit
from kbkit.errors import WorkspaceError
from kbkit.knowledge_base import handle_of
from kbkit.models import Filters, Mode, SourceDocument
from kbkit.recipes import RetrievalSpec
from kbkit.retrieval.candidates import EncodedQuery, filter_mask, top_indices
from kbkit.retrieval.corpora import SnapshotCorpus, find_candidates
from kbkit.retrieval.encoder_fitting import LearnedQuestions
from kbkit.retrieval.query import Query, encode_for_summaries
from kbkit.stores.catalog import knowledge_bases, outbox, ratings
from kbkit.stores.catalog.ratings import QuestionVectors
from kbkit.stores.catalog.schema import chunks
from kbkit.stores.snapshots.making import make
from kbkit.stores.vector_index import NearestIds
from kbkit.text.analysis import analyzer

pytestmark = pytest.mark.usefixtures("vectors_in_chroma")

WORDS = (
    "tea water kettle steep leaf bread flour salt yeast oven garden rose soil rain python "
    "class list thread lock queue river stone bridge road train ticket coffee milk sugar cup"
)
QUERIES = ["green tea in a kettle", "salt", "python thread lock", "river bridge", "zebra", "oven"]
FEW = RetrievalSpec(candidates=5)


@pytest.fixture(scope="module")
def kb(tmp_path_factory):
    """A knowledge base of 60 random documents, with a snapshot, and open in Chroma."""
    rng = random.Random(0)
    texts = [" ".join(rng.choices(WORDS.split(), k=rng.randint(3, 40))) for _ in range(60)]
    pages = [
        SourceDocument(f"doc:{n}", f"Page {n % 7}", f"## About {text[:9]}\n\n{text}.")
        for n, text in enumerate(texts)
    ]
    with kbkit.open(tmp_path_factory.mktemp("candidates")) as workspace:
        kb = workspace.create("random")
        kb.ingest([*pages, SourceDocument("doc:odd", "?", "#")])
        yield kb


@pytest.fixture
def view(kb):
    """The state that a search reads."""
    resources = kb._stores
    resources.vectors.open(kb.id)
    with resources.database.read() as connection:
        row = kb._handle.row()
        yield SimpleNamespace(
            row=row,
            vectors=resources.vectors,
            connection=connection,
            snapshot=make(connection, row),
            searched=resources.snapshots.renew(row.id),
            embed=kb._handle.embedders.of(row).embed_query,
        )


def encode(view, query, mode=Mode.HYBRID, size=100, limit=10, **settings):
    vector = None if mode is Mode.LEXICAL else view.embed(query)
    terms = tuple(analyzer().query_terms(query))
    retrieval = RetrievalSpec.model_construct(candidates=size, **settings)
    return EncodedQuery(Query(query, limit, mode), retrieval, "english", terms, vector)


class Closed:
    """Vectors that nothing has opened."""

    def is_open(self, row):
        return False


def by_snapshot_of(view, encoded, mask=None, vectors=None):
    read = SnapshotCorpus(view.searched, view.row, vectors or view.vectors, encoded.vector)
    return find_candidates(read, encoded, mask)


def by_scan_of(view, encoded, mask=None):
    return by_snapshot_of(view, encoded, mask, Closed())


def assert_same(one, other):
    assert one.ranked == other.ranked
    assert one.seqs.tolist() == other.seqs.tolist()
    assert (one.vectors == other.vectors).all()
    assert (one.document_ids, one.words, one.pages) == (
        other.document_ids,
        other.words,
        other.pages,
    )
    for name, column in one.columns.items():
        assert column.tolist() == other.columns[name].tolist(), name


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("limit", [3, 10**6])
@pytest.mark.parametrize("query", QUERIES)
def test_chroma_and_scan_give_the_same_candidates(view, query, mode, limit):
    encoded = encode(view, query, mode, limit=limit)
    assert_same(by_snapshot_of(view, encoded), by_scan_of(view, encoded))


@pytest.mark.parametrize("limit", [3, 10**6])
def test_long_scans_run_in_another_thread(view, limit, monkeypatch):
    encoded = encode(view, QUERIES[0], limit=limit)
    inline = by_scan_of(view, encoded)
    monkeypatch.setattr(SnapshotCorpus, "scans_long", True)
    readers = []
    original = SnapshotCorpus.nearest

    def nearest(self, *args):
        readers.append(threading.current_thread())
        return original(self, *args)

    monkeypatch.setattr(SnapshotCorpus, "nearest", nearest)
    assert_same(by_scan_of(view, encoded), inline)
    assert readers[0] is not threading.current_thread()

    def fail(self, *args):
        raise WorkspaceError("the disk is gone")

    monkeypatch.setattr(SnapshotCorpus, "nearest", fail)
    with pytest.raises(WorkspaceError, match="the disk is gone"):
        by_scan_of(view, encoded)


@pytest.mark.parametrize("query", QUERIES)
def test_few_candidates_are_the_best_of_each_retriever(view, query, monkeypatch):
    best_rows = "kbkit.retrieval.document_scores.DocumentScores.best_rows"
    monkeypatch.setattr(best_rows, lambda *_, **__: np.zeros(0, np.int64))
    encoded = encode(view, query, size=5, limit=30)
    whole = by_scan_of(view, encode(view, query, limit=10**6))
    cosines = view.snapshot.vectors @ encoded.vector
    nearest = view.snapshot.seqs[np.argsort(-cosines, kind="stable")[:5]].tolist()
    for candidates in (by_snapshot_of(view, encoded), by_scan_of(view, encoded)):
        ranked, rest = (
            candidates.seqs[: candidates.ranked].tolist(),
            candidates.seqs[candidates.ranked :].tolist(),
        )
        assert set(nearest) <= set(ranked)
        assert len(ranked) <= 10
        assert not set(ranked) & set(rest)
        assert len(set(rest)) == len(rest) >= 20
        assert set(ranked + rest) <= set(whole.seqs.tolist())
    for mode in (Mode.DENSE, Mode.LEXICAL):
        one = by_snapshot_of(view, encode(view, query, mode, 5, 1))
        assert one.ranked == len(one.seqs) <= 5


def test_learned_chunks_that_exist_and_pass_become_candidates(view):
    rated = [5, 2]
    seqs = [0, *view.searched.seqs[rated].tolist()]  # the first is deleted
    learned = LearnedQuestions.of({"oven": seqs}, QuestionVectors("", {}), "english")
    encoded = encode(view, "oven", Mode.LEXICAL, size=0, limit=0, page_weight=0)
    encoded = replace(encoded, terms=("oven",), questions=learned)
    assert by_scan_of(view, encoded).seqs.tolist() == sorted(seqs[1:])
    mask = np.arange(len(view.searched)) != rated[1]
    assert by_scan_of(view, encoded, mask).seqs.tolist() == [seqs[1]]


@pytest.mark.parametrize("query", QUERIES)
def test_best_documents_bring_their_best_chunk(kb, view, query, monkeypatch):
    monkeypatch.setattr("kbkit.retrieval.document_scores._BEST_DOCUMENTS", 3)
    snapshot, embedders = view.snapshot, handle_of(kb).embedders
    summary = embedders.of_summaries(view.row)
    encoded = replace(
        encode(view, query, size=1, limit=1),
        summary=encode_for_summaries(embedders, view.row, query),
        summary_embedder=summary.fingerprint,
    )
    candidates = by_scan_of(view, encoded)
    names = np.array(snapshot.document_ids)
    scores = view.searched.summary_scores(lambda vectors: vectors @ encoded.summary_query.vector)
    cosines = scores[view.searched.numbers.of_ids(snapshot.document_ids)]
    best = set(names[np.argsort(-cosines, kind="stable")[:3]])
    owned = [
        snapshot.owners[snapshot.postings(number)[0]]
        for number in snapshot.numbers(encoded.terms).values()
    ]
    holding = {names[owner] for owners in owned for owner in owners.tolist()}
    ranked = set(candidates.document_ids[: candidates.ranked])
    assert best <= ranked
    assert len(ranked - best) <= 5  # three by their words, and the best chunk of each retriever
    assert len(holding & ranked) >= min(3, len(holding))
    page = candidates.columns["page"]
    assert (page > 0).tolist() == [known in holding for known in candidates.document_ids]
    assert candidates.columns["summary"] == pytest.approx(
        [cosines[snapshot.document_ids.index(known)] for known in candidates.document_ids], abs=1e-6
    )
    # summaries were embedded again meanwhile
    other = by_scan_of(view, replace(encoded, summary_embedder="another"))
    assert not other.columns["summary"].any()
    assert other.embedder == ""


@pytest.mark.local
@pytest.mark.parametrize("opened_at", [0.0, 0.5, 1.0])
def test_chunks_missing_in_chroma_are_candidates(kb, view, opened_at):
    known, collection = kb._stores.vectors._seqs, kb.info().collection
    before = known[collection]
    known[collection] = int(before * opened_at)
    try:
        for query in QUERIES:
            encoded = encode(view, query, size=5, limit=8)
            assert_same(by_snapshot_of(view, encoded), by_scan_of(view, encoded))
    finally:
        known[collection] = before


def test_chunks_deleted_since_chroma_named_them_are_left_out(view):
    snapshot, vector = view.snapshot, view.embed("green tea")
    last = int(snapshot.seqs[-1])
    named = SnapshotCorpus(view.searched, view.row, view.vectors, vector).nearest_of
    exact = top_indices(snapshot.vectors @ vector, 5).tolist()
    ids = [snapshot.ids[row] for row in exact]
    assert named(NearestIds(ids, last), 5).tolist() == exact
    assert named(NearestIds(ids[::-1], last), 5).tolist() == exact
    assert named(NearestIds([*ids[1:], "gone"], last), 5).tolist() == []
    assert named(NearestIds(["gone"], last), 5).tolist() == []
    assert named(NearestIds(["gone"], 0), 5).tolist() == exact


def test_chunks_deleted_by_another_process_take_no_places(tmp_path):
    with kbkit.open(tmp_path) as workspace:
        kb = workspace.create("drinks")
        for n, text in enumerate(["green tea"] * 6 + ["black tea", "hot milk", "cold rum"]):
            kb.add(f"{text} {n}", f"All about {text}, number {n}.")
        kb._stores.vectors.open(kb.id)
        hits = kb.search("green tea", limit=6, mode="dense", retrieval=FEW)
        with kb._stores.database.write() as connection:
            of_hits = select(chunks.c.seq).where(chunks.c.id.in_([hit.chunk.id for hit in hits]))
            seqs = list(connection.execute(of_hits).scalars())
            connection.execute(chunks.delete().where(chunks.c.seq.in_(seqs)))
            outbox.note_removed(connection, kb.id, seqs)
            knowledge_bases.touch(connection, kb.id)
        left = {"black tea 6", "hot milk 7", "cold rum 8"}
        for _ in range(3):
            hits = kb.search("green tea", limit=3, mode="dense", retrieval=FEW)
            assert {hit.title for hit in hits} == left
            kb._stores.warmer.close()


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("settings", [None, FEW, RetrievalSpec(candidates=1)])
def test_longer_list_begins_like_a_shorter_one(kb, mode, settings):
    for query in QUERIES:
        whole = kb.search(query, limit=10**6, mode=mode, retrieval=settings)
        scores = [hit.score for hit in whole]
        ids = [hit.chunk.id for hit in whole]
        assert scores == pytest.approx(sorted(scores, reverse=True))
        assert len(ids) == len(set(ids))
        for limit in (1, 10, 60, 150, 10**30):
            hits = kb.search(query, limit=limit, mode=mode, retrieval=settings)
            assert hits.hits == whole.hits[:limit]


@pytest.mark.parametrize("query", QUERIES)
def test_filtered_candidates_are_all_candidates_that_pass(kb, view, query):
    uris = {"doc:1", *(f"doc:{n}" for n in range(10, 20))}
    filters = Filters.of({"source": "doc:1", "before": datetime.now(UTC)})
    whole = by_scan_of(view, encode(view, query, limit=10**6))
    totals = ratings.totals(view.connection, kb.id)
    mask = filter_mask(view.connection, view.row, view.searched, filters, totals)
    encoded = encode(view, query, limit=10**6)
    candidates = by_snapshot_of(view, encoded, mask)
    passing = {d.id for d in kb.documents if d.uri in uris}
    expected = [
        seq
        for seq, document in zip(whole.seqs.tolist(), whole.document_ids, strict=True)
        if document in passing
    ]
    assert candidates.seqs.tolist() == expected
    assert (
        candidates.words.statistics == whole.words.statistics
    )  # of all chunks, so that scores compare


def test_top_indices_are_those_of_a_sort():
    rng = np.random.default_rng(0)
    for n, values in ((0, 3), (1, 3), (7, 3), (50, 3), (3_211, 3), (3_211, 900)):
        scores = rng.integers(-values, values, n).astype(np.float32)
        whole = np.argsort(-scores, kind="stable").tolist()
        for most in (1, 5, 49, 50, 99):
            assert top_indices(scores, most).tolist() == whole[:most]
