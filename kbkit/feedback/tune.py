"""Tune the weights of retrieval on judged queries, and recommend them only if they win.

Measure a fixed set of settings on all queries, and choose the mean of the best sixteenth, which is
more stable than the best one. Validate by cross-validation: rank each fifth of the queries by the
settings chosen on the others and by the present settings; average five divisions. With several
knowledge bases, hold out each of them in turn. The choice wins if p < 0.01.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kbkit.errors import ImpossibleError
from kbkit.feedback.evaluate import CandidateCache
from kbkit.feedback.evaluation_set import Searchable, evaluation_set, unfinished
from kbkit.feedback.judgements import Judgements
from kbkit.feedback.statistics import Values, difference
from kbkit.feedback.tune_report import Fold, TuneReport
from kbkit.models import Progress
from kbkit.recipes import Question, RetrievalSpec
from kbkit.runtime.progress import OnProgress, progress_bar
from kbkit.runtime.validation import check_integer

GroundTruth = Sequence[Question] | Judgements

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
_TRIED = 256
_BEST = 16
_FOLDS = 5
_REPEATS = 5


def tune(
    kb: Searchable,
    ground_truth: GroundTruth,
    *,
    others: Sequence[tuple[Searchable, GroundTruth]] = (),
    seed: int = 0,
    on_progress: OnProgress | None = None,
) -> TuneReport:
    """Learn the weights of hybrid search from queries with known answers."""
    seed = check_integer("seed", seed, 0, 2**32 - 1)
    sets = [(each, evaluation_set(each, truth)) for each, truth in ((kb, ground_truth), *others)]
    for each, queries in sets:
        if len(queries) < MIN_QUERIES:
            raise ImpossibleError(
                f"{each.name}: tuning needs {MIN_QUERIES} queries with known answers, there "
                f"are {len(queries)}; rate more, or write more golden questions"
            )
    with progress_bar(on_progress) as report:
        caches = [
            CandidateCache.fetch(each, queries, _with_all_retrievers(each.spec.retrieval), report)
            for each, queries in sets
        ]
        ranges = RANGES | {
            name: ends
            for name, ends in (RATING_RANGES | GRAPH_RANGES).items()
            if any(cache.varies(name.removesuffix("_weight")) for cache in caches)
        }
        points = _points(ranges)
        corpora = [
            _Corpus.measure(each, cache, ranges, points, report)
            for (each, _), cache in zip(sets, caches, strict=True)
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
        notes=tuple(note for each, _ in sets for note in unfinished(each, "tune")),
    )


@dataclass(frozen=True, slots=True)
class _Corpus:
    """Queries of one knowledge base with precomputed features for ranking.

    Attributes:
        now: nDCG@10 of each query with the present settings, shape ``(queries,)``.
        figures: nDCG@10 of each query at each point, shape ``(tried, queries)``.
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
        corpus = cls(kb.name, present, tuple(names), cache, now, np.empty((len(points), len(now))))
        for number, point in enumerate(points):
            corpus.figures[number] = cache.ndcg(corpus.weighted(point))
            if report is not None:
                report(Progress("tune", number + 1, len(points), kb.name))
        return corpus

    def weighted(self, weights: Values) -> RetrievalSpec:
        values = dict(zip(self.names, weights.round(2).tolist(), strict=True))
        return self.present.model_copy(update=values)

    def fold(
        self, repeat: int, number: int, queries: NDArray[np.int64], weights: Values
    ) -> tuple[Fold, Values]:
        chosen = self.weighted(weights)
        ndcg = self.cache.ndcg(chosen)[queries]
        held_out = Fold(
            repeat=repeat,
            fold=number,
            held_out=self.name,
            queries=len(queries),
            weights={name: getattr(chosen, name) for name in self.names},
            present=float(self.now[queries].mean()),
            tuned=float(ndcg.mean()),
        )
        return held_out, ndcg


def _by_corpus(corpora: Sequence[_Corpus], points: Values) -> tuple[list[Fold], Values]:
    folds, tuned = [], []
    for number, corpus in enumerate(corpora, 1):
        weights = _choice(points, [other.figures for other in corpora if other is not corpus])
        fold, ndcg = corpus.fold(1, number, np.arange(len(corpus.now)), weights)
        folds.append(fold)
        tuned.append(ndcg)
    return folds, np.concatenate(tuned)


def _by_fold(corpus: _Corpus, points: Values, seed: int) -> tuple[list[Fold], Values]:
    count = len(corpus.now)
    generator = np.random.default_rng(seed)
    folds: list[Fold] = []
    tuned = np.zeros(count)
    for repeat in range(1, _REPEATS + 1):
        parts = np.array_split(generator.permutation(count), _FOLDS)
        for number, held_out in enumerate(parts, 1):
            weights = _choice(points, [np.delete(corpus.figures, held_out, axis=1)])
            fold, ndcg = corpus.fold(repeat, number, held_out, weights)
            tuned[held_out] += ndcg / _REPEATS
            folds.append(fold)
    return folds, tuned


def _choice(points: Values, figures: Sequence[Values]) -> Values:
    means = np.mean([figure.mean(axis=1) for figure in figures], axis=0)
    chosen: Values = points[np.argsort(-means, kind="stable")[:_BEST]].mean(axis=0)
    return chosen


def _points(ranges: Mapping[str, tuple[float, float]]) -> Values:
    """Return the weights to try: a Sobol sequence, shape ``(tried, weights)``."""
    from scipy.stats import qmc

    low, high = zip(*ranges.values(), strict=True)
    sequence = qmc.Sobol(len(ranges), rng=np.random.default_rng(0)).random(_TRIED)
    return np.asarray(qmc.scale(sequence, low, high), np.float64)


def _with_all_retrievers(retrieval: RetrievalSpec) -> RetrievalSpec:
    """Return settings that use every retriever; one with weight 0 finds no candidates."""
    fields = RetrievalSpec.model_fields
    unused = [name for name in _RETRIEVER_WEIGHTS if not getattr(retrieval, name)]
    return retrieval.model_copy(update={name: fields[name].default or 1.0 for name in unused})
