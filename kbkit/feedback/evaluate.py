"""How well search answers queries whose answers are known: golden questions and judgements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from html import escape
from typing import TYPE_CHECKING, Any, NotRequired, cast

import numpy as np
from typing_extensions import TypedDict

from kbkit.errors import ConfigError
from kbkit.feedback.evaluation_set import (
    EvaluationQuery,
    EvaluationSet,
    Searchable,
    Unit,
    evaluation_set,
    matching_page,
    unfinished,
)
from kbkit.feedback.judgements import Judgements
from kbkit.feedback.measures import DEPTH, Measures, Ranking, measure
from kbkit.feedback.missing_pages import MissingPage, missing_notes, missing_pages
from kbkit.feedback.statistics import Difference, Values, confidence_interval, difference
from kbkit.models import Mode, Progress
from kbkit.progress import OnProgress, progress_bar
from kbkit.recipes import Question, RetrievalSpec
from kbkit.retrieval.query import check_mode, check_retrieval
from kbkit.validation import check_integer

if TYPE_CHECKING:
    import pandas as pd

MAX_K = 100
"""Most places that recall may read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryResult(Measures):
    """What search made of one query, and how good that is.

    Attributes:
        relevant: What should be found: suffixes of pages' URIs, or ids of chunks.
        found: URIs of pages or ids of chunks, best first.
    """

    query: str
    relevant: tuple[str, ...]
    found: tuple[str, ...]


class EvaluationDict(TypedDict):
    """An evaluation as JSON values; the mean of each measure stands beside these, by its name."""

    queries: int
    unit: str
    configuration: str
    intervals: dict[str, list[float]]
    left_out: list[str]
    per_query: list[dict[str, Any]]
    missing: list[dict[str, Any]]
    notes: list[str]
    against: NotRequired[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Figures over a set of queries; means of each query's, 0 to 1.

    Attributes:
        label: What was measured, such as ``hybrid``.
        unit: Whether ``page`` or ``chunk`` was looked for.
        k: Places that recall reads.
        left_out: Judged queries that no chunk answers; they count nowhere.
        missing: Pages that the questions name and that are not there: they count as not found.
        notes: What one should know before believing the figures.
        against: The same queries answered by another configuration, if there is one.
    """

    results: tuple[QueryResult, ...]
    label: str = Mode.HYBRID.value
    unit: Unit = "page"
    k: int = DEPTH
    left_out: tuple[str, ...] = ()
    missing: tuple[MissingPage, ...] = ()
    notes: tuple[str, ...] = ()
    against: Evaluation | None = None

    @property
    def ndcg(self) -> float:
        """Mean nDCG@10."""
        return self.means()["ndcg@10"]

    @property
    def recall(self) -> float:
        """Mean Recall@k."""
        return self.means()[f"recall@{self.k}"]

    @property
    def mrr(self) -> float:
        """Mean reciprocal rank within the first 10."""
        return self.means()["mrr@10"]

    @property
    def hit_at_1(self) -> float:
        """Share of queries whose first page or chunk is relevant."""
        return self.means()["hit@1"]

    def values(self) -> dict[str, Values]:
        """The figures of each query, by measure."""
        return {
            "ndcg@10": np.array([result.ndcg for result in self.results]),
            f"recall@{self.k}": np.array([result.recall for result in self.results]),
            "mrr@10": np.array([result.reciprocal_rank for result in self.results]),
            "hit@1": np.array([result.hit_at_1 for result in self.results]),
        }

    def means(self) -> dict[str, float]:
        """The mean of each measure."""
        return {
            name: float(values.mean()) if self.results else 0.0
            for name, values in self.values().items()
        }

    def intervals(self) -> dict[str, tuple[float, float]]:
        """The 95 % confidence interval of each mean; see `confidence_interval` in `statistics`."""
        return {name: confidence_interval(values) for name, values in self.values().items()}

    def differences(self) -> dict[str, Difference]:
        """By measure, how the figures differ from those of `against`; empty without one."""
        if self.against is None:
            return {}
        others = self.against.values()
        return {name: difference(values, others[name]) for name, values in self.values().items()}

    def summary(self) -> pd.DataFrame:
        """One row a measure: ``mean``, ``low`` and ``high`` (95 % confidence).

        With another configuration also its mean (``against``), the ``difference`` of the two with
        its interval, and the ``p_value`` of a paired permutation test.
        """
        import pandas as pd

        means = self.means()
        others = self.against.means() if self.against is not None else {}
        rows = {
            name: {"mean": means[name], "low": low, "high": high}
            for name, (low, high) in self.intervals().items()
        }
        for name, found in self.differences().items():
            rows[name] |= {
                "against": others[name],
                "difference": found.mean,
                "difference_low": found.low,
                "difference_high": found.high,
                "p_value": found.p_value,
            }
        frame = pd.DataFrame.from_dict(rows, orient="index")
        frame.index.name = "measure"
        return frame

    def to_frame(self) -> pd.DataFrame:
        """One row a query.

        With another configuration also its nDCG@10 and the ``difference`` of the two.
        """
        import pandas as pd

        rows = self._per_query()
        frame = pd.DataFrame(rows, columns=list(rows[0]) if rows else ["query"])
        if self.against is not None:
            frame["against_ndcg@10"] = [result.ndcg for result in self.against.results]
            frame["difference"] = frame["ndcg@10"] - frame["against_ndcg@10"]
        return frame.set_index("query")

    def to_dict(self) -> EvaluationDict:
        """The figures as JSON values, with their intervals and each query's own."""
        values: dict[str, Any] = {
            "queries": len(self.results),
            "unit": self.unit,
            "configuration": self.label,
            **self.means(),
            "intervals": {name: list(ends) for name, ends in self.intervals().items()},
            "left_out": list(self.left_out),
            "missing": [page.to_dict() for page in self.missing],
            "notes": list(self.notes),
            "per_query": self._per_query(),
        }
        if self.against is not None:
            others = self.against.means()
            values["against"] = {
                "configuration": self.against.label,
                **{
                    name: {
                        "mean": others[name],
                        "difference": found.mean,
                        "interval": [found.low, found.high],
                        "p_value": found.p_value,
                    }
                    for name, found in self.differences().items()
                },
            }
        return cast(EvaluationDict, values)

    def __repr__(self) -> str:
        return (
            f"<Evaluation of {self.label} by {self.unit}: {len(self.results)} queries, "
            f"nDCG@10 {self.ndcg:.3f}>"
        )

    def _repr_html_(self) -> str:
        notes = "".join(f"<p>{escape(note)}</p>" for note in self.notes)
        return str(self.summary().to_html(float_format="{:.3f}".format)) + notes

    def _per_query(self) -> list[dict[str, Any]]:
        return [
            {
                "query": result.query,
                "ndcg@10": result.ndcg,
                f"recall@{self.k}": result.recall,
                "reciprocal_rank": result.reciprocal_rank,
                "judged@10": result.judged,
                "relevant": list(result.relevant),
                f"{self.unit}s": list(result.found),
            }
            for result in self.results
        ]


def evaluate(
    kb: Searchable,
    ground_truth: Sequence[Question] | Judgements,
    *,
    mode: str | Mode,
    retrieval: RetrievalSpec | None,
    against: str | Mode | RetrievalSpec | Evaluation | None,
    k: int,
    on_progress: OnProgress | None = None,
) -> Evaluation:
    """Measure how well a knowledge base answers; see `KnowledgeBase.evaluate`.

    Raises:
        ConfigError: There is nothing to measure by, or an argument is wrong.
    """
    k = check_integer("k", k, 1, MAX_K)
    queries = evaluation_set(kb, ground_truth)
    runs = [_Configuration.of(kb, mode, retrieval)]
    if against is not None and not isinstance(against, Evaluation):
        if isinstance(against, RetrievalSpec):
            runs.append(_Configuration.of(kb, mode, against))
        else:
            runs.append(_Configuration.of(kb, against, retrieval))
    with progress_bar(on_progress) as report:
        measured, *others = [run.measure(kb, queries, k, report) for run in runs]
    if isinstance(against, Evaluation):
        others.append(against)
    missing = missing_pages(kb, queries)
    notes = (*missing_notes(missing), *measured.notes)
    measured = replace(measured, missing=missing, notes=notes)
    return compare(measured, others[0]) if others else measured


def compare(first: Evaluation, second: Evaluation) -> Evaluation:
    """The first evaluation, to be compared with the second.

    Raises:
        ConfigError: They are not of the same queries, unit and depth.
    """
    same = [(e.unit, e.k, [result.query for result in e.results]) for e in (first, second)]
    if same[0] != same[1]:
        raise ConfigError(
            "against: that evaluation is of other queries or another k; evaluate both by the same"
        )
    return replace(first, against=second)


def to_ranking(query: EvaluationQuery, names: Sequence[str], unit: Unit) -> Ranking:
    """A ranking of pages or chunks in terms of what was judged.

    Args:
        query: What was asked.
        names: URIs of pages or ids of chunks, best first, each once.
        unit: Which of the two.
    """
    taken: list[str | None] = []
    for name in names:
        if unit == "page":
            taken.append(matching_page(name, query, taken))
        else:
            taken.append(name if name in query.gains else None)
    places = {name: i for i, name in enumerate(query.gains)}
    found = tuple(None if name is None else places[name] for name in taken)
    return Ranking(tuple(query.gains.values()), found)


@dataclass(frozen=True, slots=True)
class _Configuration:
    """One way of searching that is measured."""

    mode: Mode
    retrieval: RetrievalSpec
    label: str

    @classmethod
    def of(
        cls, kb: Searchable, mode: str | Mode, retrieval: RetrievalSpec | None
    ) -> _Configuration:
        if retrieval is None:
            return cls(check_mode(mode), kb.spec.retrieval, str(mode))
        return cls(check_mode(mode), check_retrieval(retrieval), f"{mode}, other settings")

    def measure(
        self, kb: Searchable, queries: EvaluationSet, k: int, report: OnProgress | None
    ) -> Evaluation:
        retrieval, depth = queries.retrieval(self.retrieval), max(DEPTH, k)
        found = []
        for number, query in enumerate(queries, 1):
            found.append(self._names(kb, query.text, retrieval, queries.unit, depth))
            if report is not None:
                report(Progress("evaluate", number, len(queries), query.text))
        rankings = [
            to_ranking(query, names, queries.unit)
            for query, names in zip(queries, found, strict=True)
        ]
        results = tuple(
            QueryResult(query=query.text, relevant=query.relevant, found=names, **asdict(measures))
            for query, names, measures in zip(queries, found, measure(rankings, k), strict=True)
        )
        return Evaluation(
            results, self.label, queries.unit, k, queries.left_out, notes=unfinished(kb, "evaluate")
        )

    def _names(
        self, kb: Searchable, query: str, retrieval: RetrievalSpec, unit: Unit, depth: int
    ) -> tuple[str, ...]:
        """URIs or ids of what is found, best first, each once."""
        names: list[str] = []
        # several hits may be of one page
        for limit in (depth,) if unit == "chunk" else (3 * depth, 10 * depth):
            hits = kb.search(query, limit=limit, mode=self.mode, retrieval=retrieval)
            names = [hit.uri if unit == "page" else hit.chunk.id for hit in hits]
            names = list(dict.fromkeys(names))[:depth]
            if len(names) == depth or len(hits) < limit:
                break
        return tuple(names)
