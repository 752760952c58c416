"""Judgements, evaluation and tuning of a knowledge base."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from kbkit.feedback.agreement import Agreement, agreement
from kbkit.feedback.evaluate import evaluate
from kbkit.feedback.evaluation_report import Evaluation
from kbkit.feedback.judgements import Judgements
from kbkit.feedback.judging import JudgingRound
from kbkit.feedback.judging_pool import JudgingPool
from kbkit.feedback.loading import Queries, load_queries
from kbkit.feedback.pooling import pool
from kbkit.feedback.rating import judgements_of
from kbkit.feedback.tune import tune
from kbkit.feedback.tune_report import TuneReport
from kbkit.knowledge_base.handle import Handle
from kbkit.knowledge_base.ingestion import Ingestion
from kbkit.knowledge_base.ratings import Ratings
from kbkit.models import Mode
from kbkit.progress import OnProgress
from kbkit.recipes import Question, RetrievalSpec
from kbkit.validation import check_text, explained


class HasFeedback(Protocol):
    """A knowledge base, as one learns from others."""

    @property
    def feedback(self) -> Feedback:
        """Measures, judging and tuning."""


@explained
class Feedback:
    """Measures how well a knowledge base answers, and tunes its weights."""

    def __init__(self, handle: Handle, ratings: Ratings, ingestion: Ingestion) -> None:
        self._handle = handle
        self._ratings = ratings
        self._ingestion = ingestion

    def judgements(self) -> Judgements:
        """Return graded judgements made from ratings that name a query.

        See `Judgements.from_ratings` for how ratings become grades. Chunks that are gone are left
        out, and come back with them.
        """
        return judgements_of(self._handle.stores.database, self._handle.id)

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
    ) -> Evaluation:
        """Measure search with queries of known answers.

        Golden questions are measured by page, judgements by chunk. What nobody judged counts as
        not relevant; ratings have no weight where judgements measure, since those come from them.

        Args:
            questions: Golden questions or judgements; by default those of `judgements`.
            mode: ``hybrid``, ``dense`` or ``lexical``.
            retrieval: Ranking settings, in place of the recipe's ``retrieval`` part.
            against: Baseline: another mode, other settings, or an evaluation of the same queries.
            k: Places that Recall@k reads, 1 to 100.
            wait: Embed with models first, as `kb.improve()` does; without, a note says how much is
                left.
            on_progress: Called after each query; by default notebooks show a bar.

        Raises:
            ConfigError: There is nothing to measure by, or an argument is wrong.
            EmbedderError: The embedder failed.
        """
        asked = self.judgements() if questions is None else questions
        if wait:
            self._ingestion.improving.improve(on_progress=on_progress)
        return evaluate(
            self._handle,
            asked,
            mode=mode,
            retrieval=retrieval,
            against=against,
            k=k,
            on_progress=on_progress,
        )

    def tune(
        self,
        questions: Sequence[Question] | Judgements | None = None,
        *,
        others: Mapping[HasFeedback, Sequence[Question] | Judgements | None] | None = None,
        keep: bool = False,
        seed: int = 0,
        wait: bool = False,
        on_progress: OnProgress | None = None,
    ) -> TuneReport:
        """Learn the weights of hybrid search from queries whose answers are known.

        All weights are learned, those of ratings and of what was learned from them where there are
        any; what else the settings say stays. They are proposed only if they win clearly on queries
        that had no part in learning.

        Args:
            questions: Golden questions or judgements; by default those of `judgements`.
            others: Further knowledge bases to learn from, with questions or judgements (``None``
                for their ratings). Each is held out in turn, whole.
            keep: Write the proposed settings to the knowledge base, if they win. The next build of
                a recipe undoes that, unless `TuneReport.to_yaml` is put there.
            seed: Another one divides the queries in other ways.
            wait: Embed with models first, as `kb.improve()` does; without, a note says how much is
                left.
            on_progress: Called during the work; by default notebooks show a bar.

        Raises:
            ConfigError: There are fewer than 10 queries, or one is wrong.
            EmbedderError: The embedder failed.
        """
        asked = self.judgements() if questions is None else questions
        more = [
            (kb.feedback._handle, kb.feedback.judgements() if known is None else known)
            for kb, known in (others or {}).items()
        ]
        if wait:
            for feedback in (self, *(kb.feedback for kb in others or {})):
                feedback._ingestion.improving.improve(on_progress=on_progress)
        report = tune(self._handle, asked, others=more, seed=seed, on_progress=on_progress)
        if not (keep and report.wins):
            return report
        spec = self._handle.spec.model_copy(update={"retrieval": report.settings})
        self._ingestion.configure(spec)
        return replace(report, kept=True)

    def pool(
        self, query: str, *, limit: int = 10, unshown: int = 5, seed: int = 0, rater: str = ""
    ) -> JudgingPool:
        """Return candidates for judging a query: hits of every mode, and some that none shows.

        They come in an order that does not tell how they were found, the same each time for the
        same rater, so that ratings do not only confirm what search shows. Ratings that there are
        do not move them.

        Args:
            query: The query.
            limit: Hits of each mode (``hybrid``, ``dense``, ``lexical``), 1 to 100.
            unshown: Candidates drawn at random from further down, 0 to 100.
            seed: Seed of order and sample.
            rater: Whose ratings are marked; by default ``KBKIT_RATER`` or the login name.

        Raises:
            ConfigError: The query is empty, or a number is out of range.
            EmbedderError: The embedder failed.
        """
        rater = rater or self._handle.resources.settings.rater
        given = iter(self._ratings)
        return pool(
            self._handle, query, limit=limit, unshown=unshown, seed=seed, ratings=given, rater=rater
        )

    def judging(
        self, queries: Queries, *, limit: int = 10, unshown: int = 5, seed: int = 0, rater: str = ""
    ) -> JudgingRound:
        """Start or continue a judging round over the pools of some queries.

        What `kbkit.panels.JudgePanel` shows. What was said before counts, so it goes on where it
        was left.

        Args:
            queries: Texts, golden questions, judgements, a recipe, or the path of a file (a recipe,
                a TSV file of questions, or one query a line).
            limit: See `pool`, also for the following arguments.
            unshown: Candidates drawn from further down.
            seed: Seed of order and sample.
            rater: Name of the judge; by default ``KBKIT_RATER`` or the login name.

        Raises:
            ConfigError: There are no queries, or a number is out of range.
            RecipeError: A file cannot be read or has a wrong line.
        """
        rater = check_text("rater", rater) or self._handle.resources.settings.rater
        return JudgingRound(
            self,
            self._ratings,
            load_queries(queries),
            limit=limit,
            unshown=unshown,
            seed=seed,
            rater=rater,
        )

    def agreement(self) -> Agreement:
        """Measure agreement of people who rated the same chunks for the same queries.

        Krippendorff's alpha for the order of the stars, of all raters and of each two, and the
        passages that they differ on most.
        """
        return agreement(self._ratings)
