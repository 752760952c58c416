"""What of a graph is drawn, and how large: the most important part, or what is near something."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from kbkit.graph.exporting import node_id
from kbkit.graph.layout import Place, positions
from kbkit.graph.walking import widened
from kbkit.models import GraphLayout, LayoutEdge, LayoutNode, Target, TargetKind
from kbkit.stores.catalog import edges as edge_rows
from kbkit.stores.catalog import targets as target_rows
from kbkit.stores.catalog.database import Transaction
from kbkit.stores.catalog.edges import Edge

SMALLEST, LARGEST = 4.0, 18.0
"""Radii of nodes."""
_EDGES = 4
"""Relations of a node that are drawn at least, and of few nodes as many as make `_MOST_EDGES`."""
_MOST_EDGES = 1_200


def drawing(
    transaction: Transaction,
    *,
    around: Sequence[Target] = (),
    depth: int,
    types: Collection[str],
    names: Collection[str],
    kb_ids: Collection[str] | None,
    limit: int,
    before: Mapping[Target, Place] | None = None,
) -> GraphLayout:
    """A part of the graph with places for its nodes.

    Args:
        transaction: Reads.
        around: What to show with what is near; without, what most is related to.
        depth: How many relations away that is at most.
        types: Of the nodes; without, entities of any type.
        names: Of the relations; without, any.
        kb_ids: Only what is related in these knowledge bases; ``None`` for all.
        limit: Most nodes.
        before: Where nodes were in the picture before.
    """
    documents = TargetKind.DOCUMENT in types
    kinds = {TargetKind.ENTITY} | ({TargetKind.DOCUMENT} if documents else set())
    strengths = edge_rows.strengths(transaction, kinds=kinds, names=names, kb_ids=kb_ids)
    if around:
        chosen = _near(
            transaction, around, depth, kinds=kinds, names=names, kb_ids=kb_ids, limit=limit
        )
        strengths |= {target: strengths.get(target, 0.0) for target in chosen}
    else:
        chosen = sorted(strengths, key=lambda each: (-strengths[each], node_id(each)))
    labels = target_rows.labels(transaction, chosen if types or around else chosen[: 2 * limit])
    there = [each for each in chosen if each in labels and (not types or labels[each][1] in types)]
    there = [*dict.fromkeys([*(each for each in around if each in labels), *there])]
    present = target_rows.present(transaction, there[: 2 * limit])
    shown = [each for each in there[: 2 * limit] if each in present][:limit]
    edges = edge_rows.edges(transaction, among=shown, names=names, kb_ids=kb_ids)
    total = len(there) if types else len(strengths)
    total = len(shown) if len(shown) < limit else total
    return _laid_out(
        shown, _strongest(edges, len(shown)), strengths, labels,
        total=total, before=before or {},
    )  # fmt: skip


def _near(
    transaction: Transaction,
    around: Sequence[Target],
    depth: int,
    *,
    kinds: Collection[TargetKind],
    names: Collection[str],
    kb_ids: Collection[str] | None,
    limit: int,
) -> list[Target]:
    """Some targets and what is near them, the nearest and strongest first."""

    def edges_at(ends: Collection[Target]) -> list[Edge]:
        found = edge_rows.edges(transaction, at=ends, names=names, kb_ids=kb_ids)
        return [edge for edge in found if edge.source.kind in kinds and edge.target.kind in kinds]

    chosen = dict.fromkeys(around)
    each = max(limit // len(around), 1)
    for start in around:
        chosen |= dict.fromkeys(target for target, _, _ in widened(edges_at, start, depth, each))
    return list(chosen)


def _strongest(edges: Sequence[Edge], nodes: int) -> list[Edge]:
    """The relations that are drawn: all would be a tangle."""
    most = max(_EDGES, _MOST_EDGES // max(nodes, 1))
    drawn: dict[Target, int] = {}
    kept = []
    for edge in sorted(edges, key=lambda each: (-each.weight, each.id)):
        counts = [drawn.get(end, 0) for end in (edge.source, edge.target)]
        if min(counts) < most:
            kept.append(edge)
            for end, count in zip((edge.source, edge.target), counts, strict=True):
                drawn[end] = count + 1
    return kept


def _laid_out(
    nodes: Sequence[Target],
    edges: Sequence[Edge],
    strengths: Mapping[Target, float],
    labels: Mapping[Target, tuple[str, str]],
    *,
    total: int,
    before: Mapping[Target, Place],
) -> GraphLayout:
    most = max((strengths[node] for node in nodes), default=0.0) or 1.0
    radii = {
        node: round(SMALLEST + (LARGEST - SMALLEST) * (strengths[node] / most) ** 0.5, 1)
        for node in nodes
    }
    places = positions(
        {node_id(node): radius for node, radius in radii.items()},
        [(node_id(edge.source), node_id(edge.target), edge.weight) for edge in edges],
        {node_id(node): place for node, place in before.items()},
    )
    order = sorted(nodes, key=lambda node: (-strengths[node], node_id(node)))
    numbers = {node: number for number, node in enumerate(order)}
    return GraphLayout(
        tuple(LayoutNode(node, *labels[node], *places[node_id(node)], radii[node])
              for node in order),
        tuple(LayoutEdge(numbers[edge.source], numbers[edge.target], edge.name,
                         round(edge.weight, 3)) for edge in edges),
        total,
    )  # fmt: skip
