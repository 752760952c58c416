"""What is learned from ratings, in a folder and over a server: judgements stay where the KB is."""

from __future__ import annotations

import asyncio

import pytest

from kbkit import errors
from kbkit.client import AsyncWorkspace
from kbkit.feedback.evaluation_report import Evaluation
from kbkit.feedback.judgements import Judgements
from kbkit.feedback.tune_report import TuneReport
from kbkit.recipes import Question, RetrievalSpec

THINGS = (
    "tea",
    "soup",
    "bread",
    "rice",
    "cheese",
    "honey",
    "salt",
    "wine",
    "beans",
    "figs",
    "plums",
    "eggs",
)


@pytest.fixture(scope="module")
def kb(workspace):
    made = workspace.create("kitchen")
    for thing in THINGS:
        made.add(
            thing.title(),
            f"# {thing.title()}\n\nHow to keep {thing} for a week.",
            source=f"https://example.org/{thing}",
        )
    made.improve()  # a server makes summaries a moment later, which would come between two searches
    for thing in ("tea", "soup"):
        chunk = made.search(f"keep {thing}", limit=1)[0].chunk
        made.rate(chunk.id, 5, query=f"how long does {thing} keep", rater="ann")
        made.rate(chunk.id, 3, query=f"how long does {thing} keep", rater="bob")
    return made


@pytest.fixture(scope="module")
def questions():
    return [Question(question=f"keep {thing}", relevant=(f"/{thing}",)) for thing in THINGS]


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


def test_search_is_measured_and_compared(kb, questions):
    by_ratings = kb.feedback.evaluate()
    assert isinstance(by_ratings, Evaluation)
    assert (by_ratings.unit, len(by_ratings.results)) == ("chunk", 2)
    assert kb.feedback.evaluate(kb.feedback.judgements()).means() == by_ratings.means()
    found = kb.feedback.evaluate(questions, mode="lexical", against="hybrid", k=3)
    assert (found.unit, found.label, found.against.label) == ("page", "lexical", "hybrid")
    assert 0.5 < found.recall <= 1
    assert len(found.to_frame()) == len(THINGS)
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
def test_more_queries_are_measured_than_are_sent_at_once_elsewhere(workspace, kb):
    if not hasattr(workspace, "url"):
        pytest.skip("a folder takes as many as there are")
    many = [
        Question(question=f"keep {thing} {n}", relevant=(f"/{thing}",))
        for n in range(100)
        for thing in THINGS
    ]
    told = []
    found = kb.feedback.evaluate(many, mode="lexical", on_progress=told.append)
    assert len(found.results) == len(many) == 1_200
    assert (told[-1].done, told[-1].total) == (1_200, 1_200)
    few = kb.feedback.evaluate(many[:101], mode="lexical")
    assert few.results == found.results[:101]


def test_weights_are_learned_and_kept_only_if_they_win(kb, questions):
    told = []
    report = kb.feedback.tune(questions, keep=True, on_progress=told.append)
    assert isinstance(report, TuneReport)
    assert (report.queries, report.kept) == (len(THINGS), report.wins)
    assert len(report.folds) == len(report.to_frame()) == 25
    assert report.settings.to_yaml() == report.to_yaml()
    assert kb.spec.retrieval == report.settings
    assert {one.stage for one in told} & {"candidates", "tune"}
    with pytest.raises(errors.ConfigError, match="tuning needs 10 queries"):
        kb.feedback.tune(questions[:3])
    assert TuneReport.from_dict(report.to_dict()) == report


def test_a_pool_is_judged_and_judgements_stay(kb):
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


def test_what_is_awaited_does_the_same(workspace, kb, questions):
    if not hasattr(workspace, "url"):
        pytest.skip("a folder is not awaited")

    async def main() -> None:
        async with AsyncWorkspace(workspace.url) as later:
            feedback = later["kitchen"].feedback
            assert await feedback.judgements() == kb.feedback.judgements()
            found = await feedback.evaluate(questions)
            assert found.results == kb.feedback.evaluate(questions).results
            assert (await feedback.agreement()).raters == ("ann", "bob")
            assert (await feedback.pool("keep figs", rater="x")).query == "keep figs"

    asyncio.run(main())
