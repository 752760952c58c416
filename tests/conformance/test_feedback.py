"""Judgements, evaluation and tuning of local and served knowledge bases."""

from __future__ import annotations

import asyncio

import pytest

from kbkit import errors
from kbkit.client import AsyncWorkspace
from kbkit.feedback.evaluation_report import Evaluation
from kbkit.feedback.judgements import Judgements
from kbkit.feedback.tune_report import TuneReport
from kbkit.models import from_dict
from kbkit.recipes import Question, RetrievalSpec

NAMES = "tea soup bread rice cheese honey salt wine beans figs plums eggs"
FOODS = NAMES.split()


@pytest.fixture(scope="module")
def kb(workspace):
    kb = workspace.create("kitchen")
    for food in FOODS:
        text = f"# {food.title()}\n\nHow to keep {food} for a week."
        kb.add(food.title(), text, source=f"https://example.org/{food}")
    kb.improve()  # a server makes summaries later, perhaps between two searches
    for food in ("tea", "soup"):
        chunk = kb.search(f"keep {food}", limit=1)[0].chunk
        for score, rater in ((5, "ann"), (3, "bob")):
            kb.rate(chunk.id, score, query=f"how long does {food} keep", rater=rater)
    return kb


@pytest.fixture(scope="module")
def questions():
    return [Question(question=f"keep {food}", relevant=(f"/{food}",)) for food in FOODS]


def test_ratings_make_judgements_and_agreement(kb):
    judged = kb.feedback.judgements()
    assert isinstance(judged, Judgements)
    assert {one.query: (one.grade, one.raters) for one in judged} == {
        "how long does tea keep": (2, 2),
        "how long does soup keep": (2, 2),
    }
    agreed = kb.feedback.agreement()
    assert agreed.raters == ("ann", "bob")
    assert [passage.spread for passage in agreed.passages] == [2, 2]


def test_search_is_evaluated_and_compared(kb, questions):
    by_ratings = kb.feedback.evaluate()
    assert isinstance(by_ratings, Evaluation)
    assert (by_ratings.unit, len(by_ratings.results)) == ("chunk", 2)
    assert kb.feedback.evaluate(kb.feedback.judgements()).means() == by_ratings.means()
    found = kb.feedback.evaluate(questions, mode="lexical", against="hybrid", k=3)
    assert (found.unit, found.label, found.against.label) == ("page", "lexical", "hybrid")
    assert 0.5 < found.recall <= 1
    assert len(found.to_frame()) == len(FOODS)
    assert list(found.summary().columns)[-1] == "p_value"
    same = kb.feedback.evaluate(questions, k=3, against=found.against)
    assert same.differences()["ndcg@10"].mean == 0
    other = kb.feedback.evaluate(questions, retrieval=RetrievalSpec(title_weight=0), k=3)
    assert other.label == "hybrid, other settings"
    with pytest.raises(errors.ConfigError, match="another k"):
        kb.feedback.evaluate(questions, k=4, against=found)
    with pytest.raises(errors.ConfigError, match="there are no questions"):
        kb.feedback.evaluate([])
    with pytest.raises(errors.ConfigError, match="k="):
        kb.feedback.evaluate(questions, k=101)


@pytest.mark.slow
def test_many_queries_are_evaluated_in_several_requests(url, kb):
    many = [
        Question(question=f"keep {food} {n}", relevant=(f"/{food}",))
        for n in range(100)
        for food in FOODS
    ]
    reports = []
    found = kb.feedback.evaluate(many, mode="lexical", on_progress=reports.append)
    assert len(found.results) == len(many) == 1_200
    assert (reports[-1].done, reports[-1].total) == (1_200, 1_200)
    few = kb.feedback.evaluate(many[:101], mode="lexical")
    assert few.results == found.results[:101]


def test_tuned_weights_are_kept_only_if_they_win(kb, questions):
    steps = []
    report = kb.feedback.tune(questions, keep=True, on_progress=steps.append)
    assert isinstance(report, TuneReport)
    assert (report.queries, report.kept) == (len(FOODS), report.wins)
    assert len(report.folds) == len(report.to_frame()) == 25
    assert report.settings.to_yaml() == report.to_yaml()
    assert kb.spec.retrieval == report.settings
    assert {one.stage for one in steps} & {"candidates", "tune"}
    with pytest.raises(errors.ConfigError, match="tuning needs 10 queries"):
        kb.feedback.tune(questions[:3])
    assert from_dict(TuneReport, report.to_dict()) == report


def test_pool_is_judged_and_judgements_stay(kb):
    pool = kb.feedback.pool("keep honey", limit=3, unshown=1, rater="ann")
    assert 3 <= len(pool) <= 10
    assert pool == kb.feedback.pool("keep honey", limit=3, unshown=1, rater="ann")
    assert "text" in pool.to_frame()
    with pytest.raises(errors.ConfigError, match="query"):
        kb.feedback.pool("  ")
    judging = kb.feedback.judging(["keep honey", "keep figs"], limit=3, unshown=0, rater="cid")
    assert judging.interim_score() is None
    best = judging.pool(0)[0].hit.chunk.id
    judging.judge(0, best, 5)
    assert judging.scores(0) == {best: 5}
    score = judging.interim_score()
    assert (score.queries, score.judged > 0) == (1, True)
    again = kb.feedback.judging(["keep honey"], rater="cid")
    assert again.scores(0) == {best: 5}
    assert judging.unjudge(0, best)
    assert "keep honey" not in kb.feedback.judgements().queries.values()
    assert kb.feedback.judging(["keep honey"]).rater


def test_feedback_can_be_awaited(url, kb, questions):
    async def main() -> None:
        async with AsyncWorkspace(url) as later:
            feedback = later["kitchen"].feedback
            assert await feedback.judgements() == kb.feedback.judgements()
            found = await feedback.evaluate(questions)
            assert found.results == kb.feedback.evaluate(questions).results
            assert (await feedback.agreement()).raters == ("ann", "bob")
            assert (await feedback.pool("keep figs", rater="x")).query == "keep figs"

    asyncio.run(main())
