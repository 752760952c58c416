"""Evaluate search with golden questions and judgements; fetch candidates once for many rankings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from difflib import get_close_matches

import numpy as np
from numpy.typing import NDArray

from kbkit.embedding import Matrix
from kbkit.feedback import evaluation_set as sets
from kbkit.feedback.evaluation_report import Evaluation, MissingPage, QueryResult, Unit
from kbkit.feedback.statistics import DEPTH, Ranking, Values, measure
from kbkit.models import Mode, Progress
from kbkit.recipes import RetrievalSpec
from kbkit.retrieval.candidates import CandidatePool
from kbkit.retrieval.fusion import Features, discounts, fuse, near_duplicates, normalise
from kbkit.retrieval.query import Query
from kbkit.retrieval.ranking import document_factors, mark_duplicates, weights_of
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
    if unit == "chunk":
        return Ranking(query.gains, names)
    pages: list[str | None] = []
    for name in names:
        pages.append(sets.matching_page(name, query, pages))
    return Ranking(query.gains, pages)


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
        pools: list[CandidatePool] = []
        columns: list[dict[str, Values]] = []
        documents: list[tuple[int, object]] = []
        items: list[tuple[int, object]] = []
        gains: list[float] = []
        duplicates: list[tuple[int, Matrix]] = []
        for number, query in enumerate(queries):
            search_query = Query.of(query.text, DEPTH, retrieval=retrieval)
            # a query must not be ranked by what was learned from its own judgements
            pool = kb.retriever.pool(replace(search_query, unlearned=queries.unit == "chunk"))
            ranked = slice(0, pool.ranked)
            if near_duplicates(vectors := pool.vectors[ranked], retrieval.duplicates).any():
                duplicates.append((len(items), vectors))
            pools.append(pool)
            columns.append(_normalised({name: part[ranked] for name, part in pool.columns.items()}))
            documents += [(number, id_) for id_ in pool.document_ids[ranked]]
            for item, gain in _judged(kb, pool.seqs[ranked].tolist(), query, queries.unit):
                items.append((number, item))
                gains.append(gain)
            report(Progress("candidates", number + 1, len(queries), query.text))
        (factors,) = document_factors(pools[:1]) or [(1.0, 1.0)]
        features = Features.join(columns, _codes(documents))
        if queries.unit == "chunk":
            features = replace(features, rating=np.zeros(len(items)))
        return cls(
            features=features,
            queries=np.array([number for number, _ in items], np.int64),
            items=_codes(items),
            gains=np.array(gains, np.float64),
            ideal=np.array([_ideal_dcg(query) for query in queries]),
            near_duplicates=tuple(duplicates),
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
        return np.bincount(queries[top], discounted, len(self.ideal)) / self.ideal


def _normalised(columns: dict[str, Values]) -> dict[str, Values]:
    columns["cosine"] = normalise(columns["cosine"])
    for name in ("bm25", "page", "summary"):
        columns[name] = normalise(columns[name], columns[f"{name}_full"])
        columns[f"{name}_full"] = np.ones(len(columns[name]))
    return columns


def _judged(
    kb: sets.Searchable, seqs: Sequence[int], query: sets.EvaluationQuery, unit: Unit
) -> list[tuple[object, float]]:
    """Return the item and gain of each candidate; two URIs of one page are one item."""
    if unit == "chunk":
        seq_of = kb.retriever.stores.database.look_up(corpus.seqs_by_id, list(query.gains))
        gain_of = {seq: query.gains[chunk_id] for chunk_id, seq in seq_of.items()}
        return [(seq, gain_of.get(seq, 0)) for seq in seqs]
    rows = kb.retriever.chunks(seqs)
    uris = [rows[seq][1].uri if seq in rows else "" for seq in seqs]
    page_of = {uri: sets.matching_page(uri, query) for uri in dict.fromkeys(uris)}
    pages = [(page_of[uri], uri) for uri in uris]
    return [((page, "" if page else uri), query.gains.get(page or "", 0)) for page, uri in pages]


def _ideal_dcg(query: sets.EvaluationQuery) -> float:
    gains = sorted(query.gains.values(), reverse=True)[:DEPTH]
    return float(gains @ _DISCOUNTS[: len(gains)])


def _codes(values: Sequence[object]) -> Rows:
    numbers: dict[object, int] = {}
    return np.array([numbers.setdefault(value, len(numbers)) for value in values], np.int64)
