"""The judging panel."""

from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from typing import Any, TypeGuard

import traitlets

from kbkit.feedback.judgements import Queries
from kbkit.feedback.judging import JudgingRound
from kbkit.panels import controls, render
from kbkit.panels.controls import AnyBase, Topic
from kbkit.panels.panel import JobPanel, Message, View


class JudgeView(View, module="judge.js"):
    """Draws a round of judging."""

    queries: traitlets.List[str] = traitlets.List(help="Questions, in order.").tag(sync=True)
    pool = traitlets.Dict(help="The candidates of a query.").tag(sync=True)


class JudgePanel(JobPanel):
    """Judges how well passages answer queries: 1 to 5, one passage at a time.

    ::

        panel = JudgePanel(kb, ["how to read a file", "parse dates"])
        panel                            # at the end of a cell: shows it
        panel.judging.to_frame()         # in a later cell: progress
        kb.feedback.evaluate()           # and the quality of search

    Passages come from every mode of search and from lower ranks, in an order that hides their
    origin. Keys 1 to 5 judge and move on, arrows move, 0 or Backspace undoes, s skips, n and p
    change the query. Judgements are stored at once, as ratings; a new panel continues from them.

    Attributes:
        judging: The round: queries, pools and judgements.
        error: The last error, or ``None``.
    """

    def __init__(
        self,
        kb: AnyBase,
        queries: Queries,
        *,
        limit: int = 10,
        unshown: int = 5,
        seed: int = 0,
        rater: str = "",
    ) -> None:
        super().__init__(controls.home_of(kb), "judge-panel", "Stop counting")
        self.judging: JudgingRound = kb.feedback.judging(
            queries, limit=limit, unshown=unshown, seed=seed, rater=rater
        )
        self._kb = kb
        self._requested: list[int] = []  # queries whose pools the page waits for
        self._counted = 0
        self._due = True  # whether figures are outdated
        self._state: dict[str, Any] = {
            "rater": self.judging.rater,
            "version": 0,
            "start": None,
            "stored": None,
            "interim": None,
            "agreement": None,
        }
        self.view = JudgeView(
            self, queries=[render.plain(query, 1000) for query in self.judging.queries]
        )
        self.fill([self.view])
        if not self.judging.scores(0):  # otherwise `_count` finds where to continue
            self._state["start"] = 0
        self._show()
        self._wake()

    def wait(self, timeout: float = 60.0) -> bool:
        """Wait up to ``timeout`` seconds for counts and figures; return whether they are ready."""
        self._join(timeout)
        return not self.running

    # Messages of the page, which are untrusted; they and updates hold the panel's lock.

    def _do_judge(self, message: Message) -> None:
        place, chunk_id, score = (message.get(name) for name in ("place", "id", "score"))
        if not (self._is_place(place) and isinstance(chunk_id, str) and type(score) is int):
            return
        self.error = None
        with self.show_errors():
            if score:
                self.judging.judge(place, chunk_id, score)
            else:
                self.judging.unjudge(place, chunk_id)
        self._state["stored"] = {
            "place": place,
            "id": chunk_id,
            "score": self.judging.scores(place).get(chunk_id),
            "by": str(message.get("by"))[:40],
        }
        self._due = True
        self._show()
        self._wake()
        self.publish("ratings")

    def _do_request(self, message: Message) -> None:
        places = message.get("places")
        if isinstance(places, list):
            requested = [place for place in places[:4] if self._is_place(place)]
            earlier = [place for place in self._requested if place not in requested]
            self._requested = requested + earlier[:4]
            self._wake()

    def _is_place(self, place: object) -> TypeGuard[int]:
        return type(place) is int and 0 <= place < len(self.judging.queries)

    def _update(self, topic: Topic) -> None:
        if topic in ("knowledge_bases", "graph"):
            return
        with self.show_errors():
            self.judging.refresh(documents=topic == "documents")
        self._state["version"] += 1
        if topic == "documents":
            self._counted = 0
        self._due = True
        self._show()
        self._wake()

    # Work in the background: pools that the page waits for first, then figures, then counts.

    def _wake(self) -> None:
        if not self._cancelled.is_set():
            self._start(self._work)

    def _work(self) -> None:
        with self.update_quietly():
            while (job := self._next_job()) is not None:
                with self.show_errors():
                    job()
                if self._is_due():
                    self._show()
            self._show()

    def _next_job(self) -> Callable[[], None] | None:
        with self.lock:
            if self._cancelled.is_set():
                return None
            if self._requested:
                return partial(self._send_pool, self._requested.pop(0))
            if self._due:
                self._due = False
                return self._measure
            if self._counted < len(self.judging.queries):
                self._counted += 1
                return partial(self._count, self._counted - 1)
            return None

    def _send_pool(self, place: int) -> None:
        scores = self.judging.scores(place)
        self.view.pool = {
            "place": place,
            "version": self._state["version"],
            "passages": [
                render.heading(hit)
                | {"html": render.html(hit.chunk), "score": scores.get(hit.chunk.id)}
                for hit in (candidate.hit for candidate in self.judging.pool(place))
            ],
        }

    def _count(self, place: int) -> None:
        self.judging.pool(place)
        if self._state["start"] is None and not self.judging.is_done(place):
            self._state["start"] = place
            self._show()
        elif self._state["start"] is None and place == len(self.judging.queries) - 1:
            self._state["start"] = -1  # all queries are done

    def _measure(self) -> None:
        interim, agreement = self.judging.interim_score(), self.judging.agreement()
        self._state["interim"] = None if interim is None else asdict(interim)
        self._state["agreement"] = agreement.to_dict() if agreement.passages else None

    def _show(self) -> None:
        with self.lock:
            places = range(len(self.judging.queries))
            counts = [
                [self.judging.count_judged(place), self.judging.pool_size(place)]
                for place in places
            ]
            problem = "" if self.error is None else render.problem_line(self.error)
            self.view.state = {**self._state, "counts": counts, "problem": problem}

    def _show_error(self, error: Exception) -> None:
        self._show()
