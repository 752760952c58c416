"""Tune the weights of retrieval on judged queries, and recommend them only if they win.

Measure a fixed set of settings on all queries, and choose the mean of the best sixteenth, which is
more stable than the best one. Validate by cross-validation: rank each fifth of the queries by the
settings chosen on the others and by the present settings; average five divisions. The choice wins
if p < 0.01.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from kbkit.errors import ImpossibleError
from kbkit.feedback.evaluate import CandidateCache
from kbkit.feedback.evaluation_set import Searchable, evaluation_set, unfinished_warnings
from kbkit.feedback.judgements import Judgements
from kbkit.feedback.statistics import Values, difference
from kbkit.feedback.tune_report import Fold, TuneReport
from kbkit.models import Progress
from kbkit.recipes import Question, RetrievalSpec
from kbkit.runtime.progress import OnProgress, progress_bar
from kbkit.runtime.validation import check_integer

MIN_QUERIES = 10
RANGES = {
    "dense_weight": (0.0, 1.0),
    "document_weight": (0.0, 1.5),
    "title_weight": (0.0, 1.0),
    "heading_weight": (0.0, 1.0),
    "summary_weight": (0.0, 2.0),
    "page_weight": (0.0, 1.5),
}
RATING_RANGES = {"learned_weight": (0.0, 4.0), "rating_weight": (0.0, 0.5)}
"""Tuned only if ratings affect a query."""
GRAPH_RANGES = {"graph_weight": (0.0, 1.0)}
"""Tuned only if the graph affects a query."""
_RETRIEVER_WEIGHTS = ("summary_weight", "page_weight", "learned_weight", "graph_weight")
"""Weights of retrievers that add candidates."""
_TRIALS = 256
_BEST_TRIALS = 16
_FOLDS = 5
_REPEATS = 5


def tune(
    kb: Searchable,
    ground_truth: Sequence[Question] | Judgements,
    *,
    seed: int = 0,
    on_progress: OnProgress | None = None,
) -> TuneReport:
    """Learn the weights of hybrid search from queries with known answers."""
    seed = check_integer("seed", seed, 0, 2**32 - 1)
    queries = evaluation_set(kb, ground_truth)
    if len(queries) < MIN_QUERIES:
        raise ImpossibleError(
            f"{kb.name}: tuning needs {MIN_QUERIES} queries with known answers, there are "
            f"{len(queries)}; rate more, or write more golden questions"
        )
    current = kb.spec.retrieval
    with progress_bar(on_progress) as report:
        cache = CandidateCache.fetch(kb, queries, _with_all_retrievers(current), report)
        ranges = RANGES | {
            name: ends
            for name, ends in (RATING_RANGES | GRAPH_RANGES).items()
            if np.any(getattr(cache.features, name.removesuffix("_weight")))
        }
        trials = Trials(current, tuple(ranges), cache, _points(ranges))
        figures = trials.measure(report)
    current_ndcg = cache.ndcg(current)
    folds, tuned = trials.cross_validate(figures, current_ndcg, seed)
    return TuneReport(
        queries=len(current_ndcg),
        weights=trials.names,
        tried=len(trials.points),
        present=current,
        proposed=trials.best_settings(figures),
        present_ndcg=float(current_ndcg.mean()),
        tuned_ndcg=float(tuned.mean()),
        difference=difference(tuned, current_ndcg),
        folds=tuple(folds),
        notes=unfinished_warnings(kb, "tune"),
    )


@dataclass(frozen=True, slots=True)
class Trials:
    """Settings to try on the queries of a knowledge base.

    Attributes:
        points: Weights by `names`, shape ``(tried, names)``.
    """

    present: RetrievalSpec
    names: tuple[str, ...]
    cache: CandidateCache
    points: Values

    def measure(self, report: OnProgress) -> Values:
        """Return nDCG@10 of each query at each point, shape ``(tried, queries)``."""
        rows = []
        for number, point in enumerate(self.points, 1):
            rows.append(self.cache.ndcg(self._with_weights(point)))
            report(Progress("tune", number, len(self.points)))
        return np.array(rows)

    def best_settings(self, figures: Values) -> RetrievalSpec:
        """Return the mean of the best points."""
        top = np.argsort(-figures.mean(axis=1), kind="stable")[:_BEST_TRIALS]
        return self._with_weights(self.points[top].mean(axis=0))

    def cross_validate(self, figures: Values, now: Values, seed: int) -> tuple[list[Fold], Values]:
        """Return the folds, and nDCG@10 of each query by settings chosen without it."""
        generator = np.random.default_rng(seed)
        folds: list[Fold] = []
        tuned_ndcg = np.zeros(len(now))
        for repeat in range(1, _REPEATS + 1):
            parts = np.array_split(generator.permutation(len(now)), _FOLDS)
            for number, held_out in enumerate(parts, 1):
                settings = self.best_settings(np.delete(figures, held_out, axis=1))
                ndcg = self.cache.ndcg(settings)[held_out]
                tuned_ndcg[held_out] += ndcg / _REPEATS
                fold = Fold(
                    repeat=repeat,
                    fold=number,
                    queries=len(held_out),
                    weights={name: getattr(settings, name) for name in self.names},
                    present=float(now[held_out].mean()),
                    tuned=float(ndcg.mean()),
                )
                folds.append(fold)
        return folds, tuned_ndcg

    def _with_weights(self, weights: Values) -> RetrievalSpec:
        values = dict(zip(self.names, weights.round(2).tolist(), strict=True))
        return self.present.model_copy(update=values)


def _points(ranges: Mapping[str, tuple[float, float]]) -> Values:
    """Return the weights to try: a Sobol sequence, shape ``(tried, weights)``."""
    from scipy.stats import qmc

    low, high = zip(*ranges.values(), strict=True)
    sequence = qmc.Sobol(len(ranges), rng=np.random.default_rng(0)).random(_TRIALS)
    return np.asarray(qmc.scale(sequence, low, high), np.float64)


def _with_all_retrievers(retrieval: RetrievalSpec) -> RetrievalSpec:
    """Return settings that use every retriever; one with weight 0 finds no candidates."""
    fields = RetrievalSpec.model_fields
    unused = [name for name in _RETRIEVER_WEIGHTS if not getattr(retrieval, name)]
    return retrieval.model_copy(update={name: fields[name].default or 1.0 for name in unused})
