"""Weights chosen on other sets than the one they are measured on, and the value of each retriever.

The candidates of all questions are fetched once (`kbkit.feedback.evaluate` ranks as search does,
which is checked). For each set, the weights with the best mean nDCG@10 on the other sets are
chosen: first the best of some hundred combinations, then one weight at a time. They are measured
on the set left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest

import numpy as np
from _corpora import Corpus, Place, corpora, kept_folder, path_of, table
from _figures import MANUALS
from quality import CHUNKS_ALONE, HITS, kbkit_search
from scipy.stats import qmc

from kbkit.feedback.evaluate import CandidateCache
from kbkit.feedback.evaluation_set import EvaluationQuery, EvaluationSet
from kbkit.feedback.statistics import Values, difference
from kbkit.feedback.tune import RANGES
from kbkit.knowledge_base import handle_of
from kbkit.recipes import RetrievalSpec

TRIED, BEST = 256, 8
STEPS, SWEEPS = 10, 3
"""Steps of a weight's range, and rounds over all weights."""
NEAR = 0.005
"""Allowed difference between the mean figure here and that of search."""

Steps = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Tried:
    """A set and its figures for each combination of weights.

    Attributes:
        name: Name of the set.
        cache: Candidates of its questions.
        present: The default weights of kbkit.
        shipped: nDCG@10 with the default weights, one for each question.
        means: Mean nDCG@10 of each combination, shape ``(combinations,)``.
        known: Mean nDCG@10 of further combinations, by their steps.
    """

    name: str
    cache: CandidateCache
    present: RetrievalSpec
    shipped: Values
    means: Values
    known: dict[Steps, float] = field(default_factory=dict)

    @classmethod
    def of(cls, corpus: Corpus) -> Tried:
        handle, present = handle_of(corpus.kb), corpus.kb.spec.retrieval
        cache = CandidateCache.fetch(handle, _evaluation(corpus), present)
        shipped = cache.ndcg(present)
        if corpus.questions[0].grades:  # passages are cut off at another depth
            search = kbkit_search(corpus)
            found = [one.ndcg(search(one.text, HITS)) for one in corpus.questions]
            off = abs(float(np.mean(found)) - float(shipped.mean()))
            print(f"{corpus.name}: cached and searched nDCG@10 differ by {off:.5f}", flush=True)
            assert off < NEAR, f"{corpus.name}: {np.mean(found):.4f} and {shipped.mean():.4f}"
        means = [float(cache.ndcg(_with(present, point)).mean()) for point in combinations()]
        return cls(corpus.name, cache, present, shipped, np.array(means))

    def mean(self, steps: Steps) -> float:
        """Return the mean nDCG@10 of weights given as steps from the low end of their ranges."""
        if steps not in self.known:
            figures = self.cache.ndcg(_with(self.present, _weights(steps)))
            self.known[steps] = float(figures.mean())
        return self.known[steps]


def combinations() -> Values:
    """Return the combinations to try: a Sobol sequence, shape ``(combinations, weights)``."""
    low, high = zip(*RANGES.values(), strict=True)
    points = qmc.Sobol(len(RANGES), rng=np.random.default_rng(1)).random(TRIED)
    return np.asarray(qmc.scale(points, low, high), np.float64)


def chosen(tried: Sequence[Tried]) -> Values:
    """Return the weights with the best mean over some sets, each set counting alike."""

    def mean(steps: Steps) -> float:
        return float(np.mean([one.mean(steps) for one in tried]))

    means = np.mean([one.means for one in tried], axis=0)
    start = combinations()[np.argsort(-means, kind="stable")[:BEST]].mean(axis=0)
    low, high = np.array(list(RANGES.values())).T
    best: Steps = tuple(np.rint((start - low) / (high - low) * STEPS).astype(int).tolist())
    for _ in range(SWEEPS):
        before = best
        for i in range(len(best)):
            ways = [(*best[:i], step, *best[i + 1 :]) for step in range(STEPS + 1)]
            best = max(ways, key=lambda steps: (mean(steps), steps == best))
        if best == before:
            break
    return _weights(best)


def _weights(steps: Steps) -> Values:
    low, high = np.array(list(RANGES.values())).T
    found: Values = low + np.array(steps) / STEPS * (high - low)
    return found


def held_out(names: Sequence[str]) -> Iterator[list[str]]:
    """Tabulate the weights by the set left out."""
    tried = [Tried.of(corpus) for corpus in _sets(names)]
    if len(tried) < 2:
        print("held-out: two sets at least are needed")
        return
    rows, picks, ours, theirs = [], [], [], []
    for one in tried:
        pick = chosen([other for other in tried if other is not one])
        figures = one.cache.ndcg(_with(one.present, pick))
        found = difference(figures, one.shipped)
        change = f"{found.mean:+.3f} [{found.low:+.3f}, {found.high:+.3f}]"
        cells = [f"{one.shipped.mean():.3f}", f"{figures.mean():.3f}", change]
        weights = [f"{value:.2f}" for value in pick]
        rows.append([one.name, *cells, f"{found.p_value:.3f}", *weights])
        picks.append(pick)
        ours.append(float(figures.mean()))
        theirs.append(float(one.shipped.mean()))
    low, high = np.min(picks, axis=0), np.max(picks, axis=0)
    spread = [f"{a:.2f} to {b:.2f}" for a, b in zip(low, high, strict=True)]
    whole = [f"{value:.2f}" for value in chosen(tried)]
    blank = [""] * 2
    mean = np.mean(ours) - np.mean(theirs)
    cells = [f"{np.mean(theirs):.3f}", f"{np.mean(ours):.3f}", f"{mean:+.3f}"]
    rows.append(["mean, spread of weights", *cells, "", *spread])
    rows.append(["chosen on all sets", *blank, "", "", *whole])
    default = [f"{getattr(RetrievalSpec(), name):.2f}" for name in RANGES]
    rows.append(["shipped", *blank, "", "", *default])
    heads = [name.removesuffix("_weight") for name in RANGES]
    head = ["left out", "shipped", "by the others", "difference", "p", *heads]
    yield ["# Weights by the set that was left out, nDCG@10", "", *table(head, rows)]


def retrievers(names: Sequence[str]) -> Iterator[list[str]]:
    """Tabulate nDCG@10 without each retriever, measured by search itself."""
    default = RetrievalSpec()
    without = [
        name
        for name in RetrievalSpec.model_fields
        if name.endswith("_weight")
        and name not in ("dense_weight", "rating_weight", "learned_weight")
        and getattr(default, name) > 0
    ]
    alone = {
        name: 0.0
        for name in RetrievalSpec.model_fields
        if name.endswith("_weight") and name not in ("dense_weight", "rating_weight")
    }
    ways: dict[str, tuple[str, dict[str, float]]] = {
        "all": ("hybrid", {}),
        **{f"without {one.removesuffix('_weight')}": ("hybrid", {one: 0.0}) for one in without},
        "chunks, their documents, titles and headings": ("hybrid", CHUNKS_ALONE),
        "each chunk by itself": ("hybrid", alone),
        "words": ("lexical", {}),
        "vectors": ("dense", {}),
    }
    found: dict[str, dict[str, float]] = {label: {} for label in ways}
    for corpus in _sets(names):
        for label, (mode, settings) in ways.items():
            search = kbkit_search(corpus, mode, settings)
            figures = [one.ndcg(search(one.text, HITS)) for one in corpus.questions]
            found[label][corpus.name] = float(np.mean(figures))
        print(corpus.name, found["all"][corpus.name], flush=True)
    there = list(found["all"])
    manuals = [name for name in there if name in MANUALS]
    rows = []
    for label, row in found.items():
        cells = [f"{row[name]:.3f}" for name in there]
        mean = f"{np.mean([row[name] for name in manuals]):.3f}" if manuals else ""
        rows.append([label, *cells, mean])
    if there:
        head = ["nDCG@10", *there, "mean of manuals"]
        yield ["# What each retriever brings", "", *table(head, rows)]


TABLES = {"held-out": held_out, "retrievers": retrievers}


def _sets(names: Sequence[str]) -> Iterator[Corpus]:
    for name in names:
        yield from corpora(kept_folder(name), None, [name])


def _evaluation(corpus: Corpus) -> EvaluationSet:
    documents = {one.id: one.uri for one in corpus.kb.documents}
    if corpus.questions[0].grades:
        uris = {path_of(uri): uri for uri in documents.values()}
        return EvaluationSet(
            "page",
            tuple(
                EvaluationQuery(
                    one.text, {uris.get(page, page): int(g) for page, g in one.grades.items()}
                )
                for one in corpus.questions
            ),
        )
    chunks = [
        (one.id, Place(documents[one.document_id], one.start, one.end)) for one in corpus.kb.chunks
    ]
    found = []
    for one in corpus.questions:
        gains = one.gains([place for _, place in chunks])
        worth = {key: 1 for (key, _), gain in zip_longest(chunks, gains) if gain}
        if worth:
            found.append(EvaluationQuery(one.text, worth))
    return EvaluationSet("chunk", tuple(found))


def _with(present: RetrievalSpec, weights: Values) -> RetrievalSpec:
    return present.model_copy(update=dict(zip(RANGES, weights.tolist(), strict=True)))
