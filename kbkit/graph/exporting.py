"""The graph in forms that other programs read. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kbkit.models import Relation, Target

if TYPE_CHECKING:
    import networkx as nx
    import pandas as pd

Labels = Mapping[Target, tuple[str, str]]
"""What targets are called, and what they are."""


def as_json(relations: Sequence[Relation], labels: Labels) -> dict[str, Any]:
    """Nodes and edges as JSON values; ids of nodes have their kind before them."""
    return {
        "nodes": [
            {"id": node_id(target), "kind": target.kind.value, "name": name, "type": type_}
            for target, (name, type_) in labels.items()
        ],
        "edges": [
            {
                "id": each.id,
                "source": node_id(each.source),
                "target": node_id(each.target),
                "name": each.name,
                "weight": each.weight,
                "evidence": list(each.evidence),
                "made_by": each.made_by,
                "note": each.note,
            }
            for each in relations
        ],
    }


def as_networkx(relations: Sequence[Relation], labels: Labels) -> nx.MultiDiGraph:
    """As a graph of networkx; keys of edges are the names of relations."""
    import networkx as nx

    graph = nx.MultiDiGraph()
    for target, (name, type_) in labels.items():
        graph.add_node(node_id(target), kind=target.kind.value, name=name, type=type_)
    for each in relations:
        graph.add_edge(
            node_id(each.source), node_id(each.target), key=each.name, name=each.name,
            weight=each.weight, evidence=" ".join(each.evidence), made_by=each.made_by,
            note=each.note,
        )  # fmt: skip
    return graph


def as_frame(relations: Sequence[Relation], labels: Labels) -> pd.DataFrame:
    """Relations as a DataFrame, a row each."""
    import pandas as pd

    rows = [
        {
            "source": labels[each.source][0],
            "relation": each.name,
            "target": labels[each.target][0],
            "weight": each.weight,
            "source_kind": each.source.kind.value,
            "target_kind": each.target.kind.value,
            "source_id": each.source.id,
            "target_id": each.target.id,
            "evidence": list(each.evidence),
            "made_by": each.made_by,
            "note": each.note,
        }
        for each in relations
    ]
    return pd.DataFrame(rows, index=pd.Index([each.id for each in relations], name="id"))


def node_id(target: Target) -> str:
    """The id of a node: ids of different kinds may be the same."""
    return f"{target.kind.value}:{target.id}"
