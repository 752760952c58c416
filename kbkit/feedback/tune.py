"""Learns the weights of retrieval from judged queries, and keeps them only if they win.

A fixed set of settings is tried on all queries once. What is proposed is the mean of the best
sixteenth of them: the mean of many good settings is less of an accident than the best one. How
good such a choice is, is told by queries that had no part in it: in turn each fifth of the
queries is held out, a choice is made by the others, and both it and the present settings answer
those held out; five ways of dividing the queries are averaged. Only where the choice wins there
clearly (p < 0.01) does it replace the present settings.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kbkit.errors import ConfigError
from kbkit.feedback.candidate_cache import CandidateCache
from kbkit.feedback.evaluation_set import Searchable, evaluation_set
from kbkit.feedback.judgements import Judgements
from kbkit.feedback.statistics import Difference, Values, difference
from kbkit.models import Progress
from kbkit.progress import OnProgress, progress_bar
from kbkit.recipes import Question, RetrievalSpec
from kbkit.validation import check_integer

if TYPE_CHECKING:
    import pandas as pd

MIN_QUERIES = 10
"""Fewer queries tell nothing."""
RANGES = {
    "dense_weight": (0.0, 1.0),
    "document_weight": (0.0, 1.5),
    "title_weight": (0.0, 1.0),
    "heading_weight": (0.0, 1.0),
    "card_weight": (0.0, 2.0),
    "page_weight": (0.0, 1.5),
}
"""What is learned, and between which ends."""
MAX_P_VALUE = 0.01
"""Largest p-value of a win that counts. Stricter than usual, since what is kept ought to last."""
_TRIED = 256
_BEST = 16
_FOLDS = 5
_REPEATS = 5


@dataclass(frozen=True, slots=True)
class Fold:
    """One choice of settings, and how it did on the queries that had no part in it.

    Attributes:
        repeat: Which way of dividing the queries, from 1.
        fold: Which part of them was held out, from 1.
        queries: How many those are.
        weights: What the other queries chose.
        present: Mean nDCG@10 of the present settings on the queries held out.
        tuned: The same of the chosen settings.
    """

    repeat: int
    fold: int
    queries: int
    weights: dict[str, float]
    present: float
    tuned: float


@dataclass(frozen=True, slots=True)
class TuneReport:
    """What tuning found.

    Attributes:
        queries: Number of queries it learned from.
        tried: Number of settings that were tried.
        present: The settings before.
        proposed: What all queries together choose.
        present_ndcg: Mean nDCG@10 of the present settings.
        tuned_ndcg: Mean nDCG@10 of what was chosen, on held-out queries.
        difference: Of the two, with its confidence interval and p-value.
        folds: The choices that this rests on.
        kept: Whether the proposed settings were written to the knowledge base.
    """

    queries: int
    tried: int
    present: RetrievalSpec
    proposed: RetrievalSpec
    present_ndcg: float
    tuned_ndcg: float
    difference: Difference
    folds: tuple[Fold, ...]
    kept: bool = False

    @property
    def wins(self) -> bool:
        """Whether the choice is better on held-out queries, with p below 0.01."""
        return self.difference.mean > 0 and self.difference.p_value < MAX_P_VALUE

    @property
    def settings(self) -> RetrievalSpec:
        """The settings to use: those proposed if they win, else the present ones."""
        return self.proposed if self.wins else self.present

    @property
    def reason(self) -> str:
        """Why the proposed settings are, or are not, to be used."""
        found = self.difference
        change = (
            f"on held-out queries nDCG@10 goes from {self.present_ndcg:.3f} to "
            f"{self.tuned_ndcg:.3f} ({found.mean:+.3f}, 95 % confidence {found.low:+.3f} to "
            f"{found.high:+.3f}, p = {found.p_value:.3f})"
        )
        if self.wins:
            return f"the proposed settings win: {change}"
        why = "which may be chance" if found.mean > 0 else "which is no gain"
        return f"the present settings stay: {change}, {why}"

    def to_yaml(self) -> str:
        """The part of a recipe that has `settings`; without it the next build undoes what was kept.

        Paste it in place of the recipe's ``retrieval`` part.
        """
        return self.settings.to_yaml()

    def to_frame(self) -> pd.DataFrame:
        """One row a fold: its queries, what was chosen, and both figures."""
        import pandas as pd

        rows = [
            {
                "repeat": fold.repeat,
                "fold": fold.fold,
                "queries": fold.queries,
                **fold.weights,
                "present": fold.present,
                "tuned": fold.tuned,
            }
            for fold in self.folds
        ]
        return pd.DataFrame(rows).set_index(["repeat", "fold"])

    def to_dict(self) -> dict[str, Any]:
        """The report as JSON values."""
        found = self.difference
        return {
            "queries": self.queries,
            "tried": self.tried,
            "present": {name: getattr(self.present, name) for name in RANGES},
            "proposed": {name: getattr(self.proposed, name) for name in RANGES},
            "present_ndcg@10": self.present_ndcg,
            "tuned_ndcg@10": self.tuned_ndcg,
            "difference": found.mean,
            "interval": [found.low, found.high],
            "p_value": found.p_value,
            "wins": self.wins,
            "kept": self.kept,
            "reason": self.reason,
            "folds": self.to_frame().reset_index().to_dict("records"),
        }

    def __repr__(self) -> str:
        return f"<TuneReport of {self.queries} queries: {self.reason}>"

    def _repr_html_(self) -> str:
        import pandas as pd

        names = list(RANGES)
        rows = {
            label: [getattr(settings, name) for name in names]
            for label, settings in (("present", self.present), ("proposed", self.proposed))
        }
        frame = pd.DataFrame.from_dict(rows, orient="index", columns=names)
        return f"<p>{self.reason}</p>{frame.to_html()}"


def tune(
    kb: Searchable,
    ground_truth: Sequence[Question] | Judgements,
    *,
    seed: int = 0,
    on_progress: OnProgress | None = None,
) -> TuneReport:
    """Learn weights of hybrid search from queries whose answers are known.

    Args:
        kb: Whose settings are to be learned.
        ground_truth: Golden questions (learned by page) or judgements (by chunk).
        seed: Another one divides the queries in other ways.
        on_progress: Called as the work goes on; by default notebooks show a bar.

    Raises:
        ConfigError: There are fewer than 10 queries, or one is wrong.
        EmbedderError: The embedder failed.
    """
    seed = check_integer("seed", seed, 0, 2**32 - 1)
    queries = evaluation_set(kb, ground_truth)
    if len(queries) < MIN_QUERIES:
        raise ConfigError(
            f"{kb.name}: tuning needs {MIN_QUERIES} queries whose answers are known, there are "
            f"{len(queries)}; rate more, or write more golden questions"
        )
    present = kb.spec.retrieval
    with progress_bar(on_progress) as report:
        cache = CandidateCache.fetch(kb, queries, queries.retrieval(present), report)
        tried = [_with(present, weights) for weights in _points()]
        figures = np.empty((len(tried), len(queries)))
        for number, settings in enumerate(tried):
            if report is not None:
                report(Progress("tune", number, len(tried)))
            figures[number] = cache.ndcg(settings)
    now = cache.ndcg(present)
    folds, tuned = _held_out(cache, figures, present, now, seed)
    return TuneReport(
        queries=len(queries),
        tried=len(tried),
        present=present,
        proposed=_choice(present, figures),
        present_ndcg=float(now.mean()),
        tuned_ndcg=float(tuned.mean()),
        difference=difference(tuned, now),
        folds=tuple(folds),
    )


def _held_out(
    cache: CandidateCache, figures: Values, present: RetrievalSpec, now: Values, seed: int
) -> tuple[list[Fold], Values]:
    """The folds, and of each query the mean figure of the choices that it had no part in."""
    count = figures.shape[1]
    generator = np.random.default_rng(seed)
    folds: list[Fold] = []
    tuned = np.zeros(count)
    for repeat in range(1, _REPEATS + 1):
        parts = np.array_split(generator.permutation(count), _FOLDS)
        for number, held_out in enumerate(parts, 1):
            chosen = _choice(present, np.delete(figures, held_out, axis=1))
            found = cache.ndcg(chosen)[held_out]
            tuned[held_out] += found / _REPEATS
            folds.append(
                Fold(
                    repeat=repeat,
                    fold=number,
                    queries=len(held_out),
                    weights={name: getattr(chosen, name) for name in RANGES},
                    present=float(now[held_out].mean()),
                    tuned=float(found.mean()),
                )
            )
    return folds, tuned


def _choice(present: RetrievalSpec, figures: Values) -> RetrievalSpec:
    """The mean of the settings with the best mean figures.

    Args:
        present: What is not learned is as it is here.
        figures: Of each setting that was tried and each query, shape ``(tried, queries)``.
    """
    best = np.argsort(-figures.mean(axis=1), kind="stable")[:_BEST]
    return _with(present, _points()[best].mean(axis=0))


def _points() -> NDArray[np.float64]:
    """The weights that are tried: a Sobol sequence, shape ``(tried, weights)``."""
    from scipy.stats import qmc

    low, high = zip(*RANGES.values(), strict=True)
    sequence = qmc.Sobol(len(RANGES), rng=np.random.default_rng(0)).random(_TRIED)
    return np.asarray(qmc.scale(sequence, low, high), np.float64)


def _with(present: RetrievalSpec, weights: NDArray[np.float64]) -> RetrievalSpec:
    values = dict(zip(RANGES, weights.round(2).tolist(), strict=True))
    return present.model_copy(update=values)
