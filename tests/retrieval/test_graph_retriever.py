"""The graph retriever: names in a query, what they relate to, and links of good pages."""

import math

import pytest

import kbkit
from kbkit.errors import ConfigError
from kbkit.knowledge_base import handle_of
from kbkit.models import Mode
from kbkit.recipes import KnowledgeBaseSpec, Question, RetrievalSpec
from kbkit.stores.catalog.subjects import entity_id

BASE = "http://x.org/"
QUERY = "how does `open_pool` start"
NAMES = [f"Page {n}" for n in range(12)]


def fill(kb):
    """Pages without a word of the query; the page that answers it links to one of them."""
    pools = (
        f"`open_pool` starts a pool. It is a sibling of `drain_all`; see [the end]({BASE}end.html)."
    )
    kb.add("Pools", f"# Pools\n\n{pools}\n", source=f"{BASE}pools.html")
    drains = "# drain_all\n\nWith `drain_all`, buckets go out one by one.\n"
    kb.add("Drains", drains, source=f"{BASE}drains.html")
    for name in ("End", "Other"):
        text = f"# {name}\n\nBuckets and spades are put away in winter.\n"
        kb.add(name, text, source=f"{BASE}{name.lower()}.html")
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


def test_named_related_and_linked_pages_are_found(kb):
    without = kb.search(QUERY, limit=50)
    assert set(graph_parts(without).values()) == {0.0}, "it is off unless a recipe says so"
    hits = kb.search(QUERY, limit=50, graph=1.0)
    parts = graph_parts(hits)
    assert parts["Pools"] > 0, "it names what the query names"
    assert parts["Drains"] > 0, "it names what that relates to"
    assert parts["End"] > 0, "the page that answers links to it"
    assert {parts.get(name, 0.0) for name in ("Other", *NAMES)} == {0.0}
    ranks = [hit.title for hit in hits]
    assert ranks[0] == "Pools"
    assert {"Drains", "End"} == set(ranks[1:3])
    for hit in hits:
        assert hit.score == pytest.approx(hit.parts.total)
    assert "graph_match" in hits.to_frame()


def test_recipe_settings_and_query_switch_the_graph_retriever(workspace, kb):
    spec = RetrievalSpec(graph_weight=1.0)
    expected = kb.search(QUERY, graph=1.0).to_dicts()
    assert kb.search(QUERY, retrieval=spec).to_dicts() == expected
    assert workspace.search(QUERY, kbs=["pools"], graph=1.0).to_dicts() == expected
    assert set(graph_parts(kb.search(QUERY, retrieval=spec, graph=0)).values()) == {0.0}
    other = workspace.create("on", spec=KnowledgeBaseSpec(retrieval=spec))
    try:
        fill(other)
        assert graph_parts(other.search(QUERY))["End"] > 0
        assert "graph_weight: 1.0" in other.spec.retrieval.to_yaml()
        # pages of another knowledge base are not found
        assert {hit.kb for hit in kb.search(QUERY, limit=50, graph=1.0)} == {"pools"}
    finally:
        workspace.delete("on", forever=True)


def test_graph_has_no_part_in_dense_and_lexical_search(kb):
    for mode in (Mode.DENSE, Mode.LEXICAL):
        assert set(graph_parts(kb.search(QUERY, mode=mode, graph=1.0)).values()) == {0.0}


@pytest.mark.parametrize("weight", [-0.1, 5.1, math.nan, True, "much", math.inf])
def test_invalid_graph_weight_is_an_error(workspace, kb, weight):
    for search in (kb.search, workspace.search):
        with pytest.raises(ConfigError, match=r"graph=.*: give a number from 0 to 5; 0 switches"):
            search(QUERY, graph=weight)


def test_filters_and_longer_lists_keep_the_order(kb):
    whole = kb.search(QUERY, limit=50, graph=1.0)
    short = kb.search(QUERY, limit=3, graph=1.0)
    assert list(short) == list(whole[:3])
    filtered = kb.search(QUERY, limit=50, graph=1.0, filters={"source": BASE})
    assert [hit.title for hit in filtered] == [hit.title for hit in whole]
    for one, other in zip(filtered, whole, strict=True):
        assert one.parts.graph == pytest.approx(other.parts.graph)
    few = kb.search(QUERY, limit=50, graph=1.0, filters={"source": f"{BASE}end"})
    assert [hit.title for hit in few] == ["End"]


def test_plain_words_count_less_than_names_in_code(workspace):
    kb = workspace.create("words")
    try:
        kb.add("Times", "# times()\n\n`times()` counts.\n", source=f"{BASE}times.html")
        for n in range(30):
            kb.add(f"P{n}", f"# P{n}\n\nMany times, page {n} says {n}.\n", source=f"{BASE}{n}.html")
        workspace.graph.relate("times()", "belongs_to", "P1")
        plain = graph_parts(kb.search("how many times", limit=50, graph=1.0))
        code = graph_parts(kb.search("how many `times()`", limit=50, graph=1.0))
        assert code["Times"] > plain["Times"]
        context = workspace.context("how many times", kbs=["words"])
        assert {piece.kind for piece in context.pieces} == {"passage"}
        context = workspace.context("what is `times()`", kbs=["words"])
        assert [p.name for p in context.pieces if p.kind == "entity"] == ["times"]
    finally:
        workspace.delete("words", forever=True)


def test_graph_is_read_again_after_changes(workspace, kb):
    graph, pool, fill_all = handle_of(kb).graph(), entity_id("open_pool"), entity_id("fill_all")

    def names():
        return {relation.name for relation in graph.related([pool])[pool]}

    relation = workspace.graph.relate("open_pool", "needs", "drain_all")
    assert "needs" in names()
    workspace.graph.delete(relation)
    assert "needs" not in names()
    workspace.graph.undo()
    assert "needs" in names()
    workspace.graph.delete(workspace.graph.relations(name="needs")[0])
    assert not graph.entities([fill_all])
    kb.add("More", "# fill_all\n\n`fill_all` fills.\n", source=f"{BASE}more.html")
    assert handle_of(kb).graph().entities([fill_all])
    kb.documents.delete(f"{BASE}more.html")


def test_merged_entities_are_found_by_all_their_names(workspace, kb):
    workspace.graph.create("pool opener", aliases=["opening pools"])
    workspace.graph.merge("open_pool", "pool opener")
    try:
        for query in ("the pool opener", "opening pools"):
            assert graph_parts(kb.search(query, limit=50, graph=1.0))["Pools"] > 0
    finally:
        workspace.graph.undo()


def test_tuning_proposes_a_graph_weight(kb):
    questions = [Question(question=f"{QUERY} {n}", relevant=("pools.html",)) for n in range(10)]
    report = kb.feedback.tune(questions)
    assert "graph_weight" in report.weights
    assert 0 <= report.proposed.graph_weight <= 1
