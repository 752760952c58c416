"""Judgements, evaluation and tuning of a knowledge base."""

from __future__ import annotations

import builtins
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING

from kbkit.errors import NotFoundError
from kbkit.feedback.evaluate import evaluate
from kbkit.feedback.evaluation_report import Evaluation
from kbkit.feedback.evaluation_set import pool
from kbkit.feedback.judgements import Judgements, Queries, load_queries
from kbkit.feedback.judging import JudgingPool, JudgingRound
from kbkit.feedback.statistics import Agreement, agreement
from kbkit.feedback.tune import tune
from kbkit.feedback.tune_report import TuneReport
from kbkit.frames import ratings_frame
from kbkit.knowledge_base.handle import Handle, Items
from kbkit.knowledge_base.ingestion import Ingestion
from kbkit.models import Mode, Rating, RatingTotal, Target
from kbkit.models.reports import MAX_QUERY_LENGTH, fold_query
from kbkit.recipes import Question, RetrievalSpec
from kbkit.runtime.progress import OnProgress
from kbkit.runtime.validation import check_integer, check_text, explain_calls, is_integer
from kbkit.stores.catalog import corpus, knowledge_bases, ratings

if TYPE_CHECKING:
    import pandas as pd

_LARGEST_ID = 2**63 - 1
"""Largest integer of SQLite."""


@explain_calls
class Ratings(Items):
    """The ratings of a knowledge base, oldest first.

    Iterate over them, count them with ``len``, or look one up: ``kb.ratings[id]``.
    """

    _noun = "ratings"
    _kind = Rating

    def __iter__(self) -> Iterator[Rating]:
        return iter(self._handle.look_up(ratings.list_ratings))

    def __len__(self) -> int:
        return self._handle.look_up(ratings.extent)[1]

    def __getitem__(self, rating_id: int) -> Rating:
        match = next((rating for rating in self if rating.id == rating_id), None)
        if match is None:
            raise NotFoundError(f"{self._handle.name}: has no rating with id {rating_id!r}")
        return match

    def __contains__(self, rating_id: object) -> bool:
        return any(rating.id == rating_id for rating in self)

    def list(self, *, after: int = 0, limit: int | None = None) -> list[Rating]:
        """List ratings, oldest first.

        Args:
            after: Only ratings after this id.
            limit: Maximum number of ratings; by default all.

        Raises:
            ConfigError: The limit is wrong.
        """
        if limit is not None:
            check_integer("limit", limit, 1)
        return list(islice((rating for rating in self if rating.id > after), limit))

    def add(
        self, target: str | Target, score: int, *, query: str = "", note: str = "", rater: str = ""
    ) -> Rating:
        """Rate a chunk or a document; see `KnowledgeBase.rate` for arguments and errors."""
        rater = self._handle.resources.settings.rater if rater == "" else rater
        resolved = self._handle.target(target)
        score = check_integer("score", score, 1, 5)
        query = check_text("query", query)[:MAX_QUERY_LENGTH]  # as a search cuts it
        rater, note = check_text("rater", rater), check_text("note", note)
        kb_id = self._handle.id
        with self._database.write() as transaction:
            knowledge_bases.get_by_id(transaction, kb_id)
            rating = ratings.add(
                transaction,
                kb_id,
                target=resolved,
                score=score,
                query=query,
                rater=rater,
                note=note,
            )
        self._handle.embed_questions()
        return rating

    def delete(self, rating_id: int) -> None:
        """Delete a mistaken rating; the one before it counts again.

        Args:
            rating_id: The ``id`` of the rating that `KnowledgeBase.rate` returned.

        Raises:
            NotFoundError: There is no such rating.
        """
        kb_id = self._handle.id
        with self._database.write() as transaction:
            row = knowledge_bases.get_by_id(transaction, kb_id)
            is_id = is_integer(rating_id, 1, _LARGEST_ID)
            query = ratings.remove(transaction, kb_id, int(rating_id)) if is_id else None
            if query is None:
                raise NotFoundError(f"{row.name}: has no rating with id {rating_id!r}")
            ratings.forget_question(transaction, kb_id, fold_query(query))
        self._handle.embed_questions()

    def of(self, target: str | Target) -> builtins.list[Rating]:
        """List the ratings of a chunk or document, oldest first, even if it is gone.

        Args:
            target: Its id, or the URI of a document.

        Raises:
            NotFoundError: There is and was no such chunk or document.
        """
        return self._handle.ratings_of([self._handle.target(target, rated=True).id])

    def total(self, target: str | Target) -> RatingTotal | None:
        """Return average and number of ratings of a chunk or document; ``None`` without any.

        Args:
            target: Its id, or the URI of a document.

        Raises:
            NotFoundError: There is and was no such chunk or document.
        """
        resolved = self._handle.target(target, rated=True)
        return self._handle.look_up(ratings.total, resolved.id)

    def to_frame(self) -> pd.DataFrame:
        """Return all ratings as a DataFrame, oldest first, indexed by id.

        ``average`` and ``raters`` summarize all ratings of the same chunk or document.
        """
        return ratings_frame(self)


@explain_calls
class Feedback:
    """Measures how well a knowledge base answers, and tunes its weights."""

    def __init__(self, handle: Handle, ratings: Ratings, ingestion: Ingestion) -> None:
        self._handle = handle
        self._ratings = ratings
        self._ingestion = ingestion

    def judgements(self) -> Judgements:
        """Return judgements from ratings with a query (see `Judgements.from_ratings`).

        Ratings of missing chunks are ignored until the chunks are restored.
        """
        with self._handle.stores.database.read() as transaction:
            all_ratings = ratings.list_ratings(transaction, self._handle.id)
            seqs = corpus.seqs_by_id(transaction, [rating.target.id for rating in all_ratings])
        return Judgements.from_ratings(all_ratings, seqs)

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

        Golden questions are measured by page, judgements by chunk. Unjudged results count as not
        relevant. With judgements, search ignores ratings, since judgements are made from them.

        Args:
            questions: Golden questions or judgements; by default those of `judgements`.
            mode: ``hybrid``, ``dense`` or ``lexical``.
            retrieval: Ranking settings, in place of the recipe's ``retrieval`` part.
            against: Baseline: another mode, other settings, or an evaluation of the same queries.
            k: Number of results for Recall@k, 1 to 100.
            wait: First run `kb.improve()`; otherwise a note reports the remaining work.
            on_progress: Called after each query; by default notebooks show a bar.

        Raises:
            ConfigError: There are no questions or judgements, or an argument is wrong.
            EmbedderError: The embedder failed.
        """
        queries = self.judgements() if questions is None else questions
        if wait:
            self._ingestion.improving.improve(on_progress=on_progress)
        return evaluate(
            self._handle,
            queries,
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
        keep: bool = False,
        seed: int = 0,
        wait: bool = False,
        on_progress: OnProgress | None = None,
    ) -> TuneReport:
        """Learn the weights of hybrid search from queries of known answers.

        The learned weights are proposed only if they win clearly on held-out queries.

        Args:
            questions: Golden questions or judgements; by default those of `judgements`.
            keep: Store winning settings. The next build of a recipe overwrites them, unless the
                recipe contains `TuneReport.to_yaml`.
            seed: Seed of the division of queries.
            wait: First run `kb.improve()`; otherwise a note reports the remaining work.
            on_progress: Called during the work; by default notebooks show a bar.

        Raises:
            ConfigError: There are fewer than 10 queries, or one is wrong.
            EmbedderError: The embedder failed.
        """
        queries = self.judgements() if questions is None else questions
        if wait:
            self._ingestion.improving.improve(on_progress=on_progress)
        report = tune(self._handle, queries, seed=seed, on_progress=on_progress)
        if not (keep and report.wins):
            return report
        spec = self._handle.spec.model_copy(update={"retrieval": report.settings})
        self._ingestion.configure(spec)
        return replace(report, kept=True)

    def pool(
        self, query: str, *, limit: int = 10, unshown: int = 5, seed: int = 0, rater: str = ""
    ) -> JudgingPool:
        """Return candidates for judging a query: hits of every mode, and a sample of lower ranks.

        Their order is random and fixed for a rater, so that ratings do not confirm the ranking.

        Args:
            query: The query.
            limit: Hits of each mode (``hybrid``, ``dense``, ``lexical``), 1 to 100.
            unshown: Candidates sampled from lower ranks, 0 to 100.
            seed: Seed of order and sample.
            rater: Rater whose ratings are marked; by default ``KBKIT_RATER`` or the login name.

        Raises:
            ConfigError: The query is empty, or a number is out of range.
            EmbedderError: The embedder failed.
        """
        rater = rater or self._handle.resources.settings.rater
        rated = iter(self._ratings)
        return pool(
            self._handle, query, limit=limit, unshown=unshown, seed=seed, ratings=rated, rater=rater
        )

    def judging(
        self, queries: Queries, *, limit: int = 10, unshown: int = 5, seed: int = 0, rater: str = ""
    ) -> JudgingRound:
        """Start or continue a judging round over the pools of some queries.

        `kbkit.panels.JudgePanel` shows it. Earlier ratings count.

        Args:
            queries: Texts, golden questions, judgements, a recipe, or the path of a file (a recipe,
                a TSV file of questions, or one query per line).
            limit: See `pool` for this and the other arguments.
            unshown: Candidates sampled from lower ranks.
            seed: Seed of order and sample.
            rater: Name of the judge.

        Raises:
            ConfigError: There are no queries, or a number is out of range.
            RecipeError: A file cannot be read or has a wrong line.
        """
        rater = check_text("rater", rater) or self._handle.resources.settings.rater
        texts = load_queries(queries)
        return JudgingRound(
            self, self._ratings, texts, limit=limit, unshown=unshown, seed=seed, rater=rater
        )

    def agreement(self) -> Agreement:
        """Measure agreement of raters on the same chunks for the same queries.

        Includes ordinal Krippendorff's alpha, and the passages with
        the largest differences.
        """
        return agreement(self._ratings)
