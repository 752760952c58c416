"""Evaluate search with golden questions and judgements; fetch candidates once for many rankings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from difflib import get_close_matches
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kbkit.embedding import Matrix
from kbkit.feedback import evaluation_set as sets
from kbkit.feedback.evaluation_report import Evaluation, MissingPage, QueryResult, Unit
from kbkit.feedback.statistics import DEPTH, Ranking, Values, measure
from kbkit.models import Mode, Progress
from kbkit.recipes import RetrievalSpec
from kbkit.retrieval.fusion import Features, discounts, fuse, normalise
from kbkit.retrieval.query import Query
from kbkit.retrieval.ranking import CandidatePool, document_factors, mark_duplicates, weights_of
from kbkit.retrieval.searching import search
from kbkit.runtime.progress import OnProgress, ignore
from kbkit.stores.catalog import corpus, reading

_MAX_NOTES = 10
"""Missing pages listed one by one in notes."""
_MAX_SUGGESTIONS = 50
"""Missing pages that get a suggestion; each is compared with all pages."""


def missing_pages(kb: sets.Searchable, queries: sets.EvaluationSet) -> tuple[MissingPage, ...]:
    if queries.unit != "page":
        return ()
    uris = kb.retriever.stores.database.look_up(reading.searched_uris, kb.retriever.kb_id)
    by_end: dict[str, list[str]] = {}  # so that each page is compared with a few URIs only
    for uri in uris:
        for end in _last_parts(uri):
            by_end.setdefault(end, []).append(uri)
    results: list[MissingPage] = []
    for query in queries:
        for page in query.gains:
            candidates = [uri for end in _last_parts(page) for uri in by_end.get(end, ())]
            if not any(sets.is_page(uri, page) for uri in candidates):
                nearest = _nearest(page, uris) if len(results) < _MAX_SUGGESTIONS else ""
                results.append(MissingPage(query.text, page, nearest))
    return tuple(results)


def missing_notes(missing: Sequence[MissingPage]) -> tuple[str, ...]:
    notes = [str(page) for page in missing[:_MAX_NOTES]]
    if missing:
        notes[0] = f"{notes[0]} These questions count as not answered."
    if len(missing) > _MAX_NOTES:
        notes.append(f"{len(missing) - _MAX_NOTES:,} more pages that questions name do not exist")
    return tuple(notes)


def _last_parts(uri: str) -> Iterable[str]:
    for text in {uri, uri.partition("#")[0]}:
        yield text.rstrip("/").replace(":", "/").rpartition("/")[2]


def _nearest(page: str, uris: Sequence[str]) -> str:
    path = page.lstrip("/")
    parts = path.count("/") + 1
    tails = {"/".join(uri.split("/")[-parts:]): uri for uri in uris}
    matches = get_close_matches(path, tails, 1, 0.6)
    if matches:
        return matches[0]
    # the same file name in another folder
    name = path.rpartition("/")[2]
    return next((uri for uri in uris if uri.rpartition("/")[2] == name), "")


def to_ranking(query: sets.EvaluationQuery, names: Sequence[str], unit: Unit) -> Ranking:
    items: list[str | None] = []
    for name in names:
        items.append(sets.matching_page(name, query, items) if unit == "page" else name)
    places = {name: i for i, name in enumerate(query.gains)}
    found = tuple(None if item is None else places.get(item) for item in items)
    return Ranking(tuple(query.gains.values()), found)


def measure_run(
    kb: sets.Searchable,
    queries: sets.EvaluationSet,
    run: tuple[Mode, RetrievalSpec, str],
    k: int,
    report: OnProgress,
) -> Evaluation:
    """Measure a mode with settings, under a label."""
    mode, retrieval, label = run
    rows = []
    for number, query in enumerate(queries, 1):
        request = Query.of(query.text, max(DEPTH, k), mode, retrieval=queries.retrieval(retrieval))
        rows.append(_names(kb, request, queries.unit))
        report(Progress("evaluate", number, len(queries), query.text))
    rankings = [
        to_ranking(query, names, queries.unit) for query, names in zip(queries, rows, strict=True)
    ]
    results = tuple(
        QueryResult(query=query.text, relevant=query.relevant, found=names, **asdict(measures))
        for query, names, measures in zip(queries, rows, measure(rankings, k), strict=True)
    )
    notes = sets.unfinished_warnings(kb, "evaluate")
    return Evaluation(results, label, queries.unit, k, queries.left_out, notes=notes)


def _names(kb: sets.Searchable, query: Query, unit: Unit) -> tuple[str, ...]:
    names: list[str] = []
    depth = query.limit
    # several hits may be from one page
    for limit in (depth,) if unit == "chunk" else (3 * depth, 10 * depth):
        hits = search([kb.retriever], replace(query, limit=limit))
        names = [hit.uri if unit == "page" else hit.chunk.id for hit in hits]
        names = list(dict.fromkeys(names))[:depth]
        if len(names) == depth or len(hits) < limit:
            break
    return tuple(names)


Rows = NDArray[np.int64]

_DISCOUNTS = 1 / np.log2(np.arange(DEPTH) + 2)


@dataclass(frozen=True, slots=True)
class CandidateCache:
    """The candidates of all queries, concatenated in arrays of shape ``(n,)``.

    Attributes:
        features: Normalised within each query; a document number belongs to one query only.
        items: Number of each candidate, or of its page.
        gains: Gain of each item, 0 without a judgement.
        ideal: Ideal DCG of each query, shape ``(queries,)``.
        near_duplicates: Offset and vectors of the candidates, of queries with near duplicates.
        factors: See `document_factors`.
    """

    features: Features
    queries: Rows
    items: Rows
    gains: Values
    ideal: Values
    near_duplicates: tuple[tuple[int, Matrix], ...]
    threshold: float
    factors: tuple[float, float]

    @classmethod
    def fetch(
        cls,
        kb: sets.Searchable,
        queries: sets.EvaluationSet,
        retrieval: RetrievalSpec,
        report: OnProgress = ignore,
    ) -> CandidateCache:
        parts, pools = [], []
        for number, query in enumerate(queries, 1):
            search_query = Query.of(query.text, DEPTH, retrieval=retrieval)
            # a query must not be ranked by what was learned from its own judgements
            pool = kb.retriever.pool(replace(search_query, unlearned=queries.unit == "chunk"))
            pools.append(pool)
            parts.append(_QueryCandidates.of(kb, pool, query, queries.unit == "page"))
            report(Progress("candidates", number, len(queries), query.text))
        (factors,) = document_factors(pools[:1]) or [(1.0, 1.0)]
        starts = np.cumsum([0] + [len(part.items) for part in parts])
        documents = _disjoint([part.documents for part in parts])
        features = Features.join([part.columns for part in parts], documents)
        if queries.unit == "chunk":
            features = replace(features, rating=np.zeros(starts[-1]))
        return cls(
            features=features,
            queries=np.repeat(np.arange(len(parts)), np.diff(starts)),
            items=_disjoint([part.items for part in parts]),
            gains=np.concatenate([part.gains for part in parts]),
            ideal=np.array([_ideal_dcg(query) for query in queries]),
            near_duplicates=tuple(
                (int(start), part.vectors)
                for start, part in zip(starts, parts, strict=False)
                if _has_duplicates(part.vectors, retrieval.duplicates)
            ),
            threshold=retrieval.duplicates,
            factors=factors,
        )

    def ndcg(self, retrieval: RetrievalSpec) -> Values:
        """Return nDCG@10 of each query, shape ``(queries,)``."""
        weights = weights_of(retrieval, Mode.HYBRID, self.factors)
        fused = fuse(self.features, weights)
        repeats = np.zeros(len(fused.total), np.bool_)
        for start, vectors in self.near_duplicates:
            part = slice(start, start + len(vectors))
            repeats[part] = mark_duplicates(vectors, fused.total[part], self.threshold)
        factors = discounts(fused.total, self.features.documents, repeats, retrieval.per_document)
        ranked = np.flatnonzero(fused.common)
        total = fused.multiply(factors).total[ranked]
        order = ranked[np.lexsort((-total, self.queries[ranked]))]
        _, first_places = np.unique(self.items[order], return_index=True)
        best = order[np.sort(first_places)]  # best candidate of each item, by query
        queries = self.queries[best]
        starts = np.searchsorted(queries, np.arange(len(self.ideal)))
        places = np.arange(len(best)) - starts[queries]
        top = places < DEPTH
        discounted = self.gains[best[top]] * _DISCOUNTS[places[top]]
        figures: Values = np.bincount(queries[top], discounted, len(self.ideal)) / self.ideal
        return figures


class _QueryCandidates(NamedTuple):
    columns: dict[str, Values]
    documents: Rows
    items: Rows
    gains: Values
    vectors: Matrix

    @classmethod
    def of(
        cls, kb: sets.Searchable, pool: CandidatePool, query: sets.EvaluationQuery, by_page: bool
    ) -> _QueryCandidates:
        candidates = pool.candidates
        ranked = slice(0, candidates.ranked)
        columns = {name: values[ranked] for name, values in pool.columns.items()}
        columns["cosine"] = normalise(columns["cosine"])
        for name in ("bm25", "page", "summary"):
            columns[name] = normalise(columns[name], columns[f"{name}_full"])
            columns[f"{name}_full"] = np.ones(candidates.ranked)
        documents = _codes(candidates.document_ids[ranked])
        if by_page:
            items, gains = _by_page(kb, candidates.seqs[ranked], query)
        else:
            items = np.arange(candidates.ranked)
            gains = _by_chunk(kb, candidates.seqs[ranked], query)
        return cls(columns, documents, items, gains, candidates.vectors[ranked])


def _has_duplicates(vectors: Matrix, threshold: float) -> bool:
    cosines = vectors @ vectors.T
    np.fill_diagonal(cosines, -1)
    return threshold < 1 and bool((cosines > threshold).any())


def _by_chunk(kb: sets.Searchable, seqs: Rows, query: sets.EvaluationQuery) -> Values:
    seq_of = kb.retriever.stores.database.look_up(corpus.seqs_by_id, list(query.gains))
    gain_of = {seq: float(query.gains[chunk_id]) for chunk_id, seq in seq_of.items()}
    return np.array([gain_of.get(seq, 0.0) for seq in seqs.tolist()])


def _by_page(kb: sets.Searchable, seqs: Rows, query: sets.EvaluationQuery) -> tuple[Rows, Values]:
    """Return the page and gain of each candidate; two URIs of one page are one item."""
    rows = kb.retriever.chunks(seqs.tolist())
    uris = [rows[seq][1].uri if seq in rows else "" for seq in seqs.tolist()]
    names = {uri: sets.matching_page(uri, query) for uri in dict.fromkeys(uris)}
    pages = [("relevant", names[uri]) if names[uri] else ("uri", uri) for uri in uris]
    gains = [float(query.gains.get(names[uri] or "", 0)) for uri in uris]
    return _codes(pages), np.array(gains)


def _ideal_dcg(query: sets.EvaluationQuery) -> float:
    gains = sorted(query.gains.values(), reverse=True)[:DEPTH]
    return float(gains @ _DISCOUNTS[: len(gains)])


def _codes(values: Sequence[object]) -> Rows:
    numbers: dict[object, int] = {}
    return np.array([numbers.setdefault(value, len(numbers)) for value in values], np.int64)


def _disjoint(parts: Sequence[Rows]) -> Rows:
    """Concatenate arrays of numbers, shifted so that no two parts share a number."""
    ends = np.cumsum([0] + [int(part.max(initial=-1)) + 1 for part in parts])
    return np.concatenate([part + end for part, end in zip(parts, ends, strict=False)])
