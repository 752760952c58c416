"""A comparison of two evaluations as JSON values for the view."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from kbkit.feedback.evaluation_report import Evaluation, QueryResult
from kbkit.feedback.evaluation_set import EvaluationQuery, is_page, query_of
from kbkit.feedback.judgements import Judgements
from kbkit.models import Hit, Mode
from kbkit.panels import passages, render
from kbkit.recipes import Question, RetrievalSpec

if TYPE_CHECKING:
    from kbkit.panels.homes import AnyBase

DEPTH = 10
"""Places that lists show, as nDCG@10 reads them."""
_ENOUGH_JUDGED = 0.8
"""Share of the first ten that ought to be judged before a difference is believed."""
_BINS = np.arange(-21, 22, 2) / 20
"""Edges of the bins that differences are counted in, each 0.1 wide, one around 0."""


def state_of(evaluation: Evaluation) -> tuple[dict[str, Any], list[int]]:
    """Return the view's data: B (the evaluation) against A, and the order of queries."""
    assert evaluation.against is not None
    first, second = evaluation.against.results, evaluation.results
    differences = np.array([b.ndcg - a.ndcg for a, b in zip(first, second, strict=True)])
    order = np.argsort(-differences, kind="stable").tolist()
    found = evaluation.differences()["ndcg@10"]
    counts, _ = np.histogram(differences, _BINS)
    state = {
        "measures": _measures(evaluation),
        "queries": [
            [render.plain(second[i].query, 300), first[i].ndcg, second[i].ndcg] for i in order
        ],
        "bins": counts.tolist(),
        "mean": [found.mean, found.low, found.high],
        "notes": _notes(evaluation),
    }
    return state, order


def summary(evaluation: Evaluation) -> str:
    found = evaluation.differences()["ndcg@10"]
    count = len(evaluation.results)
    queries = "1 query" if count == 1 else f"{count} queries"
    change = f"nDCG@10 {found.mean:+.3f} on {queries} (p = {found.p_value:.3f})"
    if found.mean == 0 and found.p_value == 1:
        return f"No difference: {change}."
    better = "B is better" if found.mean > 0 else "A is better"
    return f"{better}: {change}." if found.p_value < 0.05 else f"May be chance: {change}."


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
        found: dict[str, Hit] = {}
        limit = 5 * DEPTH if by_page else DEPTH  # several hits may be of one page
        for hit in kb.search(
            result.query, limit=limit, mode=mode, retrieval=queries.retrieval(settings)
        ):
            found.setdefault(hit.uri if by_page else hit.chunk.id, hit)
        lists[side] = dict(list(found.items())[:DEPTH])
    places = {
        side: {name: rank for rank, name in enumerate(found, 1)} for side, found in lists.items()
    }
    return {
        side: [
            passages.heading(hit)
            | {"snippet": render.plain(hit.snippet, render.SNIPPET_LENGTH // 2)}
            | {"gain": _gain(query, name, by_page), "other": places[other].get(name)}
            for name, hit in lists[side].items()
        ]
        for side, other in (("A", "B"), ("B", "A"))
    }


def _gain(query: EvaluationQuery, name: str, by_page: bool) -> int | None:
    """Return the gain of a page or chunk; ``None`` if nobody judged it."""
    if not by_page:
        return query.gains.get(name)
    return next((gain for suffix, gain in query.gains.items() if is_page(name, suffix)), None)


def _measures(evaluation: Evaluation) -> list[dict[str, Any]]:
    assert evaluation.against is not None
    sides = (evaluation.against, evaluation)
    ends = [one.intervals() for one in sides]
    means = [one.means() for one in sides]
    return [
        {
            "name": name,
            "a": [means[0][name], *ends[0][name]],
            "b": [means[1][name], *ends[1][name]],
            "difference": [found.mean, found.low, found.high],
            "p": found.p_value,
        }
        for name, found in evaluation.differences().items()
    ]


def _notes(evaluation: Evaluation) -> list[str]:
    """Return warnings about the figures."""
    notes = list(evaluation.notes)
    if evaluation.unit == "chunk":
        assert evaluation.against is not None
        for side, one in (("A", evaluation.against), ("B", evaluation)):
            judged = float(np.mean([result.judged for result in one.results]))
            if judged < _ENOUGH_JUDGED:
                notes.append(
                    f"Only {judged:.0%} of the first hits of {side} were judged, and the rest "
                    "counts as not relevant: judge more before you trust a difference."
                )
    if left_out := len(evaluation.left_out):
        queries = "1 query is" if left_out == 1 else f"{left_out} queries are"
        notes.append(f"{queries} left out, since no passage was judged 3 or better.")
    return notes
