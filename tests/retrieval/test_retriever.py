"""Search over several knowledge bases and during changes."""

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from urllib.parse import unquote

import pytest

import kbkit
from kbkit.errors import EmbedderError, NotFoundError
from kbkit.knowledge_base import handle_of
from kbkit.models import Mode
from kbkit.recipes import KnowledgeBaseSpec, RetrievalSpec
from kbkit.retrieval.query import Query
from kbkit.retrieval.retriever import Retriever
from kbkit.retrieval.searching import search
from kbkit.stores.catalog import knowledge_bases

pytestmark = pytest.mark.usefixtures("vectors_in_chroma")


def fill(workspace, name, *titles):
    kb = workspace.create(name)
    for title in titles:
        kb.add(title, f"# {title}\n\nAll there is to know about {title}.\n")
    return kb


class Interrupted(Retriever):
    """Calls `delete` between the two reads of a search."""

    def pool(self, query):
        pool = super().pool(query)
        delete, self.delete = self.delete, lambda: None  # only once: the search is repeated
        delete()
        return pool


def interrupted(kb, delete):
    whole = handle_of(kb).retriever
    retriever = Interrupted(whole.stores, whole.kb_id, whole.embedders, whole.graph)
    retriever.delete = delete
    return retriever


@pytest.mark.parametrize("mode", list(Mode))
def test_knowledge_bases_are_ranked_on_one_scale(workspace, mode):
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
    if mode is Mode.DENSE:  # words that only others have make a knowledge base's own count more
        alone = workspace["odd"].search("zebra green tea", mode=mode)[0].score
        together = workspace.search("zebra green tea", mode=mode)
        assert next(hit for hit in together if hit.kb == "odd").score <= alone + 1e-9


@pytest.mark.slow
def test_word_rarity_is_that_of_all_knowledge_bases_together(workspace):
    fill(workspace, "large", *(f"long row {n}" for n in range(3)), *map(str, range(100, 160)))
    fill(workspace, "small", "quince jelly", "medlar")
    hits = workspace.search("long quince", mode="lexical")
    assert hits[0].title == "quince jelly"
    assert hits[0].parts.bm25 > hits[1].parts.bm25 > 0
    large, small = (
        workspace[name].search("long quince", mode="lexical")[0] for name in ("large", "small")
    )
    assert large.parts.bm25 > small.parts.bm25


def test_order_of_knowledge_bases_does_not_matter(workspace):
    fill(workspace, "a", "green tea", "milk")
    fill(workspace, "b", "tea kettle", "hammer")
    one = workspace.search("tea kettle", kbs=["a", "b"])
    other = workspace.search("tea kettle", kbs=["b", "a", "b"])
    assert [(h.title, h.score) for h in one] == [(h.title, h.score) for h in other]


def test_limit_holds_over_all_knowledge_bases(workspace):
    fill(workspace, "a", "tea one", "tea two")
    fill(workspace, "b", "tea three", "tea four")
    assert len(workspace.search("tea", limit=3)) == 3
    assert len(search([], Query.of("tea"))) == 0


def test_document_deleted_during_a_search_is_left_out(workspace):
    kb = fill(workspace, "drinks", "green tea", "black tea", "milk")
    retriever = interrupted(kb, lambda: kb.documents.delete("text:green tea"))
    assert kb.search("green tea")[0].title == "green tea"
    titles = [hit.title for hit in search([retriever], Query.of("green tea"))]
    assert titles
    assert "green tea" not in titles


def test_knowledge_base_deleted_during_a_search_gives_no_hits(workspace):
    kb = fill(workspace, "drinks", "green tea")
    fill(workspace, "tools", "tea kettle")
    retriever = interrupted(kb, lambda: workspace.delete("drinks"))
    hits = search([retriever, handle_of(workspace["tools"]).retriever], Query.of("tea"))
    assert [hit.kb for hit in hits] == ["tools"]
    with pytest.raises(NotFoundError, match="deleted"):
        search([handle_of(kb).retriever], Query.of("tea"))


def test_statistics_follow_documents_of_this_and_other_workspaces(workspace):
    kb = fill(workspace, "drinks", "green tea", "milk")
    before = kb.search("tea", mode="lexical")[0].parts.bm25
    with kbkit.open(workspace.path) as other:
        for writer in (kb, other["drinks"]):
            for number in range(8):
                writer.add(f"drink {number}", "# Water\n\nSomething else altogether.\n")
            assert kb.search("tea", mode="lexical")[0].parts.bm25 > before  # a rarer term
            for number in range(8):
                kb.documents.delete(f"text:drink {number}")
            assert kb.search("tea", mode="lexical")[0].parts.bm25 == pytest.approx(before)


def test_further_hits_of_one_document_rank_lower(workspace):
    kb = workspace.create("drinks")
    sections = "".join(f"## Tea {n}\n\nTea number {n} is green tea.\n\n" for n in range(8))
    kb.add("All about tea", f"# All about tea\n\n{sections}")
    kb.add("Kettle", "# Kettle\n\nA kettle boils water for green tea.\n")
    places = []
    for most in (1, 2, 100):
        chosen = RetrievalSpec(per_document=most, duplicates=1)
        titles = [hit.title for hit in kb.search("green tea", limit=20, retrieval=chosen)]
        assert titles.count("All about tea") == 8
        places.append(titles.index("Kettle"))
    assert places[0] <= places[1] < places[2]
    assert places[1] >= kb.spec.retrieval.per_document


def test_snippets_and_scores_come_with_the_hits(workspace):
    fill(workspace, "drinks", "green tea")
    hit = workspace.search("green tea")[0]
    assert hit.snippet == "All there is to know about green tea."
    assert hit.score == hit.parts.total
    assert hit.chunk.text.startswith("# green tea")


def test_kbs_may_be_one_name(workspace):
    fill(workspace, "drinks", "green tea")
    fill(workspace, "tools", "tea kettle")
    assert [hit.kb for hit in workspace.search("tea", kbs="tools")] == ["tools"]
    with pytest.raises(NotFoundError, match="'tool'"):
        workspace.search("tea", kbs="tool")


def test_near_duplicates_rank_lower(workspace):
    kb = workspace.create("copies")
    for n in range(4):
        kb.add(f"Copy {n}", "Green tea is steeped in hot water.", source=f"doc:{n}")
    kb.add("Other", "Black tea is steeped, too.")
    titles = [hit.title for hit in kb.search("steep green tea")]
    assert titles[1] == "Other"
    assert len(titles) == 5
    free = kb.search("steep green tea", retrieval=RetrievalSpec(duplicates=1))
    assert [hit.title for hit in free][-1] == "Other"


def test_retrieval_settings_are_those_of_recipe_or_query(workspace):
    kb = workspace.create("drinks", spec=KnowledgeBaseSpec(retrieval=RetrievalSpec(dense_weight=1)))
    kb.add("Tea", "Green tea.")
    assert kb.search("tea")[0].parts.lexical == 0
    assert kb.search("tea", retrieval=RetrievalSpec(dense_weight=0))[0].parts.dense == 0
    kb.configure(KnowledgeBaseSpec(retrieval=RetrievalSpec(dense_weight=0)))
    assert kb.search("tea")[0].parts.dense == 0


def test_headings_and_titles_count_where_weighted(workspace):
    kb = workspace.create("drinks")
    kb.add("Green", "# Green\n\n## Steeping\n\nTwo minutes are enough.\n")
    kb.add("Black", "# Black\n\n## Serving\n\nTwo minutes are enough.\n")
    words = RetrievalSpec(title_weight=0.2, heading_weight=0.1)
    hits = kb.search("steeping green", mode="lexical", retrieval=words)
    (parts,) = (hit.parts for hit in hits if hit.title == "Green")
    assert parts.title > 0
    assert parts.heading > 0
    hit = kb.search("steeping green")[0]
    assert hit.title == "Green"
    assert hit.parts.title == hit.parts.heading == 0


def test_knowledge_base_without_chunks_gives_no_hits(workspace):
    workspace.create("empty")
    fill(workspace, "drinks", "green tea")
    empty = workspace["empty"]
    for filters in (None, {"tags": "x"}):
        for _ in range(3):  # before and after warming
            for mode in Mode:
                assert len(empty.search("tea", limit=5, mode=mode, filters=filters)) == 0
            workspace._stores.warmer.close()
    assert workspace.search("tea")[0].kb == "drinks"


def test_knowledge_base_with_all_documents_deleted_gives_no_hits(workspace):
    kb = fill(workspace, "drinks", "green tea")
    for _ in range(2):
        assert len(kb.search("tea")) == 1
        workspace._stores.warmer.close()
    kb.documents.delete("text:green tea")
    for _ in range(3):
        for mode in Mode:
            assert len(kb.search("tea", mode=mode)) == 0
            assert len(kb.search("tea", mode=mode, filters={"min_rating": 1})) == 0
        workspace._stores.warmer.close()


@pytest.mark.slow
def test_search_sees_documents_of_another_process(workspace):
    kb = fill(workspace, "drinks", "green tea", "milk")
    code = (
        "import sys, kbkit\n"
        "kb = kbkit.open(sys.argv[1])['drinks']\n"
        "kb.documents.delete('text:green tea')\n"
        "kb.add('mate', 'Drunk from a gourd.')\n"
        "kb._stores.snapshots.save(kb.id)\n"
    )
    for _ in range(3):
        assert kb.search("green tea")[0].title == "green tea"
        workspace._stores.warmer.close()
    command = [sys.executable, "-c", code, str(workspace.path)]
    subprocess.run(command, check=True, timeout=120)
    for _ in range(3):
        for mode in Mode:
            assert kb.search("gourd", mode=mode)[0].title == "mate"
            assert "green tea" not in {hit.title for hit in kb.search("green tea", mode=mode)}
        workspace._stores.warmer.close()


def test_failed_search_is_repeated_with_an_embedder_replaced_meanwhile(workspace):
    kb = fill(workspace, "drinks", "green tea")
    whole, right = handle_of(kb).retriever, handle_of(kb).row().embedder
    dimensions = handle_of(kb).row().dimensions

    def name(embedder):
        with workspace._stores.database.write() as connection:
            knowledge_bases.set_embedder(connection, kb.id, embedder, dimensions)

    def mended(row):
        if row.embedder == "broken":
            name(right)  # as another process may, while this one fails
            raise EmbedderError("broken")
        return whole.embedders.of(row)

    def broken(row):
        raise EmbedderError("broken")

    def retriever(embedder):
        embedders = SimpleNamespace(of=embedder, of_summaries=whole.embedders.of_summaries)
        return Retriever(whole.stores, whole.kb_id, embedders, whole.graph)

    name("broken")
    assert search([retriever(mended)], Query.of("tea"))[0].title == "green tea"
    name("broken")
    for _ in range(2):
        with pytest.raises(EmbedderError, match="broken"):
            search([retriever(broken)], Query.of("tea", mode="dense"))


@pytest.mark.slow
def test_threads_search_while_documents_change(workspace):
    kb = fill(workspace, "drinks", "green tea", "milk", "rum")
    ended, failed = threading.Event(), []

    def ask():
        while not ended.is_set():
            for mode in Mode:
                for filters in (None, {"source": "text:"}):
                    hits = kb.search("green tea", limit=5, mode=mode, filters=filters)
                    if not hits or hits[0].title != "green tea":
                        failed.append(hits)

    with ThreadPoolExecutor(3) as threads:
        asking = [threads.submit(ask) for _ in range(3)]
        for n in range(10):
            kb.add(f"number {n}", f"All about number {n}.")
            kb.documents.delete(f"text:number {n - 1}") if n else None
        ended.set()
    assert [each.result() for each in asking] == [None] * 3
    assert not failed


def test_hit_far_below_its_heading_links_to_its_words(workspace):
    kb = workspace.create("manual")
    names = "apple brine cherry damson elder fig grape huckle iris juniper kiwi lemon mango"
    options = [
        f"-   **--{name}**: The {name} gauge. " + "It stirs the jam. " * 9 for name in names.split()
    ]
    text = "# Pan\n\n## Options {#_options}\n\nAll of them:\n\n" + "\n\n".join(options)
    kb.add("Pan", text, source="https://odd.example/pan.html")
    near, far = (kb.search(f"the {name} gauge", limit=1)[0] for name in ("apple", "mango"))
    assert near.url == "https://odd.example/pan.html#_options"
    below = kb.search("the damson gauge", limit=1)[0]
    assert below.chunk.id == near.chunk.id  # it opens at the anchor, and is long
    address = "https://odd.example/pan.html#_options:~:text=The damson gauge. It stirs"
    assert unquote(below.url).startswith(address)
    place, _, words = far.url.partition(":~:text=")
    assert place == "https://odd.example/pan.html#_options"
    assert unquote(words) in " ".join(far.chunk.text.split())
    assert "gauge" in words


@pytest.mark.parametrize("marks", ['"{}"', "“{}”", "«{}»"])
def test_quoted_phrase_ranks_first(workspace, marks):
    kb = workspace.create("notes")
    kettles = "# Kettles\n\nBoil water. Water, boil it! To boil is what water and boil mean.\n"
    kb.add("Kettles", kettles)
    kb.add("Pots", "# Pots\n\nThe kettle that whistles should let the  WATER\nBoil for long.\n")
    for n in range(20):
        kb.add(f"Boil {n}", f"# Boil {n}\n\nBoil the water, boil water {n}, boil.\n")
    plain = [hit.title for hit in kb.search("water boil", limit=3)]
    assert "Pots" not in plain
    hits = kb.search(marks.format("water boil"), limit=3)
    assert hits[0].title == "Pots"
    assert len(hits) == 3
    assert [hit.title for hit in kb.search(marks.format("no such words"), limit=3)]
