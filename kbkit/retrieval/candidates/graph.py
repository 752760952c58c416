"""Retrieve by the graph: relations of entities in the query and of good documents."""

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
"""Documents where a walk begins."""
_STEEPNESS = 4
"""Exponent of start scores."""
_PAGE_SHARE = 0.5
"""Share of words beside the summary."""
_MENTION_SHARE = 0.5
"""Share of mentions beside links."""
_DEFINITION = 2.0
"""Factor for defining chunks."""
_HOP = 0.5
"""Share of related entities beside the query's own."""
_RELATIONS = 10
"""Relations of an entity that are followed, the strongest."""
_MAX = 30
"""Chunks that become candidates since they name entities."""


@dataclass(frozen=True, slots=True)
class GraphScores:
    """Graph proximity of chunks to a query.

    Attributes:
        documents: Graph proximity of documents, 0 to 1.
        chunks: Overlap of chunks' entities with the query's, 0 to 1, by row.
    """

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
    """Score chunks by the relations between entities and between documents.

    Links the entities of the query, weighted by rarity, follows their strongest relations, and
    scores the chunks of the entities reached. From the best documents, a walk over links raises
    documents that many of them link to, or that link to many of them.
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
    """Score documents from 0 to 1: by best chunk, summary, and words.

    To a high power, so that a walk begins at the few that answer much better than others.
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
            # what has gone since is left out, and what is of another knowledge base
            scores[places[chunks.seqs[places] == named]] += factor * gain
    there = np.flatnonzero(scores)
    return dict(zip(there.tolist(), (limit * scores[there] / scores.max()).tolist(), strict=True))
