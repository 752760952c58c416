"""A judging round: queries, pools, and a rater's judgements."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from threading import RLock
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from kbkit.errors import ConfigError
from kbkit.feedback.evaluation_report import Evaluation, QueryResult
from kbkit.feedback.judgements import Judgements
from kbkit.feedback.statistics import Agreement, agreement
from kbkit.models import Hit, Rating, Target, TargetKind
from kbkit.models.ratings import fold_query
from kbkit.models.values import Several
from kbkit.runtime.progress import OnProgress, ignore
from kbkit.runtime.validation import check_integer

if TYPE_CHECKING:
    import pandas as pd


MAX_LIMIT = 100
"""Maximum hits of each mode, and of others, in a pool."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A chunk to judge.

    Attributes:
        hit: The chunk and its document. Do not show the score, which reveals the mode.
        found_by: Modes that found it; empty for a random one. Do not show it either.
        score: The rater's earlier score for this query, 1 to 5, or ``None``.
        raters: Number of raters for this query.
    """

    hit: Hit
    found_by: tuple[str, ...]
    score: int | None
    raters: int


@dataclass(frozen=True, slots=True)
class JudgingPool(Several[Candidate]):
    """Candidates for one query, in an order that hides how they were found."""

    _items: ClassVar = "candidates"
    query: str
    candidates: tuple[Candidate, ...]

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> JudgingPool:
        """Make a pool from JSON values.

        Raises:
            ValueError, KeyError: The values are invalid.
        """
        candidates = tuple(
            Candidate(
                Hit.from_dict(item["hit"]), tuple(item["found_by"]), item["score"], item["raters"]
            )
            for item in data["candidates"]
        )
        return cls(data["query"], candidates)

    def to_frame(self) -> pd.DataFrame:
        """Return one row per candidate, with the columns that a judge needs."""
        import pandas as pd

        columns = ["chunk_id", "title", "heading_path", "text", "url", "score", "raters"]
        rows = [
            {**each.hit.to_dict(), "score": each.score, "raters": each.raters}
            for each in self.candidates
        ]
        return pd.DataFrame(rows, columns=columns).astype({"score": "Int64", "raters": int})

    def __repr__(self) -> str:
        rated = sum(candidate.score is not None for candidate in self.candidates)
        return f"<JudgingPool for {self.query!r}: {len(self)} candidates, {rated} rated>"

    def _repr_html_(self) -> str:
        return self.to_frame().to_html(index=False, max_rows=20)


class RatingLog(Protocol):
    """The ratings of a knowledge base, oldest first."""

    def __iter__(self) -> Iterator[Rating]: ...

    def add(
        self, target: str | Target, score: int, *, query: str = "", note: str = "", rater: str = ""
    ) -> Rating: ...

    def delete(self, rating_id: int) -> None: ...


class Judged(Protocol):
    """The parts of a local or remote knowledge base that a round uses."""

    def pool(
        self, query: str, *, limit: int = 10, unshown: int = 5, seed: int = 0, rater: str = ""
    ) -> JudgingPool: ...

    def evaluate(
        self, questions: Judgements | None = None, *, on_progress: OnProgress | None = None
    ) -> Evaluation: ...


@dataclass(frozen=True, slots=True)
class InterimScore:
    """Score of the current settings on the judgements so far.

    Attributes:
        ndcg: Mean nDCG@10 of hybrid search, 0 to 1.
        judged: Mean share of judged hits among the first 10.
        queries: Number of queries with a passage of 3 stars or more.
    """

    ndcg: float
    judged: float
    queries: int


class JudgingRound:
    """Pools of some queries with one rater's judgements, stored in the catalog at once.

    Thread-safe. Pools are made on demand. Earlier ratings count as judged, so an interrupted round
    continues. Methods take the index of a query in ``queries``.
    """

    def __init__(
        self,
        kb: Judged,
        log: RatingLog,
        queries: tuple[str, ...],
        *,
        limit: int,
        unshown: int,
        seed: int,
        rater: str,
    ) -> None:
        """Start or continue a round; see `KnowledgeBase.judging`."""
        self._kb = kb
        self._log = log
        self.queries = queries
        self.rater = rater
        self._limit = check_integer("limit", limit, 1, MAX_LIMIT)
        self._unshown = check_integer("unshown", unshown, 0, MAX_LIMIT)
        self._seed = check_integer("seed", seed, 0, 2**63 - 1)
        self._lock = RLock()
        self._pools: dict[int, JudgingPool] = {}
        self._ratings: dict[str, list[Rating]] = {}
        # results of search, by the ratings of a query that it is measured with
        self._results: dict[tuple[Rating, ...], QueryResult | None] = {}
        self.refresh()

    def refresh(self, *, documents: bool = False) -> None:
        """Read the judgements of others; with ``documents``, also discard the pools."""
        ratings: dict[str, list[Rating]] = {fold_query(query): [] for query in self.queries}
        with self._lock:
            for rating in self._log:
                of_query = ratings.get(fold_query(rating.query))
                if of_query is not None and rating.target.kind is TargetKind.CHUNK:
                    of_query.append(rating)
            self._ratings = ratings
            self._results.clear()
            if documents:
                self._pools.clear()

    def pool(self, index: int) -> JudgingPool:
        """Return the candidates of a query.

        Raises:
            ConfigError: The query is invalid.
            EmbedderError: The embedder failed.
        """
        pool = self._pools.get(index)
        if pool is None:
            query, limit, unshown = self.queries[index], self._limit, self._unshown
            pool = self._pools[index] = self._kb.pool(
                query, limit=limit, unshown=unshown, seed=self._seed, rater=self.rater
            )
        return pool

    def pool_size(self, index: int) -> int | None:
        """Return the size of a pool; ``None`` before it is made."""
        pool = self._pools.get(index)
        return None if pool is None else len(pool)

    def scores(self, index: int) -> Mapping[str, int]:
        """Return the rater's scores for a query, 1 to 5, by chunk."""
        with self._lock:
            ratings = list(self._ratings[fold_query(self.queries[index])])
        return {rating.target.id: rating.score for rating in ratings if rating.rater == self.rater}

    def count_judged(self, index: int) -> int:
        """Count the candidates that the rater has judged; without a pool, all judged chunks."""
        scores, pool = self.scores(index), self._pools.get(index)
        if pool is None:
            return len(scores)
        return sum(candidate.hit.chunk.id in scores for candidate in pool)

    def is_done(self, index: int) -> bool:
        """Whether all candidates are judged; makes the pool only if some are."""
        if index not in self._pools and not self.scores(index):
            return False
        return len(self.pool(index)) == self.count_judged(index)

    def judge(self, index: int, chunk_id: str, score: int) -> Rating:
        """Rate a chunk for a query from 1 (useless) to 5 (exactly right).

        Raises:
            ConfigError: The score is not 1 to 5.
            NotFoundError: The chunk is gone.
        """
        query = self.queries[index]
        with self._lock:
            rating = self._log.add(chunk_id, score, query=query, rater=self.rater)
            self._ratings[fold_query(query)].append(rating)
        return rating

    def unjudge(self, index: int, chunk_id: str) -> bool:
        """Delete the rater's ratings of a chunk for a query; return whether there were any.

        Raises:
            NotFoundError: Another process deleted one meanwhile.
        """
        key = fold_query(self.queries[index])
        with self._lock:
            ratings = [
                item
                for item in self._ratings[key]
                if item.rater == self.rater and item.target.id == chunk_id
            ]
            for rating in ratings:
                self._ratings[key].remove(rating)
                self._log.delete(rating.id)
        return bool(ratings)

    def interim_score(self) -> InterimScore | None:
        """Score the current settings on all raters' judgements; ``None`` without usable ones.

        Only queries with changed judgements are searched again.

        Raises:
            EmbedderError: The embedder failed.
        """
        results = [result for result in self._measure() if result is not None]
        if not results:
            return None
        return InterimScore(
            ndcg=sum(result.ndcg for result in results) / len(results),
            judged=sum(result.judged for result in results) / len(results),
            queries=len(results),
        )

    def agreement(self) -> Agreement:
        """Measure the raters' agreement on these queries; see `KnowledgeBase.agreement`."""
        with self._lock:
            return agreement([rating for ratings in self._ratings.values() for rating in ratings])

    def to_frame(self) -> pd.DataFrame:
        """Return one row per query: ``judged`` of ``pooled``, and ``ndcg@10`` if judged."""
        import pandas as pd

        rows = []
        for index, result in enumerate(self._measure()):
            pooled = len(self.pool(index))
            ndcg = None if result is None else result.ndcg
            rows.append((self.queries[index], self.count_judged(index), pooled, ndcg))
        frame = pd.DataFrame(rows, columns=["query", "judged", "pooled", "ndcg@10"])
        return frame.astype({"ndcg@10": float}).set_index("query")

    def __repr__(self) -> str:
        return f"<JudgingRound of {len(self.queries)} queries by {self.rater}>"

    def _measure(self) -> list[QueryResult | None]:
        with self._lock:
            current = [tuple(self._ratings[fold_query(query)]) for query in self.queries]
        changed = [group for group in current if group and group not in self._results]
        if ratings := [rating for group in changed for rating in group]:
            judgements = Judgements.from_ratings(ratings, {rating.target.id for rating in ratings})
            by_query: dict[str, QueryResult] = {}
            with suppress(ConfigError):  # no chunk is judged relevant yet
                evaluation = self._kb.evaluate(judgements, on_progress=ignore)
                by_query = {fold_query(result.query): result for result in evaluation.results}
            self._results |= {group: by_query.get(fold_query(group[0].query)) for group in changed}
        return [self._results.get(group) for group in current]
