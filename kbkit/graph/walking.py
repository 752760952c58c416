"""Walks through the graph: what is near, and how two things hang together. Pure functions."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from kbkit.models import Target
from kbkit.stores.catalog.relations import Edge

Reached = tuple[Target, int, Edge | None]
"""What a walk came to, after how many relations, and by which; none at the start."""


def widened(
    edges_at: Callable[[Collection[Target]], Sequence[Edge]], start: Target, depth: int, limit: int
) -> list[Reached]:
    """What can be reached from a target, the nearest and strongest first; each once.

    Args:
        edges_at: Gives the relations that begin or end at some targets.
        start: Where to begin.
        depth: Most relations to follow.
        limit: Most that are returned; a circle only goes on from the strongest of it.
    """
    seen = {start}
    found: list[Reached] = []
    frontier: list[Target] = [start]
    for far in range(1, depth + 1):
        edges = sorted(edges_at(frontier), key=lambda edge: (-edge.weight, edge.id))
        begun = set(frontier)
        frontier = []
        for edge in edges:
            for here, there in ((edge.source, edge.target), (edge.target, edge.source)):
                if here in begun and there not in seen and len(found) < limit:
                    seen.add(there)
                    frontier.append(there)
                    found.append((there, far, edge))
        if not frontier or len(found) >= limit:
            break
    return found


def shortest_path(edges: Sequence[Edge], start: Target, end: Target) -> list[Reached]:
    """The way between two targets of few and strong relations, whichever way they point.

    A relation counts as ``2 - weight``: two strong ones are about as long as one weak one.
    """
    import networkx as nx

    graph = nx.Graph()
    for edge in edges:
        known = graph.get_edge_data(edge.source, edge.target)
        if known is None or known["edge"].weight < edge.weight:
            graph.add_edge(edge.source, edge.target, edge=edge, cost=2 - edge.weight)
    if start == end or start not in graph or end not in graph:
        return [(start, 0, None)] if start == end else []
    try:
        _, way = nx.bidirectional_dijkstra(graph, start, end, weight="cost")
    except nx.NetworkXNoPath:
        return []
    return [
        (target, far, graph.edges[way[far - 1], target]["edge"] if far else None)
        for far, target in enumerate(way)
    ]


def chunk_scores(
    edges: Sequence[Edge],
    starts: Mapping[Target, float],
    evidence: Mapping[int, Sequence[tuple[int, float]]],
    *,
    damping: float = 0.6,
    rounds: int = 12,
) -> dict[int, float]:
    """How near chunks are to some entities: personalised PageRank over relations.

    ``rank = (1 - damping) * start + damping * rank * transitions``, where a step follows relations
    by their weights, either way (T. Haveliwala, Topic-sensitive PageRank, 2002). A relation gives
    what flows over it to the chunks that support it.

    Args:
        edges: The relations of the graph.
        starts: The entities of a query, with how much each counts.
        evidence: Chunks of each relation: ``chunks.seq`` and how much each supports it.
        damping: How much goes on at each step.
        rounds: Steps.

    Returns:
        Scores by ``chunks.seq``, at most 1; of those that are reached.
    """
    import numpy as np
    from scipy.sparse import csr_array

    places = {target: at for at, target in enumerate(
        dict.fromkeys(end for edge in edges for end in (edge.source, edge.target)))}  # fmt: skip
    begin = np.zeros(len(places))
    for target, weight in starts.items():
        if target in places:
            begin[places[target]] += weight
    if not begin.any():
        return {}
    begin /= begin.sum()
    source = np.array([places[edge.source] for edge in edges])
    target_ = np.array([places[edge.target] for edge in edges])
    weights = np.array([edge.weight for edge in edges])
    both = csr_array(
        (np.tile(weights, 2), (np.r_[source, target_], np.r_[target_, source])),
        shape=(len(places), len(places)),
    )
    out = np.asarray(both.sum(axis=1)).ravel()
    rank = begin.copy()
    for _ in range(rounds):
        rank = (1 - damping) * begin + damping * (both.T @ (rank / np.maximum(out, 1e-12)))
    flow = weights * (rank[source] / out[source] + rank[target_] / out[target_])
    scores: dict[int, float] = {}
    for at in np.flatnonzero(flow > flow.max() * 1e-3).tolist():
        support = evidence.get(edges[at].id, ())
        total = sum(weight for _, weight in support)
        for seq, weight in support:
            scores[seq] = scores.get(seq, 0.0) + float(flow[at]) * weight / total
    best = max(scores.values(), default=1.0)
    return {seq: score / best for seq, score in scores.items()}
