"""Positions of nodes: stable, apart from one another, neighbours near."""

import random

import networkx as nx
import numpy as np
import pytest

from kbkit.graph.drawing import positions


def radii_and_edges(graph):
    degrees = dict(graph.degree())
    most = max(degrees.values()) or 1
    radii = {f"n{node}": 4 + 12 * (degree / most) ** 0.5 for node, degree in degrees.items()}
    return radii, [(f"n{a}", f"n{b}", 0.5) for a, b in graph.edges()]


GRAPHS = {
    "hubs": nx.barabasi_albert_graph(300, 2, seed=1),
    "groups": nx.random_partition_graph([30] * 5, 0.3, 0.005, seed=2),
    "pieces": nx.disjoint_union_all([nx.path_graph(n) for n in (9, 5, 2, 2, 1, 1, 1)]),
    "alike": nx.star_graph(150),
    "all with all": nx.complete_graph(40),
    "none": nx.empty_graph(80),
}


@pytest.mark.parametrize("name", GRAPHS)
def test_nodes_do_not_overlap_and_are_centred(name):
    radii, edges = radii_and_edges(GRAPHS[name])
    places = positions(radii, edges)
    points = np.array([places[node] for node in radii])
    sizes = np.array(list(radii.values()))
    apart = np.linalg.norm(points[:, None] - points, axis=2) - sizes[:, None] - sizes
    np.fill_diagonal(apart, np.inf)
    assert apart.min() > 0
    assert np.abs(points.min(axis=0) + points.max(axis=0)).max() < 1


@pytest.mark.parametrize("name", GRAPHS)
def test_positions_do_not_depend_on_the_order_of_nodes_and_edges(name):
    radii, edges = radii_and_edges(GRAPHS[name])
    shuffled = random.Random(3)
    nodes = list(radii)
    shuffled.shuffle(nodes)
    others = [(b, a, weight) for a, b, weight in edges]
    shuffled.shuffle(others)
    assert positions({node: radii[node] for node in nodes}, others) == positions(radii, edges)


def test_neighbours_are_near_and_strong_relations_short():
    radii, edges = radii_and_edges(GRAPHS["groups"])
    places = positions(radii, edges)
    points = np.array([places[f"n{number}"] for number in range(150)])
    distances = np.linalg.norm(points[:, None] - points, axis=2)
    group = np.arange(150) // 30
    same = group[:, None] == group
    assert np.median(distances[same]) < np.median(distances[~same]) / 2
    ring = [(f"n{i}", f"n{(i + 1) % 12}", 1.0 if i % 2 else 0.05) for i in range(12)]
    places = positions({f"n{i}": 5.0 for i in range(12)}, ring)
    lengths = {1.0: [], 0.05: []}
    for a, b, weight in ring:
        lengths[weight].append(np.hypot(*np.subtract(places[a], places[b])))
    assert np.median(lengths[1.0]) < np.median(lengths[0.05])


def test_positions_of_up_to_two_nodes():
    assert positions({}, []) == {}
    assert positions({"a": 3}, []) == {"a": (0.0, 0.0)}
    (left, _), (right, _) = positions({"a": 30, "b": 30}, [("b", "a", 1.0)]).values()
    assert right - left > 60


@pytest.mark.parametrize("name", ["hubs", "groups", "pieces"])
def test_kept_nodes_do_not_move_and_new_ones_are_near_neighbours(name):
    radii, edges = radii_and_edges(GRAPHS[name])
    whole = positions(radii, edges)
    removed = sorted(radii)[3::9]
    fewer = {node: radius for node, radius in radii.items() if node not in removed}
    kept = [edge for edge in edges if edge[0] in fewer and edge[1] in fewer]
    smaller = positions(fewer, kept, whole)
    assert smaller == {node: whole[node] for node in fewer}
    assert positions(radii, edges, whole) == whole, "restored nodes are where they were"
    places = positions(radii, edges, smaller)
    assert {node: places[node] for node in fewer} == smaller
    points = {node: np.array(place) for node, place in places.items()}
    for node in removed:
        others = [other for other in radii if other != node]
        apart = [np.linalg.norm(points[node] - points[o]) - radii[node] - radii[o] for o in others]
        assert min(apart) > 0
    ends = [(a, b) for a, b, _ in edges if a in removed or b in removed]
    near = [np.linalg.norm(points[a] - points[b]) for a, b in ends]
    spread = np.array(list(points.values()))
    across = np.median(np.linalg.norm(spread[:, None] - spread, axis=2))
    assert np.median(near) < across
    assert positions(radii, edges, {node: whole[node] for node in removed}) == whole, "too few"
