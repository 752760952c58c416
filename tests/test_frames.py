"""DataFrames of a workspace: types and indexes, also of empty ones."""

from collections.abc import Iterator

import numpy as np
import pandas as pd
import pytest

import kbkit
from kbkit.errors import ConfigError
from kbkit.frames import folders


@pytest.fixture(scope="module")
def workspace(tmp_path_factory) -> Iterator[kbkit.Workspace]:
    with kbkit.open(tmp_path_factory.mktemp("frames")) as workspace:
        kb = workspace.create("drinks", description="What to drink")
        for n, (part, words) in enumerate(
            [("hot", "tea with milk"), ("hot", "coffee, black"), ("cold", "lemonade on ice")]
        ):
            kb.add(
                words.title(),
                f"# {words.title()}\n\nAll about {words}, in number {n}.",
                source=f"https://h.example/menu/{part}/{n}.html",
                tags=[part],
            )
        workspace.create("empty")
        yield workspace


def frame_of(kb, name):
    return kb.chunks.embedding_map() if name == "embedding_map" else getattr(kb, name).to_frame()


@pytest.mark.parametrize("name", ["documents", "chunks", "ratings", "embedding_map", "sources"])
def test_frames_of_an_empty_knowledge_base_have_all_columns(workspace, name):
    full, empty = (frame_of(workspace[kb], name) for kb in ("drinks", "empty"))
    assert empty.empty
    assert list(empty.columns) == list(full.columns)
    assert empty.index.name == full.index.name == "id"
    for column in full:
        if column != "folder":  # its categories depend on the documents
            assert empty[column].dtype == full[column].dtype, column


def test_columns_are_typed(workspace):
    kb = workspace["drinks"]
    documents = kb.documents.to_frame()
    assert isinstance(documents["document_type"].dtype, pd.CategoricalDtype)
    assert "policy" in documents["document_type"].cat.categories
    assert isinstance(documents["title"].dtype, pd.StringDtype)
    assert str(documents["fetched_at"].dt.tz) == "UTC"
    assert documents["tags"].tolist() == [["cold"], ["hot"], ["hot"]]
    assert documents["length"].tolist() == [len(text) for text in documents["content"]]
    chunks = kb.chunks.to_frame()
    assert chunks["page"].dtype == "Int64"
    assert chunks["page"].isna().all()
    assert chunks["length"].tolist() == [len(text) for text in chunks["text"]]
    assert set(chunks["document_id"]) == set(documents.index)


def test_frame_of_hits_is_indexed_by_rank_and_typed(workspace):
    found = workspace["drinks"].search("milk").to_frame()
    assert found.index.tolist() == [1, 2, 3][: len(found)]
    none = workspace["empty"].search("milk").to_frame()
    assert none.empty
    assert none.index.name == "rank"
    different = [name for name in found if found[name].dtype != none[name].dtype]
    assert different in ([], ["kb"])
    parts = "dense lexical document title_match heading_match summary_match page_match graph_match"
    columns = [*parts.split(), "learned", "rating"]
    assert found["score"].iloc[0] == pytest.approx(found[columns].iloc[0].sum())


def test_frame_of_a_workspace_is_indexed_by_name(workspace):
    frame = workspace.to_frame()
    assert frame.index.tolist() == ["drinks", "empty"]
    assert frame.loc["drinks", ["documents", "current", "gone"]].tolist() == [3, 3, 0]
    with pytest.raises(KeyError):
        frame.loc["nothing"]


def test_ratings_average_the_last_of_each_rater(tmp_path):
    with kbkit.open(tmp_path) as workspace:
        kb = workspace.create("kb")
        kb.add("Tea", "Tea is hot.")
        (chunk,) = kb.chunks
        for rater, score in (("ann", 1), ("bob", 4), ("ann", 3)):
            kb.rate(chunk.id, score, rater=rater)
        frame = kb.ratings.to_frame()
    assert frame["score"].tolist() == [1, 4, 3]
    assert frame["average"].tolist() == [3.5] * 3
    assert frame["raters"].tolist() == [2] * 3


def test_embedding_map_is_the_principal_plane(workspace):
    frame = workspace["drinks"].chunks.embedding_map()
    again = workspace["drinks"].chunks.embedding_map()
    pd.testing.assert_frame_equal(frame, again)
    points = frame[["x", "y"]].to_numpy()
    assert np.allclose(points.mean(axis=0), 0, atol=1e-6)
    assert points.var(axis=0)[0] >= points.var(axis=0)[1]
    # three points lie on one plane
    assert sum(frame.attrs["variance"]) == pytest.approx(1, abs=1e-3)
    assert set(frame["folder"]) == {"hot", "cold"}


def test_large_embedding_map_is_a_stable_sample(workspace):
    embedding_map = workspace["drinks"].chunks.embedding_map
    sample, again = embedding_map(limit=2), embedding_map(limit=2)
    assert sample.index.tolist() == again.index.tolist()
    assert (len(sample), sample.attrs["chunks"]) == (2, 3)
    drawn = {tuple(embedding_map(limit=1, seed=seed).index) for seed in range(20)}
    assert len(drawn) > 1
    for limit in (0, 5001):
        with pytest.raises(ConfigError, match="1 to 5,000"):
            embedding_map(limit=limit)


@pytest.mark.parametrize(
    ("uris", "named"),
    [
        (["https://h/a/b/x", "https://h/a/c/x", "https://h/a/x"], ["b", "c", "a"]),
        (["https://h/x", "https://h/y"], ["h", "h"]),
        (["https://h/a/x", "https://g/a/x"], ["a", "a"]),
        (["python:pkg.open", "python:pkg.io.read"], ["pkg", "io"]),
        (["/srv/docs/x.md", "/srv/docs/y.md"], ["docs", "docs"]),
        (["upload:x.md", "http://[broken", ""], ["(top)", "(top)", "(top)"]),
        ([], []),
    ],
)
def test_folders_are_derived_from_uris(uris, named):
    assert folders(uris) == named
