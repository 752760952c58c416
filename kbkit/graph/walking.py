"""Walk the graph: neighbours and paths. Pure functions."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from kbkit.models import Target
from kbkit.stores.catalog.relations import Edge

Reached = tuple[Target, int, Edge | None]
"""Target of a walk, its depth, and the relation that led to it (``None`` at the start)."""


def widened(
    edges_at: Callable[[Collection[Target]], Sequence[Edge]], start: Target, depth: int, limit: int
) -> list[Reached]:
    """Return everything reachable from a target, the nearest and strongest first, each once."""
    seen = {start}
    reached: list[Reached] = []
    frontier: list[Target] = [start]
    for far in range(1, depth + 1):
        edges = sorted(edges_at(frontier), key=lambda edge: (-edge.weight, edge.id))
        starts = set(frontier)
        frontier = []
        for edge in edges:
            for near_end, far_end in ((edge.source, edge.target), (edge.target, edge.source)):
                if near_end in starts and far_end not in seen and len(reached) < limit:
                    seen.add(far_end)
                    frontier.append(far_end)
                    reached.append((far_end, far, edge))
        if not frontier or len(reached) >= limit:
            break
    return reached


def shortest_path(edges: Sequence[Edge], start: Target, end: Target) -> list[Reached]:
    """Return the path of few and strong relations between two targets, in either direction.

    The cost of a relation is ``2 - weight``: two strong ones cost about as much as one weak one.
    """
    import networkx as nx

    graph = nx.Graph()
    for edge in edges:
        data = graph.get_edge_data(edge.source, edge.target)
        if data is None or data["edge"].weight < edge.weight:
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
