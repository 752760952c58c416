"""Filters by annotations in a published site."""

import re

import numpy as np
import pytest

import kbkit
from kbkit.export.facts import Manifest
from kbkit.export.index_content import index_state
from kbkit.export.index_writer import remove_index
from kbkit.recipes import KnowledgeBaseSpec, NameSpec, RulesAnnotation
from kbkit.retrieval.candidates import filter_mask
from kbkit.stores.catalog import knowledge_bases, ratings, reading
from kbkit.stores.snapshots.making import make
from tests.export.conftest import ROOT, in_node, pages_of, published

EVIL = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    with kbkit.open(tmp_path_factory.mktemp("annotated") / "kb") as workspace:
        names = (NameSpec(name="open_pool", aliases=("pool opener",)), NameSpec(name=EVIL))
        spec = KnowledgeBaseSpec(annotation=RulesAnnotation(names=names))
        kb = workspace.create("guides", spec=spec)
        kb.ingest(kbkit.FilesSource(path=str(ROOT / "site" / "*.md")))
        for n in range(4):
            document = kb.add(
                f"Pools {n}",
                f"## Open {n}\n\nYou must call `open_pool` before a query, number {n}.\n\n"
                f"## Tell\n\nThe pool opener says {n} times what {EVIL} is.",
                tags=["pool"],
            )
            kb.rate(document.id, 1 + n)
        kb.annotations.make()
        yield workspace


@pytest.fixture(scope="module")
def kb(workspace):
    return workspace["guides"]


@pytest.fixture(scope="module")
def index(kb, tmp_path_factory):
    return published(kb, tmp_path_factory.mktemp("index"))


CONDITIONS = [
    ({"frame": "constraint"}, {"frames": ["constraint"]}),
    ({"frame": ["procedure", "causal"]}, {"frames": ["procedure", "causal"]}),
    ({"entity": "open_pool"}, {"entities": ["open_pool"]}),
    ({"entity": "Pool Opener"}, {"entities": ["Pool Opener"]}),
    ({"subject": "Knowledge graph"}, {"subjects": ["Knowledge graph"]}),
    ({"subject": "ingest", "frame": "causal"}, {"subjects": ["ingest"], "frames": ["causal"]}),
    ({"subject": ["open_pool", EVIL]}, {"subjects": ["open_pool", EVIL]}),
    ({"entity": "no such thing at all"}, {"entities": ["no such thing at all"]}),
    ({"tags": "pool", "min_rating": 2}, {"tags": ["pool"], "rating": 2}),
    (
        {"after": "2020-01-01T12:00:00", "state": "current", "document_type": ["other", "manual"]},
        {"since": 18_262, "current": True, "kinds": ["other", "manual"]},
    ),
]
"""Conditions of a knowledge base and of the engine."""


def test_engine_filters_like_the_knowledge_base(node, kb, index, tmp_path):
    options = [{"filters": filters, "limit": 1_000} for _, filters in CONDITIONS]
    found = in_node(node, index, tmp_path, "how do I open a pool?", *options)
    with kb._stores.database.read() as transaction:
        row = knowledge_bases.get_by_id(transaction, kb.id)
        snapshot = make(transaction, row)
        order = snapshot.rows_of([chunk.id for chunk in reading.iter_chunks(transaction, kb.id)])
        totals = ratings.totals(transaction, kb.id)
        for (condition, _), hits in zip(CONDITIONS, found, strict=True):
            filters = kbkit.Filters.of(condition)
            own = filter_mask(transaction, row, snapshot, filters, totals)[order]
            assert own[[hit["row"] for hit in hits]].all(), condition
            assert len(hits) >= min(own.sum(), 4), condition
    assert sum(map(bool, found)) >= 7


def search(node, index, tmp_path, **filters):
    """Return the rows that the engine finds with some filters."""
    (hits,) = in_node(node, index, tmp_path, "boil a pool", {"filters": filters})
    return [hit["row"] for hit in hits]


def test_annotations_are_part_of_the_state_of_an_index(node, workspace, kb, tmp_path):
    def state():
        return index_state(kb._stores, kb.id, Manifest("", "Guides", pages_of(kb)), model=None)

    before = state()
    assert state() == before
    workspace.graph.merge("open_pool", EVIL)
    try:
        assert state() != before
        index = published(kb, tmp_path)
    finally:
        workspace.graph.undo()
    assert state() == before
    merged = search(node, index, tmp_path, entities=[EVIL])
    assert len(merged) > 4
    assert merged == search(node, index, tmp_path, entities=["open_pool"])


def test_aliases_from_other_sources_are_not_published(node, workspace, kb, tmp_path):
    workspace.graph.update("open_pool", aliases=["pool opener", "hidden falcon"])
    index = published(kb, tmp_path)
    for path in tmp_path.rglob("*.js"):
        assert "falcon" not in path.read_text()
    assert search(node, index, tmp_path, entities=["pool opener"])


def test_index_without_annotations_has_no_filter_shards(node, tmp_path):
    with kbkit.open(tmp_path / "kb") as workspace:
        kb = workspace.create("plain", spec=KnowledgeBaseSpec(annotation="none"))
        kb.add("Tea", "## Kettle\n\nYou must boil `water`.")
        index = published(kb, tmp_path)
    folder = index.folder
    assert not (folder / "a.js").exists()
    assert list((folder / "s").iterdir()) == []
    assert search(node, index, tmp_path) == [0]
    assert search(node, index, tmp_path, frames=["constraint"]) == []
    assert search(node, index, tmp_path, subjects=["water"]) == []
    remove_index(tmp_path)


def test_top_subjects_are_sorted_by_count(kb, index):
    about = index._shard("a")
    assert len(about["top"]) > 100
    assert about["top"][0][2] >= about["top"][-1][2]
    counts = np.array([count for _, _, count in about["top"]])
    assert (np.diff(counts) <= 0).all()


def test_pages_link_their_subjects_to_the_search(workspace, tmp_path):
    with kbkit.open(tmp_path / "kb") as other:
        kb = other.create("jars")
        for n in range(3):
            text = f"## Lid {n}\n\nCall `shut_lid` now.\n\n## Rim\n\nThen `shut_lid` again: {EVIL}."
            kb.add(f"Jar {n}", text, source=f"https://jars.example/{n}.html")
        kb.add("Spoon", "No `spoon_up` here, nor anything else.", source="https://jars.example/s")
        kb.annotations.make()
        report = kb.export(folder=tmp_path / "site")
    page = (report.site / "pages/jars.example/0.html").read_text()
    line = re.search(r'<span class="kb-subjects">About: (.*?)</span></p>', page)[1]
    link = '<a href="../../search/index.html?query=shut_lid&amp;entity=shut_lid">shut_lid</a>'
    assert link in line
    assert "kb-subjects" not in (report.site / "pages/jars.example/s.html").read_text()
    assert "<img src=x" not in page
