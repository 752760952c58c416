"""Walk the graph, and lay out the part of it to draw."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse import csgraph
from scipy.spatial import cKDTree

from kbkit.models import GraphLayout, LayoutEdge, LayoutNode, Target, TargetKind
from kbkit.stores.catalog import relations
from kbkit.stores.catalog.database import Transaction
from kbkit.stores.catalog.relations import Edge

if TYPE_CHECKING:
    import networkx as nx

Floats = NDArray[np.float64]
Place = tuple[float, float]
"""x and y of a node's centre."""

SPACING = 32.0
"""Median distance of the nearest nodes, in pixels at scale 1."""
GAP = 5.0
_PIVOTS = 40
_FAR = 10.0
"""Distance of unconnected nodes, in the units of `_pivot_layout`."""
_GRAVITY = 0.08
_ROWS = 256
_MAX_WORK = 2e8  # pairs of nodes in all rounds
_ANGLE = np.pi * (3 - 5**0.5)


def positions(
    radii: Mapping[str, float],
    edges: Sequence[tuple[str, str, float]],
    before: Mapping[str, Place] | None = None,
) -> dict[str, Place]:
    """Compute node positions; the order of nodes and edges does not matter."""
    import networkx as nx

    graph = nx.Graph()
    graph.add_nodes_from(sorted(radii))
    graph.add_weighted_edges_from(sorted((*sorted((a, b)), w) for a, b, w in edges if a != b))
    ids = list(graph)
    sizes = np.array([radii[id_] for id_ in ids], dtype=float)
    earlier = {id_: place for id_, place in (before or {}).items() if id_ in radii}
    if 2 * len(earlier) > len(ids):
        return _with_new_nodes(graph, earlier, radii)
    if len(ids) < 2:
        return dict.fromkeys(ids, (0.0, 0.0))
    weights = nx.to_scipy_sparse_array(graph, dtype=float, format="csr")
    spread = _relax(_pivot_layout(weights), weights)
    nearest = cKDTree(spread).query(spread, k=2)[0][:, 1]
    spread *= SPACING / float(np.median(nearest))
    spread = _without_overlaps(_rotate(spread), sizes)
    spread -= (spread.min(axis=0) + spread.max(axis=0)) / 2
    return {
        id_: (round(float(x), 1), round(float(y), 1))
        for id_, (x, y) in zip(ids, spread, strict=True)
    }


def _with_new_nodes(
    graph: nx.Graph, earlier: Mapping[str, Place], radii: Mapping[str, float]
) -> dict[str, Place]:
    places = dict(earlier)
    reach = np.sqrt(np.arange(4 * len(radii) + 16))[:, None]
    angle = _ANGLE * np.arange(len(reach))
    spiral = reach * np.column_stack([np.cos(angle), np.sin(angle)])
    # nodes with many edges first, because others are placed near them
    for id_ in sorted(set(graph) - set(earlier), key=lambda node: (-graph.degree(node), node)):
        pull = {other: edge["weight"] for other, edge in graph[id_].items() if other in places}
        neighbours = [places[other] for other in pull] or [(0.0, 0.0)]
        middle = np.average(neighbours, axis=0, weights=list(pull.values()) or None)
        spots = middle + (radii[id_] + GAP) * spiral
        sizes = np.array([radii[node] for node in places])
        tree = cKDTree(list(places.values()))
        distance, owner = tree.query(spots, k=range(1, min(4, len(places)) + 1))
        clearance = (distance - sizes[owner]).min(axis=1) - radii[id_]
        x, y = spots[np.argmax(clearance >= GAP / 2)]
        places[id_] = (round(float(x), 1), round(float(y), 1))
    return places


def _pivot_layout(weights: sparse.csr_array) -> Floats:
    """Place nodes by their distances to some that are far from one another."""
    count = weights.shape[0]
    lengths = weights.copy()
    lengths.data = 1.5 - np.minimum(lengths.data, 1.0)
    pivot = int(np.argmax(np.diff(weights.indptr)))
    distances = np.empty((count, min(_PIVOTS, count)))
    for column in range(distances.shape[1]):
        lengths_to_pivot = csgraph.dijkstra(lengths, directed=False, indices=pivot)
        distances[:, column] = np.minimum(lengths_to_pivot, _FAR)
        pivot = int(np.argmax(distances[:, : column + 1].min(axis=1)))
    squares = distances**2
    centred = squares - squares.mean(axis=0) - squares.mean(axis=1, keepdims=True) + squares.mean()
    _, vectors = np.linalg.eigh(centred.T @ centred)
    axes = centred @ vectors[:, -2:]
    spread = axes / (np.abs(axes).max(axis=0) + 1e-12)
    angle = _ANGLE * np.arange(count)  # separates nodes with equal distances
    return np.asarray(spread + 0.01 * np.column_stack([np.cos(angle), np.sin(angle)]))


def _relax(spread: Floats, weights: sparse.csr_array) -> Floats:
    """Move nodes by forces, by shorter steps in each round."""
    count = len(spread)
    mass = 1 + np.diff(weights.indptr)
    pull = weights * (weights.nnz / max(weights.sum(), 1e-9))
    strength = pull.sum(axis=1)[:, None]
    # in units where two nodes with one edge come to rest a few units apart
    spread = (spread * count**0.5 * 2).astype(np.float32)
    heavy = mass.astype(np.float32)
    rounds = int(np.clip(_MAX_WORK / count**2, 40, 360))
    step = 0.25 * count**0.5
    for number in range(rounds):
        square = np.einsum("ij,ij->i", spread, spread)
        force = pull @ spread - strength * spread - _GRAVITY * heavy[:, None] * spread
        for start in range(0, count, _ROWS):  # blocks that fit into the processor's cache
            rows = slice(start, start + _ROWS)
            repulsion = square[rows, None] + square - 2 * (spread[rows] @ spread.T)
            np.maximum(repulsion, 0.01, out=repulsion)
            np.divide(heavy, repulsion, out=repulsion)
            total = repulsion.sum(axis=1, keepdims=True)
            force[rows] += heavy[rows, None] * (spread[rows] * total - repulsion @ spread)
        length = np.maximum(np.linalg.norm(force, axis=1, keepdims=True), 1e-9)
        reach = step * (1 - number / rounds) ** 1.5 + 0.01
        moved = force * (np.minimum(length / heavy[:, None], reach) / length)
        spread = spread + moved.astype(np.float32)
    return spread.astype(float)


def _without_overlaps(spread: Floats, sizes: Floats) -> Floats:
    spread = spread.copy()
    for number in range(1, 500):
        if number % 25 == 0:  # too dense: enlarge the picture
            spread *= 1.1
        pairs = cKDTree(spread).query_pairs(2 * sizes.max() + GAP, output_type="ndarray")
        pairs = pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]
        first, second = pairs[:, 0], pairs[:, 1]
        offset = spread[second] - spread[first]
        distance = np.linalg.norm(offset, axis=1)
        overlap = sizes[first] + sizes[second] + GAP - distance
        close = overlap > 0.2
        if not close.any():
            break
        first, second, offset = first[close], second[close], offset[close]
        distance, overlap = distance[close], overlap[close]
        offset[distance < 1e-6] = (1.0, 0.0)
        push = offset / np.maximum(distance, 1e-6)[:, None] * (overlap / 2 + 0.1)[:, None]
        np.add.at(spread, first, -push)
        np.add.at(spread, second, push)
    return spread


def _rotate(spread: Floats) -> Floats:
    """Centre the picture, and turn it so that it is wider than high."""
    spread = spread - spread.mean(axis=0)
    _, axes = np.linalg.eigh(spread.T @ spread)
    turned: Floats = spread @ axes[:, ::-1]
    # the sign of an axis is arbitrary: put the first node on the left and above
    signs: Floats = np.where(turned[0] > 0, -1.0, 1.0)
    turned *= signs
    return turned


SMALLEST, LARGEST = 4.0, 18.0
"""Radii of nodes."""
_EDGES = 4
"""Minimum drawn relations of a node; more if the total stays below `_MAX_EDGES`."""
_MAX_EDGES = 1_200


class Selection(NamedTuple):
    """The part of a graph to draw."""

    around: tuple[Target, ...]
    depth: int
    types: tuple[str, ...]
    names: tuple[str, ...]
    kb_ids: tuple[str, ...] | None
    limit: int


def drawing(
    transaction: Transaction, selection: Selection, before: Mapping[Target, Place]
) -> GraphLayout:
    around, depth, types, names, kb_ids, limit = selection
    kinds = {TargetKind.ENTITY, *([TargetKind.DOCUMENT] if TargetKind.DOCUMENT in types else [])}
    edges = relations.edges(transaction, names=names, kb_ids=kb_ids)
    strengths: defaultdict[Target, float] = defaultdict(float)
    edges_of: defaultdict[Target, list[Edge]] = defaultdict(list)
    for edge in edges:
        if edge.source.kind in kinds and edge.target.kind in kinds:
            for end in (edge.source, edge.target):
                strengths[end] += edge.weight
                edges_of[end].append(edge)

    def edges_at(ends: Collection[Target]) -> list[Edge]:
        return [*dict.fromkeys(edge for end in ends for edge in edges_of.get(end, ()))]

    if around:
        reachable = dict.fromkeys(around)
        for start in around:
            walk = find_reachable(edges_at, start, depth, max(limit // len(around), 1))
            reachable |= dict.fromkeys(target for target, _, _ in walk)
        targets = list(reachable)
    else:
        targets = sorted(strengths, key=lambda node: (-strengths[node], node.key))
    labels = relations.labels(transaction, targets if types or around else targets[:limit])
    nodes = [node for node in targets if node in labels and (not types or labels[node][1] in types)]
    nodes = [*dict.fromkeys([*(node for node in around if node in labels), *nodes])]
    total = len(nodes) if types else len(strengths)
    visible = nodes[:limit]
    total = len(visible) if len(visible) < limit else total
    visible_set = {*visible}
    drawn = _strongest(
        [edge for edge in edges if edge.source in visible_set and edge.target in visible_set],
        len(visible),
    )
    strongest = max((strengths[node] for node in visible), default=0.0) or 1.0
    radii = {
        node: round(SMALLEST + (LARGEST - SMALLEST) * (strengths[node] / strongest) ** 0.5, 1)
        for node in visible
    }
    places = positions(
        {node.key: radius for node, radius in radii.items()},
        [(edge.source.key, edge.target.key, edge.weight) for edge in drawn],
        {node.key: place for node, place in before.items()},
    )
    order = sorted(visible, key=lambda node: (-strengths[node], node.key))
    numbers = {node: number for number, node in enumerate(order)}
    placed = [LayoutNode(node, *labels[node], *places[node.key], radii[node]) for node in order]
    lines = [
        LayoutEdge(numbers[edge.source], numbers[edge.target], edge.name, round(edge.weight, 3))
        for edge in drawn
    ]
    return GraphLayout(tuple(placed), tuple(lines), total)


def _strongest(edges: Sequence[Edge], nodes: int) -> list[Edge]:
    limit = max(_EDGES, _MAX_EDGES // max(nodes, 1))
    degree: Counter[Target] = Counter()
    strongest = []
    for edge in sorted(edges, key=lambda item: (-item.weight, item.id)):
        if min(degree[edge.source], degree[edge.target]) < limit:
            strongest.append(edge)
            degree.update((edge.source, edge.target))
    return strongest


Reached = tuple[Target, int, Edge | None]
"""Target of a walk, its depth, and the relation that led to it (``None`` at the start)."""


def find_reachable(
    edges_at: Callable[[Collection[Target]], Sequence[Edge]], start: Target, depth: int, limit: int
) -> list[Reached]:
    """Return everything reachable from a target, the nearest and strongest first, each once."""
    seen = {start}
    reached: list[Reached] = []
    frontier: list[Target] = [start]
    for distance in range(1, depth + 1):
        edges = sorted(edges_at(frontier), key=lambda edge: (-edge.weight, edge.id))
        starts = set(frontier)
        frontier = []
        for edge in edges:
            for near_end, far_end in ((edge.source, edge.target), (edge.target, edge.source)):
                if near_end in starts and far_end not in seen and len(reached) < limit:
                    seen.add(far_end)
                    frontier.append(far_end)
                    reached.append((far_end, distance, edge))
        if not frontier or len(reached) >= limit:
            break
    return reached


def shortest_path(edges: Sequence[Edge], start: Target, end: Target) -> list[Reached]:
    """Return the path of few and strong relations between two targets, in either direction.

    The cost of a relation is ``2 - weight``: two strong ones cost about as much as one weak one.
    """
    import networkx as nx

    graph = nx.Graph()
    graph.add_nodes_from((start, end))
    for edge in edges:
        data = graph.get_edge_data(edge.source, edge.target)
        if data is None or data["edge"].weight < edge.weight:
            graph.add_edge(edge.source, edge.target, edge=edge, cost=2 - edge.weight)
    try:
        _, path = nx.bidirectional_dijkstra(graph, start, end, weight="cost")
    except nx.NetworkXNoPath:
        return []
    return [
        (target, index, graph.edges[path[index - 1], target]["edge"] if index else None)
        for index, target in enumerate(path)
    ]
