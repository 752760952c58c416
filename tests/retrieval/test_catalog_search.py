"""Search without a snapshot has the same hits: on kbkit's guides, with real models."""

from pathlib import Path

import numpy as np
import pytest

import kbkit
from kbkit.knowledge_base import handle_of
from kbkit.models import Mode
from kbkit.recipes import FilesSource, RetrievalSpec
from kbkit.retrieval.candidates import top_indices
from kbkit.retrieval.corpora import CatalogCorpus
from kbkit.stores.snapshots import chunk_table
from kbkit.stores.snapshots.snapshots import Snapshots

ROOT = Path(__file__).parents[2]
QUESTION = "how do I search several knowledge bases at once"
WORDS = ("crawl a web site politely", "weights learned from ratings", "thermostat kettle")
QUERIES = [QUESTION, *WORDS, "the of and"]
FILTERS = [
    {},
    {"path": "*s.md"},
    {"heading": "figures"},
    {"min_rating": 4},
    {"tags": ["nowhere"]},
    {"after": "2020-01-31", "state": "current"},
]
WEIGHTS = ({"summary_weight": 0}, {"page_weight": 0}, {"summary_weight": 0.2, "page_weight": 3})
SETTINGS = [None, *(RetrievalSpec(**options) for options in ({"candidates": 10}, *WEIGHTS))]


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    folder = tmp_path_factory.mktemp("guides")
    with kbkit.open(folder / "kb") as workspace:
        workspace.create("guides").ingest(FilesSource(path=str(ROOT / "site" / "*.md")))
        files = FilesSource(path=str(ROOT / "*.md"))
        workspace.create("about").ingest(files)
        kb = workspace["guides"]
        for score, hit in zip((5, 2, 4), kb.search("rating of a passage", limit=3), strict=True):
            kb.rate(hit.chunk.id, score)
        yield workspace


@pytest.fixture
def by_catalog(workspace, monkeypatch):
    """Runs a search without snapshots, and gives the knowledge bases that it read too.

    Chroma's graph differs each time and may miss some chunks: it must name nearly all, and the
    search goes on with the exact ones.
    """
    read, original = [], CatalogCorpus.nearest

    def nearest(self, size, most, mask):
        read.append(self.row.name)
        named = original(self, size, most, mask)
        if self.vector is None or mask is not None:
            return named
        exact = top_indices(self.cosines(np.arange(len(self.chunks))), most)
        assert len(np.intersect1d(exact, named)) >= 0.9 * len(exact)
        return exact

    def run(search):
        with monkeypatch.context() as patched:
            without_snapshots(patched)
            patched.setattr(Snapshots, "table", lambda self, *seen: chunk_table.read(*seen))
            patched.setattr(CatalogCorpus, "nearest", nearest)
            return search(), read

    return run


def without_snapshots(patched):
    patched.setattr(Snapshots, "get", lambda self, row: None)
    patched.setattr(Snapshots, "seen", lambda self, transaction, row: None)
    patched.setattr("kbkit.retrieval.retriever._SMALL", -1)


def assert_same(one, other):
    assert [(hit.kb, hit.chunk.id) for hit in one] == [(hit.kb, hit.chunk.id) for hit in other]
    for hit, twin in zip(one, other, strict=True):
        assert hit.parts.to_dict() == pytest.approx(twin.parts.to_dict(), abs=1e-6)
    assert one.notes == other.notes


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("filters", FILTERS, ids=str)
def test_search_of_one_knowledge_base(workspace, by_catalog, filters, mode):
    kb = workspace["guides"]
    lengths = []
    for query in QUERIES:
        options = {"limit": 30, "mode": mode, "filters": filters}
        hits = kb.search(query, **options)
        others, read = by_catalog(lambda q=query, o=options: kb.search(q, **o))
        assert_same(hits, others)
        lengths.append(len(hits))
    assert ("guides" in read) == (mode is not Mode.LEXICAL)
    assert (max(lengths) == 0) == ("tags" in filters)


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_search_with_settings(workspace, by_catalog, settings):
    kb = workspace["guides"]
    for query in QUERIES:
        hits = kb.search(query, retrieval=settings)
        assert_same(hits, by_catalog(lambda q=query: kb.search(q, retrieval=settings))[0])
    best = kb.search(QUERIES[0], retrieval=settings)[0].parts
    assert (best.summary > 0) == (settings is None or settings.summary_weight > 0)
    assert (best.page > 0) == (settings is None or settings.page_weight > 0)


@pytest.mark.parametrize("filters", FILTERS[:2], ids=str)
def test_search_of_several_knowledge_bases(workspace, by_catalog, filters):
    both = set()
    for query in QUERIES:
        hits = workspace.search(query, limit=30, filters=filters)
        both |= {hit.kb for hit in hits}
        others, read = by_catalog(lambda q=query: workspace.search(q, limit=30, filters=filters))
        assert_same(hits, others)
    assert "guides" in both
    assert {"guides", "about"} <= set(read)


def test_similar_passages(workspace, by_catalog):
    kb = workspace["guides"]
    for hit in kb.search(QUERIES[0], limit=3):
        hits = kb.similar(hit.chunk.id)
        assert all(other.parts.summary == other.parts.page == 0 for other in hits)
        assert_same(hits, by_catalog(lambda h=hit: kb.similar(h.chunk.id))[0])


def test_table_is_read_once_per_version(workspace, monkeypatch):
    kb = workspace["guides"]
    reads, original = [], chunk_table.read
    without_snapshots(monkeypatch)
    # a snapshot made after the first search would replace the table
    monkeypatch.setattr(Snapshots, "_hold", lambda self, kb_id, found: None)
    monkeypatch.setattr(
        "kbkit.stores.snapshots.snapshots.read", lambda *seen: reads.append(1) or original(*seen)
    )
    handle_of(kb).stores.snapshots.drop(kb.id)
    first = kb.search(QUERIES[0])
    assert kb.search(QUERIES[0]).hits == first.hits
    kb.search(QUERIES[1], filters={"path": "*s.md"})
    assert len(reads) == 1
    kb.add("Kettle", "A kettle with a thermostat.", source="a:/kettle")
    assert kb.search("thermostat")[0].title == "Kettle"
    assert kb.search("thermostat kettle")[0].title == "Kettle"
    assert len(reads) == 2
    kb.documents.delete("a:/kettle")
