"""Search in the published site: the engine in Node gives what `PublishedIndex` gives."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import kbkit
from kbkit.embedding.fitted import FittedEncoder
from kbkit.errors import ExportError
from kbkit.export.index import IndexedSummaries, write_index
from kbkit.export.index.packing import VectorForm
from kbkit.export.manifest import Manifest
from kbkit.export.mkdocs.page_head import bundle, content_security_policy, scripts
from kbkit.export.mkdocs.search import SiteSearch, guides_content
from kbkit.export.publishing.index_content import index_content
from kbkit.export.publishing.published_index import ASKED, PublishedIndex
from kbkit.models import SourceDocument
from kbkit.recipes import MirrorSource
from kbkit.retrieval.searching import UNLIKELY, probability
from tests.manuals import manual

ROOT = Path(__file__).parents[2]
QUESTIONS = ROOT.parent / "shared" / "eval" / "python-questions.tsv"
JS = ROOT / "tests" / "js"
BASE = "https://docs.python.org/"


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    """The index of some thousand chunks of real documentation, and its headings."""
    docs = manual("python3.11-doc")
    folder = tmp_path_factory.mktemp("parity")
    with kbkit.open(folder / "kb") as workspace:
        kb = workspace.create("python")
        kb.ingest(MirrorSource(path=str(docs), base_url=BASE, include=("/library/a*",)))
        for document in list(kb.documents)[:20]:
            kb.rate(document.id, 5)
        kb.chunks.fit_query_encoder()
        pages = {document.uri: f"{n}.md" for n, document in enumerate(kb.documents)}
        inner = [{"title": "", "path": page} for page in pages.values()]
        nav = {"title": "Library", "path": "library.md", "children": inner}
        manifest = Manifest("", "Python", pages, nav=(nav,))
        write_index(index_content(kb._stores, kb.id, manifest), folder)
        headings = sorted({part for path in kb.chunks.to_frame()["heading_path"] for part in path})
    return PublishedIndex.open(str(folder)), headings


def in_node(node, index, tmp_path, queries, *options, model=""):
    """What the engine finds for each query, or for one query with each of some options."""
    pairs = [(queries, option) for option in options] or [(query, {}) for query in queries]
    asked, answers = tmp_path / "asked.json", tmp_path / "answers.json"
    values = {"folder": str(index.folder), "asked": pairs, "model": str(model)}
    asked.write_text(json.dumps(values))
    command = [node, "--import", JS / "modules.js", JS / "search.js", asked, answers]
    subprocess.run(command, check=True)
    return [answer["hits"] for answer in json.loads(answers.read_text())["found"]]


def test_the_engine_finds_what_python_finds(node, index, tmp_path):
    published, headings = index
    queries = headings[:: max(1, len(headings) // 300)]
    if QUESTIONS.exists():
        queries += [line.split("\t")[0] for line in QUESTIONS.read_text().splitlines()]
    queries += ["", "?!", "the with statement", "zzzz", "İstanbul ﬁle", "naïve " * 300]
    queries += ['"command line" parsers', "“abstract base class”", '"no such phrase" file', '"one']
    assert len(queries) >= 300
    shared, first = [], []
    for query, hits in zip(queries, in_node(node, published, tmp_path, queries), strict=True):
        expected = published.search(query[:1000])
        wanted, found = [hit.chunk for hit in expected], [hit["row"] for hit in hits]
        assert len(found) == len(wanted), query
        assert [hit["score"] for hit in hits] == pytest.approx([hit.score for hit in expected])
        assert [hit["weak"] for hit in hits] == [
            probability(hit.score) < UNLIKELY for hit in expected
        ]
        shared.append(len(set(wanted) & set(found)) / len(wanted) if wanted else 1.0)
        first.append(wanted[:1] == found[:1])
    assert np.mean(shared) >= 0.99
    assert np.mean(first) >= 0.99


@pytest.mark.parametrize("embedder", ["onnx:m", pytest.param("static:m", marks=pytest.mark.slow)])
def test_the_engine_finds_what_python_finds_by_summaries(node, tmp_path, monkeypatch, embedder):
    # vectors that no words tell of, so that only summaries can, and few of them are read
    monkeypatch.setattr("kbkit.export.index.writer.SUMMARIES", VectorForm(dimensions=16, cluster=3))
    with kbkit.open(tmp_path / "kb") as workspace:
        kb = workspace.create("guides")
        kb.ingest(kbkit.FilesSource(path=str(ROOT / "site" / "*.md")))
        pages = {document.uri: document.uri for document in kb.documents}
        content = index_content(kb._stores, kb.id, Manifest("", "Guides", pages))
        headings = sorted({part for path in kb.chunks.to_frame()["heading_path"] for part in path})
    rng = np.random.default_rng(0)
    vectors = rng.standard_normal((len(content.documents), 32)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    vectors[3] = 0  # a document that has no summary yet
    terms = content.snapshot.terms
    table = rng.standard_normal((len(terms), 32)).astype(np.float32)
    summaries = IndexedSummaries(
        vectors, embedder, FittedEncoder(embedder, tuple(terms), table, {})
    )
    listed = [replace(each, is_index=n % 4 == 2) for n, each in enumerate(content.documents)]
    content = replace(content, documents=listed)
    write_index(replace(content, summaries=summaries), tmp_path / "with")
    write_index(replace(content, summaries=None), tmp_path / "without")
    published, other = (PublishedIndex.open(tmp_path / name) for name in ("with", "without"))
    queries = headings[::6]
    assert len(queries) > 40
    found = in_node(node, published, tmp_path, queries)
    moved = 0
    for query, hits in zip(queries, found, strict=True):
        expected = published.search(query)
        assert [hit["row"] for hit in hits] == [hit.chunk for hit in expected], query
        assert [hit["score"] for hit in hits] == pytest.approx([hit.score for hit in expected])
        moved += [hit.chunk for hit in expected] != [hit.chunk for hit in other.search(query)]
    assert moved > len(queries) / 3
    assert {name[0] for name in published.read} == {"c", "t", "v", "x"}, "core and clusters"
    assert "c/0" in published.read or "c/1" in published.read
    assert not any(name.startswith("c/") for name in other.read)


@pytest.mark.slow
def test_the_first_words_of_a_long_query_make_its_vector(node, tmp_path):
    syllables = ("ba", "ko", "mu", "ri", "ta", "ve", "zo", "lu", "pi", "na")
    words = [f"{a}{b}nk" for a in syllables for b in syllables]
    with kbkit.open(tmp_path / "kb") as workspace:
        kb = workspace.create("words")
        texts = [f"{' '.join((words[n:] + words[:n])[::7])}." for n in range(50)]
        kb.ingest([SourceDocument(f"text:{n}", f"Page {n}", text) for n, text in enumerate(texts)])
        kb.chunks.fit_query_encoder()
        pages = {document.uri: f"{n}.md" for n, document in enumerate(kb.documents)}
        write_index(index_content(kb._stores, kb.id, Manifest("", "Words", pages)), tmp_path)
    published = PublishedIndex.open(tmp_path)
    queries = [" ".join(words[:count]) for count in (ASKED - 1, ASKED, len(words))]
    fewer, as_many, all_of_them = (published.pool(query).columns["cosine"] for query in queries)
    assert as_many.tolist() == all_of_them.tolist()
    assert as_many.tolist() != fewer.tolist()
    for query, hits in zip(queries, in_node(node, published, tmp_path, queries), strict=True):
        expected = published.search(query)
        assert [hit["row"] for hit in hits] == [hit.chunk for hit in expected]
        assert [hit["score"] for hit in hits] == pytest.approx([hit.score for hit in expected])


def test_an_unfinished_word_is_completed_while_somebody_types(node, index, tmp_path):
    published, _ = index
    typing = {"typing": True}
    whole, half = (
        in_node(node, published, tmp_path, f"asynchronous context {word}", typing)
        for word in ("manager", "manag")
    )
    assert whole == half
    assert {hit["section"] for hit in whole[0]} == {"Library"}
    nothing, some = in_node(node, published, tmp_path, "abc abstractme", {}, typing)
    assert nothing != some
    assert "abstractmethod" in str(some[0]).lower()


FILTERS = [
    ({"rating": 4}, lambda hit: hit["rating"] >= 4),
    ({"kinds": ["reference", "manual"]}, lambda hit: hit["kind"] in ("reference", "manual")),
    ({"tags": ["nothing has it"]}, lambda hit: False),
    ({"since": 100_000}, lambda hit: False),
    ({"since": 1, "current": True}, lambda hit: not hit["stale"]),
]


def test_filters_hold_for_every_hit(node, index, tmp_path):
    published, _ = index
    options = [{"filters": filters} for filters, _ in FILTERS]
    found = in_node(node, published, tmp_path, "read a file", *options)
    for (filters, allowed), hits in zip(FILTERS, found, strict=True):
        assert all(map(allowed, hits)), filters
    assert [len(hits) for hits in found] == [10, 10, 0, 0, 10]


def test_a_script_is_what_its_modules_are(node, tmp_path):
    script = tmp_path / "engine.cjs"
    script.write_text(bundle("service") + "console.log(typeof kbkit.Service, typeof snippet);")
    done = subprocess.run([node, script], check=True, capture_output=True, text=True)
    assert done.stdout.split() == ["function", "undefined"]
    assert " * @param" not in bundle("service")
    named = scripts()["engine.js"][0]
    assert re.fullmatch(r"engine\.[0-9a-f]{10}\.js", named)


ENTRIES = [
    {"location": "", "title": "Home", "text": ""},
    {"location": "#rules", "title": "House &amp; rules", "text": "<p>Wash the <b>zester</b></p>"},
    {"location": "oven/", "title": "Oven", "text": "<p>Heat it.</p>"},
    {"location": "#late", "title": "Late", "text": "<p>A section that stands apart.</p>"},
]


def test_pages_that_people_wrote_have_an_index(tmp_path):
    content = guides_content(ENTRIES, "Kitchen", "english")
    assert [chunk.anchor for chunk in content.chunks] == ["rules", "late", ""]
    assert [document.chunks for document in content.documents] == [2, 1]
    write_index(content, tmp_path)
    index = PublishedIndex.open(tmp_path)
    (hit,) = index.search("zester", 1)
    assert (hit.page, hit.anchor, hit.title, hit.heading) == ("", "rules", "Home", "House & rules")
    assert hit.text == "Wash the zester"
    assert guides_content([], "Kitchen", "english") is None
    assert guides_content([{"location": "a", "title": "A", "text": ""}], "K", "english") is None


def test_a_policy_allows_what_the_theme_wrote_and_no_more():
    shell = "<script>theme()</script><script id='x' type='application/json'>{}</script>"
    digest = base64.b64encode(hashlib.sha256(b"theme()").digest()).decode()
    policy = content_security_policy(shell, re.compile(r"theme\(\)"))
    assert f"script-src 'self' 'sha256-{digest}';" in policy
    assert "eval" not in policy


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    folder = tmp_path_factory.mktemp("exported")
    with kbkit.open(folder / "kb") as workspace:
        kb = workspace.create("small")
        kb.add(
            "Kettle", "## Boil {#boil}\n\nWater boils in a kettle.", tags=["<i>hot</i>", "water"]
        )
        yield kb, folder / "pages"


def test_an_export_has_an_index_and_leaves_it_alone(exported):
    kb, folder = exported
    report = kb.export(folder=folder, pages_only=True)
    assert {"pages", "index"} <= set(report.seconds)
    assert kb.info().chunks == 1
    times = {path: path.stat().st_mtime_ns for path in (folder / "search").rglob("*")}
    assert times
    assert set(kb.export(folder=folder, pages_only=True).seconds) == {"pages", "index"}
    assert times == {path: path.stat().st_mtime_ns for path in (folder / "search").rglob("*")}
    (hit,) = PublishedIndex.open(folder).search("kettle")
    assert (folder / hit.page).is_file()


def test_a_site_takes_over_only_what_has_an_index(exported):
    kb, folder = exported
    kb.export(folder=folder, pages_only=True)
    search = SiteSearch.read(folder, {".": Manifest.read(folder)})
    assert search.covers(".")
    assert "&lt;i&gt;hot" in search.page()
    assert "Knowledge base<" not in search.page(), "there is one only"
    page = '<head></head><script id="__config" type="application/json">{"search": "../assets/javascripts/workers/search.1.min.js"}</script><script src="../assets/javascripts/bundle.1.min.js"></script>'  # noqa: E501
    changed = search.add_box(page)
    assert f'"search": "../assets/kbkit/{scripts()["worker.js"][0]}"' in changed
    assert changed.index("boot.") < changed.index("bundle.")
    assert search.add_box("<p>plain</p>") == "<p>plain</p>"
    (next((folder / "search").glob("*/core.js"))).write_text("broken")
    with pytest.raises(ExportError, match="export again"):
        SiteSearch.read(folder, {".": Manifest.read(folder)})


def test_a_knowledge_base_without_chunks_has_no_index(tmp_path):
    with kbkit.open(tmp_path / "kb") as workspace:
        kb = workspace.create("empty")
        document = kb.add("Kettle", "Water boils in a kettle.")
        kb.export(folder=tmp_path / "pages", pages_only=True)
        assert (tmp_path / "pages/search/kb.json").is_file()
        kb.documents.delete(document.id)
        kb.export(folder=tmp_path / "pages", pages_only=True)
    assert not (tmp_path / "pages/search").exists()


def test_snippets_show_what_was_asked(node, index, tmp_path):
    published, _ = index
    (hits,) = in_node(node, published, tmp_path, ["dictionary keys"])
    marked = " ".join(hits[0]["snippet"][1::2]).lower()
    assert "dict" in marked or "key" in marked
    assert all(len("".join(hit["snippet"])) <= 245 for hit in hits)
