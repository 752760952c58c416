"""The evaluation panel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from html import escape
from typing import TYPE_CHECKING, Any

import ipywidgets as widgets
import numpy as np
import traitlets

from kbkit.errors import ConfigError, KbkitError
from kbkit.feedback.evaluation_report import Evaluation, QueryResult
from kbkit.feedback.evaluation_set import EvaluationQuery, is_page, query_of
from kbkit.feedback.judgements import GroundTruth, Judgements, load_ground_truth
from kbkit.feedback.statistics import DEPTH
from kbkit.models import Hit, Mode, Progress
from kbkit.models.values import pluralize
from kbkit.panels import controls, render
from kbkit.panels.controls import AnyBase, Topic
from kbkit.panels.panel import JobPanel, Message, View
from kbkit.recipes import Question, RetrievalSpec

if TYPE_CHECKING:
    import pandas as pd

_ENOUGH_JUDGED = 0.8
"""Share of judged hits among the first ten below which a note warns."""
_BINS = np.arange(-21, 22, 2) / 20
"""Edges of the histogram of differences; bins are 0.1 wide, one is around 0."""
_LEAST_SCALE = 0.05
"""Least difference at the top of the plot."""


def results_of(evaluation: Evaluation) -> tuple[dict[str, Any], list[int]]:
    """Return the view's data: B (the evaluation) against A, and the order of queries."""
    assert evaluation.against is not None
    first, second = evaluation.against.results, evaluation.results
    differences = np.array([b.ndcg - a.ndcg for a, b in zip(first, second, strict=True)])
    order = np.argsort(-differences, kind="stable").tolist()
    sides = [(each.means(), each.intervals()) for each in (evaluation.against, evaluation)]
    changes = evaluation.differences()
    counts, _ = np.histogram(differences, _BINS)
    html = render.fill_template(
        "evaluation.html.j2",
        "results",
        measures=[
            (name, [(means[name], *ends[name]) for means, ends in sides], change)
            for name, change in changes.items()
        ],
        differences=differences[order].tolist(),
        most=max(_LEAST_SCALE, *abs(differences).tolist()),
        bins=counts.tolist(),
        mean=changes["ndcg@10"].mean,
        notes=_notes(evaluation),
    )
    queries = [[render.plain(second[i].query, 300), first[i].ndcg, second[i].ndcg] for i in order]
    return {"html": html, "queries": queries}, order


def summary(evaluation: Evaluation) -> str:
    difference = evaluation.differences()["ndcg@10"]
    queries = pluralize(len(evaluation.results), "query")
    change = f"nDCG@10 {difference.mean:+.3f} on {queries} (p = {difference.p_value:.3f})"
    if difference.mean == 0 and difference.p_value == 1:
        return f"No difference: {change}."
    better = "B is better" if difference.mean > 0 else "A is better"
    return f"{better}: {change}." if difference.p_value < 0.05 else f"Not significant: {change}."


def recipe_lines(settings: RetrievalSpec) -> str:
    return (
        '<div class="kbkit-recipe">In the recipe, in place of its <code>retrieval</code> part, or '
        f'the next build undoes it:<pre tabindex="0">{escape(settings.to_yaml())}</pre></div>'
    )


def side_by_side(
    kb: AnyBase,
    ground_truth: Sequence[Question] | Judgements,
    result: QueryResult,
    sides: Mapping[str, tuple[Mode, RetrievalSpec]],
) -> dict[str, Any]:
    """Show the first ten hits of both sides, each with its rank on the other side."""
    queries = query_of(result.query, ground_truth)
    query, by_page = next(iter(queries)), queries.unit == "page"
    lists = {}
    for side, (mode, settings) in sides.items():
        first_hits: dict[str, Hit] = {}
        limit = 5 * DEPTH if by_page else DEPTH  # a page may have several hits
        for hit in kb.search(
            result.query, limit=limit, mode=mode, retrieval=queries.retrieval(settings)
        ):
            first_hits.setdefault(hit.uri if by_page else hit.chunk.id, hit)
        lists[side] = dict(list(first_hits.items())[:DEPTH])
    places = {
        side: {name: rank for rank, name in enumerate(first_hits, 1)}
        for side, first_hits in lists.items()
    }
    return {
        side: [
            render.heading(hit)
            | {"snippet": render.plain(hit.snippet, render.SNIPPET_LENGTH // 2)}
            | {"gain": _gain(query, name, by_page), "other": places[other].get(name)}
            for name, hit in lists[side].items()
        ]
        for side, other in (("A", "B"), ("B", "A"))
    }


def _gain(query: EvaluationQuery, name: str, by_page: bool) -> int | None:
    if not by_page:
        return query.gains.get(name)
    return next((gain for suffix, gain in query.gains.items() if is_page(name, suffix)), None)


def _notes(evaluation: Evaluation) -> list[str]:
    notes = list(evaluation.notes)
    if evaluation.unit == "chunk":
        assert evaluation.against is not None
        for side, evaluated in (("A", evaluation.against), ("B", evaluation)):
            judged = float(np.mean([result.judged for result in evaluated.results]))
            if judged < _ENOUGH_JUDGED:
                notes.append(
                    f"Only {judged:.0%} of the first hits of {side} were judged, and the rest "
                    "counts as not relevant: judge more before you trust a difference."
                )
    if left_out := len(evaluation.left_out):
        queries = "1 query is" if left_out == 1 else f"{left_out} queries are"
        notes.append(f"{queries} left out, since no passage was judged 3 or better.")
    return notes


_WEIGHTS = {
    "dense_weight": ("Meaning", 1.0),
    "document_weight": ("Document", 5.0),
    "title_weight": ("Title", 5.0),
    "heading_weight": ("Headings", 5.0),
    "summary_weight": ("About", 5.0),
    "page_weight": ("Whole text", 5.0),
    "graph_weight": ("Graph", 5.0),
    "learned_weight": ("Learned", 5.0),
}
"""Labels of weights, with their maximum."""
_ENCODERS = (("The model", "model"), ("Fitted to the chunks", "fitted"))


class RankingForm(widgets.VBox):  # type: ignore[misc]  # ipywidgets has no types
    """The settings of one side of a comparison."""

    def __init__(self, side: str, present: RetrievalSpec) -> None:
        self._present = present
        self.mode_box = controls.mode_box(tooltip=f"{side}: search by")
        self.weight_boxes = {
            name: controls.make(
                widgets.BoundedFloatText,
                label,
                value=getattr(present, name),
                tooltip=f"{side}: weight of {label.lower()}, 0 to {most:g}",
                min=0.0,
                max=most,
                step=0.05,
            ).add_class("kbkit-weight")
            for name, (label, most) in _WEIGHTS.items()
        }
        self.encoder_box = controls.make(
            widgets.Dropdown, "Queries embedded by", options=_ENCODERS, value=present.query_encoder
        )
        name = f'<div class="kbkit-side-name" role="heading" aria-level="3">{side}</div>'
        super().__init__(
            [
                widgets.HTML(name),
                controls.row(self.mode_box, self.encoder_box),
                controls.row(*self.weight_boxes.values()),
            ]
        )
        self.add_class("kbkit-side")

    def selected_settings(self) -> tuple[Mode, RetrievalSpec]:
        values = {name: round(box.value, 4) for name, box in self.weight_boxes.items()}
        changed = values | {"query_encoder": self.encoder_box.value}
        settings = RetrievalSpec.model_validate(self._present.model_dump() | changed)
        return Mode(self.mode_box.value), settings


_SIDES = ("A", "B")


class EvalView(View, module="evaluation.js"):
    """Draws a comparison."""

    results = traitlets.Dict(help="The comparison as HTML, with the queries.").tag(sync=True)
    detail = traitlets.Dict(help="Results of both settings for a query, as HTML.").tag(sync=True)


class _Cancelled(Exception):  # noqa: N818 - not an error
    pass


class EvalPanel(JobPanel):
    """Compares two ways to search by golden questions or judgements.

    ::

        panel = EvalPanel(kb, "questions.tsv")   # or judgements; by default, from ratings
        panel                                    # at the end of a cell: shows it
        panel.comparison                         # in a later cell: one row per query

    A starts with the settings of the knowledge base, B with a copy to change. The work runs in a
    thread and can be cancelled. Only `keep` and its buttons write settings. ``running`` and
    ``evaluation`` can be observed like every trait of a widget.

    Attributes:
        running: Whether work is running.
        evaluation: B's evaluation, with A's in ``evaluation.against``, or ``None``.
        error: The last error, or ``None``.
        forms: The settings of both sides, ``A`` and ``B``.
        keep_buttons: Write the settings of a side to the knowledge base.
    """

    evaluation = traitlets.Any(None, help="B's figures, with A's to compare with.")

    def __init__(self, kb: AnyBase, questions: GroundTruth | None = None, *, k: int = 10) -> None:
        super().__init__(controls.home_of(kb), "eval", "Stop the work")
        self._kb = kb
        self._questions = None if questions is None else load_ground_truth(questions)
        self._k = k
        self._ground_truth: Sequence[Question] | Judgements = ()
        self._order: list[int] = []
        self._measured: dict[str, tuple[Mode, RetrievalSpec]] = {}
        settings = kb.spec.retrieval
        self.forms = {side: RankingForm(side, settings) for side in _SIDES}
        self.compare_button = controls.button("Compare", "Measure both", self.compare)
        self.compare_button.add_class("kbkit-primary")
        self.keep_buttons: dict[str, widgets.Button] = {}
        for side in _SIDES:
            hint = f"Write the settings of {side} to the knowledge base"
            keep = controls.button(f"Keep {side}", hint, partial(self.keep, side))
            keep.disabled = True
            self.keep_buttons[side] = keep
        self.view = EvalView(self)
        self._recipe = widgets.HTML()
        sides = widgets.HBox(list(self.forms.values())).add_class("kbkit-sides")
        buttons = (self.compare_button, self.cancel_button, *self.keep_buttons.values())
        self.fill([sides, controls.buttons(*buttons), self.status_line, self._recipe, self.view])
        self.say("Change the settings of B, and compare.")
        self._show_progress(None)

    @property
    def comparison(self) -> pd.DataFrame:
        """One row per query, B's greatest gain first; empty before a comparison.

        ``ndcg@10``, ``recall@k`` and other measures are B's, ``against_ndcg@10`` is A's, and
        ``difference`` is B's nDCG@10 minus A's.
        """
        evaluation = self.evaluation if self.evaluation is not None else Evaluation(())
        frame = evaluation.to_frame()
        return frame.sort_values("difference", ascending=False) if len(frame) else frame

    def compare(self) -> None:
        """Measure both sides with the current settings; returns at once."""
        if self.running:
            return
        with self.show_errors():
            ground_truth = (
                self._kb.feedback.judgements() if self._questions is None else self._questions
            )
            sides = {side: form.selected_settings() for side, form in self.forms.items()}
            self.error = None
            self._start(lambda: self._measure(ground_truth, sides))

    def keep(self, side: str) -> None:
        """Write the measured settings of a side (``A`` or ``B``) to the knowledge base."""
        if self.running:
            return
        with self.show_errors():
            if side not in self._measured:
                raise ConfigError(f"{side}: not compared yet; compare before you keep")
            _, settings = self._measured[side]
            self.error = None
            self._start(lambda: self._keep(side, settings))

    def wait(self, timeout: float | None = None) -> Evaluation | None:
        """Wait up to ``timeout`` seconds until the work is done; return the comparison if any."""
        self._join(timeout)
        return self.evaluation

    # Work in the thread

    def _measure(
        self,
        ground_truth: Sequence[Question] | Judgements,
        sides: Mapping[str, tuple[Mode, RetrievalSpec]],
    ) -> None:
        evaluation: Evaluation | None = None
        try:
            for number, side in enumerate(_SIDES):
                mode, settings = sides[side]
                evaluation = self._kb.feedback.evaluate(
                    ground_truth,
                    mode=mode,
                    retrieval=settings,
                    against=evaluation,
                    k=self._k,
                    on_progress=partial(self._on_progress, number),
                )
            assert evaluation is not None
            self.say("Computing intervals and p-values…")
            results, order = results_of(evaluation)
            if self._cancelled.is_set():
                raise _Cancelled
        except _Cancelled:
            self.announce("Cancelled. The earlier comparison stays.")
            return
        finally:
            self._show_progress(None)
        self._ground_truth, self._order, self._measured = ground_truth, order, dict(sides)
        self.evaluation = evaluation
        self.view.results = results | {"serial": self.view.results.get("serial", 0) + 1}
        self.announce(summary(evaluation))

    def _on_progress(self, done: int, progress: Progress) -> None:
        if self._cancelled.is_set():
            raise _Cancelled
        if progress.total and self._is_due():
            self.say(f"Asking {_SIDES[done]}: {progress.done} of {progress.total}")
            self._show_progress((done + progress.done / progress.total) / len(_SIDES))

    def _keep(self, side: str, settings: RetrievalSpec) -> None:
        spec = self._kb.spec
        self.say(f"Writing the settings of {side}…")
        self._kb.configure(spec.model_copy(update={"retrieval": settings}))
        self._recipe.value = recipe_lines(settings)
        self.announce(f"The knowledge base has the settings of {side} now.")

    # Display

    def _do_look(self, message: Message) -> None:
        place, evaluation = message.get("place"), self.evaluation
        if evaluation is None or type(place) is not int or not 0 <= place < len(self._order):
            return
        result = evaluation.results[self._order[place]]
        lists = side_by_side(self._kb, self._ground_truth, result, self._measured)
        html = render.fill_template("evaluation.html.j2", "lists", sides=lists)
        self.view.detail = {"serial": self.view.results["serial"], "place": place, "html": html}

    def _update(self, topic: Topic) -> None:
        is_outdated = topic == "documents" or (topic == "ratings" and self._questions is None)
        if is_outdated and self.evaluation is not None and not self.running:
            self.announce(f"The {topic} changed after this comparison: compare again.")

    def _set_running(self, running: bool) -> None:
        controls.enable(self, not running)
        try:
            current = self._kb.spec.retrieval
        except KbkitError:  # the knowledge base was deleted
            current = None
        for side, keep in self.keep_buttons.items():
            settings = self._measured.get(side, (None, current))[1]
            keep.disabled = running or current is None or settings == current
        super()._set_running(running)

    def _show_progress(self, progress: float | None) -> None:
        self.view.state = {"progress": progress}
