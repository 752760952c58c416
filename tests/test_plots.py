"""Plots in Jupyter and as SVG: figures and hostile text."""

import json
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

import kbkit
from kbkit import plots
from kbkit.errors import ConfigError

ATTACK = "<img src=x onerror=alert(1)><script>alert(2)</script>]]>&quot;"


@pytest.fixture(scope="module")
def kb(tmp_path_factory) -> Iterator[kbkit.KnowledgeBase]:
    with kbkit.open(tmp_path_factory.mktemp("plots")) as workspace:
        kb = workspace.create("evil")
        for n in range(4):
            kb.add(
                f"{ATTACK} {n}",
                f"# {ATTACK}\n\nTea {n} " + "milk " * n,
                source=f"https://h.example/{'ab'[n % 2]}{ATTACK}x/{n}",
                document_type="api_spec" if n else "manual",
            )
        first, second, *_ = kb.chunks
        for target, score in ((first.id, 2), (first.id, 5), (second.id, 5)):
            kb.rate(target, score, query="tea", rater="ann")
        kb.rate(second.document_id, 1, rater="bob")
        yield kb


def rows(plot: plots.Plot) -> list[dict]:
    (data,) = plot.to_dict()["datasets"].values()
    return data


def test_documents_are_counted_by_type_and_age(kb):
    documents = kb.documents.to_frame()
    now = datetime.now(UTC)
    documents["fetched_at"] = [now - timedelta(days=days) for days in (0.5, 3, 3, 400)]
    documents.loc[documents.index[1], "state"] = "gone"
    counts = {
        (row["document_type"], row["fetched"]): row["documents"]
        for row in rows(plots.documents_by_type(documents, now))
    }
    assert sum(counts.values()) == 3
    assert {age for _, age in counts} == {"today", "this week", "older"}
    assert {kind for kind, _ in counts} == {"api spec", "manual"}


def test_chunks_are_counted_by_length(kb):
    lengths = kb.chunks.to_frame()["length"]
    bars = rows(kb.plot.chunks())
    assert sum(bar["chunks"] for bar in bars) == len(lengths)
    assert bars[0]["from"] <= lengths.min() + 1
    assert bars[-1]["to"] >= lengths.max() - 1
    assert "median" in repr(kb.plot.chunks())


def test_last_rating_of_a_target_counts(kb):
    bars = {(row["score"], row["of"]): row["ratings"] for row in rows(kb.plot.ratings())}
    assert bars == {(5, "chunk"): 2, (1, "document"): 1}
    assert "3 ratings by 2 people" in repr(kb.plot.ratings())


def test_map_names_its_sample_size(kb):
    assert "4 chunks" in repr(kb.plot.map())
    assert "2 chunks, drawn at random from 4" in repr(kb.plot.map(limit=2))
    with pytest.raises(ConfigError, match="colour='title'"):
        kb.plot.map(colour="title")


def test_rare_folders_share_one_colour(kb):
    points = kb.chunks.embedding_map()
    many = points.loc[points.index.repeat(6)].copy()
    many["folder"] = [f"f{n % 20}" if n % 2 else "big" for n in range(len(many))]
    colours = {row["colour"] for row in rows(plots.embedding_map(many, "folder"))}
    assert len(colours) <= 10
    assert {"big", "others"} <= colours


PLOTS = ["documents", "chunks", "ratings", "map"]


@pytest.mark.parametrize("name", PLOTS)
def test_svg_is_harmless_and_uses_the_given_ink(kb, name):
    svg = getattr(kb.plot, name)().svg()
    parsed = ET.fromstring(svg)  # so no text of a document has broken out
    names = {element.tag.rpartition("}")[2] for element in parsed.iter()}
    assert names <= {"svg", "g", "path", "rect", "line", "text", "tspan", "defs", "clipPath"}
    assert "currentColor" in svg
    assert "http" not in svg.replace("http://www.w3.org/", "").replace("https://h.example", "")
    assert "#eeeeee" in getattr(kb.plot, name)().svg(ink="#eeeeee")


@pytest.mark.parametrize("name", PLOTS)
def test_empty_knowledge_base_can_be_plotted(tmp_path, name):
    with kbkit.open(tmp_path) as workspace:
        plot = getattr(workspace.create("nothing").plot, name)()
        assert plot.svg().startswith("<svg")


def test_jupyter_bundle_fetches_nothing(kb):
    bundle = kb.plot.map()._repr_mimebundle_()
    assert set(bundle) == {"application/vnd.vegalite.v5+json", "image/svg+xml", "text/plain"}
    specification = bundle["application/vnd.vegalite.v5+json"]
    assert specification["background"] == "transparent"
    assert not specification["usermeta"]["embedOptions"]["actions"]["editor"]
    # the schema's name is an address, which nobody fetches
    text = json.dumps({**specification, "$schema": "", "datasets": {}})
    assert "http" not in text
    assert "href" not in text
