"""Judgements, evaluation and tuning of a knowledge base."""

from __future__ import annotations

import builtins
import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING

from kbkit.errors import NotFoundError
from kbkit.feedback.evaluate import measure_run, missing_notes, missing_pages
from kbkit.feedback.evaluation_report import Evaluation, compare
from kbkit.feedback.evaluation_set import evaluation_set, without_ratings
from kbkit.feedback.judgements import Judgements, Queries, load_queries
from kbkit.feedback.judging import MAX_LIMIT, Candidate, JudgingPool, JudgingRound
from kbkit.feedback.statistics import Agreement, agreement
from kbkit.feedback.tune import tune
from kbkit.feedback.tune_report import TuneReport
from kbkit.frames import ratings_frame
from kbkit.knowledge_base.handle import Handle, Items
from kbkit.knowledge_base.ingestion import Ingestion
from kbkit.models import Hit, Mode, Rating, RatingTotal, Target
from kbkit.models.ratings import MAX_QUERY_LENGTH, fold_query, latest_scores_of
from kbkit.recipes import Question, RetrievalSpec
from kbkit.retrieval.query import Query, check_mode, check_retrieval
from kbkit.retrieval.searching import search
from kbkit.runtime.progress import OnProgress, progress_bar
from kbkit.runtime.validation import check_integer, check_text, explain_calls, is_integer
from kbkit.stores.catalog import corpus, knowledge_bases, ratings

if TYPE_CHECKING:
    import pandas as pd

_LARGEST_ID = 2**63 - 1
"""Largest integer of SQLite."""
_MAX_K = 100
"""Maximum `k` of recall."""
_FURTHER_HITS = 100
"""Hits after the first `limit`, from which the `unshown` ones are sampled."""


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
        kb, k = self._handle, check_integer("k", k, 1, _MAX_K)
        judged = evaluation_set(kb, queries)
        runs = [(mode, retrieval)]
        if isinstance(against, RetrievalSpec):
            runs.append((mode, against))
        elif against is not None and not isinstance(against, Evaluation):
            runs.append((check_mode(against, "against"), retrieval))
        checked = []
        for run_mode, settings in runs:
            label = str(run_mode) if settings is None else f"{run_mode}, other settings"
            spec = kb.spec.retrieval if settings is None else check_retrieval(settings)
            checked.append((check_mode(run_mode), spec, label))
        with progress_bar(on_progress) as report:
            evaluation, *baselines = [measure_run(kb, judged, run, k, report) for run in checked]
        if isinstance(against, Evaluation):
            baselines.append(against)
        missing = missing_pages(kb, judged)
        notes = (*missing_notes(missing), *evaluation.notes)
        evaluation = replace(evaluation, missing=missing, notes=notes)
        return compare(evaluation, baselines[0]) if baselines else evaluation

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
        limit = check_integer("limit", limit, 1, MAX_LIMIT)
        unshown = check_integer("unshown", unshown, 0, MAX_LIMIT)
        seed = check_integer("seed", seed, 0, 2**63 - 1)
        rater = check_text("rater", rater or self._handle.resources.settings.rater)
        query = check_text("query", query)
        # ratings must not change which candidates are judged; evaluations ignore them too
        retrieval = without_ratings(self._handle.spec.retrieval)
        hits: dict[str, Hit] = {}
        found_by: dict[str, list[str]] = {}
        further: list[Hit] = []
        for mode in Mode:
            hybrid = mode is Mode.HYBRID and unshown > 0
            hit_limit = limit + _FURTHER_HITS if hybrid else limit
            parsed = Query.of(query, hit_limit, mode, retrieval=retrieval)
            results = search([self._handle.retriever], parsed)
            further += results[limit:]
            for hit in results[:limit]:
                hits.setdefault(hit.chunk.id, hit)
                found_by.setdefault(hit.chunk.id, []).append(mode.value)
        remaining = {hit.chunk.id: hit for hit in further if hit.chunk.id not in hits}
        for chunk_id in _shuffle(remaining, seed, query)[:unshown]:
            hits[chunk_id] = remaining[chunk_id]
        scores = latest_scores_of(self._ratings, query)
        candidates = tuple(
            Candidate(
                hit=hits[chunk_id],
                found_by=tuple(found_by.get(chunk_id, ())),
                score=scores.get(chunk_id, {}).get(rater),
                raters=len(scores.get(chunk_id, ())),
            )
            for chunk_id in _shuffle(hits, seed, query, rater)
        )
        return JudgingPool(query, candidates)

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


def _shuffle(ids: Iterable[str], seed: int, query: str, rater: str = "") -> list[str]:
    """Return ids in a random order that is stable when ids are added or removed."""
    start = f"{seed}\n{fold_query(query)}\n{rater}\n".encode("utf-8", "replace")
    return sorted(ids, key=lambda id_: hashlib.sha256(start + id_.encode()).digest())
