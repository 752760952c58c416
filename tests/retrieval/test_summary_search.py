"""Search by summaries of documents, and by the words of whole documents."""

import threading
from types import SimpleNamespace

import numpy as np
import pytest

from kbkit.embedding.onnx import MiniLmEmbedder
from kbkit.embedding.static import StaticEmbedder
from kbkit.ingest.summaries import SummaryMaker
from kbkit.knowledge_base import handle_of
from kbkit.models import Filters, Mode, SourceDocument
from kbkit.recipes import FilesSource, KnowledgeBaseSpec, RetrievalSpec, StaticEmbedding
from kbkit.retrieval.query import Query
from kbkit.retrieval.retriever import Retriever
from kbkit.retrieval.searching import search
from kbkit.stores.catalog import knowledge_bases, summaries
from kbkit.stores.snapshots.segment_files import SegmentFiles
from kbkit.testing import HashEmbedder

PAGES = {
    "rm": "Removes entries of a directory that nobody has any use for.",
    "ls": "Lists what a directory holds, one name a line, in order of the alphabet.",
    "date": "Prints the present time in a format that can be chosen, or sets the clock.",
    "ping": "Sends packets over a network and waits for what comes back from it.",
    "sort": "Puts the lines of a text in order, by letters or by numbers.",
    "chat": "Talks to people who are logged in at the same time, line by line.",
}
NO_SUMMARIES = RetrievalSpec(summary_weight=0)
NO_PAGES = RetrievalSpec(page_weight=0)


def ingest(kb, pages):
    kb.ingest(
        SourceDocument(
            f"man:{name}", name, f"# {name}\n\n{text}\n\n## Options\n\nNone.\n", tags=(name[0],)
        )
        for name, text in pages.items()
    )
    return kb


@pytest.fixture
def kb(workspace):
    return ingest(workspace.create("man"), PAGES)


def titles(hits):
    return list(dict.fromkeys(hit.title for hit in hits))


def remove_summaries(kb, *names):
    ids = [document.id for document in kb.documents if document.title in names]
    with kb._stores.database.write() as transaction:
        summaries.remove(transaction, ids)
        knowledge_bases.touch(transaction, kb.id)
    kb._stores.snapshots.drop(kb.id)  # it keeps a summary until there is another


@pytest.mark.parametrize(
    ("query", "title"),
    [("delete file", "rm"), ("what day is it", "date"), ("is the host up", "ping")],
)
def test_page_that_answers_in_other_words_ranks_first(kb, query, title):
    hits = kb.search(query)
    words = set(query.split())
    assert not words & set(PAGES[title].lower().split()) - {"the", "is", "it"}
    assert hits[0].title == title
    parts = hits[0].parts
    assert parts.summary == max(hit.parts.summary for hit in hits) > 0
    assert hits[0].score == pytest.approx(parts.total)
    assert hits.notes == ()


def test_summaries_serve_dense_and_page_words_lexical_search(kb):
    hits = {mode: kb.search("order of lines", mode=mode) for mode in Mode}
    for mode, ranked in hits.items():
        best = ranked[0].parts
        assert ranked[0].title == "sort"
        assert (best.summary > 0) == (mode is not Mode.LEXICAL)
        assert (best.page > 0) == (mode is not Mode.DENSE)
    assert kb.search("order of lines", retrieval=NO_SUMMARIES)[0].parts.summary == 0
    assert kb.search("order of lines", retrieval=NO_PAGES)[0].parts.page == 0


def test_words_in_different_chunks_count_for_their_page(workspace):
    far = "Filler that says nothing at all of either, over and over again. " * 30
    kb = ingest(
        workspace.create("far"),
        {
            "one": f"Herons wade.\n\n{far}\n\n## More\n\n{far}\n\nOtters swim.",
            "two": f"Herons wade.\n\n{far}",
            "three": f"Otters swim.\n\n{far}",
            **{f"page {n}": far for n in range(40)},
        },
    )
    hits = kb.search("herons otters", mode="lexical")
    pages = {hit.title: hit.parts.page for hit in hits}
    assert pages["one"] > max(pages["two"], pages["three"]) > 0
    assert hits[0].title == "one"


def test_document_without_summary_ranks_as_an_average_one(kb):
    before = kb.search("delete file")
    shares = {hit.title: hit.parts.summary for hit in before}
    remove_summaries(kb, "rm")
    hits = kb.search("delete file")
    now = {hit.title: hit.parts.summary for hit in hits}
    others = [share for title, share in now.items() if title != "rm"]
    assert shares["rm"] == max(shares.values())
    assert min(others) < now["rm"] < max(others)
    remove_summaries(kb, *PAGES)
    none = kb.search("delete directory entries")
    assert {hit.parts.summary for hit in none} == {0.0}
    assert none[0].title == "rm"
    assert none.notes == ()


def test_filters_keep_summary_scores(kb):
    whole = titles(kb.search("delete file"))
    assert whole[0] == "rm"
    assert titles(kb.search("delete file", filters={"tags": "r"})) == ["rm"]
    left = titles(kb.search("delete file", filters={"tags": "d"}))
    assert left == ["date"]
    # no summary is near enough to count in full, so the best of a few counts as before
    unfiltered = {hit.title: hit.parts.summary for hit in kb.search("delete file")}
    filtered = kb.search("delete file", filters={"tags": "d"})[0].parts.summary
    assert filtered == pytest.approx(unfiltered["date"])


def test_scores_of_several_knowledge_bases_compare(kb, workspace):
    pages = {
        "broom": "Sweeps the floor of a kitchen, a hall or a yard.",
        "vase": "Holds flowers, and water for them, on a table.",
    }
    other = ingest(workspace.create("house"), pages)
    hits = workspace.search("delete file")
    assert (hits[0].kb, hits[0].title) == ("man", "rm")
    hits = workspace.search("clean the ground")
    assert (hits[0].kb, hits[0].title) == ("house", "broom")
    hits = workspace.search("flowers directory", mode="lexical")
    pages = {hit.title: hit.parts.page for hit in hits}
    assert pages["vase"] > 0 < pages["rm"]
    assert max(pages.values()) == pages["vase"]  # the rarer word
    assert other.search("clean the ground")[0].title == "broom"


def test_query_embeddings_are_cached(kb, monkeypatch):
    queries, original = [], MiniLmEmbedder.embed_query

    def embed_query(self, text):
        queries.append(text)
        return original(self, text)

    monkeypatch.setattr(MiniLmEmbedder, "embed_query", embed_query)
    kb.improve(embedding="minilm")  # so that chunks and summaries have the same model
    first = kb.search("delete file")
    assert kb.search("delete file", limit=3).hits == first.hits[:3]
    assert queries == ["delete file"]
    kb.search("is the host up", mode="lexical")
    assert queries == ["delete file"]
    monkeypatch.setattr("kbkit.embedding._KEPT", 1)
    kb.search("is the host up")
    kb.search("delete file")
    assert queries == ["delete file", "is the host up", "delete file"]


def test_summaries_of_an_uninstalled_embedder_are_skipped_with_a_note(kb, tmp_path):
    (tmp_path / "note.md").write_text("Nothing yet.")
    kb.ingest(FilesSource(path=str(tmp_path / "note.md")))
    other = HashEmbedder()
    SummaryMaker(kb._stores.database, kb.id, other, StaticEmbedder).make()
    hits = kb.search("remove entries of a directory")
    assert hits[0].title == "rm"
    assert hits[0].parts.summary == 0
    assert hits.notes == (
        f"man: its document summaries were embedded by {other.fingerprint}, which is not "
        "installed; `kbkit refresh man` embeds them again",
    )
    kb.refresh()
    assert kb.search("delete file").notes == ()
    assert kb.search("delete file")[0].title == "rm"


@pytest.mark.parametrize("filters", [{}, {"tags": ["r"]}])
def test_query_is_embedded_again_for_summaries_replaced_meanwhile(kb, filters):
    whole, embedders, switched = handle_of(kb).retriever, [], threading.Event()

    def for_summaries(row):
        embedders.append(row.summary_embedder.partition(":")[0])
        embedder = whole.embedders.of_summaries(row)
        if len(embedders) == 1:
            SummaryMaker(kb._stores.database, kb.id, StaticEmbedder(), StaticEmbedder).make()
            switched.set()
        return embedder

    def for_chunks(row):
        assert switched.wait(60)
        return whole.embedders.of(row)

    opening = SimpleNamespace(of=for_chunks, of_summaries=for_summaries)
    retriever = Retriever(whole.stores, whole.kb_id, opening, whole.graph)
    hits = search([retriever], Query.of("remove entries", filters=Filters(**filters)))
    assert embedders == ["onnx", "static"]
    assert hits[0].title == "rm"
    assert hits[0].parts.summary > 0


def test_static_vectors_of_summaries_weigh_less(workspace):
    spec = KnowledgeBaseSpec(summary_embedding=StaticEmbedding())
    kb = ingest(workspace.create("man", spec=spec), PAGES)
    best = kb.search("clock format")[0]
    assert best.title == "date"
    share = len(PAGES) / (len(PAGES) + 10)  # few documents
    whole = 1 + 0.5 + share * (0.3 * 1.0 + 0.6 * 0.5)
    columns = handle_of(kb).retriever.pool(Query.of("clock format")).columns
    for name in ("summary", "page"):
        reached = min(1, columns[name].max() / columns[f"{name}_full"].max())
        assert getattr(best.parts, name) == pytest.approx(share * 0.3 / whole * reached)


def test_snapshot_keeps_summaries(kb):
    held = kb._stores.snapshots.renew(kb.id)
    loaded = SegmentFiles(kb._stores.snapshots.folder).read(kb.id)
    assert loaded.state.summary_embedder == held.state.summary_embedder
    assert loaded.state.summary_embedder.startswith("onnx:minilm:")
    (part,), (other,) = loaded.summaries, held.summaries
    np.testing.assert_array_equal(part.vectors, other.vectors)
    assert np.linalg.norm(part.vectors, axis=1) == pytest.approx(1, abs=2e-3)
    with kb._stores.database.read() as transaction:
        stored = summaries.vectors_of(transaction, handle_of(kb).row())
    for document_id, vector in zip(stored.document_ids, stored.vectors, strict=True):
        row = part.numbers.tolist().index(loaded.document_ids.index(document_id))
        np.testing.assert_allclose(part.vectors[row], vector, atol=1e-6)
    owned = np.bincount(loaded.owners, loaded.lengths)
    assert loaded.document_lengths.tolist() == owned.tolist()


def test_summaries_of_one_document_and_a_long_query(workspace):
    kb = workspace.create("one")
    kb.add("Tea", "Tea.")
    assert kb.search("hot drink")[0].title == "Tea"
    for mode in Mode:
        kb.search("tea " * 2_500, mode=mode)
    pool = handle_of(kb).retriever.pool(Query.of("hot drink"))
    assert pool.columns["summary"].shape == (1,)
