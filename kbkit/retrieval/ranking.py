"""Rank the candidates of one or several knowledge bases; passages with a quoted phrase go first."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from kbkit.embedding import Matrix
from kbkit.models import Mode, ScoreParts
from kbkit.recipes import RetrievalSpec
from kbkit.retrieval import fusion
from kbkit.retrieval.candidates import CandidatePool
from kbkit.text.analysis import fold

_WEIGHTS = {Mode.DENSE: 1.0, Mode.LEXICAL: 0.0}
"""Dense weights of the modes with one retriever."""


_FEW_DOCUMENTS = 10
"""Number of documents at which whole-document scores count half."""
_STATIC_SUMMARIES = (0.3, 0.6)
"""Factors of `summary_weight` and `page_weight` with static vectors, tuned like the weights."""
_COMPARED_BEST = 60
"""Maximum candidates compared for near duplicates."""


@dataclass(frozen=True, slots=True)
class RankedCandidate:
    """A candidate with its score."""

    pool: CandidatePool
    row: int
    parts: ScoreParts

    @property
    def seq(self) -> int:
        return int(self.pool.seqs[self.row])


def with_joint_statistics(pools: Sequence[CandidatePool]) -> list[CandidatePool]:
    """Return pools whose BM25 uses the joint statistics of all pools.

    With its own statistics, a knowledge base of five chunks has no rare words and ranks too low.
    """
    if len(pools) < 2:
        return list(pools)
    joint = fusion.CorpusStatistics.together
    words = joint([pool.words.statistics for pool in pools])
    pages = joint([pool.pages.statistics for pool in pools])
    return [pool.with_words(words, pages) for pool in pools]


def rank(
    pools: Sequence[CandidatePool], limit: int, mode: Mode = Mode.HYBRID
) -> list[RankedCandidate]:
    """Rank the candidates of all pools, best first; unrelated ones are left out."""
    if not pools:
        return []
    weights = [
        weights_of(pool.retrieval, mode, factors)
        for pool, factors in zip(pools, document_factors(pools), strict=True)
    ]
    ranked = _order_ranked(pools, weights, limit)
    if len(ranked) == limit:
        return ranked
    ceiling = ranked[-1].parts.total if ranked else 1.0
    return ranked + _fill_up(pools, weights, ceiling, limit - len(ranked))


def weights_of(
    retrieval: RetrievalSpec, mode: Mode, factors: tuple[float, float]
) -> fusion.Weights:
    summary, page = factors
    return fusion.Weights(
        dense=_WEIGHTS.get(mode, retrieval.dense_weight),
        document=retrieval.document_weight,
        title=retrieval.title_weight,
        heading=retrieval.heading_weight,
        rating=retrieval.rating_weight,
        summary=0.0 if mode is Mode.LEXICAL else summary * retrieval.summary_weight,
        page=0.0 if mode is Mode.DENSE else page * retrieval.page_weight,
        graph=retrieval.graph_weight if mode is Mode.HYBRID else 0.0,
        learned=retrieval.learned_weight,
    )


def document_factors(pools: Sequence[CandidatePool]) -> list[tuple[float, float]]:
    """Return factors for `summary_weight` and `page_weight` of each pool.

    They depend on the summaries' embedder and the number of documents: among three documents, the
    right one says little about the right passage.
    """
    documents = sum(pool.pages.statistics.chunks for pool in pools)
    share = documents / (documents + _FEW_DOCUMENTS)
    static = [pool.embedder.startswith("static:") for pool in pools]
    factors = [_STATIC_SUMMARIES if is_static else (1.0, 1.0) for is_static in static]
    return [(summary * share, page * share) for summary, page in factors]


def _order_ranked(
    pools: Sequence[CandidatePool], weights: Sequence[fusion.Weights], limit: int
) -> list[RankedCandidate]:
    counts = [pool.ranked for pool in pools]
    features = _features(pools, counts)
    fused = fusion.fuse(features, fusion.Weights.of_each(weights, counts))
    totals = np.split(fused.total, np.cumsum(counts)[:-1])
    duplicates = [
        mark_duplicates(pool.vectors[:count], total, pool.retrieval.duplicates)
        for pool, count, total in zip(pools, counts, totals, strict=True)
    ]  # by pool, because vectors of different embedders are not comparable
    limits = np.repeat([pool.retrieval.per_document for pool in pools], counts)
    factors = fusion.discounts(fused.total, features.documents, np.concatenate(duplicates), limits)
    fused = fused.multiply(factors)
    order = np.argsort(-fused.total, kind="stable")
    return _rank(pools, counts, fused, order[fused.common[order]][:limit].tolist())


def _fill_up(
    pools: Sequence[CandidatePool], weights: Sequence[fusion.Weights], ceiling: float, limit: int
) -> list[RankedCandidate]:
    """Extend the list after the ranked candidates, so that `limit` does not change ranks.

    Pools take turns, each with its best first; scores decrease.
    """
    counts = [len(pool.seqs) for pool in pools]
    repeated = fusion.Weights.of_each(weights, counts)
    fused = fusion.fuse(_features(pools, counts), replace(repeated, document=0.0))
    # Only chunks with a score of their own: document scores would add unrelated chunks up to any
    # limit.
    common, turns, start = np.asarray(fused.scores["dense"] + fused.scores["lexical"] > 0), [], 0
    for pool_index, pool in enumerate(pools):
        first, start = start + pool.ranked, start + len(pool.seqs)
        unranked = first + np.flatnonzero(common[first:start])
        turns += [(turn, pool_index, i) for turn, i in enumerate(unranked.tolist())]
    order = [i for _, _, i in sorted(turns)[:limit]]
    scores = np.minimum.accumulate(np.minimum(fused.total[order], ceiling))
    scores *= 1 - 1e-9 * np.arange(1, len(order) + 1)  # more than rounding errors
    factors = np.zeros(len(common))
    factors[order] = scores / fused.total[order]
    return _rank(pools, counts, fused.multiply(factors), order)


def _rank(
    pools: Sequence[CandidatePool], counts: Sequence[int], fused: fusion.Fused, order: Sequence[int]
) -> list[RankedCandidate]:
    places = [(pool, i) for pool, count in zip(pools, counts, strict=True) for i in range(count)]
    return [RankedCandidate(*places[i], fused.parts(i)) for i in order]


def _features(pools: Sequence[CandidatePool], counts: Sequence[int]) -> fusion.Features:
    numbers: dict[str, int] = {}
    documents: list[int] = []
    columns = []
    for pool, count in zip(pools, counts, strict=True):
        ids = pool.document_ids[:count]
        documents += [numbers.setdefault(id_, len(numbers)) for id_ in ids]
        columns.append({name: values[:count] for name, values in pool.columns.items()})
    return fusion.Features.join(columns, np.array(documents, np.int64))


def mark_duplicates(vectors: Matrix, scores: fusion.Scores, threshold: float) -> NDArray[np.bool_]:
    best = np.argsort(-scores, kind="stable")[:_COMPARED_BEST]
    repeated = np.zeros(len(scores), np.bool_)
    repeated[best] = fusion.near_duplicates(vectors[best], threshold)
    return repeated


_T = TypeVar("_T")

PHRASED = 50
"""Number of best hits that are reordered by phrases."""
_QUOTED = re.compile(r"[\"“„«]([^\"“”„«»]*\S\s+\S[^\"“”„«»]*)[\"”“»]")


def phrases_in(query: str) -> list[str]:
    """Return the phrases of two words or more in a query, folded."""
    return [_fold(phrase) for phrase in _QUOTED.findall(query)]


def phrases_first(
    hits: Sequence[_T], phrases: Sequence[str], text_of: Callable[[_T], str]
) -> list[_T]:
    """Move hits that contain all phrases to the front; otherwise keep the order."""

    def lacks(hit: _T) -> bool:
        text = _fold(text_of(hit))
        return not all(phrase in text for phrase in phrases)

    return sorted(hits, key=lacks) if phrases else list(hits)


def _fold(text: str) -> str:
    return " ".join(fold(text).split())
