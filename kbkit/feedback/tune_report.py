"""The report of tuning."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from html import escape
from typing import TYPE_CHECKING, Any

from kbkit.feedback.statistics import Difference
from kbkit.models.values import Value
from kbkit.recipes import RetrievalSpec

if TYPE_CHECKING:
    import pandas as pd

MAX_P_VALUE = 0.01
"""Largest p-value of a win; strict, because the settings may be saved."""


@dataclass(frozen=True, slots=True)
class Fold:
    """Settings chosen without the held-out queries, measured on these.

    Attributes:
        repeat: Number of the division, from 1.
        fold: Number of the held-out part, from 1.
        weights: Chosen on the other queries.
        present: Mean nDCG@10 of the present settings on the held-out queries.
        tuned: Mean nDCG@10 of the chosen settings on them.
    """

    repeat: int
    fold: int
    queries: int
    weights: dict[str, float]
    present: float
    tuned: float


@dataclass(frozen=True, slots=True)
class TuneReport(Value):
    """Result of tuning.

    Attributes:
        queries: Number of queries.
        tried: Number of settings tried.
        present: Settings before tuning.
        proposed: Settings chosen on all queries.
        present_ndcg: Mean nDCG@10 of the present settings.
        tuned_ndcg: Mean nDCG@10 of the choices on held-out queries.
        difference: ``tuned_ndcg`` minus ``present_ndcg``, with confidence interval and p-value.
        kept: Whether the proposed settings were saved.
    """

    queries: int
    weights: tuple[str, ...]
    tried: int
    present: RetrievalSpec
    proposed: RetrievalSpec
    present_ndcg: float
    tuned_ndcg: float
    difference: Difference
    folds: tuple[Fold, ...]
    kept: bool = False
    notes: tuple[str, ...] = ()

    @property
    def wins(self) -> bool:
        """Whether the choice is better on held-out queries, with p below 0.01."""
        return self.difference.mean > 0 and self.difference.p_value < MAX_P_VALUE

    @property
    def settings(self) -> RetrievalSpec:
        """Recommended settings: the proposed ones if they win, else the present ones."""
        return self.proposed if self.wins else self.present

    @property
    def reason(self) -> str:
        """Why the proposed settings are recommended or not."""
        difference = self.difference
        change = (
            f"on held-out queries nDCG@10 goes from {self.present_ndcg:.3f} to "
            f"{self.tuned_ndcg:.3f} ({difference.mean:+.3f}, 95 % confidence {difference.low:+.3f} "
            f"to {difference.high:+.3f}, p = {difference.p_value:.3f})"
        )
        if self.wins:
            return f"the proposed settings win: {change}"
        why = "which may be chance" if difference.mean > 0 else "which is not an improvement"
        return f"the present settings stay: {change}, {why}"

    def to_yaml(self) -> str:
        """Return `settings` to paste into the recipe; otherwise the next build reverts them."""
        return self.settings.to_yaml()

    def to_frame(self) -> pd.DataFrame:
        """Return one row per fold: number of queries, chosen weights and both figures."""
        import pandas as pd

        columns = ["repeat", "fold", "queries", *self.weights, "present", "tuned"]
        rows = [asdict(fold) | fold.weights for fold in self.folds]
        return pd.DataFrame(rows, columns=columns).set_index(["repeat", "fold"])

    def to_dict(self) -> Mapping[str, Any]:
        """Return the report as JSON values, also whether the proposed settings win, and why."""
        return {**Value.to_dict(self), "wins": self.wins, "reason": self.reason}

    def __repr__(self) -> str:
        return f"<TuneReport of {self.queries} queries: {self.reason}>"

    def _repr_html_(self) -> str:
        import pandas as pd

        names = list(self.weights)
        rows = {
            label: [getattr(settings, name) for name in names]
            for label, settings in (("present", self.present), ("proposed", self.proposed))
        }
        frame = pd.DataFrame.from_dict(rows, orient="index", columns=names)
        notes = "".join(f"<p>{escape(note)}</p>" for note in self.notes)
        return f"<p>{self.reason}</p>{frame.to_html()}{notes}"
