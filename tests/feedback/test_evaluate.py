"""Evaluation, with figures computed by hand."""

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
from kbkit.models import from_dict
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
    (figures,) = measure([to_ranking(task, [SITE + page for page in pages][:10], "page")], 10)
    return figures


def log(rank):
    return math.log2(rank + 1)


BEST = 2 + 1 / log(2) + 1 / log(3)
"""Gain of one best page and two others in their ideal order."""


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
        (["x", "b", "y", "a"], ["a", "b", "c"], (1 / log(2) + 2 / log(4)) / BEST, 2 / 3, 1 / 2),
    ],
)
def test_figures_are_those_computed_by_hand(pages, relevant, ndcg, recall, reciprocal):
    figures = scored(pages, *relevant)
    assert figures.ndcg == pytest.approx(ndcg)
    assert figures.recall == pytest.approx(recall)
    assert figures.reciprocal_rank == pytest.approx(reciprocal)
    assert figures.hit_at_1 == (pages[:1] in [[page] for page in relevant])


def test_tenth_place_counts():
    figures = scored([*(f"other{n}" for n in range(9)), "a"], "a")
    assert figures.reciprocal_rank == pytest.approx(1 / 10)


def test_ndcg_can_be_1_with_more_than_ten_relevant_pages():
    pages = [f"p{n}" for n in range(12)]
    figures = scored(pages, *pages)
    assert figures.ndcg == pytest.approx(1)
    assert figures.recall == pytest.approx(10 / 12)


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
def test_page_is_named_by_the_end_of_its_uri(uri, suffix, same):
    ranking = to_ranking(EvaluationQuery("q", {suffix: 2}), [uri], "page")
    assert ranking.found == [suffix if same else None]


def test_relevant_page_counts_once_if_two_uris_end_with_it():
    task, uris = EvaluationQuery("q", {"b.html": 2}), ["http://x/1/b.html", "http://x/2/b.html"]
    ranking = to_ranking(task, uris, "page")
    assert ranking.found == ["b.html", None]
    assert measure([ranking], 10)[0].ndcg == 1


def test_questions_are_measured_by_page(shared):
    result = shared.feedback.evaluate(QUESTIONS)
    assert (result.unit, result.hit_at_1, result.mrr) == ("page", 1, 1)
    assert result.results[0].found[0] == "http://x.org/tea.html"
    assert len(set(result.results[0].found)) == len(result.results[0].found)
    assert result.results[0].relevant == ("tea.html", "milk.html")
    assert 0.9 < result.ndcg <= 1


def test_relevant_page_named_twice_counts_once(shared):
    question = Question(question="bread", relevant=("bread.html", "bread.html", "tea.html"))
    (answer,) = shared.feedback.evaluate([question]).results
    assert answer.relevant == ("bread.html", "tea.html")


def test_judgements_are_measured_by_chunk_and_grade(shared):
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


def test_evaluation_by_ratings_ignores_their_weight(kb):
    hits = kb.search("black tea", limit=10)
    before = [hit.chunk.id for hit in hits]
    # ratings must not confirm themselves
    for rater in "abcdef":
        kb.rate(hits[0].chunk.id, 1, query="black tea", rater=rater)
        kb.rate(hits[1].chunk.id, 5, query="black tea", rater=rater)
    settings = RetrievalSpec(rating_weight=1.0)
    assert [hit.chunk.id for hit in kb.search("black tea", retrieval=settings)] != before
    assert kb.feedback.evaluate(retrieval=settings).results[0].found == tuple(before)


def test_queries_without_relevant_chunks_are_left_out(kb, chunk):
    judged = Judgements.of(
        {"bread": {chunk("Bread"): 3}, "wine": {chunk("Bread"): 0}, "gone": {"no-such-chunk": 3}}
    )
    result = kb.feedback.evaluate(judged)
    assert [one.query for one in result.results] == ["bread"]
    assert result.left_out == ("wine", "gone")


def test_two_modes_are_compared_query_by_query(shared):
    result = shared.feedback.evaluate(QUESTIONS, mode="lexical", against="dense")
    assert (result.label, result.against.label) == ("lexical", "dense")
    difference = result.differences()["ndcg@10"]
    assert difference.mean == pytest.approx(result.ndcg - result.against.ndcg)
    row = result.summary().loc["ndcg@10"]
    assert row["difference"] == difference.mean
    assert row["against"] == result.against.ndcg
    assert list(result.to_frame()["against_ndcg@10"]) == [a.ndcg for a in result.against.results]


def test_evaluation_against_settings_and_another_evaluation(shared, tmp_path):
    result = shared.feedback.evaluate(QUESTIONS, against=RetrievalSpec(dense_weight=1.0))
    assert result.against.label == "hybrid, other settings"
    with kbkit.open(tmp_path / "other") as workspace:
        empty = workspace.create("empty").feedback.evaluate(QUESTIONS)
    result = shared.feedback.evaluate(QUESTIONS, against=empty)
    assert (empty.ndcg, result.against.ndcg) == (0, 0)
    assert result.differences()["ndcg@10"].mean == result.ndcg
    with pytest.raises(ConfigError, match="other queries"):
        shared.feedback.evaluate(QUESTIONS[:2], against=empty)


def test_report_of_few_queries_has_no_nan(shared):
    for count in (1, 2, 3):
        result = shared.feedback.evaluate(QUESTIONS[:count], against="hybrid")
        assert not result.summary().isna().any(axis=None)
        assert result.differences()["ndcg@10"].p_value == 1
        values = json.loads(json.dumps(result.to_dict(), allow_nan=False))
        assert values["queries"] == len(values["results"]) == count
        assert values["intervals"]["ndcg@10"][0] <= values["ndcg@10"]
        assert values["differences"]["ndcg@10"]["p_value"] == 1
        assert "ndcg@10" in result._repr_html_()


def test_evaluation_is_restored_from_json(shared):
    questions = [*QUESTIONS, Question(question="no page", relevant=("nowhere.html",))]
    for against in (None, "lexical"):
        result = shared.feedback.evaluate(questions, against=against, k=7)
        values = json.loads(json.dumps(result.to_dict()))
        again = from_dict(Evaluation, values)
        assert again.results == result.results
        assert again.missing == result.missing
        assert again.to_dict() == values
        assert (again.against is None) is (against is None)
    assert again.against.results == result.against.results
    assert "hybrid by page" in repr(again)


def test_evaluation_without_results_has_figures_of_0():
    result = Evaluation(())
    assert (result.ndcg, result.recall, result.mrr, result.hit_at_1) == (0, 0, 0, 0)
    assert result.to_frame().empty
    assert result.to_dict()["intervals"]["ndcg@10"] == [0, 1]


@pytest.mark.parametrize(
    ("arguments", "message"),
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
def test_invalid_arguments_are_one_clear_error(shared, arguments, message):
    with pytest.raises(ConfigError, match=message):
        shared.feedback.evaluate(**arguments)


def test_evaluation_by_bad_ratings_only_is_an_error(kb, chunk):
    kb.rate(chunk("Bread"), 2, query="wine")
    with pytest.raises(ConfigError, match="3 stars or better"):
        kb.feedback.evaluate()


def test_fail_under_passes_at_exactly_its_value(tmp_path):
    with kbkit.open(tmp_path / "kb") as workspace:
        workspace.create("one").add("Tea", "Tea steeps.", source="http://x.org/tea.html")
    questions = tmp_path / "questions.tsv"
    questions.write_text("tea\ttea.html\n")
    command = ["--workspace", str(tmp_path / "kb"), "eval", "one", "--questions", str(questions)]
    assert CliRunner().invoke(cli.app, [*command, "--fail-under", "1"]).exit_code == 0
    questions.write_text("tea\ttea.html,milk.html\n")
    assert CliRunner().invoke(cli.app, [*command, "--fail-under", "1"]).exit_code == 4
