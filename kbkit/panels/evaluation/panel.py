"""The evaluation panel: two settings side by side, query by query."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import ipywidgets as widgets
import traitlets

from kbkit.errors import ConfigError, KbkitError
from kbkit.feedback.evaluation_report import Evaluation
from kbkit.feedback.judgements import Judgements
from kbkit.feedback.loading import GroundTruth, load_ground_truth
from kbkit.models import Mode, Progress
from kbkit.panels.controls import button, buttons
from kbkit.panels.evaluation import comparison
from kbkit.panels.evaluation.ranking_form import RankingForm
from kbkit.panels.events import Topic
from kbkit.panels.homes import AnyBase, home_of
from kbkit.panels.panel import JobPanel
from kbkit.panels.view import View
from kbkit.recipes import Question, RetrievalSpec

if TYPE_CHECKING:
    import pandas as pd


_SIDES = ("A", "B")


class EvalView(View, module="evaluation.js"):
    """Draws a comparison.

    Attributes:
        detail: Results of both settings for the requested query.
    """

    detail = traitlets.Dict(help="Results of both settings for a query.").tag(sync=True)


class _Cancelled(Exception):  # noqa: N818 - it ends work, and is no error
    """The reader wants no more of it."""


class EvalPanel(JobPanel):
    """Compares two ways to search by golden questions or judgements.

    ::

        panel = EvalPanel(kb, "questions.tsv")   # or judgements; without, what ratings say
        panel                                    # at the end of a cell: shows it
        panel.comparison                         # in a later cell: a row a query

    A begins with the settings that the knowledge base has, B with a copy to change. The work runs
    in a thread of its own and can be cancelled. Nothing is written unless somebody keeps the
    settings of a side. ``running`` and ``evaluation`` can be observed like every trait of a widget.

    Attributes:
        running: Whether work is running.
        evaluation: B's evaluation, with A's in ``evaluation.against``, or ``None``.
        error: The last error, or ``None``.
        forms: The settings of both sides, ``A`` and ``B``.
        compare_button: Measures both.
        cancel_button: Ends that.
        keep_buttons: Write the settings of a side to the knowledge base.
        view: The view.
    """

    evaluation = traitlets.Any(None, help="B's figures, with A's to compare with.")

    def __init__(self, kb: AnyBase, questions: GroundTruth | None = None, *, k: int = 10) -> None:
        super().__init__(home_of(kb), "eval", "End the work")
        self._kb = kb
        self._questions = None if questions is None else load_ground_truth(questions)
        self._k = k
        self._ground_truth: Sequence[Question] | Judgements = ()
        self._order: list[int] = []
        self._measured: dict[str, tuple[Mode, RetrievalSpec]] = {}
        present = kb.spec.retrieval
        self.forms = {side: RankingForm(side, present) for side in _SIDES}
        self.compare_button = button("Compare", "Measure both", self.compare)
        self.compare_button.add_class("kbkit-primary")
        self.keep_buttons = {side: self._keep_button(side) for side in _SIDES}
        self.view = EvalView({"look": self._send_detail})
        self._recipe = widgets.HTML()
        self.fill(
            [
                widgets.HBox(list(self.forms.values())).add_class("kbkit-sides"),
                buttons(self.compare_button, self.cancel_button, *self.keep_buttons.values()),
                self.status_line,
                self._recipe,
                self.view,
            ]
        )
        self.say("Change the settings of B, and compare.")
        self._show_progress(None)

    @property
    def comparison(self) -> pd.DataFrame:
        """One row a query, B's greatest gain first; empty before a comparison.

        ``ndcg@10``, ``recall@k`` and the like are B's, ``against_ndcg@10`` is A's, ``difference``
        is B's nDCG@10 less A's.
        """
        evaluation = self.evaluation if self.evaluation is not None else Evaluation(())
        frame = evaluation.to_frame()
        return frame.sort_values("difference", ascending=False) if len(frame) else frame

    def compare(self) -> None:
        """Measure both sides as they are set; returns at once."""
        if self.running:
            return
        with self.shown_errors():
            ground_truth = (
                self._kb.feedback.judgements() if self._questions is None else self._questions
            )
            sides = {side: form.chosen() for side, form in self.forms.items()}
            self._start(lambda: self._measure(ground_truth, sides))

    def keep(self, side: str) -> None:
        """Write the settings of a side, as measured, to the knowledge base; returns at once.

        Args:
            side: ``A`` or ``B``.
        """
        if self.running:
            return
        with self.shown_errors():
            if side not in self._measured:
                raise ConfigError(f"{side}: nothing was compared yet; compare before you keep")
            _, settings = self._measured[side]
            self._start(lambda: self._keep(side, settings))

    def wait(self, timeout: float | None = None) -> Evaluation | None:
        """Wait until the work is done; blocks the cell.

        Args:
            timeout: Most seconds to wait.

        Returns:
            The comparison, or ``None``.
        """
        self._join(timeout)
        found: Evaluation | None = self.evaluation
        return found

    # Work in the thread

    def _run(self, job: Callable[[], None]) -> None:
        def cancellable() -> None:
            try:
                job()
            except _Cancelled:
                self.announce("Cancelled. The comparison before stays.")
            finally:
                self._show_progress(None)

        super()._run(cancellable)

    def _measure(
        self,
        ground_truth: Sequence[Question] | Judgements,
        sides: Mapping[str, tuple[Mode, RetrievalSpec]],
    ) -> None:
        found: Evaluation | None = None
        for number, side in enumerate(_SIDES):
            mode, settings = sides[side]
            found = self._kb.feedback.evaluate(
                ground_truth,
                mode=mode,
                retrieval=settings,
                against=found,
                k=self._k,
                on_progress=lambda progress, done=number: self._on_progress(progress, done),  # type: ignore[misc]
            )
        assert found is not None
        self.say("Working out how sure that is…")
        state, order = comparison.state_of(found)
        if self._cancelled.is_set():
            raise _Cancelled
        self._ground_truth, self._order, self._measured = ground_truth, order, dict(sides)
        self.evaluation = found
        self.view.detail = {}
        self.view.state = state | {"serial": self.view.state.get("serial", 0) + 1}
        self.announce(comparison.summary(found))

    def _on_progress(self, progress: Progress, done: int) -> None:
        if self._cancelled.is_set():
            raise _Cancelled
        if progress.total and self._is_due():
            self.say(f"Asking {_SIDES[done]}: {progress.done} of {progress.total}")
            self._show_progress((done + progress.done / progress.total) / len(_SIDES))

    def _keep(self, side: str, settings: RetrievalSpec) -> None:
        spec = self._kb.spec
        self.say(f"Writing the settings of {side}…")
        self._kb.configure(spec.model_copy(update={"retrieval": settings}))
        self._recipe.value = comparison.recipe_lines(settings)
        self.announce(f"The knowledge base has the settings of {side} now.")

    # What is shown

    def _send_detail(self, message: Mapping[str, object]) -> None:
        place, evaluation = message.get("place"), self.evaluation
        if evaluation is None or type(place) is not int or not 0 <= place < len(self._order):
            return
        with self.shown_errors():
            number = self._order[place]
            lists = comparison.side_by_side(
                self._kb, self._ground_truth, evaluation.results[number], self._measured
            )
            serial = self.view.state.get("serial")
            self.view.detail = {"serial": serial, "place": place, **lists}

    def _update(self, topic: Topic) -> None:
        concerned = topic == "documents" or (topic == "ratings" and self._questions is None)
        if concerned and self.evaluation is not None and not self.running:
            self.announce(f"Since this was measured, {topic} changed: compare again.")

    def _set_running(self, running: bool) -> None:
        for form in self.forms.values():
            form.enable(not running)
        self.compare_button.disabled = running
        try:
            present = self._kb.spec.retrieval
        except KbkitError:  # it was deleted
            present = None
        for side, keep in self.keep_buttons.items():
            settings = self._measured.get(side, (None, present))[1]
            keep.disabled = running or present is None or settings == present
        super()._set_running(running)

    def _keep_button(self, side: str) -> widgets.Button:
        made = button(
            f"Keep {side}",
            f"Write the settings of {side} to the knowledge base",
            lambda: self.keep(side),
        )
        made.disabled = True
        return made

    def _show_progress(self, progress: float | None) -> None:
        self.view.state = {**self.view.state, "progress": progress}
