"""Search in the published site: the engine in Node equals `PublishedIndex`."""

import base64
import hashlib
import re
import subprocess
from dataclasses import replace

import numpy as np
import pytest

import kbkit
from kbkit.embedding.fitted import FittedEncoder
from kbkit.errors import ExportError
from kbkit.export.facts import Manifest
from kbkit.export.index_content import index_content
from kbkit.export.index_packing import VectorForm
from kbkit.export.index_terms import IndexedSummaries
from kbkit.export.index_writer import write_index
from kbkit.export.mkdocs.page_head import bundle, content_security_policy, scripts
from kbkit.export.mkdocs.search import SiteSearch, guides_content
from kbkit.export.published_index import ASKED, PublishedIndex
from kbkit.models import SourceDocument
from kbkit.recipes import MirrorSource
from kbkit.retrieval.searching import UNLIKELY, probability
from tests.export.conftest import (
    QUESTIONS,
    ROOT,
    assert_same_hits,
    content_of,
    headings_of,
    in_node,
    pages_of,
    published,
    times_of,
)
from tests.manuals import manual

BASE = "https://docs.python.org/"


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    """The index of a thousand chunks of real documentation, and its headings."""
    docs = manual("python3.11-doc")
    folder = tmp_path_factory.mktemp("parity")
    with kbkit.open(folder / "kb") as workspace:
        kb = workspace.create("python")
        kb.ingest(MirrorSource(path=str(docs), base_url=BASE, include=("/library/a*",)))
        for document in list(kb.documents)[:20]:
            kb.rate(document.id, 5)
        kb.chunks.fit_query_encoder()
        pages = pages_of(kb)
        inner = [{"title": "", "path": page} for page in pages.values()]
        nav = {"title": "Library", "path": "library.md", "children": inner}
        manifest = Manifest("", "Python", pages, nav=(nav,))
        write_index(index_content(kb._stores, kb.id, manifest), folder)
        return PublishedIndex.open(str(folder)), headings_of(kb)


def test_engine_ranks_like_python(node, index, tmp_path):
    index, headings = index
    queries = headings[:: max(1, len(headings) // 300)]
    if QUESTIONS.exists():
        queries += [line.split("\t")[0] for line in QUESTIONS.read_text().splitlines()]
    queries += ["", "?!", "the with statement", "zzzz", "İstanbul ﬁle", "naïve " * 300]
    queries += ['"command line" parsers', "“abstract base class”", '"no such phrase" file', '"one']
    assert len(queries) >= 300
    shared, first = [], []
    for query, hits in zip(queries, in_node(node, index, tmp_path, queries), strict=True):
        expected = index.search(query[:1000])
        ours, theirs = [hit.chunk for hit in expected], [hit["row"] for hit in hits]
        assert len(theirs) == len(ours), query
        assert [hit["score"] for hit in hits] == pytest.approx([hit.score for hit in expected])
        weak = [probability(hit.score) < UNLIKELY for hit in expected]
        assert [hit["weak"] for hit in hits] == weak
        shared.append(len(set(ours) & set(theirs)) / len(ours) if ours else 1.0)
        first.append(ours[:1] == theirs[:1])
    assert np.mean(shared) >= 0.99
    assert np.mean(first) >= 0.99


@pytest.mark.parametrize("embedder", ["onnx:m", pytest.param("static:m", marks=pytest.mark.slow)])
def test_engine_ranks_by_summaries_like_python(node, tmp_path, monkeypatch, embedder):
    # random vectors, so that only summaries can find a document, and few of them are read
    monkeypatch.setattr(
        "kbkit.export.index_packing.SUMMARIES", VectorForm(dimensions=16, cluster=3)
    )
    with kbkit.open(tmp_path / "kb") as workspace:
        kb = workspace.create("guides")
        kb.ingest(kbkit.FilesSource(path=str(ROOT / "site" / "*.md")))
        content, headings = content_of(kb), headings_of(kb)
    rng = np.random.default_rng(0)
    vectors = rng.standard_normal((len(content.documents), 32)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    vectors[3] = 0  # a document that has no summary yet
    terms = content.snapshot.terms
    table = rng.standard_normal((len(terms), 32)).astype(np.float32)
    encoder = FittedEncoder(embedder, tuple(terms), table, {})
    summaries = IndexedSummaries(vectors, encoder)
    listed = [replace(each, is_index=n % 4 == 2) for n, each in enumerate(content.documents)]
    content = replace(content, documents=listed)
    write_index(replace(content, summaries=summaries), tmp_path / "with")
    write_index(replace(content, summaries=None), tmp_path / "without")
    index, other = (PublishedIndex.open(tmp_path / name) for name in ("with", "without"))
    queries = headings[::6]
    assert len(queries) > 40
    moved = 0
    for query, hits in zip(queries, in_node(node, index, tmp_path, queries), strict=True):
        expected = index.search(query, 50)
        assert_same_hits(hits, expected, query)
        moved += [hit.chunk for hit in expected] != [hit.chunk for hit in other.search(query, 50)]
    assert moved > len(queries) / 3
    assert {name[0] for name in index.read} == {"c", "t", "v", "x"}, "core and clusters"
    assert "c/0" in index.read or "c/1" in index.read
    assert not any(name.startswith("c/") for name in other.read)


@pytest.mark.slow
def test_vector_of_a_long_query_uses_its_first_words(node, tmp_path):
    syllables = ("ba", "ko", "mu", "ri", "ta", "ve", "zo", "lu", "pi", "na")
    words = [f"{a}{b}nk" for a in syllables for b in syllables]
    with kbkit.open(tmp_path / "kb") as workspace:
        kb = workspace.create("words")
        texts = [f"{' '.join((words[n:] + words[:n])[::7])}." for n in range(50)]
        kb.ingest([SourceDocument(f"text:{n}", f"Page {n}", text) for n, text in enumerate(texts)])
        kb.chunks.fit_query_encoder()
        index = published(kb, tmp_path)
    queries = [" ".join(words[:count]) for count in (ASKED - 1, ASKED, len(words))]
    fewer, as_many, all_of_them = (index.pool(query).columns["cosine"] for query in queries)
    assert as_many.tolist() == all_of_them.tolist()
    assert as_many.tolist() != fewer.tolist()
    for query, hits in zip(queries, in_node(node, index, tmp_path, queries), strict=True):
        assert_same_hits(hits, index.search(query, 50))


def test_unfinished_word_is_completed_while_typing(node, index, tmp_path):
    typing = {"typing": True}
    whole, half = (
        in_node(node, index[0], tmp_path, f"asynchronous context {word}", typing)
        for word in ("manager", "manag")
    )
    assert whole == half
    assert {hit["section"] for hit in whole[0]} == {"Library"}
    nothing, some = in_node(node, index[0], tmp_path, "abc abstractme", {}, typing)
    assert nothing != some
    assert "abstractmethod" in str(some[0]).lower()


FILTERS = [
    ({"rating": 4}, lambda hit: hit["rating"] >= 4),
    ({"kinds": ["reference", "manual"]}, lambda hit: hit["kind"] in ("reference", "manual")),
    ({"tags": ["nothing has it"]}, lambda hit: False),
    ({"since": 100_000}, lambda hit: False),
    ({"since": 1, "current": True}, lambda hit: not hit["stale"]),
]


def test_filters_apply_to_every_hit(node, index, tmp_path):
    options = [{"filters": filters} for filters, _ in FILTERS]
    found = in_node(node, index[0], tmp_path, "read a file", *options)
    for (filters, allowed), hits in zip(FILTERS, found, strict=True):
        assert all(map(allowed, hits)), filters
    assert [len(hits) for hits in found] == [10, 10, 0, 0, 10]


def test_bundle_contains_its_modules(node, tmp_path):
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


def test_guides_have_an_index(tmp_path):
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


def test_policy_names_the_hash_of_a_theme_script():
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
        text = "## Boil {#boil}\n\nWater boils in a kettle."
        kb.add("Kettle", text, tags=["<i>hot</i>", "water"])
        yield kb, folder / "pages"


def test_second_export_keeps_the_index(exported):
    kb, folder = exported
    report = kb.export(folder=folder, pages_only=True)
    assert {"pages", "index"} <= set(report.seconds)
    assert kb.info().chunks == 1
    times = times_of(folder / "search")
    assert times
    assert set(kb.export(folder=folder, pages_only=True).seconds) == {"pages", "index"}
    assert times == times_of(folder / "search")
    (hit,) = PublishedIndex.open(folder).search("kettle")
    assert (folder / hit.page).is_file()


def test_site_search_covers_indexed_folders(exported):
    kb, folder = exported
    kb.export(folder=folder, pages_only=True)
    search = SiteSearch.read(folder, {".": Manifest.read(folder)})
    assert search.name_of(".")
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


def test_knowledge_base_without_chunks_has_no_index(tmp_path):
    with kbkit.open(tmp_path / "kb") as workspace:
        kb = workspace.create("empty")
        document = kb.add("Kettle", "Water boils in a kettle.")
        kb.export(folder=tmp_path / "pages", pages_only=True)
        assert (tmp_path / "pages/search/kb.json").is_file()
        kb.documents.delete(document.id)
        kb.export(folder=tmp_path / "pages", pages_only=True)
    assert not (tmp_path / "pages/search").exists()


def test_snippets_show_words_of_the_query(node, index, tmp_path):
    (hits,) = in_node(node, index[0], tmp_path, ["dictionary keys"])
    marked = " ".join(hits[0]["snippet"][1::2]).lower()
    assert "dict" in marked or "key" in marked
    assert all(len("".join(hit["snippet"])) <= 245 for hit in hits)
