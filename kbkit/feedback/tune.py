"""Learns the weights of retrieval from judged queries, and keeps them only if they win.

A fixed set of settings is tried on all queries once. What is proposed is the mean of the best
sixteenth of them: the mean of many good settings is less of an accident than the best one. How
good such a choice is, is told by queries that had no part in it: in turn each fifth of the
queries is held out, a choice is made by the others, and both it and the present settings answer
those held out; five ways of dividing the queries are averaged. Of several knowledge bases each is
held out whole in turn, and answered by what the others choose. Only where the choice wins there
clearly (p < 0.01) does it replace the present settings.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kbkit.errors import ConfigError
from kbkit.feedback.candidate_cache import CandidateCache
from kbkit.feedback.evaluation_set import Searchable, evaluation_set, unfinished
from kbkit.feedback.judgements import Judgements
from kbkit.feedback.statistics import Difference, Values, difference
from kbkit.models import Progress
from kbkit.progress import OnProgress, progress_bar
from kbkit.recipes import Question, RetrievalSpec
from kbkit.validation import check_integer

if TYPE_CHECKING:
    import pandas as pd

GroundTruth = Sequence[Question] | Judgements

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
RATING_RANGES = {"learned_weight": (0.0, 4.0), "rating_weight": (0.0, 0.5)}
"""What is learned where ratings tell anything about the candidates of some query."""
GRAPH_RANGES = {"graph_weight": (0.0, 1.0)}
"""What is learned where the graph does."""
_LEGS = ("card_weight", "page_weight", "learned_weight", "graph_weight")
"""Weights of legs that bring candidates of their own."""
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
        held_out: The knowledge base they are of.
        queries: How many those are.
        weights: What the other queries chose.
        present: Mean nDCG@10 of the present settings on the queries held out.
        tuned: The same of the chosen settings.
    """

    repeat: int
    fold: int
    held_out: str
    queries: int
    weights: dict[str, float]
    present: float
    tuned: float


@dataclass(frozen=True, slots=True)
class TuneReport:
    """What tuning found.

    Attributes:
        queries: Number of queries it learned from.
        weights: Names of the weights that were learned.
        tried: Number of settings that were tried.
        present: The settings before.
        proposed: What all queries together choose.
        present_ndcg: Mean nDCG@10 of the present settings.
        tuned_ndcg: Mean nDCG@10 of what was chosen, on held-out queries.
        difference: Of the two, with its confidence interval and p-value.
        folds: The choices that this rests on.
        kept: Whether the proposed settings were written to the knowledge base.
        notes: What one should know before believing the figures.
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
                "held_out": fold.held_out,
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
            "present": {name: getattr(self.present, name) for name in self.weights},
            "proposed": {name: getattr(self.proposed, name) for name in self.weights},
            "present_ndcg@10": self.present_ndcg,
            "tuned_ndcg@10": self.tuned_ndcg,
            "difference": found.mean,
            "interval": [found.low, found.high],
            "p_value": found.p_value,
            "wins": self.wins,
            "kept": self.kept,
            "reason": self.reason,
            "notes": list(self.notes),
            "folds": self.to_frame().reset_index().to_dict("records"),
        }

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


def tune(
    kb: Searchable,
    ground_truth: GroundTruth,
    *,
    others: Sequence[tuple[Searchable, GroundTruth]] = (),
    seed: int = 0,
    on_progress: OnProgress | None = None,
) -> TuneReport:
    """Learn weights of hybrid search from queries whose answers are known.

    Args:
        kb: Whose settings are to be learned.
        ground_truth: Golden questions (learned by page) or judgements (by chunk).
        others: More knowledge bases to learn from, with their questions or judgements. Each of all
            is held out in turn, and counts the same however many queries it has.
        seed: Another one divides the queries of a single knowledge base in other ways.
        on_progress: Called as the work goes on; by default notebooks show a bar.

    Raises:
        ConfigError: There are fewer than 10 queries, or one is wrong.
        EmbedderError: The embedder failed.
    """
    seed = check_integer("seed", seed, 0, 2**32 - 1)
    asked = [(each, evaluation_set(each, known)) for each, known in ((kb, ground_truth), *others)]
    for each, queries in asked:
        if len(queries) < MIN_QUERIES:
            raise ConfigError(
                f"{each.name}: tuning needs {MIN_QUERIES} queries whose answers are known, there "
                f"are {len(queries)}; rate more, or write more golden questions"
            )
    with progress_bar(on_progress) as report:
        caches = [
            CandidateCache.fetch(each, queries, _with_all_legs(each.spec.retrieval), report)
            for each, queries in asked
        ]
        ranges = RANGES | {
            name: ends
            for name, ends in (RATING_RANGES | GRAPH_RANGES).items()
            if any(cache.tells(name.removesuffix("_weight")) for cache in caches)
        }
        points = _points(ranges)
        corpora = [
            _Corpus.measure(each, cache, ranges, points, report)
            for (each, _), cache in zip(asked, caches, strict=True)
        ]
    folds, tuned = _by_corpus(corpora, points) if others else _by_fold(corpora[0], points, seed)
    now = np.concatenate([corpus.now for corpus in corpora])
    return TuneReport(
        queries=len(now),
        weights=tuple(ranges),
        tried=len(points),
        present=kb.spec.retrieval,
        proposed=corpora[0].weighted(_choice(points, [corpus.figures for corpus in corpora])),
        present_ndcg=float(now.mean()),
        tuned_ndcg=float(tuned.mean()),
        difference=difference(tuned, now),
        folds=tuple(folds),
        notes=tuple(note for each, _ in asked for note in unfinished(each, "tune")),
    )


@dataclass(frozen=True, slots=True)
class _Corpus:
    """The queries of one knowledge base, and what ranking in many ways makes of them.

    Attributes:
        now: nDCG@10 of each query by the present settings, shape ``(queries,)``.
        figures: The same of each of the points tried, shape ``(tried, queries)``.
    """

    name: str
    present: RetrievalSpec
    names: tuple[str, ...]
    cache: CandidateCache
    now: Values
    figures: Values

    @classmethod
    def measure(
        cls,
        kb: Searchable,
        cache: CandidateCache,
        names: Iterable[str],
        points: Values,
        report: OnProgress | None,
    ) -> _Corpus:
        present = kb.spec.retrieval
        now = cache.ndcg(present)
        found = cls(kb.name, present, tuple(names), cache, now, np.empty((len(points), len(now))))
        for number, point in enumerate(points):
            found.figures[number] = cache.ndcg(found.weighted(point))
            if report is not None:
                report(Progress("tune", number + 1, len(points), kb.name))
        return found

    def weighted(self, weights: Values) -> RetrievalSpec:
        """The present settings with other weights."""
        values = dict(zip(self.names, weights.round(2).tolist(), strict=True))
        return self.present.model_copy(update=values)

    def fold(
        self, repeat: int, number: int, queries: NDArray[np.int64], weights: Values
    ) -> tuple[Fold, Values]:
        """How weights do on queries that had no part in their choice."""
        chosen = self.weighted(weights)
        found = self.cache.ndcg(chosen)[queries]
        held_out = Fold(
            repeat=repeat,
            fold=number,
            held_out=self.name,
            queries=len(queries),
            weights={name: getattr(chosen, name) for name in self.names},
            present=float(self.now[queries].mean()),
            tuned=float(found.mean()),
        )
        return held_out, found


def _by_corpus(corpora: Sequence[_Corpus], points: Values) -> tuple[list[Fold], Values]:
    """Each knowledge base answered by the choice of the others."""
    folds, tuned = [], []
    for number, corpus in enumerate(corpora, 1):
        weights = _choice(points, [other.figures for other in corpora if other is not corpus])
        fold, found = corpus.fold(1, number, np.arange(len(corpus.now)), weights)
        folds.append(fold)
        tuned.append(found)
    return folds, np.concatenate(tuned)


def _by_fold(corpus: _Corpus, points: Values, seed: int) -> tuple[list[Fold], Values]:
    """The folds, and of each query the mean figure of the choices that it had no part in."""
    count = len(corpus.now)
    generator = np.random.default_rng(seed)
    folds: list[Fold] = []
    tuned = np.zeros(count)
    for repeat in range(1, _REPEATS + 1):
        parts = np.array_split(generator.permutation(count), _FOLDS)
        for number, held_out in enumerate(parts, 1):
            weights = _choice(points, [np.delete(corpus.figures, held_out, axis=1)])
            fold, found = corpus.fold(repeat, number, held_out, weights)
            tuned[held_out] += found / _REPEATS
            folds.append(fold)
    return folds, tuned


def _choice(points: Values, figures: Sequence[Values]) -> Values:
    """The mean of the points with the best mean figures.

    Args:
        points: What was tried, shape ``(tried, weights)``.
        figures: Of each knowledge base: of each point and query, shape ``(tried, queries)``.
    """
    means = np.mean([found.mean(axis=1) for found in figures], axis=0)
    chosen: Values = points[np.argsort(-means, kind="stable")[:_BEST]].mean(axis=0)
    return chosen


def _points(ranges: Mapping[str, tuple[float, float]]) -> Values:
    """The weights that are tried: a Sobol sequence, shape ``(tried, weights)``."""
    from scipy.stats import qmc

    low, high = zip(*ranges.values(), strict=True)
    sequence = qmc.Sobol(len(ranges), rng=np.random.default_rng(0)).random(_TRIED)
    return np.asarray(qmc.scale(sequence, low, high), np.float64)


def _with_all_legs(retrieval: RetrievalSpec) -> RetrievalSpec:
    """Settings by which each leg finds candidates: a leg without weight is not even asked."""
    fields = RetrievalSpec.model_fields
    silent = [name for name in _LEGS if not getattr(retrieval, name)]
    return retrieval.model_copy(update={name: fields[name].default or 1.0 for name in silent})
