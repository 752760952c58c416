"""Figures of evaluation, against examples worked out by hand."""

import json
import math

import pytest
from typer.testing import CliRunner

import kbkit
from kbkit import cli
from kbkit.errors import ConfigError
from kbkit.feedback.evaluate import to_ranking
from kbkit.feedback.evaluation_report import Evaluation
from kbkit.feedback.evaluation_set import EvaluationQuery
from kbkit.feedback.judgements import Judgements
from kbkit.feedback.statistics import measure
from kbkit.recipes import Question, RetrievalSpec

SITE = "http://x.org/docs/"
QUESTIONS = [
    Question(question="how long does black tea steep", relevant=("tea.html", "milk.html")),
    Question(question="when is coffee ground", relevant=("coffee.html",)),
    Question(question="how long does bread rise", relevant=("bread.html",)),
]


def scored(pages, *relevant):
    """Figures of a ranking of pages, the first relevant one worth 2."""
    task = EvaluationQuery("How?", dict.fromkeys(relevant, 1) | {relevant[0]: 2})
    (found,) = measure([to_ranking(task, [SITE + page for page in pages][:10], "page")], 10)
    return found


def log(rank):
    return math.log2(rank + 1)


@pytest.mark.parametrize(
    ("pages", "relevant", "ndcg", "recall", "reciprocal"),
    [
        (["a", "b"], ["a"], 1, 1, 1),
        (["b", "a"], ["a"], 1 / log(2), 1, 1 / 2),
        (["b", "c"], ["a"], 0, 0, 0),
        ([], ["a"], 0, 0, 0),
        # the best page has gain 2, the others 1
        (["a", "b", "c"], ["a", "b", "c"], 1, 1, 1),
        (["b", "a"], ["a", "b"], (1 + 2 / log(2)) / (2 + 1 / log(2)), 1, 1),
        (
            ["x", "b", "y", "a"],
            ["a", "b", "c"],
            (1 / log(2) + 2 / log(4)) / (2 + 1 / log(2) + 1 / log(3)),
            2 / 3,
            1 / 2,
        ),
    ],
)
def test_figures_worked_out_by_hand(pages, relevant, ndcg, recall, reciprocal):
    found = scored(pages, *relevant)
    assert found.ndcg == pytest.approx(ndcg)
    assert found.recall == pytest.approx(recall)
    assert found.reciprocal_rank == pytest.approx(reciprocal)
    assert found.hit_at_1 == (pages[:1] in [[page] for page in relevant])


def test_the_tenth_place_counts():
    assert scored([*(f"other{n}" for n in range(9)), "a"], "a").reciprocal_rank == pytest.approx(
        1 / 10
    )


def test_more_relevant_pages_than_ten_can_still_be_answered_perfectly():
    pages = [f"p{n}" for n in range(12)]
    found = scored(pages, *pages)
    assert found.ndcg == pytest.approx(1)
    assert found.recall == pytest.approx(10 / 12)


@pytest.mark.parametrize(
    ("uri", "suffix", "same"),
    [
        ("http://x/a/b.html", "a/b.html", True),
        ("http://x/a/b.html", "/a/b.html", True),
        ("http://x/a/b.html", "b.html", True),
        ("http://x/a/b.html", "http://x/a/b.html", True),
        ("http://x/a/b.html#part", "a/b.html", True),
        ("http://x/a/b.html", "a/b.html#part", True),
        ("http://x/ca/b.html", "a/b.html", False),
        ("http://x/a/b.htm", "a/b.html", False),
        ("http://x/a/b.html/c", "a/b.html", False),
        ("http://x/a/", "a/", True),
        ("http://x/ba/", "a/", False),
        ("python:pandas.DataFrame", "python:pandas.DataFrame", True),
        ("python:pandas.DataFrame", "pandas.DataFrame", True),
        ("python:pandas.DataFrame", "DataFrame", False),
        ("python:pandas.DataFrame.agg", "pandas.DataFrame", False),
        ("doc:notes/tea.md", "tea.md", True),
        ("a/api.yaml#/paths/~1tea/get", "api.yaml#/paths/~1tea/get", True),
        ("a/api.yaml#/paths/~1tea/get", "api.yaml#/paths/~1tea/post", False),
        ("a/api.yaml#/paths/~1tea/get", "api.yaml", True),
    ],
)
def test_a_page_is_named_by_the_end_of_its_uri(uri, suffix, same):
    assert to_ranking(EvaluationQuery("q", {suffix: 2}), [uri], "page").found == (
        (0,) if same else (None,)
    )


def test_a_relevant_page_counts_once_though_two_pages_end_like_it():
    ranking = to_ranking(
        EvaluationQuery("q", {"b.html": 2}), ["http://x/1/b.html", "http://x/2/b.html"], "page"
    )
    assert ranking.found == (0, None)
    assert measure([ranking], 10)[0].ndcg == 1


def test_questions_are_measured_by_page(shared):
    result = shared.feedback.evaluate(QUESTIONS)
    assert (result.unit, result.hit_at_1, result.mrr) == ("page", 1, 1)
    assert result.results[0].found[0] == "http://x.org/tea.html"
    assert len(set(result.results[0].found)) == len(result.results[0].found)
    assert result.results[0].relevant == ("tea.html", "milk.html")
    assert 0.9 < result.ndcg <= 1


def test_a_relevant_page_that_is_named_twice_counts_once(shared):
    twice = Question(question="bread", relevant=("bread.html", "bread.html", "tea.html"))
    (answer,) = shared.feedback.evaluate([twice]).results
    assert answer.relevant == ("bread.html", "tea.html")


def test_judgements_are_measured_by_chunk_with_their_grades(shared):
    order = [hit.chunk.id for hit in shared.search("black tea", limit=10)]
    grades = {order[0]: 1, order[1]: 3, order[2]: 0}
    (answer,) = shared.feedback.evaluate(Judgements.of({"black tea": grades})).results
    assert answer.found == tuple(order)
    assert answer.ndcg == pytest.approx((1 + 3 / log(2)) / (3 + 1 / log(2)))
    assert (answer.recall, answer.reciprocal_rank) == (1, 1)
    assert answer.judged == pytest.approx(3 / len(order))


def test_recall_reads_k_places(shared):
    order = [hit.chunk.id for hit in shared.search("black tea", limit=10)]
    judged = Judgements.of({"black tea": {order[0]: 2, order[2]: 1}})
    assert shared.feedback.evaluate(judged, k=2).recall == 1 / 2
    assert shared.feedback.evaluate(judged, k=3).recall == 1
    assert "recall@3" in shared.feedback.evaluate(judged, k=3).to_frame()


def test_ratings_measure_by_default_and_have_no_weight_then(kb):
    hits = kb.search("black tea", limit=10)
    before = [hit.chunk.id for hit in hits]
    # whatever the ratings move, they may not prove themselves right
    for rater in "abcdef":
        kb.rate(hits[0].chunk.id, 1, query="black tea", rater=rater)
        kb.rate(hits[1].chunk.id, 5, query="black tea", rater=rater)
    settings = RetrievalSpec(rating_weight=1.0)
    assert [hit.chunk.id for hit in kb.search("black tea", retrieval=settings)] != before
    assert kb.feedback.evaluate(retrieval=settings).results[0].found == tuple(before)


def test_queries_that_nothing_judged_answers_are_left_out(kb, chunk):
    judged = Judgements.of(
        {"bread": {chunk("Bread"): 3}, "wine": {chunk("Bread"): 0}, "gone": {"no-such-chunk": 3}}
    )
    result = kb.feedback.evaluate(judged)
    assert [one.query for one in result.results] == ["bread"]
    assert result.left_out == ("wine", "gone")


def test_two_modes_are_compared_query_by_query(shared):
    result = shared.feedback.evaluate(QUESTIONS, mode="lexical", against="dense")
    assert (result.label, result.against.label) == ("lexical", "dense")
    found = result.differences()["ndcg@10"]
    assert found.mean == pytest.approx(result.ndcg - result.against.ndcg)
    row = result.summary().loc["ndcg@10"]
    assert row["difference"] == found.mean
    assert row["against"] == result.against.ndcg
    assert list(result.to_frame()["against_ndcg@10"]) == [a.ndcg for a in result.against.results]


def test_settings_and_other_evaluations_can_be_compared_with(shared, tmp_path):
    settings = RetrievalSpec(dense_weight=1.0)
    assert (
        shared.feedback.evaluate(QUESTIONS, against=settings).against.label
        == "hybrid, other settings"
    )
    with kbkit.open(tmp_path / "other") as workspace:
        empty = workspace.create("empty").feedback.evaluate(QUESTIONS)
    result = shared.feedback.evaluate(QUESTIONS, against=empty)
    assert (empty.ndcg, result.against.ndcg) == (0, 0)
    assert result.differences()["ndcg@10"].mean == result.ndcg
    with pytest.raises(ConfigError, match="other queries"):
        shared.feedback.evaluate(QUESTIONS[:2], against=empty)


def test_a_report_has_no_nan_however_small(shared):
    for count in (1, 2, 3):
        result = shared.feedback.evaluate(QUESTIONS[:count], against="hybrid")
        assert not result.summary().isna().any(axis=None)
        assert result.differences()["ndcg@10"].p_value == 1
        values = json.loads(json.dumps(result.to_dict(), allow_nan=False))
        assert values["queries"] == len(values["per_query"]) == count
        assert values["intervals"]["ndcg@10"][0] <= values["ndcg@10"]
        assert values["against"]["ndcg@10"]["p_value"] == 1
        assert "ndcg@10" in result._repr_html_()


def test_an_evaluation_comes_back_from_json(shared):
    questions = [*QUESTIONS, Question(question="no page", relevant=("nowhere.html",))]
    for against in (None, "lexical"):
        result = shared.feedback.evaluate(questions, against=against, k=7)
        values = json.loads(json.dumps(result.to_dict()))
        again = Evaluation.from_dict(values)
        assert again.results == result.results
        assert again.missing == result.missing
        assert again.to_dict() == values
        assert (again.against is None) is (against is None)
    assert again.against.results == result.against.results
    assert "hybrid by page" in repr(again)


def test_no_answers_have_figures_of_0():
    result = Evaluation(())
    assert (result.ndcg, result.recall, result.mrr, result.hit_at_1) == (0, 0, 0, 0)
    assert result.to_frame().empty
    assert result.to_dict()["intervals"]["ndcg@10"] == [0, 1]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"questions": []}, "no questions"),
        ({"questions": "how"}, "give a list"),
        ({"questions": ["how"]}, "'how' is not a `Question`"),
        ({"questions": 7}, "give a list"),
        ({}, "there are no judgements; rate"),
        ({"questions": Judgements.of({"q": {"gone": 3}})}, "no judged chunk exists any more"),
        ({"questions": QUESTIONS, "mode": "fuzzy"}, "choose one of hybrid, dense, lexical"),
        ({"questions": QUESTIONS, "against": "fuzzy"}, "choose one of hybrid, dense, lexical"),
        ({"questions": QUESTIONS, "against": 3}, "choose one of hybrid, dense, lexical"),
        ({"questions": QUESTIONS, "retrieval": {"dense_weight": 1}}, "give a `kbkit.Retr"),
        ({"questions": QUESTIONS, "k": 0}, "k=0: give a whole number from 1 to 100"),
        ({"questions": QUESTIONS, "k": 2.5}, "k=2.5"),
        ({"questions": [Question(question=" ", relevant=("a",))]}, "the query is empty"),
    ],
)
def test_what_cannot_be_measured_is_one_clear_error(shared, arguments, says):
    with pytest.raises(ConfigError, match=says):
        shared.feedback.evaluate(**arguments)


def test_chunks_rated_badly_only_are_said_so(kb, chunk):
    kb.rate(chunk("Bread"), 2, query="wine")
    with pytest.raises(ConfigError, match="3 stars or better"):
        kb.feedback.evaluate()


def test_a_floor_that_is_met_exactly_is_met(tmp_path):
    with kbkit.open(tmp_path / "kb") as workspace:
        workspace.create("one").add("Tea", "Tea steeps.", source="http://x.org/tea.html")
    asked = tmp_path / "questions.tsv"
    asked.write_text("tea\ttea.html\n")
    command = ["--workspace", str(tmp_path / "kb"), "eval", "one", "--questions", str(asked)]
    assert CliRunner().invoke(cli.app, [*command, "--fail-under", "1"]).exit_code == 0
    asked.write_text("tea\ttea.html,milk.html\n")
    assert CliRunner().invoke(cli.app, [*command, "--fail-under", "1"]).exit_code == 4
