"""A panel that measures two settings of search side by side, query by query."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import ipywidgets as widgets
import traitlets

from kbkit.errors import ConfigError, KbkitError
from kbkit.feedback.evaluate import Evaluation
from kbkit.feedback.judgements import Judgements
from kbkit.feedback.loading import GroundTruth, load_ground_truth
from kbkit.models import Mode, Progress
from kbkit.panels import render
from kbkit.panels.evaluation import comparison
from kbkit.panels.evaluation.ranking_form import SettingsForm
from kbkit.panels.events import listen
from kbkit.panels.status_line import StatusLine, button
from kbkit.panels.view import View
from kbkit.recipes import Question, RetrievalSpec

if TYPE_CHECKING:
    import pandas as pd

    from kbkit.knowledge_base import KnowledgeBase

_EVERY = 0.2
"""Seconds between two changes of the progress."""
_SIDES = ("A", "B")


class EvalView(View, module="evaluation.js"):
    """Draws a comparison.

    Attributes:
        detail: What both settings found for the query that the page asked for.
    """

    detail = traitlets.Dict(help="What both settings found for a query.").tag(sync=True)


class _Cancelled(Exception):  # noqa: N818 - it ends work, and is no error
    """The reader wants no more of it."""


class EvalPanel(widgets.VBox):  # type: ignore[misc]  # ipywidgets has no types
    """Compares two ways to search by golden questions or judgements.

    ::

        panel = EvalPanel(kb, "questions.tsv")   # or judgements; without, what ratings say
        panel                                    # at the end of a cell: shows it
        panel.comparison                         # in a later cell: a row a query

    A begins with the settings that the knowledge base has, B with a copy to change. The work runs
    in a thread of its own and can be cancelled. Nothing is written unless somebody keeps the
    settings of a side. ``running`` and ``evaluation`` can be observed like every trait of a widget.

    Attributes:
        running: Whether work is under way.
        evaluation: B's figures, with A's to compare with (``evaluation.against``), or ``None``.
        error: What went wrong last, or ``None``.
        forms: The settings of both sides, ``A`` and ``B``.
        compare_button: Measures both.
        cancel_button: Ends that.
        keep_buttons: Write the settings of a side to the knowledge base.
        view: What is drawn.
    """

    running = traitlets.Bool(False, help="Whether work is under way.")
    evaluation = traitlets.Any(None, help="B's figures, with A's to compare with.")

    def __init__(
        self, kb: KnowledgeBase, questions: GroundTruth | None = None, *, k: int = 10
    ) -> None:
        """Make a panel.

        Args:
            kb: What to search.
            questions: Golden questions or judgements, a recipe (its golden questions), or the path
                of a file with one of these; by default the judgements that ratings give.
            k: Places that Recall@k reads.

        Raises:
            ConfigError: Judgements cannot be read.
            RecipeError: A file of questions cannot be read or has a wrong line.
        """
        self._cancel = threading.Event()
        self._kb = kb
        self._questions = None if questions is None else load_ground_truth(questions)
        self._k = k
        self._asked: Sequence[Question] | Judgements = ()
        self._order: list[int] = []
        self._measured: dict[str, tuple[Mode, RetrievalSpec]] = {}
        self._thread: threading.Thread | None = None
        self._shown = 0.0
        self.error: Exception | None = None
        present = kb.spec.retrieval
        self.forms = {side: SettingsForm(side, present) for side in _SIDES}
        self.compare_button = button("Compare", "Measure both", self.compare)
        self.compare_button.add_class("kbkit-primary")
        self.cancel_button = button("Cancel", "End the work", self.cancel)
        self.cancel_button.disabled = True
        self.keep_buttons = {side: self._keep_button(side) for side in _SIDES}
        self.view = EvalView({"look": self._looked})
        self._lines = widgets.HTML()
        self._status = StatusLine()
        actions = [self.compare_button, self.cancel_button, *self.keep_buttons.values()]
        super().__init__(
            [
                widgets.HTML(render.stylesheet(), layout=widgets.Layout(display="none")),
                widgets.HBox(list(self.forms.values())).add_class("kbkit-sides"),
                widgets.HBox(actions).add_class("kbkit-buttons"),
                self._status,
                self._lines,
                self.view,
            ]
        )
        self.add_class("kbkit-panel")
        self.add_class("kbkit-eval")
        self._say("Change the settings of B, and compare.")
        self._draw()
        listen(kb.path, self._heard)

    @property
    def comparison(self) -> pd.DataFrame:
        """One row a query, the greatest gain of B first; empty before there is a comparison.

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
        try:
            asked = self._kb.feedback.judgements() if self._questions is None else self._questions
            sides = {side: form.chosen() for side, form in self.forms.items()}
        except Exception as error:  # a panel has nobody to raise to: it shows what is wrong
            self._fail(error)
            return
        self._work(lambda: self._measure(asked, sides))

    def cancel(self) -> None:
        """End the work soon; the comparison before stays."""
        if self.running:
            self._cancel.set()
            self.cancel_button.disabled = True
            self._say("Stopping…")

    def keep(self, side: str) -> None:
        """Write the settings of a side, as measured, to the knowledge base; returns at once.

        Args:
            side: ``A`` or ``B``.
        """
        if self.running:
            return
        if side not in self._measured:
            self._fail(ConfigError(f"{side}: nothing was compared yet; compare before you keep"))
            return
        _, settings = self._measured[side]
        self._work(lambda: self._keep(side, settings))

    def wait(self, timeout: float | None = None) -> Evaluation | None:
        """Wait until the work is done; blocks the cell.

        Args:
            timeout: Most seconds to wait.

        Returns:
            The comparison, or ``None`` when there is none yet.
        """
        if self._thread is not None:
            self._thread.join(timeout)
        found: Evaluation | None = self.evaluation
        return found

    def close(self) -> None:
        """Take the panel off the page; work under way ends."""
        self._cancel.set()
        super().close()

    # Work in the thread

    def _work(self, job: Callable[[], None]) -> None:
        self._cancel.clear()
        self.error = None
        self._set_running(True)
        self._thread = threading.Thread(target=self._run, args=(job,), daemon=True)
        self._thread.start()

    def _run(self, job: Callable[[], None]) -> None:
        """Runs in the thread. Never raises."""
        try:
            job()
        except _Cancelled:
            self._say("Cancelled. The comparison before stays.")
        except Exception as error:  # as in `compare`
            self._fail(error)
        finally:
            self._draw(progress=None)
            self._set_running(False)

    def _measure(
        self,
        asked: Sequence[Question] | Judgements,
        sides: Mapping[str, tuple[Mode, RetrievalSpec]],
    ) -> None:
        found: Evaluation | None = None
        for number, side in enumerate(_SIDES):
            mode, settings = sides[side]
            found = self._kb.feedback.evaluate(
                asked,
                mode=mode,
                retrieval=settings,
                against=found,
                k=self._k,
                on_progress=lambda progress, done=number: self._tell(progress, done),  # type: ignore[misc]
            )
        assert found is not None
        self._say("Working out how sure that is…")
        drawn, order = comparison.drawn(found)
        if self._cancel.is_set():
            raise _Cancelled
        self._asked, self._order, self._measured = asked, order, dict(sides)
        self.evaluation = found
        self.view.detail = {}
        self.view.state = drawn | {"serial": self.view.state.get("serial", 0) + 1}
        self._say(comparison.summary(found))

    def _tell(self, progress: Progress, done: int) -> None:
        if self._cancel.is_set():
            raise _Cancelled
        now = time.monotonic()
        if now - self._shown >= _EVERY and progress.total:
            self._shown = now
            self._say(f"Asking {_SIDES[done]}: {progress.done} of {progress.total}")
            self._draw(progress=(done + progress.done / progress.total) / len(_SIDES))

    def _keep(self, side: str, settings: RetrievalSpec) -> None:
        config = self._kb.spec
        self._say(f"Writing the settings of {side}…")
        self._kb.configure(config.model_copy(update={"retrieval": settings}))
        self._lines.value = comparison.recipe_lines(settings)
        self._say(f"The knowledge base has the settings of {side} now.")

    # What is shown

    def _looked(self, message: Mapping[str, object]) -> None:
        """The page asks what both sides found for a query."""
        place, evaluation = message.get("place"), self.evaluation
        if evaluation is None or type(place) is not int or not 0 <= place < len(self._order):
            return
        try:
            number = self._order[place]
            lists = comparison.side_by_side(
                self._kb, self._asked, evaluation.results[number], self._measured
            )
            serial = self.view.state.get("serial")
            self.view.detail = {"serial": serial, "place": place, **lists}
        except Exception as error:  # as in `compare`
            self._fail(error)

    def _heard(self, what: str) -> None:
        """Another panel of the workspace changed something."""
        measured = what == "documents" or (what == "ratings" and self._questions is None)
        if measured and self.evaluation is not None and not self.running:
            self._say(f"Since this was measured, {what} changed: compare again.")

    def _set_running(self, running: bool) -> None:
        for form in self.forms.values():
            form.enable(not running)
        self.compare_button.disabled = running
        self.cancel_button.disabled = not running
        try:
            present = self._kb.spec.retrieval
        except KbkitError:  # it was deleted
            present = None
        for side, keep in self.keep_buttons.items():
            settings = self._measured.get(side, (None, present))[1]
            keep.disabled = running or present is None or settings == present
        self.running = running

    def _keep_button(self, side: str) -> widgets.Button:
        made = button(
            f"Keep {side}",
            f"Write the settings of {side} to the knowledge base",
            lambda: self.keep(side),
        )
        made.disabled = True
        return made

    def _draw(self, progress: float | None = None) -> None:
        self.view.state = {**self.view.state, "progress": progress}

    def _say(self, text: str) -> None:
        self._status.say(text)

    def _fail(self, error: Exception) -> None:
        """Show an error in the status line; what was measured before stays."""
        self.error = error
        self._status.fail(error)
