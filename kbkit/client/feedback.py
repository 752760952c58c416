"""Feedback of a knowledge base on a server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kbkit.client.calls import AnyAsyncTransport, AnyTransport, Awaited, Blocking, Steps, steps
from kbkit.client.chunks import RemoteRatings
from kbkit.client.collections import Named
from kbkit.client.declared import BASE, call, first_page, json_body, list_all
from kbkit.client.work import OnProgress, job_request, result_of, run_job
from kbkit.errors import ConfigError
from kbkit.models import Mode, Rating
from kbkit.recipes import Question, RetrievalSpec
from kbkit.runtime.validation import check_text, explained

if TYPE_CHECKING:
    from kbkit.feedback.evaluation_report import Evaluation
    from kbkit.feedback.judgements import Judgements, Queries
    from kbkit.feedback.judging import JudgingPool, JudgingRound
    from kbkit.feedback.statistics import Agreement
    from kbkit.feedback.tune_report import TuneReport


def _pool(answer: Any) -> JudgingPool:
    from kbkit.feedback.judging import JudgingPool

    return JudgingPool.from_dict(answer)


class FeedbackCalls:
    """Requests for feedback; see `kbkit.knowledge_base.feedback.Feedback`."""

    _base: Named

    @steps
    def judgements(self) -> Steps[Judgements]:
        """Return graded judgements made from ratings that name a query."""
        from kbkit.feedback.judgements import Judgement, Judgements

        first = first_page(Judgement, f"{BASE}/judgements", self)
        return Judgements(tuple((yield from list_all(first))))

    @steps
    def evaluate(
        self,
        questions: Sequence[Question] | Judgements | None = None,
        *,
        mode: str | Mode = Mode.HYBRID,
        retrieval: RetrievalSpec | None = None,
        against: str | Mode | RetrievalSpec | Evaluation | None = None,
        k: int = 10,
        wait: bool = False,
        on_progress: OnProgress | None = None,
    ) -> Steps[Evaluation]:
        """Measure search on the server with queries whose answers are known."""
        from kbkit.feedback.evaluation_report import Evaluation, compare

        other = against if isinstance(against, Evaluation) else None
        body = {
            **_ground_truth(questions),
            **json_body(mode=mode, retrieval=_settings(retrieval), k=k, improve=wait),
            **({} if other is not None else json_body(against=_settings(against))),
        }
        request = job_request(self._base.name, "evaluate", body, on_progress)
        read = result_of(Evaluation, "evaluation")
        evaluation = yield from run_job(read, request, on_progress=on_progress)
        return evaluation if other is None else compare(evaluation, other)

    @steps
    def tune(
        self,
        questions: Sequence[Question] | Judgements | None = None,
        *,
        others: Mapping[Any, Sequence[Question] | Judgements | None] | None = None,
        keep: bool = False,
        seed: int = 0,
        wait: bool = False,
        on_progress: OnProgress | None = None,
    ) -> Steps[TuneReport]:
        """Tune the weights of hybrid search on the server."""
        from kbkit.feedback.tune_report import TuneReport

        more = [
            {"kb": kb.name, **_ground_truth(judgements)}
            for kb, judgements in (others or {}).items()
        ]
        body = {
            **_ground_truth(questions),
            **json_body(others=more, keep=keep, seed=seed, improve=wait),
        }
        request = job_request(self._base.name, "tune", body, on_progress)
        read = result_of(TuneReport, "tuning")
        return (yield from run_job(read, request, on_progress=on_progress))

    @call(f"POST {BASE}/pool", read=_pool)
    def pool(
        self, query: str, *, limit: int = 10, unshown: int = 5, seed: int = 0, rater: str = ""
    ) -> JudgingPool:
        """Return candidates for judging a query: hits of every mode, and some that none found."""

    @steps
    def agreement(self) -> Steps[Agreement]:
        """Measure agreement of people who rated the same chunks for the same queries."""
        from kbkit.feedback.statistics import agreement

        return agreement((yield from list_all(first_page(Rating, f"{BASE}/ratings", self))))

    @call("GET /api/caller", key="rater")
    def _rater(self) -> str: ...


@explained
class RemoteFeedback(FeedbackCalls, Blocking):
    """Feedback of a knowledge base on a server."""

    def __init__(self, transport: AnyTransport, base: Named, ratings: RemoteRatings) -> None:
        super().__init__(transport)
        self._base = base
        self._ratings = ratings

    def judging(
        self, queries: Queries, *, limit: int = 10, unshown: int = 5, seed: int = 0, rater: str = ""
    ) -> JudgingRound:
        """Start or continue a judging round over the pools of some queries."""
        from kbkit.feedback.judgements import load_queries
        from kbkit.feedback.judging import JudgingRound

        return JudgingRound(
            self,
            self._ratings,
            load_queries(queries),
            limit=limit,
            unshown=unshown,
            seed=seed,
            rater=check_text("rater", rater) or self._rater(),
        )


class AsyncFeedback(FeedbackCalls, Awaited):
    """Feedback of a knowledge base on a server, awaited."""

    def __init__(self, transport: AnyAsyncTransport, base: Named) -> None:
        super().__init__(transport)
        self._base = base

    def judging(self, queries: Queries, **_: Any) -> JudgingRound:
        """Raise `ConfigError`: a judging round needs the blocking client."""
        raise ConfigError(
            "judging: a round needs the blocking client; use kbkit.connect(url), or await "
            "`feedback.pool(query)` and `kb.rate(chunk, score, query=query)`"
        )


def _ground_truth(questions: Any) -> dict[str, Any]:
    if questions is None:
        return {}
    if hasattr(questions, "grades"):
        if not questions.grades:
            raise ConfigError(
                "there are no judgements; rate some chunks of a search, or give golden questions"
            )
        return {"judgements": questions.grades}
    if isinstance(questions, str) or not isinstance(questions, Sequence):
        raise ConfigError(f"questions={questions!r}: give a list of `Question`s, or judgements")
    for question in questions:
        if not isinstance(question, Question):
            raise ConfigError(
                f"questions: {question!r} is not a `Question`; read them from a file with "
                "`kbkit.recipes.load_questions`"
            )
    if not questions:
        raise ConfigError("there are no questions; write some in the recipe or in a TSV file")
    return {"questions": [question.model_dump(mode="json") for question in questions]}


def _settings(given: Any) -> Any:
    return given.model_dump(mode="json") if isinstance(given, RetrievalSpec) else given
