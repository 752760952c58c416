"""Without a snapshot the same is found, to the last part: on kbkit's guides, with real models."""

from pathlib import Path

import numpy as np
import pytest

import kbkit
from kbkit.knowledge_base import handle_of
from kbkit.models import Mode
from kbkit.recipes import FilesSource, RetrievalSpec
from kbkit.retrieval.candidates.base import top_indices
from kbkit.retrieval.candidates.snapshot import CatalogCorpus
from kbkit.stores.snapshots import chunk_table
from kbkit.stores.snapshots.snapshots import Snapshots

ROOT = Path(__file__).parents[2]
QUERIES = [
    "how do I search several knowledge bases at once",
    "crawl a web site politely",
    "weights learned from ratings",
    "thermostat kettle",
    "the of and",
]
FILTERS = [
    {},
    {"path": "*s.md"},
    {"heading": "figures"},
    {"min_rating": 4},
    {"tags": ["nowhere"]},
    {"after": "2020-01-31", "state": "current"},
]
SETTINGS = [
    None,
    RetrievalSpec(candidates=10),
    RetrievalSpec(summary_weight=0),
    RetrievalSpec(page_weight=0),
    RetrievalSpec(summary_weight=0.2, page_weight=3),
]


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
    """Runs a search without snapshots; what the retrievers read then is counted.

    Chroma's graph is another one each time and may lead to a chunk from nowhere: that it names
    nearly all is one thing to check, and that the same chunks are ranked alike is another.
    """
    read, real = [], CatalogCorpus.nearest

    def nearest(self, size, most, mask):
        read.append(self.row.name)
        named = real(self, size, most, mask)
        if self.vector is None or mask is not None:
            return named
        exact = top_indices(self.cosines(np.arange(len(self.chunks))), most)
        assert len(np.intersect1d(exact, named)) >= 0.9 * len(exact)
        return exact

    def run(search):
        with monkeypatch.context() as patched:
            patched.setattr(Snapshots, "get", lambda self, row: None)
            patched.setattr(Snapshots, "seen", lambda self, transaction, row: None)
            patched.setattr(Snapshots, "table", lambda self, *seen: chunk_table.read(*seen))
            patched.setattr("kbkit.retrieval.retriever._SMALL", -1)
            patched.setattr(CatalogCorpus, "nearest", nearest)
            return search(), read

    return run


def told(hits):
    return [(hit.kb, hit.chunk.id) for hit in hits]


def same(one, other):
    assert told(one) == told(other)
    for hit, twin in zip(one, other, strict=True):
        assert hit.parts.to_dict() == pytest.approx(twin.parts.to_dict(), abs=1e-6)
    assert one.notes == other.notes


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("filters", FILTERS, ids=str)
def test_one_knowledge_base(workspace, by_catalog, filters, mode):
    kb = workspace["guides"]
    lengths = []
    for query in QUERIES:
        asked = {"limit": 30, "mode": mode, "filters": filters}
        hits = kb.search(query, **asked)
        found, read = by_catalog(lambda q=query, a=asked: kb.search(q, **a))
        same(hits, found)
        lengths.append(len(hits))
    assert ("guides" in read) == (mode is not Mode.LEXICAL)
    assert (max(lengths) == 0) == ("tags" in filters)


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_settings_of_one_search(workspace, by_catalog, settings):
    kb = workspace["guides"]
    for query in QUERIES:
        hits = kb.search(query, retrieval=settings)
        same(hits, by_catalog(lambda q=query: kb.search(q, retrieval=settings))[0])
    best = kb.search(QUERIES[0], retrieval=settings)[0].parts
    assert (best.summary > 0) == (settings is None or settings.summary_weight > 0)
    assert (best.page > 0) == (settings is None or settings.page_weight > 0)


@pytest.mark.parametrize("filters", FILTERS[:2], ids=str)
def test_several_knowledge_bases(workspace, by_catalog, filters):
    both = set()
    for query in QUERIES:
        hits = workspace.search(query, limit=30, filters=filters)
        both |= {hit.kb for hit in hits}
        found, read = by_catalog(lambda q=query: workspace.search(q, limit=30, filters=filters))
        same(hits, found)
    assert "guides" in both
    assert {"guides", "about"} <= set(read)


def test_similar_passages(workspace, by_catalog):
    kb = workspace["guides"]
    for hit in kb.search(QUERIES[0], limit=3):
        hits = kb.similar(hit.chunk.id)
        assert all(other.parts.summary == other.parts.page == 0 for other in hits)
        same(hits, by_catalog(lambda h=hit: kb.similar(h.chunk.id))[0])


def test_a_table_is_read_once_a_version(workspace, monkeypatch):
    kb = workspace["guides"]
    handle, count, real = handle_of(kb), [], chunk_table.read
    monkeypatch.setattr(Snapshots, "get", lambda self, row: None)
    monkeypatch.setattr(Snapshots, "seen", lambda self, transaction, row: None)
    # what is made behind the first search would have the table forgotten
    monkeypatch.setattr(Snapshots, "_hold", lambda self, kb_id, found: None)
    monkeypatch.setattr("kbkit.retrieval.retriever._SMALL", -1)
    monkeypatch.setattr(
        "kbkit.stores.snapshots.snapshots.read", lambda *seen: count.append(1) or real(*seen)
    )
    handle.stores.snapshots.drop(kb.id)
    first = kb.search(QUERIES[0])
    assert kb.search(QUERIES[0]).hits == first.hits
    kb.search(QUERIES[1], filters={"path": "*s.md"})
    assert len(count) == 1
    kb.add("Kettle", "A kettle with a thermostat.", source="a:/kettle")
    assert kb.search("thermostat")[0].title == "Kettle"
    assert kb.search("thermostat kettle")[0].title == "Kettle"
    assert len(count) == 2
    kb.documents.delete("a:/kettle")
