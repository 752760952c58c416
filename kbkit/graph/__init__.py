"""The knowledge graph: relations from documents, walks, merges, gaps; here its export."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kbkit.errors import ConfigError, WorkspaceError
from kbkit.models import Relation, Target

if TYPE_CHECKING:
    import networkx as nx
    import pandas as pd


Values = Mapping[str, Any]
"""Nodes and edges as JSON values; see `as_json`."""

_PLAIN = ("id", "name", "weight", "made_by", "note")
_NOT_IN_XML = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML excludes even escaped (XML 1.0, production 2)."""


def as_json(
    relations: Sequence[Relation], labels: Mapping[Target, tuple[str, str]]
) -> dict[str, Any]:
    """Return nodes and edges as JSON values; node ids start with their kind."""
    return {
        "nodes": [
            {"id": target.key, "kind": target.kind.value, "name": name, "type": type_}
            for target, (name, type_) in labels.items()
        ],
        "edges": [
            {
                "source": relation.source.key,
                "target": relation.target.key,
                "evidence": list(relation.evidence),
                **{name: getattr(relation, name) for name in _PLAIN},
            }
            for relation in relations
        ],
    }


def as_networkx(values: Values) -> nx.MultiDiGraph:
    """Convert to a networkx graph; edge keys are the names of relations."""
    import networkx as nx

    graph = nx.MultiDiGraph()
    for node in values["nodes"]:
        graph.add_node(node["id"], **{name: node[name] for name in ("kind", "name", "type")})
    for edge in values["edges"]:
        data = {name: edge[name] for name in ("name", "weight", "made_by", "note")}
        data["evidence"] = " ".join(edge["evidence"])
        graph.add_edge(edge["source"], edge["target"], key=edge["name"], **data)
    return graph


def as_graphml(values: Values) -> bytes:
    """Convert to GraphML in UTF-8; characters invalid in XML become U+FFFD."""
    from networkx import write_graphml

    legible = {kind: [_legible(item) for item in items] for kind, items in values.items()}
    stream = BytesIO()
    write_graphml(as_networkx(legible), stream)
    return stream.getvalue()


def _legible(item: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: _NOT_IN_XML.sub("\ufffd", value) if isinstance(value, str) else value
        for name, value in item.items()
    }


def write(file: Path, values: Values) -> Path:
    if file.suffix not in (".graphml", ".json"):
        raise ConfigError(f"{file}: name a file that ends with .graphml or .json")
    content = (
        as_graphml(values)
        if file.suffix == ".graphml"
        else json.dumps(values, ensure_ascii=False).encode("utf-8", "replace")
    )
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    except OSError as error:
        raise WorkspaceError(f"{file}: {error.strerror}; name a file that you may write") from error
    return file


def as_frame(values: Values) -> pd.DataFrame:
    import pandas as pd

    nodes = {node["id"]: node for node in values["nodes"]}
    rows = [
        {
            "source": nodes[edge["source"]]["name"],
            "relation": edge["name"],
            "target": nodes[edge["target"]]["name"],
            "weight": edge["weight"],
            "source_kind": nodes[edge["source"]]["kind"],
            "target_kind": nodes[edge["target"]]["kind"],
            "source_id": Target.of_key(edge["source"]).id,
            "target_id": Target.of_key(edge["target"]).id,
            **{name: edge[name] for name in ("evidence", "made_by", "note")},
        }
        for edge in values["edges"]
    ]
    index = pd.Index([edge["id"] for edge in values["edges"]], name="id")
    return pd.DataFrame(rows, index=index)
