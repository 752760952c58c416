"""Questions learned from ratings help similar questions, and change no others."""

import re
import subprocess
import sys
from dataclasses import replace

import pytest

import kbkit
from kbkit.knowledge_base import handle_of
from kbkit.recipes import LearningSpec, RetrievalSpec
from kbkit.retrieval.query import Query
from kbkit.stores.catalog import ratings

ASKED = "what comes out of the oven at breakfast"
ALIKE = "what comes from an oven at breakfast time"
UNRELATED = "how hot is the water for coffee"
OFF = RetrievalSpec(learned_weight=0, rating_weight=0)
ON = RetrievalSpec(rating_weight=0)


def learned(kb, query, **options):
    """The part of the chunk about black tea."""
    hits = kb.search(query, **options)
    return next(hit.parts.learned for hit in hits if "Black tea" in hit.chunk.text)


def learns_nothing(kb, query):
    return all(hit.parts.learned == 0 for hit in kb.search(query))


def scores(kb, query, retrieval):
    return [(hit.chunk.id, hit.score) for hit in kb.search(query, retrieval=retrieval)]


@pytest.fixture
def tea(chunk):
    return chunk("Black tea steeps")


def test_similar_question_finds_the_rated_chunk(kb, tea):
    assert kb.search(ALIKE)[0].chunk.id != tea
    kb.rate(tea, 5, query=ASKED)
    best = kb.search(ALIKE, retrieval=ON)[0]
    assert best.chunk.id == tea
    assert best.parts.learned > 0
    assert best.parts.total == pytest.approx(best.score)
    assert kb.search(ASKED, retrieval=ON)[0].parts.learned > best.parts.learned


def test_question_in_other_words_finds_the_rated_chunk(kb, tea):
    kb.rate(tea, 5, query="how do I fix my automobile")
    best = kb.search("repairing a car", retrieval=ON)[0]
    assert (best.chunk.id, best.parts.learned > 0) == (tea, True)
    assert not kb.search("repairing a car", mode="lexical")


def test_unrelated_queries_are_answered_as_before(kb, tea, chunk):
    before = scores(kb, UNRELATED, ON)
    kb.rate(tea, 5, query=ASKED)
    kb.rate(chunk("Bread rises"), 4, query="bread")
    assert scores(kb, UNRELATED, ON) == before


def test_many_questions_of_one_rater_weigh_no_more_than_the_best(kb, tea):
    kb.rate(tea, 5, query=ASKED)
    once = learned(kb, ALIKE, retrieval=ON)
    for number in range(20):
        kb.rate(tea, 5, query=f"{UNRELATED} {number}")
        kb.rate(tea, 5, query=f"{ASKED} {number} {number + 100} {number + 200}")
    assert learned(kb, ALIKE, retrieval=ON) == pytest.approx(once)


@pytest.mark.parametrize("then", [1, 3])
def test_worse_rating_later_removes_the_learned_question(kb, tea, then):
    kb.rate(tea, 5, query=ASKED)
    assert learned(kb, ALIKE) > 0
    kb.rate(tea, then, query=f"  {ASKED.upper()}")
    assert learns_nothing(kb, ALIKE)


def test_question_on_which_raters_disagree_is_not_learned(kb, tea):
    kb.rate(tea, 5, query=ASKED, rater="mallory")
    kb.rate(tea, 2, query=ASKED, rater="alice")
    assert learns_nothing(kb, ASKED)


def test_deleted_rating_removes_the_learned_question(kb, tea):
    rating = kb.rate(tea, 5, query=ASKED)
    database, kb_id = handle_of(kb).stores.database, kb.id
    with database.read() as transaction:
        assert ratings.count_questions(transaction, kb_id) == 1
    kb.ratings.delete(rating.id)
    assert learns_nothing(kb, ASKED)
    with database.read() as transaction:
        assert ratings.count_questions(transaction, kb_id) == 0


def test_one_of_two_ratings_deleted_leaves_the_other(kb, tea):
    first = kb.rate(tea, 5, query=ASKED, rater="a")
    kb.rate(tea, 5, query=ASKED, rater="b")
    assert learned(kb, ALIKE) > 0
    kb.ratings.delete(first.id)
    assert learned(kb, ALIKE, retrieval=ON) > 0


def test_ratings_without_query_or_of_a_document_are_not_learned(kb, tea):
    kb.rate(tea, 5)
    kb.rate("http://x.org/tea.html", 5, query=ASKED)
    assert learns_nothing(kb, ASKED)


def test_rated_chunk_becomes_a_candidate_if_filters_allow(kb, tea):
    kb.rate(tea, 5, query="zyzzyva quuxly")
    few = RetrievalSpec(candidates=1, summary_weight=0, page_weight=0)
    assert tea in {hit.chunk.id for hit in kb.search("zyzzyva quuxly", retrieval=few)}
    hits = kb.search("zyzzyva quuxly", filters={"source": "http://x.org/milk"}, retrieval=few)
    assert tea not in {hit.chunk.id for hit in hits}


def test_learning_is_switched_off_by_weight_and_recipe(kb, tea):
    before = scores(kb, ALIKE, OFF)
    kb.rate(tea, 5, query=ASKED)
    assert scores(kb, ALIKE, OFF) == before
    off = LearningSpec(questions=False)
    kb.configure(kb.spec.model_copy(update={"learning": off}))
    assert learns_nothing(kb, ALIKE)
    kb.configure(kb.spec.model_copy(update={"learning": LearningSpec()}))
    assert learned(kb, ALIKE) > 0


def test_search_over_several_knowledge_bases_uses_learned_questions(kb, tea):
    kb.rate(tea, 5, query=ASKED)
    with kbkit.open(kb.path) as workspace:
        other = workspace.create("other")
        other.add("Ovens", "# Ovens\n\nWhat comes out of the oven is hot.\n")
        best = workspace.search(ASKED, kbs=["other", "kitchen"])[0]
        assert (best.chunk.id, best.parts.learned > 0) == (tea, True)


@pytest.mark.slow
def test_rating_of_another_process_is_learned_at_once(kb, tea):
    kb.search(ALIKE)
    script = "kbkit.open(sys.argv[1])['kitchen'].rate(sys.argv[2], 5, query=sys.argv[3])"
    command = [sys.executable, "-c", f"import sys, kbkit; {script}", str(kb.path), tea, ASKED]
    subprocess.run(command, check=True)
    assert kb.search(ALIKE)[0].chunk.id == tea


def test_question_of_a_deleted_chunk_returns_with_it(kb, tea):
    kb.rate(tea, 5, query=ASKED)
    uri = "http://x.org/tea.html"
    content = kb.documents[uri].content
    kb.documents.delete(uri)
    assert learns_nothing(kb, ASKED)
    kb.add("Tea", content, source=uri)
    assert learned(kb, ASKED) > 0


def test_evaluation_and_pools_ignore_learned_questions(kb, tea):
    kb.rate(tea, 5, query=ASKED)
    (row,) = kb.feedback.evaluate().to_frame().to_dict("records")
    assert [row] == kb.feedback.evaluate(retrieval=OFF).to_frame().to_dict("records")
    pooled = kb.feedback.pool(ASKED, limit=2, unshown=0)
    assert all(candidate.hit.parts.learned == 0 for candidate in pooled)


def test_question_itself_can_be_left_out_of_learned_questions(kb, tea):
    kb.rate(tea, 5, query=ASKED)
    retriever = handle_of(kb).retriever
    query = Query.of(ASKED)
    assert retriever.pool(query).columns["learned"].max() == 1
    assert retriever.pool(replace(query, unlearned=True)).columns["learned"].max() == 0


@pytest.mark.parametrize("query", ["?", "a", "日本語の質問", "x" * 10_000, "the of and"])
def test_any_question_can_be_learned(kb, tea, query):
    kb.rate(tea, 5, query=query)
    assert isinstance(kb.search(query)[0].parts.learned, float)
    kb.search("oven " * 2_000)


def test_questions_are_not_exported(kb, tea, tmp_path):
    kb.rate(tea, 5, query="zyzzyva quuxly in the kitchen", note="frobnicated")
    kb.export(folder=tmp_path / "out", build=False)
    files = [path for path in (tmp_path / "out").rglob("*") if path.is_file()]
    text = "\n".join(path.read_bytes().decode("utf-8", "replace") for path in files)
    assert "Black tea" in text
    assert not re.search("zyzzyva|quuxl|frobnicat", text, re.IGNORECASE)


@pytest.mark.parametrize("publish", [False, True])
def test_recipe_may_publish_questions_as_words_of_their_chunks(kb, tea, tmp_path, publish):
    kb.rate(tea, 5, query="zyzzyva oven quuxly")
    kb.rate(tea, 2, query="frobnicated")
    learning = LearningSpec(publish=publish)
    kb.configure(kb.spec.model_copy(update={"learning": learning}))
    hits = published_hits(kb, tmp_path / "out", "zyzzyva quuxly")
    assert ["Black tea" in hit.text for hit in hits[:1]] == [True] * publish
    assert published_hits(kb, tmp_path / "out", "frobnicated") == []
    assert "Milk is kept cold" in published_hits(kb, tmp_path / "out", "cold milk")[0].text


def published_hits(kb, folder, query):
    kb.export(folder=folder, build=False)
    return kbkit.PublishedIndex.open(folder / "docs").search(query)
