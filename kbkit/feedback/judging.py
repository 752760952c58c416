"""A round of judging: some queries, their pools, what a rater has said, and what is left."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from threading import RLock
from typing import TYPE_CHECKING, Protocol

from kbkit.errors import ConfigError
from kbkit.feedback.agreement import Agreement, agreement
from kbkit.feedback.checks import whole
from kbkit.feedback.evaluate import Answer, evaluate
from kbkit.feedback.judgements import Judgements, folded
from kbkit.feedback.pooling import DEEPEST, JudgingPool, pool
from kbkit.feedback.tasks import Searchable
from kbkit.models import Mode, Progress, Rating

if TYPE_CHECKING:
    import pandas as pd

_HELD = 16
"""Pools that are kept; they hold the text of their chunks."""


class Judgeable(Searchable, Protocol):
    """What judging asks of a knowledge base."""

    def rate(
        self, target: str, score: int, *, query: str = "", note: str = "", rater: str = ""
    ) -> Rating:
        """Rate a chunk."""
        ...

    def unrate(self, rating_id: int) -> None:
        """Take a rating back."""
        ...

    def iter_ratings(self, targets: Collection[str] | None = None) -> Iterator[Rating]:
        """All ratings, oldest first."""
        ...


@dataclass(frozen=True, slots=True)
class Standing:
    """How well the present settings do on what is judged so far.

    Attributes:
        ndcg: Mean nDCG@10 of hybrid search, 0 to 1.
        judged: Mean share of the first 10 that somebody judged.
        queries: How many queries that is: those with a passage of 3 stars or more.
    """

    ndcg: float
    judged: float
    queries: int


class Judging:
    """Pools of some queries, and what one rater says of them; kept in the catalog as it is said.

    A pool is made when it is asked for. What was rated before counts as judged, so a round that
    was left goes on where it was. May be used by several threads.

    Attributes:
        queries: What is asked, in order; methods take the place of a query here.
        rater: Whose round it is.
    """

    def __init__(
        self,
        kb: Judgeable,
        queries: tuple[str, ...],
        *,
        limit: int,
        unshown: int,
        seed: int,
        rater: str,
    ) -> None:
        """Begin or go on; see `KnowledgeBase.judging`.

        Raises:
            ConfigError: A number is out of range.
        """
        self._kb = kb
        self.queries = queries
        self.rater = rater
        self._limit = whole("limit", limit, 1, DEEPEST)
        self._unshown = whole("unshown", unshown, 0, DEEPEST)
        self._seed = whole("seed", seed, 0, 2**63 - 1)
        self._lock = RLock()
        self._pools: OrderedDict[int, JudgingPool] = OrderedDict()
        self._ids: dict[int, tuple[str, ...]] = {}
        self._given: dict[str, list[Rating]] = {}
        self._answers: dict[int, Answer | None] = {}
        self.reread()

    def reread(self, *, documents: bool = False) -> None:
        """Take note of what others did since.

        Args:
            documents: Whether documents changed too, so that pools have to be made anew.
        """
        given: dict[str, list[Rating]] = {folded(query): [] for query in self.queries}
        with self._lock:
            for rating in self._kb.iter_ratings():
                of_query = given.get(folded(rating.query))
                if of_query is not None and rating.target_type == "chunk":
                    of_query.append(rating)
            self._given = given
            self._answers.clear()
            if documents:
                self._pools.clear()
                self._ids.clear()

    def pool(self, place: int) -> JudgingPool:
        """The candidates of a query; those of the last few queries are kept.

        Raises:
            ConfigError: The query cannot be searched for.
            EmbedderError: The embedder failed.
        """
        with self._lock:
            if place in self._pools:
                self._pools.move_to_end(place)
                return self._pools[place]
        query = self.queries[place]
        found = pool(
            self._kb,
            query,
            limit=self._limit,
            unshown=self._unshown,
            seed=self._seed,
            ratings=tuple(self._given[folded(query)]),
            rater=self.rater,
        )
        with self._lock:
            self._pools[place] = found
            self._ids[place] = tuple(one.hit.chunk.id for one in found)
            while len(self._pools) > _HELD:
                self._pools.popitem(last=False)
        return found

    def pooled(self, place: int) -> int | None:
        """How many candidates a query has; ``None`` while its pool was not made."""
        ids = self._ids.get(place)
        return None if ids is None else len(ids)

    def scores(self, place: int) -> Mapping[str, int]:
        """What the rater says of chunks for a query, 1 to 5, by chunk."""
        with self._lock:
            given = list(self._given[folded(self.queries[place])])
        return {one.target: one.score for one in given if one.rater == self.rater}

    def judged(self, place: int) -> int:
        """How many candidates the rater has judged; before there is a pool, how many chunks."""
        scores = self.scores(place)
        ids = self._ids.get(place)
        return len(scores) if ids is None else sum(known in scores for known in ids)

    def is_done(self, place: int) -> bool:
        """Whether all candidates are judged; makes the pool only where some are."""
        if self._ids.get(place) is None:
            if not self.scores(place):
                return False
            self.pool(place)
        return self.judged(place) == self.pooled(place)

    def judge(self, place: int, chunk_id: str, score: int) -> Rating:
        """Say how well a chunk answers a query.

        Args:
            place: Of the query.
            chunk_id: Of the chunk.
            score: 1 (useless) to 5 (exactly right).

        Raises:
            ConfigError: The score is not 1 to 5.
            NotFoundError: The chunk is gone.
        """
        query = self.queries[place]
        with self._lock:
            rating = self._kb.rate(chunk_id, score, query=query, rater=self.rater)
            self._given[folded(query)].append(rating)
            self._answers.pop(place, None)
        return rating

    def take_back(self, place: int, chunk_id: str) -> bool:
        """Judge a chunk no longer: all the rater's ratings of it for the query are taken back.

        Returns:
            Whether there were any.

        Raises:
            NotFoundError: Somebody else took one back meanwhile.
        """
        key = folded(self.queries[place])
        with self._lock:
            own = [
                one
                for one in self._given[key]
                if one.rater == self.rater and one.target == chunk_id
            ]
            for rating in own:
                self._given[key].remove(rating)
                self._answers.pop(place, None)
                self._kb.unrate(rating.id)
        return bool(own)

    def standing(self) -> Standing | None:
        """How well the present settings do on what all raters said; ``None`` while nothing tells.

        Queries whose judgements changed are asked again, the others are remembered.

        Raises:
            EmbedderError: The embedder failed.
        """
        answers = [answer for place in range(len(self.queries)) if (answer := self._answer(place))]
        if not answers:
            return None
        return Standing(
            ndcg=sum(answer.ndcg for answer in answers) / len(answers),
            judged=sum(answer.judged for answer in answers) / len(answers),
            queries=len(answers),
        )

    def agreement(self) -> Agreement:
        """How far raters agree on these queries; see `KnowledgeBase.agreement`."""
        with self._lock:
            return agreement([one for given in self._given.values() for one in given])

    def to_frame(self) -> pd.DataFrame:
        """One row a query: ``judged`` of ``pooled``, and ``ndcg@10`` where judgements tell."""
        import pandas as pd

        rows = []
        for place, query in enumerate(self.queries):
            self.pool(place)
            answer = self._answer(place)
            ndcg = None if answer is None else answer.ndcg
            rows.append((query, self.judged(place), self.pooled(place), ndcg))
        frame = pd.DataFrame(rows, columns=["query", "judged", "pooled", "ndcg@10"])
        return frame.astype({"ndcg@10": float}).set_index("query")

    def __repr__(self) -> str:
        return f"<Judging of {len(self.queries)} queries by {self.rater}>"

    def _answer(self, place: int) -> Answer | None:
        """How the present settings answer a query; ``None`` where no judgement says."""
        with self._lock:
            if place in self._answers:
                return self._answers[place]
            given = list(self._given[folded(self.queries[place])])
        judgements = Judgements.from_ratings(given, {one.target for one in given})
        try:
            answer = _asked(self._kb, judgements)
        except ConfigError:  # nobody found anything of use yet
            answer = None
        with self._lock:
            if given == self._given[folded(self.queries[place])]:
                self._answers[place] = answer
        return answer


def _asked(kb: Judgeable, judgements: Judgements) -> Answer:
    found = evaluate(
        kb, judgements, mode=Mode.HYBRID, retrieval=None, against=None, k=10, on_progress=_quiet
    )
    return found.answers[0]


def _quiet(_progress: Progress) -> None:
    """No bar for a single query."""
