"""The graph retriever: names in a query, what they relate to, and links of good pages."""

from __future__ import annotations

import math

import pytest

import kbkit
from kbkit.errors import ConfigError
from kbkit.knowledge_base import handle_of
from kbkit.models import Mode
from kbkit.recipes import KnowledgeBaseSpec, Question, RetrievalSpec

BASE = "http://x.org/"
QUERY = "how does `open_pool` start"
NAMES = [f"Page {n}" for n in range(12)]


def fill(kb):
    """Pages without a word of the query, one of which is linked by the page that answers it."""
    kb.add(
        "Pools",
        "# Pools\n\n`open_pool` starts a pool. It is a sibling of `drain_all`; "
        f"see [the end]({BASE}end.html).\n",
        source=f"{BASE}pools.html",
    )
    kb.add(
        "Drains",
        "# drain_all\n\nWith `drain_all`, buckets go out one by one.\n",
        source=f"{BASE}drains.html",
    )
    for name in ("End", "Other"):
        kb.add(
            name,
            f"# {name}\n\nBuckets and spades are put away in winter.\n",
            source=f"{BASE}{name.lower()}.html",
        )
    for name in NAMES:
        kb.add(name, f"# {name}\n\nNothing of that kind: {name}.\n", source=f"{BASE}{name}.html")


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    with kbkit.open(tmp_path_factory.mktemp("retriever")) as opened:
        fill(opened.create("pools"))
        opened.graph.relate("open_pool", "ends_with", "drain_all", weight=0.9)
        yield opened


@pytest.fixture
def kb(workspace):
    return workspace["pools"]


def graph_parts(hits):
    return {hit.title: hit.parts.graph for hit in hits}


def test_what_the_query_names_relates_to_and_links_lead_to_is_found(kb):
    without = kb.search(QUERY, limit=50)
    assert set(graph_parts(without).values()) == {0.0}, "it is off unless a recipe says so"
    found = kb.search(QUERY, limit=50, graph=1.0)
    parts = graph_parts(found)
    assert parts["Pools"] > 0, "it names what the query names"
    assert parts["Drains"] > 0, "it names what that relates to"
    assert parts["End"] > 0, "the page that answers links to it"
    assert [parts[name] for name in ("Other", *NAMES) if name in parts] == [0.0] * sum(
        name in parts for name in ("Other", *NAMES)
    )
    ranks = [hit.title for hit in found]
    assert ranks[0] == "Pools"
    assert {"Drains", "End"} == set(ranks[1:3])
    for hit in found:
        assert hit.score == pytest.approx(hit.parts.total)
    assert "graph_match" in found.to_frame()


def test_a_recipe_a_setting_and_a_query_may_switch_it_on_and_off(workspace, kb):
    spec = RetrievalSpec(graph_weight=1.0)
    asked = [hit.to_dict() for hit in kb.search(QUERY, graph=1.0)]
    assert [hit.to_dict() for hit in kb.search(QUERY, retrieval=spec)] == asked
    assert [hit.to_dict() for hit in workspace.search(QUERY, kbs=["pools"], graph=1.0)] == asked
    assert set(graph_parts(kb.search(QUERY, retrieval=spec, graph=0)).values()) == {0.0}
    other = workspace.create("on", spec=KnowledgeBaseSpec(retrieval=spec))
    try:
        fill(other)
        assert graph_parts(other.search(QUERY))["End"] > 0
        assert "graph_weight: 1.0" in other.spec.retrieval.to_yaml()
        # what is of another knowledge base brings nothing here
        assert {hit.kb for hit in kb.search(QUERY, limit=50, graph=1.0)} == {"pools"}
    finally:
        workspace.delete("on", forever=True)


def test_one_leg_alone_has_no_part_of_it(kb):
    for mode in (Mode.DENSE, Mode.LEXICAL):
        assert set(graph_parts(kb.search(QUERY, mode=mode, graph=1.0)).values()) == {0.0}


@pytest.mark.parametrize("weight", [-0.1, 5.1, math.nan, True, "much", math.inf])
def test_a_weight_that_is_none_is_one_clear_error(workspace, kb, weight):
    for search in (kb.search, workspace.search):
        with pytest.raises(ConfigError, match=r"graph=.*: give a number from 0 to 5; 0 switches"):
            search(QUERY, graph=weight)


def test_filters_and_longer_lists_change_no_order(kb):
    whole = kb.search(QUERY, limit=50, graph=1.0)
    short = kb.search(QUERY, limit=3, graph=1.0)
    assert [hit.to_dict() for hit in short] == [hit.to_dict() for hit in whole[:3]]
    filtered = kb.search(QUERY, limit=50, graph=1.0, filters={"source": BASE})
    assert [hit.title for hit in filtered] == [hit.title for hit in whole]
    for one, other in zip(filtered, whole, strict=True):
        assert one.parts.graph == pytest.approx(other.parts.graph)
    few = kb.search(QUERY, limit=50, graph=1.0, filters={"source": f"{BASE}end"})
    assert [hit.title for hit in few] == ["End"]


def test_plain_words_seldom_mean_a_name_that_is_written_alike(workspace):
    kb = workspace.create("words")
    try:
        kb.add("Times", "# times()\n\n`times()` counts.\n", source=f"{BASE}times.html")
        for n in range(30):
            kb.add(f"P{n}", f"# P{n}\n\nMany times, page {n} says {n}.\n", source=f"{BASE}{n}.html")
        workspace.graph.relate("times()", "belongs_to", "P1")
        said = graph_parts(kb.search("how many times", limit=50, graph=1.0))
        meant = graph_parts(kb.search("how many `times()`", limit=50, graph=1.0))
        assert meant["Times"] > said["Times"]
        context = workspace.context("how many times", kbs=["words"])
        assert {piece.kind for piece in context.pieces} == {"passage"}
        context = workspace.context("what is `times()`", kbs=["words"])
        assert [p.name for p in context.pieces if p.kind == "entity"] == ["times"]
    finally:
        workspace.delete("words", forever=True)


def test_the_table_of_a_graph_is_read_again_only_where_it_changed(workspace, kb):
    handle = handle_of(kb)
    table = handle.graph()
    assert handle.graph() is table
    kb.rate(next(iter(kb.chunks)).id, 4)
    assert handle.graph() is table, "a rating changes no relation"
    made = workspace.graph.relate("open_pool", "needs", "drain_all")
    told = {relation.name for relation in handle.graph().relations}
    assert "needs" in told
    workspace.graph.delete(made)
    assert "needs" not in {relation.name for relation in handle.graph().relations}
    workspace.graph.undo()
    assert "needs" in {relation.name for relation in handle.graph().relations}
    workspace.graph.delete(workspace.graph.relations(name="needs")[0])
    row = handle.graph().rows
    kb.add("More", "# fill_all\n\n`fill_all` fills.\n", source=f"{BASE}more.html")
    assert len(handle.graph().rows) > len(row)
    kb.documents.delete(f"{BASE}more.html")


def test_what_was_merged_is_one(workspace, kb):
    workspace.graph.create("pool opener", aliases=["opening pools"])
    workspace.graph.merge("open_pool", "pool opener")
    try:
        parts = graph_parts(kb.search("the pool opener", limit=50, graph=1.0))
        assert parts["Pools"] > 0
        assert graph_parts(kb.search("opening pools", limit=50, graph=1.0))["Pools"] > 0
    finally:
        workspace.graph.undo()


def test_tuning_chooses_it_where_the_graph_tells_something(kb):
    questions = [Question(question=f"{QUERY} {n}", relevant=("pools.html",)) for n in range(10)]
    report = kb.feedback.tune(questions)
    assert "graph_weight" in report.weights
    assert 0 <= report.proposed.graph_weight <= 1
