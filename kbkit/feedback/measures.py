"""Measures of rankings, by ir-measures (which asks trec_eval's code)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

DEPTH = 10
"""Places of a ranking that nDCG and MRR read."""


@dataclass(frozen=True, slots=True)
class Ranking:
    """What was found for a query, and what should have been.

    Attributes:
        gains: What everything that was judged is worth, 0 or more; more than 0 is relevant.
        found: Best first, the place in ``gains`` of each thing found; ``None`` for what was not
            judged, which counts as not relevant.
    """

    gains: tuple[int, ...]
    found: tuple[int | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Measures:
    """How good the ranking of one query is, all from 0 to 1.

    Attributes:
        ndcg: nDCG of the first 10, with the gains as they are and the discount log2(rank + 1)
            (Järvelin and Kekäläinen, "Cumulated gain-based evaluation of IR techniques", 2002).
        reciprocal_rank: 1 / rank of the first relevant one, 0 where none is among the first 10.
        recall: Share of the relevant ones that were found in time.
        judged: Share of the first 10 that somebody judged.
    """

    ndcg: float
    reciprocal_rank: float
    recall: float
    judged: float

    @property
    def hit_at_1(self) -> float:
        """1 where the first one is relevant, else 0."""
        return float(self.reciprocal_rank == 1)


def measure(rankings: Sequence[Ranking], k: int) -> list[Measures]:
    """How good each ranking is.

    Args:
        rankings: Each with one relevant thing at least.
        k: Places that recall reads.
    """
    import ir_measures
    from ir_measures import RR, Judged, R, nDCG

    measures: dict[Any, str] = {
        nDCG @ DEPTH: "ndcg",
        RR @ DEPTH: "reciprocal_rank",
        R @ k: "recall",
        Judged @ DEPTH: "judged",
    }
    qrels = {
        str(query): {str(i): gain for i, gain in enumerate(ranking.gains)}
        for query, ranking in enumerate(rankings)
    }
    # names of what was not judged begin with x; scores fall with the rank
    runs = {
        str(query): {
            (f"x{rank}" if i is None else str(i)): float(-rank)
            for rank, i in enumerate(ranking.found)
        }
        for query, ranking in enumerate(rankings)
        if ranking.found
    }
    values: list[dict[str, float]] = [dict.fromkeys(measures.values(), 0.0) for _ in rankings]
    for metric in ir_measures.iter_calc(list(measures), qrels, runs):
        values[int(metric.query_id)][measures[metric.measure]] = float(metric.value)
    return [Measures(**found) for found in values]
