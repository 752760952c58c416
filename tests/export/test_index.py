"""The search index of a published knowledge base: what is written is what is read and found."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kbkit
from kbkit.errors import ExportError
from kbkit.export.index import packing, write_index
from kbkit.export.index.packing import quantize
from kbkit.export.index.terms import TERM_BYTES, pack_postings, split_by_size, utf16_key
from kbkit.export.index.writer import DESCRIPTOR, TEXT_BYTES, index_folder, is_written
from kbkit.export.manifest import Manifest
from kbkit.export.publishing.index_content import index_content, index_state
from kbkit.export.publishing.published_index import PublishedIndex
from kbkit.models import SourceDocument
from kbkit.recipes import KnowledgeBaseSpec, StaticEmbedding

SUBJECTS = {
    "tea": "leaves steep in hot water in a kettle until the cup is green or black",
    "bread": "flour and yeast rise in a warm oven until the crust of the loaf is brown",
    "thread": "a lock lets one thread at a time change the queue that the others read",
    "garden": "roses want soil and rain and are cut in spring before they bud",
    "train": "the ticket for the bridge over the river is sold at the station",
}
GUIDES = Path(__file__).parents[2] / "site"


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
def pages(kb):
    return {document.uri: f"pages/{document.id}.md" for document in kb.documents}


@pytest.fixture(scope="module")
def folder(kb, pages, tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    write_index(index_content(kb._stores, kb.id, Manifest("", "Mixed", pages)), folder)
    return folder / "search"


@given(st.lists(st.integers(0, 2**40)))
def test_varints_come_back(numbers):
    text = packing.encode_varints(np.array(numbers, np.int64))
    assert packing.decode_varints(text).tolist() == numbers


@given(st.lists(st.lists(st.integers(-7, 7), min_size=4, max_size=4)))
def test_nibbles_come_back(rows):
    matrix = np.array(rows, np.int8).reshape(-1, 4)
    assert packing.decode_nibbles(packing.encode_nibbles(matrix), 4).tolist() == rows


@given(st.dictionaries(st.text(), st.text() | st.integers()))
def test_shards_come_back(values):
    values = {"x": "</script>\u2028);", **values}
    assert packing.decode_shard(packing.encode_shard(values)) == values


@pytest.mark.parametrize("count", [1, 2, 63, 500, 3000])
def test_every_chunk_is_in_one_cluster_of_bounded_size(count):
    rng = np.random.default_rng(count)
    vectors = rng.standard_normal((count, 32)).astype(np.float32)
    vectors[count // 2 :] = vectors[0]  # many that are the same, too
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    found = quantize(vectors)
    sizes = np.bincount(found.clusters)
    assert sizes.min() >= 1
    assert sizes.max() <= 128
    assert len(found.centroids) == len(sizes)
    shown = found.values * found.scales
    cosines = (shown * (vectors @ found.projection)).sum(1) / np.linalg.norm(shown, axis=1)
    assert np.median(cosines) > 0.97


def test_vectors_are_placed_in_the_order_of_their_rows():
    vectors = np.random.default_rng(0).standard_normal((300, 32)).astype(np.float32)
    rows = np.random.default_rng(1).permutation(300)[:250]
    found, other = quantize(vectors, rows), quantize(vectors[rows])
    np.testing.assert_array_equal(found.values, other.values)
    np.testing.assert_array_equal(found.clusters, other.clusters)


@pytest.mark.parametrize("at_once", [100, pytest.param(1, marks=pytest.mark.soak)])
def test_postings_do_not_depend_on_how_many_are_packed_at_once(kb, pages, at_once):
    some = dict(sorted(pages.items())[::2])  # the others' chunks are left out
    content = index_content(kb._stores, kb.id, Manifest("", "Mixed", some))
    assert content is not None
    found, other = pack_postings(content, at_once), pack_postings(content)
    for name in ("counts", "data", "begins", "ends"):
        np.testing.assert_array_equal(getattr(found, name), getattr(other, name))
    assert found.counts.sum() < len(content.snapshot.rows)


def test_terms_are_sorted_as_javascript_sorts_them():
    terms = ["\uff5e", "\U00010000", "z", "a"]
    assert sorted(terms, key=utf16_key) == ["a", "z", "\U00010000", "\uff5e"]


@pytest.mark.slow
def test_what_python_finds_is_found(tmp_path):
    with kbkit.open(tmp_path / "kb") as workspace:
        spec = KnowledgeBaseSpec(summary_embedding=StaticEmbedding())  # there at once
        kb = workspace.create("guides", spec=spec)
        kb.ingest(kbkit.FilesSource(path=str(GUIDES / "*.md")))
        pages = {document.uri: document.uri for document in kb.documents}
        write_index(index_content(kb._stores, kb.id, Manifest("", "Guides", pages)), tmp_path)
        index = PublishedIndex.open(tmp_path)
        shared, first = [], []
        for query in list(dict.fromkeys(kb.chunks.to_frame()["heading_path"].str[-1].dropna()))[
            ::3
        ]:
            expected = [(hit.uri, hit.chunk.anchor) for hit in kb.search(query)]
            found = [(hit.page, hit.anchor) for hit in index.search(query)]
            shared.append(len(set(expected) & set(found)) / len(set(expected)))
            first.append(expected[0] == found[0])
            assert index.search(query, 3) == index.search(query)[:3]
    assert len(shared) > 40, "headings of the guides"
    # 0.85 and 0.9 with the guides of November 2026; whoever edits them need not look here
    assert np.mean(shared) > 0.75
    assert np.mean(first) > 0.75


def test_only_what_a_query_needs_is_read(folder):
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


def test_ratings_and_gone_documents_count(tmp_path):
    with kbkit.open(tmp_path / "kb") as workspace:
        kb = workspace.create("small")
        for n in range(4):
            kb.add(f"Page {n}", f"Green tea steeps, said number {n}.")
        best = kb.search("green tea")[3]
        for rater in "abcdef":
            kb.rate(best.chunk.document_id, 5, rater=rater)
        pages = {document.uri: f"{n}.md" for n, document in enumerate(kb.documents)}
        left = dict([*list(pages.items())[:3], (best.uri, pages[best.uri])])
        write_index(
            index_content(kb._stores, kb.id, Manifest("", "Small", left)), tmp_path / "pages"
        )
        hits = PublishedIndex.open(tmp_path / "pages").search("green tea")
        assert hits[0].title == best.title  # without a query encoder, by words and ratings
        assert {hit.page for hit in hits} == set(left.values())
        assert index_content(kb._stores, kb.id, Manifest("", "None", {})) is None


def test_ratings_are_rounded_for_the_page(tmp_path):
    with kbkit.open(tmp_path / "kb") as workspace:
        kb = workspace.create("small")
        kb.add("Tea", "Green tea steeps.")
        kb.add("Milk", "Milk is white.")
        target = kb.search("green tea")[0].chunk.document_id
        for rater, score in enumerate((5, 5, 3, 5, 5, 5, 4)):
            kb.rate(target, score, rater=f"r{rater}")
        pages = {document.uri: f"{n}.md" for n, document in enumerate(kb.documents)}
        content = index_content(kb._stores, kb.id, Manifest("", "Small", pages))
        write_index(content, tmp_path / "pages")
        folder = index_folder(tmp_path / "pages")
        core = packing.decode_shard((folder / "core.js").read_bytes())
        assert [rating for _, rating in core["ratings"]] == [4.57]
        ((row, prior),) = core["prior"]
        assert prior == pytest.approx(float(content.prior[row]), abs=5e-5)
        assert prior == round(prior, 4) != round(prior, 3)
        index = PublishedIndex.open(tmp_path / "pages")
        assert len(index.search("tea", filters={"min_rating": 4})) == 1
        assert not index.search("tea", filters={"min_rating": 5})


def test_nothing_is_written_twice(kb, pages, folder):
    times = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    report = write_index(
        index_content(kb._stores, kb.id, Manifest("", "Mixed", pages)), folder.parent
    )
    assert not report.written
    assert times == {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    assert report.shards == sum(1 for _ in folder.rglob("*.js"))


def test_a_newer_index_takes_the_place_of_the_older(kb, pages, tmp_path):
    first = write_index(index_content(kb._stores, kb.id, Manifest("", "One", pages)), tmp_path)
    second = write_index(index_content(kb._stores, kb.id, Manifest("", "Two", pages)), tmp_path)
    assert second.written
    assert not first.folder.exists()
    assert [path.name for path in sorted((tmp_path / "search").iterdir())] == sorted(
        [second.folder.name, DESCRIPTOR]
    )


@pytest.mark.parametrize("damage", ["missing", "garbage", "format"])
def test_a_damaged_index_is_one_clear_error(folder, tmp_path, damage):
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


def test_shards_are_filled_and_not_too_large(folder):
    for kind, most in (("t", TERM_BYTES), ("x", TEXT_BYTES)):
        sizes = [path.stat().st_size for path in folder.rglob(f"{kind}/*.js")]
        assert len(sizes) > 1
        assert max(sizes) < 2 * most
        assert np.mean(sizes) > most / 3


@given(st.lists(st.integers(0, 50), min_size=1), st.integers(1, 100))
def test_things_are_divided_by_their_sizes(sizes, most):
    places = split_by_size(np.array(sizes), most)
    assert (places[0], places[-1]) == (0, len(sizes))
    parts = [sizes[start:end] for start, end in pairwise(places)]
    assert all(part and (len(part) == 1 or sum(part) <= most) for part in parts)


def test_what_an_index_is_made_of_stands_for_it(tmp_path):
    with kbkit.open(tmp_path / "kb") as workspace:
        kb = workspace.create("small")
        kb.add("Tea", "Green tea steeps.")
        pages = {document.uri: "tea.md" for document in kb.documents}

        def state(title="Small"):
            return index_state(kb._stores, kb.id, Manifest("", title, pages))

        before = state()
        content = index_content(kb._stores, kb.id, Manifest("", "Small", pages))
        assert not is_written(tmp_path, before)
        report = write_index(content, tmp_path, before)
        assert is_written(tmp_path, before)
        assert not is_written(tmp_path, state("Other title"))
        kb.rate(next(iter(kb.documents)).id, 4)
        assert not is_written(tmp_path, state())
        (report.folder / "core.js").unlink()
        assert not is_written(tmp_path, before)
        assert write_index(content, tmp_path, before).written
        assert is_written(tmp_path, before)
        kb.add("Bread", "Bread rises.")
        assert state() != before
