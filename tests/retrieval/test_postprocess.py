"""Postprocessors of a recipe decide last on order and score."""

import pytest
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import NodeWithScore, TextNode

import kbkit
from kbkit.errors import PostprocessorError
from kbkit.recipes import KnowledgeBaseSpec, RetrievalSpec

CORE = "llama_index.core.postprocessor:"
COHERE = "llama_index.postprocessor.cohere_rerank:CohereRerank"
HERE = f"{__name__}:"
CALLS: list[list[str]] = []


class Shortest(BaseNodePostprocessor):
    """Reranks as a cross-encoder does: reads query and text, gives scores of its own."""

    top_n: int = 100

    def _postprocess_nodes(self, nodes, query_bundle=None):
        CALLS.append([node.metadata["title"] for node in nodes])
        assert query_bundle.query_str
        for node in nodes:
            node.score = -float(len(node.get_content()))
        return sorted(nodes, key=lambda node: -node.score)[: self.top_n]


class Inventive(BaseNodePostprocessor):
    """Adds a node of its own, and rewrites texts."""

    def _postprocess_nodes(self, nodes, query_bundle=None):
        for node in nodes:
            node.node.set_content("something else")
            node.score = None
        return [NodeWithScore(node=TextNode(text="made up"), score=9.0), *nodes]


class Broken(BaseNodePostprocessor):
    how: str
    api_key: str = ""

    def _postprocess_nodes(self, nodes, query_bundle=None):
        if self.how == "raise":
            raise RuntimeError(f"no service for {self.api_key}")
        if self.how == "nothing":
            return None
        nodes[0].score = float("nan")
        return nodes


class Unopenable(Shortest):
    def __init__(self, **arguments):
        raise OSError(f"no weights, and {arguments}")


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    with kbkit.open(tmp_path_factory.mktemp("kb")) as opened:
        kb = opened.create("drinks")
        for number, title in enumerate(("green tea", "black tea", "white tea", "milk")):
            more = "It is served hot. " * (5 - number)
            kb.add(title, f"# {title}\n\nAll about {title}. {more}\n")
        yield opened


def search(workspace, *processors, query="green tea", limit=10):
    settings = RetrievalSpec.model_validate({"postprocessors": processors})
    return workspace["drinks"].search(query, limit=limit, retrieval=settings)


def titles(hits):
    return [hit.title for hit in hits]


def test_postprocessor_sets_order_and_scores_but_not_parts(workspace):
    before = search(workspace)
    after = search(workspace, {"path": HERE + "Shortest"})
    assert titles(before)[0] == "green tea"
    assert titles(after) == ["milk", "white tea", "black tea", "green tea"]
    by_title = {hit.title: hit for hit in before}
    for hit in after:
        assert hit.score == -len(hit.chunk.text)
        assert hit.parts == by_title[hit.title].parts


def test_hits_that_a_postprocessor_drops_are_left_out(workspace):
    whole = search(workspace)
    cutoff = whole[1].score
    path = CORE + "SimilarityPostprocessor"
    kept = search(workspace, {"path": path, "arguments": {"similarity_cutoff": cutoff}})
    assert titles(kept) == titles(whole)[:2]
    none = search(workspace, {"path": path, "arguments": {"similarity_cutoff": 9.0}})
    assert len(none) == 0


def test_postprocessor_may_reorder_hits(workspace):
    whole = search(workspace)
    after = search(workspace, {"path": CORE + "LongContextReorder"})
    assert sorted(titles(after)) == sorted(titles(whole))
    assert titles(after) != titles(whole)


def test_postprocessor_sees_more_hits_than_the_limit(workspace):
    CALLS.clear()
    hits = search(workspace, {"path": HERE + "Shortest"}, limit=1)
    assert titles(hits) == ["milk"]  # the last of four before
    search(workspace, {"path": HERE + "Shortest", "hits": 2}, limit=1)
    search(workspace, {"path": HERE + "Shortest", "hits": 2}, limit=3)
    assert [len(titles) for titles in CALLS] == [4, 2, 3]
    search(workspace, {"path": HERE + "Shortest"}, query="zebra", limit=1)


def test_postprocessors_run_one_after_another(workspace):
    CALLS.clear()
    two, one = ({"path": HERE + "Shortest", "arguments": {"top_n": n}} for n in (2, 1))
    hits = search(workspace, two, one)
    assert CALLS[1] == ["milk", "white tea"]
    assert titles(hits) == ["milk"]


def test_texts_and_nodes_of_a_postprocessor_are_ignored(workspace):
    after = search(workspace, {"path": HERE + "Inventive"})
    assert list(after) == list(search(workspace))


def test_postprocessors_of_a_recipe_serve_all_searches(workspace):
    config = {"retrieval": {"postprocessors": [{"path": HERE + "Shortest"}]}}
    kb = workspace.create("reranked", spec=KnowledgeBaseSpec.model_validate(config))
    kb.add("long", "# long\n\n" + "Tea is a drink. " * 9)
    kb.add("short", "# short\n\nTea, tea.")
    assert titles(kb.search("tea drink")) == ["short", "long"]
    assert titles(workspace.search("tea drink", kbs=["reranked"])) == ["short", "long"]
    nodes = kb.as_retriever().retrieve("tea drink")
    assert [node.metadata["title"] for node in nodes] == ["short", "long"]
    workspace.delete("reranked")


@pytest.mark.parametrize(
    ("path", "arguments", "message"),
    [
        (
            HERE + "Broken",
            {"how": "raise", "api_key": "geheimnis"},
            r"Broken: failed \(.*for \*\*\*",
        ),
        (HERE + "Broken", {"how": "nothing"}, "failed"),
        (HERE + "Broken", {"how": "nan"}, "the score nan"),
        (HERE + "Broken", {"how": "x", "colour": "red"}, "check the arguments|score nan"),
        (HERE + "Broken", {}, "check the arguments"),
        (HERE + "Unopenable", {"api_key": "geheimnis"}, r"cannot be opened \(OSError: .*\*\*\*"),
        (HERE + "Nothing", {}, "Nothing in .* is not a llama-index postprocessor"),
        (CORE + "KeywordNodePostprocessor", {"required_keywords": ["tea"]}, "pip install spacy"),
        ("os:path", {}, "BaseNodePostprocessor"),
        ("no_such_package.reranker:Reranker", {}, "cannot import no_such_package.reranker"),
        (COHERE, {}, "pip install llama-index-postprocessor-cohere-rerank"),
    ],
)
def test_failure_of_a_postprocessor_is_one_error_without_secrets(
    workspace, path, arguments, message
):
    with pytest.raises(PostprocessorError, match=message) as caught:
        search(workspace, {"path": path, "arguments": arguments})
    assert "geheimnis" not in str(caught.value)
    assert path in str(caught.value)


def test_postprocessor_is_opened_once(workspace):
    opened = []

    class RequestCounter(Shortest):
        def __init__(self, **arguments):
            super().__init__(**arguments)
            opened.append(1)

    globals()["Counted"] = RequestCounter
    for _ in range(3):
        search(workspace, {"path": HERE + "Counted"})
    assert len(opened) == 1


def test_postprocessors_run_if_all_knowledge_bases_name_them(tmp_path):
    shortest = {"path": HERE + "Shortest", "arguments": {"top_n": 1}}
    with kbkit.open(tmp_path) as opened:
        for name, named in (("one", [shortest]), ("two", [shortest]), ("plain", [])):
            spec = KnowledgeBaseSpec.model_validate({"retrieval": {"postprocessors": named}})
            opened.create(name, spec=spec).add(f"tea of {name}", f"All about tea, says {name}.")
        agreed = opened.search("tea", kbs=["one", "two"])
        assert len(agreed) == 1
        assert not agreed.notes
        for kbs in (["one", "plain"], ["plain", "one"]):
            hits = opened.search("tea", kbs=kbs)
            assert len(hits) == 2
            assert "different postprocessors" in " ".join(hits.notes)
