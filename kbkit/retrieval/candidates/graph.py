"""Retrieve by the graph: relations of entities in the query, and links of good documents."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kbkit.retrieval.candidates.base import Mask, QueryGraph, Rows, Scores
from kbkit.retrieval.candidates.documents import DocumentScores
from kbkit.retrieval.fusion import normalise
from kbkit.retrieval.query import NamedEntity, entities_in
from kbkit.stores.catalog.graph_tables import GraphTable
from kbkit.stores.snapshots.chunk_table import ChunkTable

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
_MAX = 30
"""Maximum candidates by entities."""


@dataclass(frozen=True, slots=True)
class GraphScores:
    """Graph proximity to a query, 0 to 1: of documents by links, of chunk rows by entities."""

    documents: Scores
    chunks: Mapping[int, float]

    def of(self, chosen: Rows, owners: NDArray[np.integer[Any]]) -> Scores:
        named = np.array([self.chunks.get(row, 0.0) for row in chosen.tolist()])
        both = self.documents[owners] + _MENTION_SHARE * named
        return np.asarray(both / (1 + _MENTION_SHARE), np.float64)

    def rows(self, mask: Mask | None) -> Rows:
        best = sorted(self.chunks, key=lambda row: (-self.chunks[row], row))[:_MAX]
        rows = np.array(best, np.int64)
        return rows if mask is None else rows[mask[rows]]


def graph_scores(
    query: str,
    graph: QueryGraph,
    chunks: ChunkTable,
    starts: Scores,
    frequency: Callable[[str], int],
) -> GraphScores:
    """Score chunks by the relations of entities, and documents by links.

    Weight the entities of the query by rarity, follow their strongest relations, and score the
    chunks that mention the reached entities. From the best documents, follow links in either
    direction, and add up scores at the other end.
    """
    reached: dict[str, float] = {}
    for which in np.argsort(-starts, kind="stable")[:_STARTS].tolist():
        if starts[which] > 0:
            for document_id, weight in graph.table.linked.get(chunks.document_ids[which], ()):
                reached[document_id] = reached.get(document_id, 0.0) + float(starts[which]) * weight
    scores = np.zeros(len(chunks.document_ids))
    if reached:
        scores = np.array([reached.get(document_id, 0.0) for document_id in chunks.document_ids])
    named = entities_in(query, graph.table, frequency)
    weights = _entities(named, graph.table, len(chunks))
    meant = max((each.share for each in named), default=0.0)
    return GraphScores(normalise(scores), _chunks(weights, graph, chunks, meant))


def document_starts(
    chunks: ChunkTable,
    documents: DocumentScores,
    rows: Rows,
    cosine: NDArray[np.float32],
    bm25: NDArray[np.float32],
) -> Scores:
    """Score documents from 0 to 1 by best chunk, summary and words.

    A high power makes walks start at the few documents that answer much better than others.
    """
    scores = np.zeros(len(chunks.document_ids))
    own = (normalise(cosine.astype(np.float64)) + normalise(bm25.astype(np.float64))) / 2
    np.maximum.at(scores, chunks.owners[rows], own)
    scores += normalise(documents.summaries.all.astype(np.float64))
    scores += _PAGE_SHARE * normalise(documents.page.astype(np.float64))
    return normalise(scores) ** _STEEPNESS


def _entities(named: Sequence[NamedEntity], graph: GraphTable, chunks: int) -> dict[int, float]:
    weights: dict[int, float] = {}
    for row, _, share in named:
        weight = share * _rarity(graph, row, chunks)
        weights[row] = weights.get(row, 0.0) + weight
        followed = graph.related.get(row, ())[:_RELATIONS]
        whole = sum(relation.weight for relation in followed)
        for relation in followed:
            other = relation.target if relation.source == row else relation.source
            weights[other] = weights.get(other, 0.0) + _HOP * weight * relation.weight / whole
    return weights


def _rarity(graph: GraphTable, row: int, chunks: int) -> float:
    count = graph.entities[row].chunks
    return float(np.log(1 + (chunks - count + 0.5) / (count + 0.5)))


def _chunks(
    weights: Mapping[int, float], graph: QueryGraph, chunks: ChunkTable, limit: float
) -> dict[int, float]:
    if not weights or not len(chunks):
        return {}
    scores, naming = np.zeros(len(chunks)), graph.naming(weights)
    for row, weight in weights.items():
        gain = weight * _rarity(graph.table, row, len(chunks))
        defining = graph.table.definitions.get(row, ())
        for seqs, factor in ((naming[row], 1.0), (defining, _DEFINITION)):
            named = np.array(seqs, np.int64)
            places = np.minimum(np.searchsorted(chunks.seqs, named), len(chunks) - 1)
            # leave out chunks that are deleted or of another knowledge base
            scores[places[chunks.seqs[places] == named]] += factor * gain
    there = np.flatnonzero(scores)
    return dict(zip(there.tolist(), (limit * scores[there] / scores.max()).tolist(), strict=True))
