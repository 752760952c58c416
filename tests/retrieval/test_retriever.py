"""Search over real workspaces: several knowledge bases, and changes while it goes on."""

import pytest

import kbkit
from kbkit.errors import ConfigError, NotFoundError
from kbkit.models import Mode
from kbkit.retrieval.retriever import LONGEST_QUERY, Retriever, search


@pytest.fixture
def workspace(tmp_path):
    with kbkit.open(tmp_path / "kb") as opened:
        yield opened


def fill(workspace, name, *titles):
    kb = workspace.create(name)
    for title in titles:
        kb.add(title, f"# {title}\n\nAll there is to know about {title}.\n")
    return kb


class Interrupted(Retriever):
    """Somebody deletes the best candidate between the two reads of a search."""

    def pool(self, query, limit, mode):
        pool = super().pool(query, limit, mode)
        self.delete()
        return pool


@pytest.mark.parametrize("mode", list(Mode))
def test_several_knowledge_bases_are_ranked_on_one_scale(workspace, mode):
    fill(workspace, "drinks", "green tea", "black tea", "milk")
    fill(workspace, "tools", "hammer", "tea kettle")
    fill(workspace, "odd", "zebra")
    hits = workspace.search("green tea", limit=20, mode=mode)
    scores = [hit.score for hit in hits]
    assert hits[0].title == "green tea"
    assert scores == sorted(scores, reverse=True)
    assert all(0 < score <= 1 for score in scores)
    by_title = {hit.title: hit for hit in hits}
    assert by_title["tea kettle"].kb == "tools"
    assert by_title["green tea"].score > by_title["tea kettle"].score
    alone = workspace["odd"].search("zebra green tea", mode=mode)[0].score
    together = workspace.search("zebra green tea", mode=mode)
    assert next(h for h in together if h.kb == "odd").score <= alone + 1e-9


def test_the_order_of_knowledge_bases_does_not_matter(workspace):
    fill(workspace, "a", "green tea", "milk")
    fill(workspace, "b", "tea kettle", "hammer")
    one = workspace.search("tea kettle", ["a", "b"])
    other = workspace.search("tea kettle", ["b", "a", "b"])
    assert [(h.title, h.score) for h in one] == [(h.title, h.score) for h in other]


def test_a_limit_holds_over_all_knowledge_bases(workspace):
    fill(workspace, "a", "tea one", "tea two")
    fill(workspace, "b", "tea three", "tea four")
    assert len(workspace.search("tea", limit=3)) == 3
    assert len(search([], "tea")) == 0


def test_what_is_gone_between_two_reads_is_left_out(workspace):
    kb = fill(workspace, "drinks", "green tea", "black tea", "milk")
    whole = kb.retriever
    retriever = Interrupted(whole.database, whole.vectors, whole.kb_id, whole.embedder)
    retriever.delete = lambda: kb.delete_document("text:green tea")
    assert kb.search("green tea")[0].title == "green tea"
    titles = [hit.title for hit in search([retriever], "green tea")]
    assert titles
    assert "green tea" not in titles


def test_a_knowledge_base_that_is_deleted_meanwhile_gives_no_hits(workspace):
    kb = fill(workspace, "drinks", "green tea")
    fill(workspace, "tools", "tea kettle")
    whole = kb.retriever
    retriever = Interrupted(whole.database, whole.vectors, whole.kb_id, whole.embedder)
    retriever.delete = lambda: workspace.delete("drinks")
    assert [h.kb for h in search([retriever, workspace["tools"].retriever], "tea")] == ["tools"]
    with pytest.raises(NotFoundError, match="deleted"):
        search([whole], "tea")


def test_statistics_follow_new_documents(workspace):
    kb = fill(workspace, "drinks", "green tea", "milk")
    before = kb.search("tea", mode="lexical")[0].parts.bm25
    for number in range(8):
        kb.add(f"drink {number}", "# Water\n\nSomething else altogether.\n")
    rarer = kb.search("tea", mode="lexical")[0].parts.bm25
    assert rarer > before  # the term is rarer now
    for number in range(8):
        kb.delete_document(f"text:drink {number}")
    assert kb.search("tea", mode="lexical")[0].parts.bm25 == pytest.approx(before)


def test_statistics_follow_what_another_workspace_stores(workspace):
    kb = fill(workspace, "drinks", "green tea", "milk")
    before = kb.search("tea", mode="lexical")[0].parts.bm25
    with kbkit.open(workspace.path) as other:
        for number in range(8):
            other["drinks"].add(f"drink {number}", "# Water\n\nSomething else.\n")
    assert kb.search("tea", mode="lexical")[0].parts.bm25 > before


def test_hits_of_one_document_give_way_to_others(workspace):
    kb = workspace.create("drinks")
    sections = "".join(f"## Tea {n}\n\nTea number {n} is green tea.\n\n" for n in range(8))
    kb.add("All about tea", f"# All about tea\n\n{sections}")
    kb.add("Kettle", "# Kettle\n\nA kettle boils water, for tea too.\n")
    most = kb.config().retrieval.per_document
    titles = [hit.title for hit in kb.search("green tea", limit=20)]
    assert titles[:most] == ["All about tea"] * most
    assert titles[most] == "Kettle"
    assert titles.count("All about tea") > most


def test_snippets_and_scores_come_with_the_hits(workspace):
    fill(workspace, "drinks", "green tea")
    hit = workspace.search("green tea")[0]
    assert hit.snippet == "All there is to know about green tea."
    assert hit.score == hit.parts.total
    assert hit.chunk.text.startswith("# green tea")


def test_a_very_long_query_is_read_up_to_a_bound(workspace):
    fill(workspace, "drinks", "green tea", "milk")
    query = "green tea " * LONGEST_QUERY
    hits = workspace.search(query)
    assert len(hits.query) == LONGEST_QUERY
    assert hits[0].title == "green tea"


@pytest.mark.parametrize("query", ["\udcff tea", "tea \ud83d", "\0 tea", "te\u0301a tea"])
def test_text_that_no_encoding_knows_is_searched_all_the_same(workspace, query):
    fill(workspace, "drinks", "green tea", "milk")
    for mode in Mode:
        assert workspace.search(query, mode=mode)[0].title == "green tea"


@pytest.mark.parametrize(("limit", "mode", "says"), [
    (0, "hybrid", "limit=0"), (-1, "dense", "limit=-1"), (1, "fuzzy", "hybrid, dense, lexical"),
])  # fmt: skip
def test_bad_options_are_clear_errors(workspace, limit, mode, says):
    fill(workspace, "drinks", "green tea")
    with pytest.raises(ConfigError, match=says):
        workspace.search("tea", limit=limit, mode=mode)
