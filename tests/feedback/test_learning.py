"""A question that a passage was rated well for helps who asks alike, and changes nothing else."""

import re
import subprocess
import sys
from dataclasses import replace

import pytest

import kbkit
from kbkit.knowledge_base import handle_of
from kbkit.recipes import LearningSpec, RetrievalSpec
from kbkit.retrieval.query import Query
from kbkit.stores.catalog import query_encoders
from kbkit.stores.snapshots.snapshots import Snapshots

ASKED = "what comes out of the oven at breakfast"
ALIKE = "what comes from an oven at breakfast time"
UNRELATED = "how hot is the water for coffee"
OFF = RetrievalSpec(learned_weight=0, rating_weight=0)
ON = RetrievalSpec(rating_weight=0)


def parts_of(kb, query, words, **options):
    return next(hit.parts for hit in kb.search(query, **options) if words in hit.chunk.text)


@pytest.fixture
def bread(chunk):
    return chunk("Bread rises")


@pytest.fixture
def tea(chunk):
    return chunk("Black tea steeps")


def test_who_asks_alike_finds_what_was_rated(kb, tea):
    assert kb.search(ALIKE)[0].chunk.id != tea
    kb.rate(tea, 5, query=ASKED)
    best = kb.search(ALIKE, retrieval=ON)[0]
    assert best.chunk.id == tea
    assert best.parts.learned > 0
    assert best.parts.total == pytest.approx(best.score)
    assert kb.search(ASKED, retrieval=ON)[0].parts.learned > best.parts.learned


def test_a_question_in_other_words_is_known_by_its_meaning(kb, tea):
    kb.rate(tea, 5, query="how do I fix my automobile")
    best = kb.search("repairing a car", retrieval=ON)[0]
    assert (best.chunk.id, best.parts.learned > 0) == (tea, True)
    assert not kb.search("repairing a car", mode="lexical")


def test_unrelated_queries_are_answered_as_before(kb, tea, bread):
    before = [(hit.chunk.id, hit.score) for hit in kb.search(UNRELATED, retrieval=ON)]
    kb.rate(tea, 5, query=ASKED)
    kb.rate(bread, 4, query="bread")
    assert [(hit.chunk.id, hit.score) for hit in kb.search(UNRELATED, retrieval=ON)] == before


def test_many_questions_of_one_rater_weigh_no_more_than_the_best(kb, tea):
    kb.rate(tea, 5, query=ASKED)
    once = parts_of(kb, ALIKE, "Black tea", retrieval=ON).learned
    for number in range(20):
        kb.rate(tea, 5, query=f"{UNRELATED} {number}")
        kb.rate(tea, 5, query=f"{ASKED} {number} {number + 100} {number + 200}")
    assert parts_of(kb, ALIKE, "Black tea", retrieval=ON).learned == pytest.approx(once)


@pytest.mark.parametrize("then", [1, 3])
def test_a_worse_rating_unlearns_it(kb, tea, then):
    kb.rate(tea, 5, query=ASKED)
    assert parts_of(kb, ALIKE, "Black tea").learned > 0
    kb.rate(tea, then, query=f"  {ASKED.upper()}")
    assert all(hit.parts.learned == 0 for hit in kb.search(ALIKE))


def test_what_people_disagree_on_is_not_learned(kb, tea):
    kb.rate(tea, 5, query=ASKED, rater="mallory")
    kb.rate(tea, 2, query=ASKED, rater="alice")
    assert all(hit.parts.learned == 0 for hit in kb.search(ASKED))


def test_a_rating_that_is_taken_back_leaves_nothing(kb, tea):
    rating = kb.rate(tea, 5, query=ASKED)
    database, kb_id = handle_of(kb).stores.database, kb.id
    with database.read() as transaction:
        assert query_encoders.count(transaction, kb_id) == 1
    kb.ratings.delete(rating.id)
    assert all(hit.parts.learned == 0 for hit in kb.search(ASKED))
    with database.read() as transaction:
        assert query_encoders.count(transaction, kb_id) == 0


def test_one_of_two_ratings_taken_back_leaves_the_other(kb, tea):
    first = kb.rate(tea, 5, query=ASKED, rater="a")
    kb.rate(tea, 5, query=ASKED, rater="b")
    whole = parts_of(kb, ALIKE, "Black tea").learned
    kb.ratings.delete(first.id)
    assert parts_of(kb, ALIKE, "Black tea", retrieval=ON).learned > 0
    assert whole > 0


def test_a_rating_without_query_or_of_a_document_teaches_nothing(kb, tea):
    kb.rate(tea, 5)
    kb.rate("http://x.org/tea.html", 5, query=ASKED)
    assert all(hit.parts.learned == 0 for hit in kb.search(ASKED))


def test_it_becomes_a_candidate_that_filters_still_shut_out(kb, tea):
    kb.rate(tea, 5, query="zyzzyva quuxly")
    few = RetrievalSpec(candidates=1, summary_weight=0, page_weight=0)
    assert tea in {hit.chunk.id for hit in kb.search("zyzzyva quuxly", retrieval=few)}
    found = kb.search("zyzzyva quuxly", filters={"source": "http://x.org/milk"}, retrieval=few)
    assert tea not in {hit.chunk.id for hit in found}


def test_a_weight_of_0_and_the_recipe_switch_it_off(kb, tea):
    before = [(hit.chunk.id, hit.score) for hit in kb.search(ALIKE, retrieval=OFF)]
    kb.rate(tea, 5, query=ASKED)
    assert [(hit.chunk.id, hit.score) for hit in kb.search(ALIKE, retrieval=OFF)] == before
    off = LearningSpec(questions=False)
    kb.configure(kb.spec.model_copy(update={"learning": off}))
    assert all(hit.parts.learned == 0 for hit in kb.search(ALIKE))
    kb.configure(kb.spec.model_copy(update={"learning": LearningSpec()}))
    assert parts_of(kb, ALIKE, "Black tea").learned > 0


def test_searches_while_there_is_no_snapshot_know_it(kb, tea, monkeypatch):
    kb.rate(tea, 5, query="how do I fix my automobile")
    expected = [(hit.chunk.id, hit.parts.learned) for hit in kb.search("repairing a car")]
    monkeypatch.setattr(Snapshots, "get", lambda self, row: None)
    monkeypatch.setattr("kbkit.retrieval.retriever._SMALL", 0)
    found = [(hit.chunk.id, hit.parts.learned) for hit in kb.search("repairing a car")]
    assert found[0][0] == tea
    assert found[0][1] > 0
    assert found == expected


def test_a_search_over_several_knows_it(kb, tea, tmp_path):
    kb.rate(tea, 5, query=ASKED)
    with kbkit.open(kb.path) as workspace:
        other = workspace.create("other")
        other.add("Ovens", "# Ovens\n\nWhat comes out of the oven is hot.\n")
        best = workspace.search(ASKED, kbs=["other", "kitchen"])[0]
        assert (best.chunk.id, best.parts.learned > 0) == (tea, True)


@pytest.mark.slow
def test_another_process_knows_it_at_once(kb, tea):
    kb.search(ALIKE)
    script = "kbkit.open(sys.argv[1])['kitchen'].rate(sys.argv[2], 5, query=sys.argv[3])"
    command = [sys.executable, "-c", f"import sys, kbkit; {script}", str(kb.path), tea, ASKED]
    subprocess.run(command, check=True)
    assert kb.search(ALIKE)[0].chunk.id == tea


def test_it_comes_back_with_its_chunk(kb, tea):
    kb.rate(tea, 5, query=ASKED)
    uri = "http://x.org/tea.html"
    content = kb.documents[uri].content
    kb.documents.delete(uri)
    assert all(hit.parts.learned == 0 for hit in kb.search(ASKED))
    kb.add("Tea", content, source=uri)
    assert parts_of(kb, ASKED, "Black tea").learned > 0


def test_judgements_are_not_measured_by_what_they_taught(kb, tea):
    kb.rate(tea, 5, query=ASKED)
    (row,) = kb.feedback.evaluate().to_frame().to_dict("records")
    untaught = kb.feedback.evaluate(retrieval=OFF).to_frame().to_dict("records")[0]
    assert row == untaught
    pooled = kb.feedback.pool(ASKED, limit=2, unshown=0)
    assert all(candidate.hit.parts.learned == 0 for candidate in pooled)


def test_what_was_learned_from_the_very_question_can_be_left_out(kb, tea):
    kb.rate(tea, 5, query=ASKED)
    retriever = handle_of(kb).retriever
    asked = Query.of(ASKED)
    assert retriever.pool(asked).columns["learned"].max() == 1
    assert retriever.pool(replace(asked, unlearned=True)).columns["learned"].max() == 0


@pytest.mark.parametrize("query", ["?", "a", "日本語の質問", "x" * 10_000, "the of and"])
def test_any_question_can_be_learned(kb, tea, query):
    kb.rate(tea, 5, query=query)
    assert isinstance(kb.search(query)[0].parts.learned, float)
    kb.search("oven " * 2_000)


def exported_text(folder):
    return "\n".join(
        path.read_bytes().decode("utf-8", "replace")
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    )


def test_no_question_is_exported(kb, tea, tmp_path):
    kb.rate(tea, 5, query="zyzzyva quuxly in the kitchen", note="frobnicated")
    kb.export(folder=tmp_path / "out", build=False)
    said = exported_text(tmp_path / "out")
    assert "Black tea" in said
    assert not re.search("zyzzyva|quuxl|frobnicat", said, re.IGNORECASE)


@pytest.mark.parametrize("publish", [False, True])
def test_a_recipe_may_publish_them_as_words_of_their_chunks(kb, tea, tmp_path, publish):
    kb.rate(tea, 5, query="zyzzyva oven quuxly")
    kb.rate(tea, 2, query="frobnicated")
    learning = LearningSpec(publish=publish)
    kb.configure(kb.spec.model_copy(update={"learning": learning}))
    found = published_hits(kb, tmp_path / "out", "zyzzyva quuxly")
    assert ["Black tea" in hit.text for hit in found[:1]] == [True] * publish
    assert published_hits(kb, tmp_path / "out", "frobnicated") == []
    assert "Milk is kept cold" in published_hits(kb, tmp_path / "out", "cold milk")[0].text


def published_hits(kb, folder, query):
    kb.export(folder=folder, build=False)
    return kbkit.PublishedIndex.open(folder / "docs").search(query)
