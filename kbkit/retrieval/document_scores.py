"""Retrieve whole documents by summaries, words, learned questions and the graph."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kbkit.embedding import Vector
from kbkit.models import Mode
from kbkit.models.ratings import fold_query
from kbkit.retrieval.candidates import (
    EncodedQuery,
    Mask,
    Rows,
    Scores,
    TermCounts,
    cosines,
    counts_in,
    places_in,
    top_indices,
)
from kbkit.retrieval.fusion import CorpusStatistics, length_norms, normalise, word_scores
from kbkit.retrieval.query import NamedEntity, entities_in
from kbkit.stores.catalog.graph_reading import GraphReader
from kbkit.stores.snapshots.near_chunks import NearSummaries, near_summaries
from kbkit.stores.snapshots.segments import SegmentedSnapshot
from kbkit.stores.snapshots.snapshot import ChunkTable, Postings

_DECIMALS = 6
"""Decimals of the mean summary; further digits depend on the order of documents."""
_BEST_DOCUMENTS = 30
"""Documents that add their best chunk, per kind of score."""
_SELECTED = 20 * _BEST_DOCUMENTS
"""Documents to select by summary codes, and to score by summary vectors."""
_FEW = 3_000
"""Maximum documents that pass filters to score all of their summaries."""
_MAX_SELECTED = 5_000
"""Maximum documents to select by codes if few pass the filters."""


@dataclass(frozen=True, slots=True)
class SummaryScores:
    """Scores of document summaries.

    Attributes:
        all: Cosine of query and summary; `usual` for documents without one, and for distant ones
            if `exact` is given.
        embedder: Embedder of summaries; ``""`` if they do not count.
        usual: Mean cosine.
        exact: Returns exact cosines of some documents, if `all` is incomplete.
    """

    all: NDArray[np.float32]
    embedder: str = ""
    usual: float = 0.0
    exact: Callable[[Rows], NDArray[np.float32]] | None = None

    @classmethod
    def of(
        cls, chunks: SegmentedSnapshot, query: EncodedQuery, mask: Mask | None
    ) -> SummaryScores | None:
        """Score the summaries of documents with unmasked chunks; ``None`` if they do not count."""
        vector = query.summary_query.vector
        # summaries may have been embedded again after the query
        if vector is None or query.summary_embedder != chunks.state.summary_embedder:
            return None
        score = partial(cosines, vector=vector)
        needs_all = chunks.is_small or query.graph is not None
        index = None if needs_all else near_summaries(chunks)
        nearest = None if index is None else _near(index, chunks, vector, mask)
        if index is not None and nearest is not None:
            usual = round(float(score(index.mean[None])[0]), _DECIMALS)
            summary = np.full(len(chunks.sizes), usual, np.float32)
            summary[nearest] = index.scores(nearest, score)
            return cls(summary, query.summary_embedder, usual, partial(index.scores, score=score))
        summary = chunks.summary_scores(score)
        existing = summary != 0  # documents without a summary score 0
        mean = summary[existing].mean(dtype=np.float64) if existing.any() else 0.0
        usual = round(float(mean), _DECIMALS)
        summary[~existing] = usual
        return cls(summary, query.summary_embedder, usual)


@dataclass(frozen=True, slots=True)
class DocumentScores:
    """Scores of whole documents for a query.

    Attributes:
        counts: Documents, ascending, with their counts, by term.
        page: BM25 of each document.
    """

    counts: Mapping[str, Postings]
    statistics: CorpusStatistics
    page: NDArray[np.float32]
    summaries: SummaryScores

    @classmethod
    def of_words(cls, documents: ChunkTable, postings: Mapping[str, Postings]) -> DocumentScores:
        number, lengths = len(documents.sizes), documents.document_lengths
        nonempty = int(np.count_nonzero(lengths))
        average = float(lengths.sum()) / nonempty if nonempty else 0.0
        counts = {
            term: _per_document(documents.owners[rows], times, number)
            for term, (rows, times) in postings.items()
        }
        frequencies = {term: len(indexes) for term, (indexes, _) in counts.items()}
        statistics = CorpusStatistics(nonempty, average, frequencies)
        page = word_scores(counts, length_norms(lengths, average), statistics)
        return cls(counts, statistics, page, SummaryScores(np.zeros(number, np.float32)))

    def best_rows(
        self,
        documents: ChunkTable,
        dense: Callable[[Rows], NDArray[np.floating[Any]]],
        words: NDArray[np.float32],
        highest: float,
        *,
        mask: Mask | None,
        related: NDArray[np.float64] | None = None,
    ) -> Rows:
        owners, passing = documents.owners, _passing_documents(documents, mask)
        selected = np.zeros(len(passing), np.bool_)
        by_graph = () if related is None else (related,)
        for scores in (self.page, self.summaries.all, *by_graph):
            scored = np.flatnonzero(passing & (scores > 0))
            selected[scored[top_indices(scores[scored], _BEST_DOCUMENTS)]] = True
        rows = np.flatnonzero(selected.take(owners))
        rows = rows if mask is None else rows[mask[rows]]
        similarity = np.maximum(dense(rows), 0.0)
        scores = words[rows] / max(highest, 1e-9)
        scores = scores + similarity / max(similarity.max(initial=0.0), 1e-9)
        best = np.zeros(len(passing), scores.dtype)
        np.maximum.at(best, owners[rows], scores)
        winners = rows[scores == best[owners[rows]]][::-1]
        # the first of equal chunks remains
        best_of = dict(zip(owners[winners].tolist(), winners.tolist(), strict=True))
        return np.array(list(best_of.values()), np.int64)

    def of_candidates(
        self, documents: ChunkTable, owners: NDArray[np.integer[Any]]
    ) -> tuple[Rows, TermCounts, Scores]:
        """Return the index of each document, terms of distinct ones, and summary scores."""
        # np.unique would import numpy.ma, which takes 40 ms in the first search
        distinct = np.array(sorted(set(owners.tolist())), owners.dtype)
        which = np.searchsorted(distinct, owners)
        summaries = self.summaries
        cosine = summaries.exact(distinct) if summaries.exact else summaries.all[distinct]
        counts, lengths = counts_in(self.counts, distinct), documents.document_lengths[distinct]
        pages = TermCounts(counts, lengths.tolist(), self.statistics)
        return np.asarray(which, np.int64), pages, cosine[which].astype(np.float64)


def _passing_documents(documents: ChunkTable, mask: Mask | None) -> NDArray[np.bool_]:
    """Return the documents with a chunk in a mask; the last result is cached."""
    if mask is None:
        return documents.sizes > 0
    cached: tuple[Mask, NDArray[np.bool_]] | None = documents.cache.get("open")
    if cached is None or cached[0] is not mask:
        passing = np.bincount(documents.owners[mask], minlength=len(documents.sizes)) > 0
        cached = documents.cache["open"] = mask, passing
    return cached[1]


def _near(
    summaries: NearSummaries, chunks: SegmentedSnapshot, vector: Vector, mask: Mask | None
) -> Rows | None:
    """Return documents to score by summaries; ``None`` if scoring all is quicker."""
    count = _SELECTED
    passing = _passing_documents(chunks, mask)
    if mask is not None:
        passing_count = int(np.count_nonzero(passing))
        if passing_count <= _FEW:
            return np.flatnonzero(passing)
        count = count * len(passing) // passing_count
        if count > _MAX_SELECTED:
            return None
    indexes = summaries.nearest(vector, count, partial(cosines, vector=vector))
    indexes = indexes[passing[indexes]]
    return indexes if len(indexes) >= min(_SELECTED // 2, len(passing)) else None


def _per_document(
    owners: NDArray[np.integer[Any]], times: NDArray[np.integer[Any]], number: int
) -> Postings:
    counts = np.zeros(number, np.float32)
    # the conversions, and comparing before looking for places, make this three times as fast
    np.add.at(counts, owners.astype(np.intp), times.astype(np.float32))
    indexes = np.flatnonzero(counts > 0)
    return indexes, counts[indexes].astype(np.int64)


def learned_scores(encoded: EncodedQuery, documents: DocumentScores) -> dict[int, float]:
    query, questions = encoded.query, encoded.questions
    if questions is None:
        return {}
    summaries = documents.summaries
    comparable = summaries.embedder == questions.embedder
    return questions.scores(
        () if query.mode is Mode.DENSE else encoded.terms,
        encoded.summary_query.vector if comparable else None,
        max(0.0, summaries.usual) if comparable else 0.0,
        fold_query(query.text) if query.unlearned else "",
    )


_MAX_CHUNKS = 30
"""Maximum candidates from learned questions, and by entities."""


def best_keys(scores: Mapping[int, float]) -> Rows:
    best = sorted(scores, key=lambda key: (-scores[key], key))[:_MAX_CHUNKS]
    return np.array(best, np.int64)


_STARTS = 20
"""Number of documents where walks start."""
_STEEPNESS = 4
"""Exponent of start scores."""
_PAGE_SHARE = 0.5
"""Weight of words, relative to 1 for the summary."""
_MENTION_SHARE = 0.5
"""Weight of mentions, relative to 1 for links."""
_DEFINITION = 2.0
"""Factor for defining chunks."""
_HOP = 0.5
"""Weight of related entities, relative to 1 for entities in the query."""
_RELATIONS = 10
"""Number of strongest relations to follow from an entity."""


@dataclass(frozen=True, slots=True)
class GraphScores:
    """Graph proximity to a query, 0 to 1: of documents by links, of chunk rows by entities."""

    documents: Scores
    chunks: Mapping[int, float]

    def of(self, chosen: Rows, owners: NDArray[np.integer[Any]]) -> Scores:
        by_entities = np.array([self.chunks.get(row, 0.0) for row in chosen.tolist()])
        combined = self.documents[owners] + _MENTION_SHARE * by_entities
        return np.asarray(combined / (1 + _MENTION_SHARE), np.float64)


def graph_scores(
    query: str,
    graph: GraphReader,
    chunks: SegmentedSnapshot,
    starts: Scores,
    frequency: Callable[[str], int],
) -> GraphScores:
    """Score chunks by the relations of entities, and documents by links.

    Weight the entities of the query by rarity, follow their strongest relations, and score the
    chunks that mention the reached entities. From the best documents, follow links in either
    direction, and add up scores at the other end.
    """
    gained: dict[str, float] = {}
    linked = graph.linked()
    for index in np.argsort(-starts, kind="stable")[:_STARTS].tolist():
        if starts[index] > 0:
            for document_id, weight in linked.get(chunks.document_ids[index], ()):
                gained[document_id] = gained.get(document_id, 0.0) + float(starts[index]) * weight
    scores = np.zeros(len(chunks.document_ids))
    if gained:
        scores = np.array([gained.get(document_id, 0.0) for document_id in chunks.document_ids])
    entities = entities_in(query, graph, frequency)
    weights = _entities(entities, graph, len(chunks))
    max_share = max((entity.share for entity in entities), default=0.0)
    return GraphScores(normalise(scores), _chunks(weights, graph, chunks, max_share))


def document_starts(
    chunks: SegmentedSnapshot,
    documents: DocumentScores,
    rows: Rows,
    cosine: NDArray[np.float32],
    bm25: NDArray[np.float32],
) -> Scores:
    """Score documents from 0 to 1 by best chunk, summary and words.

    A high power makes walks start at the few documents that answer much better than others.
    """
    scores = np.zeros(len(chunks.document_ids))
    chunk_scores = (normalise(cosine.astype(np.float64)) + normalise(bm25.astype(np.float64))) / 2
    np.maximum.at(scores, chunks.owners[rows], chunk_scores)
    scores += normalise(documents.summaries.all.astype(np.float64))
    scores += _PAGE_SHARE * normalise(documents.page.astype(np.float64))
    return normalise(scores) ** _STEEPNESS


def _entities(entities: Sequence[NamedEntity], graph: GraphReader, chunks: int) -> dict[str, float]:
    weights: dict[str, float] = {}
    related = graph.related([named.entity.id for named in entities])
    for entity, _, share in entities:
        weight = share * _rarity(entity.chunks, chunks)
        weights[entity.id] = weights.get(entity.id, 0.0) + weight
        followed = related[entity.id][:_RELATIONS]
        total = sum(relation.weight for relation in followed)
        for relation in followed:
            other = relation.target if relation.source.id == entity.id else relation.source
            weights[other.id] = weights.get(other.id, 0.0) + _HOP * weight * relation.weight / total
    return weights


def _rarity(count: int, chunks: int) -> float:
    return float(np.log(1 + (chunks - count + 0.5) / (count + 0.5)))


def _chunks(
    weights: Mapping[str, float], graph: GraphReader, chunks: SegmentedSnapshot, limit: float
) -> dict[int, float]:
    if not weights or not len(chunks):
        return {}
    scores, mentions = np.zeros(len(chunks)), graph.mentions(weights)
    definitions = graph.definitions(weights)
    for id_, weight in weights.items():
        gain = weight * _rarity(len(mentions[id_]), len(chunks))
        defining = np.array([seq for seq, _ in definitions[id_]], np.int64)
        for seqs, factor in ((mentions[id_], 1.0), (defining, _DEFINITION)):
            # leaves out chunks newer than the snapshot, or from another knowledge base
            scores[places_in(chunks.seqs, seqs)[1]] += factor * gain
    rows = np.flatnonzero(scores > 0)
    return dict(zip(rows.tolist(), (limit * scores[rows] / scores.max()).tolist(), strict=True))
