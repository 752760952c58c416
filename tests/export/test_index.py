"""The search index of a published knowledge base."""

import json
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kbkit
from kbkit.errors import ExportError
from kbkit.export import index_packing as packing
from kbkit.export.facts import Manifest
from kbkit.export.index_content import index_content, index_state
from kbkit.export.index_packing import quantize
from kbkit.export.index_terms import TERM_BYTES, split_by_size, utf16_key
from kbkit.export.index_writer import DESCRIPTOR, TEXT_BYTES, is_written, write_index
from kbkit.export.published_index import PublishedIndex
from kbkit.models import SourceDocument
from kbkit.recipes import KnowledgeBaseSpec, StaticEmbedding
from tests.export.conftest import ROOT, content_of, pages_of, published, times_of

SUBJECTS = {
    "tea": "leaves steep in hot water in a kettle until the cup is green or black",
    "bread": "flour and yeast rise in a warm oven until the crust of the loaf is brown",
    "thread": "a lock lets one thread at a time change the queue that the others read",
    "garden": "roses want soil and rain and are cut in spring before they bud",
    "train": "the ticket for the bridge over the river is sold at the station",
}


@pytest.fixture(scope="module")
def kb(tmp_path_factory):
    with kbkit.open(tmp_path_factory.mktemp("index") / "kb") as workspace:
        kb = workspace.create("mixed")
        documents = []
        for n in range(60):
            subject, text = list(SUBJECTS.items())[n % len(SUBJECTS)]
            words = text.split()
            parts = [
                f"## {subject.title()} {words[(n + k) % len(words)]}\n\n"
                f"Number {n * 7 + k}: {' '.join(words[k:] + words[:k])}."
                for k in range(8)
            ]
            title, content = f"{subject.title()} {n}", "\n\n".join(parts)
            documents.append(SourceDocument(f"text:{n}", title, content, tags=(subject,)))
        kb.ingest(documents)
        kb.chunks.fit_query_encoder()
        yield kb


@pytest.fixture(scope="module")
def folder(kb, tmp_path_factory):
    return published(kb, tmp_path_factory.mktemp("pages")).folder.parent


@given(st.lists(st.integers(0, 2**40)))
def test_varints_round_trip(numbers):
    text = packing.encode_varints(np.array(numbers, np.int64))
    assert packing.decode_varints(text).tolist() == numbers


@given(st.lists(st.lists(st.integers(-7, 7), min_size=4, max_size=4)))
def test_nibbles_round_trip(rows):
    matrix = np.array(rows, np.int8).reshape(-1, 4)
    assert packing.decode_nibbles(packing.encode_nibbles(matrix), 4).tolist() == rows


@given(st.dictionaries(st.text(), st.text() | st.integers()))
def test_shards_round_trip(values):
    values = {"x": "</script>\u2028);", **values}
    assert packing.decode_shard(packing.encode_shard(values)) == values


@pytest.mark.parametrize("count", [1, 2, 63, 500, 3000])
def test_clusters_have_a_bounded_size(count):
    rng = np.random.default_rng(count)
    vectors = rng.standard_normal((count, 32)).astype(np.float32)
    vectors[count // 2 :] = vectors[0]  # many are equal
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    found = quantize(vectors)
    sizes = np.bincount(found.clusters)
    assert sizes.min() >= 1
    assert sizes.max() <= 128
    assert len(found.centroids) == len(sizes)
    shown = found.values * found.scales
    cosines = (shown * (vectors @ found.projection)).sum(1) / np.linalg.norm(shown, axis=1)
    assert np.median(cosines) > 0.97


def test_vectors_follow_the_order_of_their_rows():
    vectors = np.random.default_rng(0).standard_normal((300, 32)).astype(np.float32)
    rows = np.random.default_rng(1).permutation(300)[:250]
    found, other = quantize(vectors, rows), quantize(vectors[rows])
    np.testing.assert_array_equal(found.values, other.values)
    np.testing.assert_array_equal(found.clusters, other.clusters)


def test_terms_are_sorted_like_in_javascript():
    terms = ["\uff5e", "\U00010000", "z", "a"]
    assert sorted(terms, key=utf16_key) == ["a", "z", "\U00010000", "\uff5e"]


@pytest.mark.slow
def test_published_index_ranks_like_the_knowledge_base(tmp_path):
    with kbkit.open(tmp_path / "kb") as workspace:
        spec = KnowledgeBaseSpec(summary_embedding=StaticEmbedding())  # needs no model
        kb = workspace.create("guides", spec=spec)
        kb.ingest(kbkit.FilesSource(path=str(ROOT / "site" / "*.md")))
        index = published(kb, tmp_path, {document.uri: document.uri for document in kb.documents})
        shared, first = [], []
        headings = dict.fromkeys(kb.chunks.to_frame()["heading_path"].str[-1].dropna())
        for query in list(headings)[::3]:
            expected = [(hit.uri, hit.chunk.anchor) for hit in kb.search(query)]
            found = [(hit.page, hit.anchor) for hit in index.search(query)]
            shared.append(len(set(expected) & set(found)) / len(set(expected)))
            first.append(expected[0] == found[0])
            assert index.search(query, 3) == index.search(query)[:3]
    assert len(shared) > 40, "headings of the guides"
    # 0.85 and 0.9 with the guides of November 2026
    assert np.mean(shared) > 0.75
    assert np.mean(first) > 0.75


def test_search_reads_only_needed_shards(folder):
    index = PublishedIndex.open(folder.parent)
    hits = index.search("steep leaves")
    assert hits[0].title.startswith("Tea")
    assert "steep" in hits[0].text
    there = sum(1 for _ in folder.rglob("*.js"))
    assert len(index.read) < there / 2
    before = len(index.read)
    index.search("steep leaves")
    assert len(index.read) == before
    assert index.search("zzzz qqqq") == []


def test_index_uses_ratings_and_leaves_out_documents(tmp_path):
    with kbkit.open(tmp_path / "kb") as workspace:
        kb = workspace.create("small")
        for n in range(4):
            kb.add(f"Page {n}", f"Green tea steeps, said number {n}.")
        best = kb.search("green tea")[3]
        for rater in "abcdef":
            kb.rate(best.chunk.document_id, 5, rater=rater)
        pages = pages_of(kb)
        some = dict([*list(pages.items())[:3], (best.uri, pages[best.uri])])
        hits = published(kb, tmp_path / "pages", some).search("green tea")
        assert hits[0].title == best.title  # without a query encoder, by words and ratings
        assert {hit.page for hit in hits} == set(some.values())
        assert content_of(kb, {}) is None


def test_published_ratings_are_rounded(tmp_path):
    with kbkit.open(tmp_path / "kb") as workspace:
        kb = workspace.create("small")
        kb.add("Tea", "Green tea steeps.")
        kb.add("Milk", "Milk is white.")
        target = kb.search("green tea")[0].chunk.document_id
        for rater, score in enumerate((5, 5, 3, 5, 5, 5, 4)):
            kb.rate(target, score, rater=f"r{rater}")
        index = published(kb, tmp_path / "pages")
        core = packing.decode_shard((index.folder / "core.js").read_bytes())
        assert [rating for _, rating in core["ratings"]] == [4.57]
        ((row, prior),) = core["prior"]
        assert prior == pytest.approx(float(content_of(kb).prior[row]), abs=5e-5)
        assert prior == round(prior, 4) != round(prior, 3)


def test_unchanged_index_is_not_rewritten(kb, folder):
    times = times_of(folder)
    write_index(content_of(kb), folder.parent)
    assert times == times_of(folder)


def test_new_index_replaces_the_old(kb, tmp_path):
    first = write_index(content_of(kb), tmp_path)
    other_title = Manifest("", "Two", pages_of(kb))
    second = write_index(index_content(kb._stores, kb.id, other_title), tmp_path)
    assert not first.exists()
    left = {path.name for path in (tmp_path / "search").iterdir()}
    assert left == {second.name, DESCRIPTOR}


@pytest.mark.parametrize("damage", ["missing", "garbage", "format"])
def test_damaged_index_is_one_clear_error(folder, tmp_path, damage):
    name = json.loads((folder / DESCRIPTOR).read_bytes())["folder"]
    core = tmp_path / "search" / name / "core.js"
    core.parent.mkdir(parents=True)
    (tmp_path / "search" / DESCRIPTOR).write_bytes((folder / DESCRIPTOR).read_bytes())
    if damage == "garbage":
        core.write_text("alert(1)")
    elif damage == "format":
        values = packing.decode_shard((folder / name / "core.js").read_bytes())
        core.write_bytes(packing.encode_shard({**values, "format": 99}))
    with pytest.raises(ExportError, match="export"):
        PublishedIndex.open(tmp_path)
    with pytest.raises(ExportError, match="export first"):
        PublishedIndex.open(tmp_path / "nowhere")


def test_shards_have_bounded_sizes(folder):
    for kind, most in (("t", TERM_BYTES), ("x", TEXT_BYTES)):
        sizes = [path.stat().st_size for path in folder.rglob(f"{kind}/*.js")]
        assert len(sizes) > 1
        assert max(sizes) < 2 * most
        assert np.mean(sizes) > most / 3


@given(st.lists(st.integers(0, 50), min_size=1), st.integers(1, 100))
def test_split_by_size_bounds_each_part(sizes, most):
    places = split_by_size(np.array(sizes), most)
    assert (places[0], places[-1]) == (0, len(sizes))
    parts = [sizes[start:end] for start, end in pairwise(places)]
    assert all(part and (len(part) == 1 or sum(part) <= most) for part in parts)


def test_index_state_changes_with_its_content(tmp_path):
    with kbkit.open(tmp_path / "kb") as workspace:
        kb = workspace.create("small")
        kb.add("Tea", "Green tea steeps.")
        pages = pages_of(kb)

        def state(title="Guides"):
            return index_state(kb._stores, kb.id, Manifest("", title, pages), model=None)

        before, content = state(), content_of(kb)
        assert not is_written(tmp_path, before)
        written = write_index(content, tmp_path, before)
        assert is_written(tmp_path, before)
        assert not is_written(tmp_path, state("Other title"))
        kb.rate(next(iter(kb.documents)).id, 4)
        assert not is_written(tmp_path, state())
        (written / "core.js").unlink()
        assert not is_written(tmp_path, before)
        write_index(content, tmp_path, before)
        assert (written / "core.js").is_file()
        assert is_written(tmp_path, before)
        kb.add("Bread", "Bread rises.")
        assert state() != before
