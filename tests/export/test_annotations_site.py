"""Filters by annotations in a published site."""

import re

import numpy as np
import pytest

import kbkit
from kbkit.errors import ConfigError
from kbkit.export.facts import Manifest
from kbkit.export.index_content import index_state
from kbkit.export.index_writer import remove_index
from kbkit.export.published_index import PublishedIndex
from kbkit.models import StatementType, SubjectKind
from kbkit.recipes import KnowledgeBaseSpec, NameSpec, RulesAnnotation
from kbkit.retrieval.candidates import filter_mask
from kbkit.stores.catalog import knowledge_bases, ratings, reading
from kbkit.stores.snapshots.making import make
from kbkit.text import stop_words, subject_key
from tests.export.conftest import ROOT, assert_same_hits, in_node, pages_of, published, run_node

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
    {"frame": "constraint"},
    {"frame": ["procedure", "causal"]},
    {"entity": "open_pool"},
    {"entity": "Pool Opener"},
    {"entity": "open_pool()", "frame": "constraint"},
    {"subject": "Knowledge graph"},
    {"subject": "ingest", "frame": "causal"},
    {"subject": ["open_pool", EVIL]},
    {"entity": "no such thing at all"},
    {"subject": ""},
    {"tags": "pool", "min_rating": 2},
    {"after": "2020-01-01T12:00:00", "state": "current", "document_type": ["other", "manual"]},
    {"state": ["stale", "gone"]},
]


@pytest.mark.slow
def test_index_filters_like_the_knowledge_base(kb, index):
    counts = []
    with kb._stores.database.read() as transaction:
        row = knowledge_bases.get_by_id(transaction, kb.id)
        snapshot = make(transaction, row)
        order = snapshot.rows_of([chunk.id for chunk in reading.iter_chunks(transaction, kb.id)])
        totals = ratings.totals(transaction, kb.id)
        for condition in CONDITIONS:
            filters = kbkit.Filters.of(condition)
            own = filter_mask(transaction, row, snapshot, filters, totals)[order]
            assert index._filters.mask(filters).tolist() == own.tolist(), condition
            counts.append(own.sum())
    assert sum(count > 0 for count in counts) >= 8
    assert index._filters.mask(kbkit.Filters()) is None


NAMES_OF_ENGINE = {
    "frame": "frames",
    "entity": "entities",
    "subject": "subjects",
    "tags": "tags",
    "document_type": "kinds",
}


def filters_of_engine(condition):
    """Translate a condition to filters of the engine."""
    filters = {"current": condition.get("state") == "current"}
    for name, value in condition.items():
        if name in NAMES_OF_ENGINE:
            filters[NAMES_OF_ENGINE[name]] = [value] if isinstance(value, str) else value
    if "min_rating" in condition:
        filters["rating"] = condition["min_rating"]
    if "after" in condition:
        filters["since"] = 18_262  # days
    return filters


@pytest.mark.parametrize("query", ["how do I open a pool?", "the graph of a knowledge base"])
def test_engine_filters_like_python(node, index, tmp_path, query):
    conditions = [each for each in CONDITIONS if each.get("state") in (None, "current")]
    options = [{"filters": filters_of_engine(each)} for each in conditions]
    found = in_node(node, index, tmp_path, query, *options)
    some = 0
    for condition, hits in zip(conditions, found, strict=True):
        expected = index.search(query, filters=condition)
        assert_same_hits(hits, expected, condition)
        for hit, other in zip(hits, expected, strict=True):
            assert (hit["frame"], hit["entities"]) == (other.frame or "", list(other.entities))
        some += bool(hits)
    assert some >= 5
    assert index.search(query, filters={"state": ["stale", "gone"]}) == []


def test_unfiltered_search_reads_no_filter_shards(kb, index):
    fresh = PublishedIndex(index.folder)
    fresh.search("how do I open a pool?")
    assert not [name for name in fresh.read if name == "a" or name.startswith("s/")]
    fresh.search("how do I open a pool?", filters={"entity": "open_pool"})
    assert "a" in fresh.read
    assert len([name for name in fresh.read if name.startswith("s/")]) == 1


def test_hits_have_a_frame_and_rare_entities(kb, index):
    hits = index.search("call open_pool before a query", filters={"tags": "pool"})
    assert {hit.frame for hit in hits if "must call" in hit.text} == {StatementType.CONSTRAINT}
    named = [hit.entities for hit in hits if "must call" in hit.text]
    assert named
    assert all("open_pool" in entities for entities in named)
    assert all(len(hit.entities) <= 3 for hit in hits)


def test_unsupported_filters_are_refused(index):
    with pytest.raises(ConfigError, match=r"has no path; it has .*entity"):
        index.search("pool", filters={"path": "*.md"})
    with pytest.raises(ConfigError, match="frame"):
        index.search("pool", filters={"frame": "poem"})


def test_annotations_are_part_of_the_state_of_an_index(workspace, kb, tmp_path):
    def state():
        return index_state(kb._stores, kb.id, Manifest("", "Guides", pages_of(kb)))

    before = state()
    assert state() == before
    workspace.graph.merge("open_pool", EVIL)
    try:
        assert state() != before
        index = published(kb, tmp_path)
    finally:
        workspace.graph.undo()
    assert state() == before
    merged = index.search("pool", filters={"entity": EVIL})
    assert len(merged) > 4
    assert merged == index.search("pool", filters={"entity": "open_pool"})


def test_aliases_from_other_sources_are_not_published(workspace, kb, tmp_path):
    workspace.graph.update("open_pool", aliases=["pool opener", "hidden falcon"])
    index = published(kb, tmp_path)
    assert index.search("pool", filters={"entity": "pool opener"})
    assert index.search("pool", filters={"entity": "hidden falcon"}) == []
    for path in tmp_path.rglob("*.js"):
        assert "falcon" not in path.read_text()


def test_index_without_annotations_has_no_filter_shards(tmp_path):
    with kbkit.open(tmp_path / "kb") as workspace:
        kb = workspace.create("plain", spec=KnowledgeBaseSpec(annotation="none"))
        kb.add("Tea", "## Kettle\n\nYou must boil `water`.")
        index = published(kb, tmp_path)
    folder = index.folder
    assert not (folder / "a.js").exists()
    assert list((folder / "s").iterdir()) == []
    (hit,) = index.search("boil")
    assert (hit.frame, hit.entities) == (None, ())
    assert index.search("boil", filters={"frame": "constraint"}) == []
    assert index.search("boil", filters={"subject": "water"}) == []
    remove_index(tmp_path)


WORDS = (
    "ConnectionPool connection_pool os.path os.Path -v --verbose SQLITE_BUSY __init__ Go C R "
    "WHERE make open() f(…)() URLs HTTPServers classes boxes ﬁle İstanbul Straße ΣΟΦΟΣ "
    "“quoted” `code` a::b a->b $HOME @decorator _ __ - -- ... a. a: etc.. \u202egnp.exe "
    "x\x1cy x\x85y parties ties bus kebab-case-names camelCaseWords XMLHttpRequest e\u0301s "
    "ǅungla C++ f.open() Is IS १२३s"
)
NAMES = [
    *WORDS.split(" "),
    "",
    " ",
    "connection pools",
    "f( ... )",
    "שלום עולם",
    "𝐁old names",
    "a" * 300,
    "😀 " * 150,
    EVIL,
    "is not",
    "Ⅷ things",
]


def test_subject_keys_are_equal_in_javascript(node, kb, tmp_path):
    names = [*NAMES, *(each.name for each in kb.annotations.subjects(limit=3_000))]
    assert len(names) > 500
    asked = [[kind.value, name] for kind in SubjectKind for name in names]
    script = tmp_path / "keys.mjs"
    module = (ROOT / "kbkit/export/assets/subjects.js").as_uri()
    script.write_text(
        f'import {{ subjectKey }} from "{module}";\n'
        'import { readFileSync, writeFileSync } from "node:fs";\n'
        'const { asked, stop } = JSON.parse(readFileSync(process.argv[2], "utf8"));\n'
        "const words = new Set(stop);\n"
        "const keys = asked.map(([kind, name]) => subjectKey(kind, name, words));\n"
        "writeFileSync(process.argv[3], JSON.stringify(keys));\n"
    )
    values = {"asked": asked, "stop": sorted(stop_words("english"))}
    keys = run_node(node, script, tmp_path, values)
    for (kind, name), key in zip(asked, keys, strict=True):
        assert key == subject_key(SubjectKind(kind), name), (kind, name)


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
