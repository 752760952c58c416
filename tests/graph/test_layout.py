"""Where nodes stand: the same every time, apart from one another, neighbours near."""

from __future__ import annotations

import random

import networkx as nx
import numpy as np
import pytest

from kbkit.graph.drawing import positions


def given(graph):
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
def test_nodes_do_not_overlap_and_the_whole_is_about_the_middle(name):
    radii, edges = given(GRAPHS[name])
    places = positions(radii, edges)
    points = np.array([places[node] for node in radii])
    sizes = np.array(list(radii.values()))
    apart = np.linalg.norm(points[:, None] - points, axis=2) - sizes[:, None] - sizes
    np.fill_diagonal(apart, np.inf)
    assert apart.min() > 0
    assert np.abs(points.min(axis=0) + points.max(axis=0)).max() < 1


@pytest.mark.parametrize("name", GRAPHS)
def test_the_same_graph_looks_the_same_in_whatever_order_it_comes(name):
    radii, edges = given(GRAPHS[name])
    shuffled = random.Random(3)
    nodes = list(radii)
    shuffled.shuffle(nodes)
    others = [(b, a, weight) for a, b, weight in edges]
    shuffled.shuffle(others)
    assert positions({node: radii[node] for node in nodes}, others) == positions(radii, edges)


def test_neighbours_are_nearer_than_others_and_strong_relations_are_short():
    radii, edges = given(GRAPHS["groups"])
    places = positions(radii, edges)
    points = np.array([places[f"n{number}"] for number in range(150)])
    distances = np.linalg.norm(points[:, None] - points, axis=2)
    group = np.arange(150) // 30
    same = group[:, None] == group
    assert np.median(distances[same]) < np.median(distances[~same]) / 2
    ring = [(f"n{i}", f"n{(i + 1) % 12}", 1.0 if i % 2 else 0.05) for i in range(12)]
    places = positions({f"n{i}": 5.0 for i in range(12)}, ring)
    lengths = {
        strong: np.median(
            [
                np.hypot(*np.subtract(places[a], places[b]))
                for a, b, weight in ring
                if (weight == 1.0) is strong
            ]
        )
        for strong in (True, False)
    }
    assert lengths[True] < lengths[False]


def test_nothing_and_little():
    assert positions({}, []) == {}
    assert positions({"a": 3}, []) == {"a": (0.0, 0.0)}
    (left, _), (right, _) = positions({"a": 30, "b": 30}, [("b", "a", 1.0)]).values()
    assert right - left > 60


@pytest.mark.parametrize("name", ["hubs", "groups", "pieces"])
def test_what_stays_is_where_it_was_and_what_is_new_stands_free_beside_its_neighbours(name):
    radii, edges = given(GRAPHS[name])
    whole = positions(radii, edges)
    gone = sorted(radii)[3::9]
    fewer = {node: radius for node, radius in radii.items() if node not in gone}
    kept = [edge for edge in edges if edge[0] in fewer and edge[1] in fewer]
    smaller = positions(fewer, kept, whole)
    assert smaller == {node: whole[node] for node in fewer}
    assert positions(radii, edges, whole) == whole, "what comes back is where it was"
    found = positions(radii, edges, smaller)
    assert {node: found[node] for node in fewer} == smaller
    points = {node: np.array(place) for node, place in found.items()}
    for node in gone:
        others = [other for other in radii if other != node]
        apart = [np.linalg.norm(points[node] - points[o]) - radii[node] - radii[o] for o in others]
        assert min(apart) > 0
    ends = [(a, b) for a, b, _ in edges if a in gone or b in gone]
    near = [np.linalg.norm(points[a] - points[b]) for a, b in ends]
    spread = np.array(list(points.values()))
    across = np.median(np.linalg.norm(spread[:, None] - spread, axis=2))
    assert np.median(near) < across
    assert positions(radii, edges, {node: whole[node] for node in gone}) == whole, "too few"
