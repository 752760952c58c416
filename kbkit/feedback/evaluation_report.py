"""The report of an evaluation, and the comparison of two."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from html import escape
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from kbkit.errors import ConfigError
from kbkit.feedback import statistics
from kbkit.models import Mode
from kbkit.models.values import Value, to_json

if TYPE_CHECKING:
    import pandas as pd

Unit = Literal["page", "chunk"]


@dataclass(frozen=True, slots=True)
class MissingPage(Value):
    """A page of a golden question that does not exist, so that no search can find it.

    Attributes:
        page: As the question names it.
        nearest: Most similar existing page, or ``""``.
    """

    query: str
    page: str
    nearest: str = ""

    def __str__(self) -> str:
        meant = f"; did you mean {self.nearest}?" if self.nearest else ""
        return f"{self.query!r} names {self.page}, which does not exist{meant}"


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryResult(statistics.Measures):
    """Ranking of one query, with its measures.

    Attributes:
        relevant: URI suffixes of pages, or ids of chunks.
        found: URIs of pages or ids of chunks, best first.
    """

    query: str
    relevant: tuple[str, ...]
    found: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Evaluation(Value):
    """Mean measures over a set of queries, 0 to 1.

    Attributes:
        label: Name of the configuration, such as ``hybrid``.
        k: Number of results for Recall@k.
        left_out: Judged queries without a relevant chunk; not counted.
        missing: Pages of the questions that do not exist; they count as not found.
        notes: Warnings about the figures.
        against: The same queries with another configuration, if any.
    """

    results: tuple[QueryResult, ...]
    label: str = Mode.HYBRID.value
    unit: Unit = "page"
    k: int = statistics.DEPTH
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

    def values(self) -> dict[str, statistics.Values]:
        """Return the value of each query, by measure."""
        return {
            "ndcg@10": np.array([result.ndcg for result in self.results]),
            f"recall@{self.k}": np.array([result.recall for result in self.results]),
            "mrr@10": np.array([result.reciprocal_rank for result in self.results]),
            "hit@1": np.array([result.hit_at_1 for result in self.results]),
        }

    def means(self) -> dict[str, float]:
        """Return the mean of each measure."""
        return {
            name: float(values.mean()) if self.results else 0.0
            for name, values in self.values().items()
        }

    def intervals(self) -> dict[str, tuple[float, float]]:
        """Return the 95 % confidence interval of each mean; see `confidence_interval`."""
        return {
            name: statistics.confidence_interval(values) for name, values in self.values().items()
        }

    def differences(self) -> dict[str, statistics.Difference]:
        """Return differences to `against` by measure; empty without one."""
        if self.against is None:
            return {}
        baseline = self.against.values()
        return {
            name: statistics.difference(values, baseline[name])
            for name, values in self.values().items()
        }

    def summary(self) -> pd.DataFrame:
        """Return one row per measure: ``mean``, ``low`` and ``high`` (95 % confidence).

        With `against`, also its mean (``against``), the ``difference`` with its interval, and the
        ``p_value`` of a paired permutation test.
        """
        import pandas as pd

        means = self.means()
        baseline = self.against.means() if self.against is not None else {}
        rows = {
            name: {"mean": means[name], "low": low, "high": high}
            for name, (low, high) in self.intervals().items()
        }
        for name, change in self.differences().items():
            rows[name] |= {
                "against": baseline[name],
                "difference": change.mean,
                "difference_low": change.low,
                "difference_high": change.high,
                "p_value": change.p_value,
            }
        frame = pd.DataFrame.from_dict(rows, orient="index")
        frame.index.name = "measure"
        return frame

    def to_frame(self) -> pd.DataFrame:
        """Return one row per query; with `against`, also its nDCG@10 and the ``difference``."""
        import pandas as pd

        names = {
            "ndcg": "ndcg@10",
            "recall": f"recall@{self.k}",
            "judged": "judged@10",
            "found": f"{self.unit}s",
        }
        columns = [field.name for field in fields(QueryResult)]
        frame = pd.DataFrame([asdict(result) for result in self.results], columns=columns)
        frame = frame.rename(columns=names)
        if self.against is not None:
            frame["against_ndcg@10"] = [result.ndcg for result in self.against.results]
            frame["difference"] = frame["ndcg@10"] - frame["against_ndcg@10"]
        return frame.set_index("query")

    def to_dict(self) -> Mapping[str, Any]:
        """Return JSON values: means by name, intervals, differences, and each query."""
        figures = {
            "queries": len(self.results),
            **self.means(),
            "intervals": self.intervals(),
            "differences": self.differences(),
        }
        return {**to_json(figures), **Value.to_dict(self)}

    def __repr__(self) -> str:
        return (
            f"<Evaluation of {self.label} by {self.unit}: {len(self.results)} queries, "
            f"nDCG@10 {self.ndcg:.3f}>"
        )

    def _repr_html_(self) -> str:
        notes = "".join(f"<p>{escape(note)}</p>" for note in self.notes)
        return str(self.summary().to_html(float_format="{:.3f}".format)) + notes


def compare(first: Evaluation, second: Evaluation) -> Evaluation:
    """Return the first evaluation with the second as its ``against``."""
    keys = [(e.unit, e.k, [result.query for result in e.results]) for e in (first, second)]
    if keys[0] != keys[1]:
        raise ConfigError(
            "against: this evaluation has other queries or another k; use the same for both"
        )
    return replace(first, against=second)
