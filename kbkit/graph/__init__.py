"""The knowledge graph: relations from documents, walks, merges, gaps; here its export."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kbkit.errors import ConfigError, WorkspaceError
from kbkit.models import Relation, Target

if TYPE_CHECKING:
    import networkx as nx
    import pandas as pd


Labels = Mapping[Target, tuple[str, str]]
"""Labels and kinds of targets."""

_NOT_IN_XML = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML excludes even escaped (XML 1.0, production 2)."""


def as_json(relations: Sequence[Relation], labels: Labels) -> dict[str, Any]:
    """Return nodes and edges as JSON values; node ids start with their kind."""
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
                **_support(each),
            }
            for each in relations
        ],
    }


def as_networkx(relations: Sequence[Relation], labels: Labels) -> nx.MultiDiGraph:
    """Convert to a networkx graph; edge keys are the names of relations."""
    import networkx as nx

    graph = nx.MultiDiGraph()
    for target, (name, type_) in labels.items():
        graph.add_node(node_id(target), kind=target.kind.value, name=name, type=type_)
    for each in relations:
        values = _support(each) | {"name": each.name, "evidence": " ".join(each.evidence)}
        graph.add_edge(node_id(each.source), node_id(each.target), key=each.name, **values)
    return graph


def as_graphml(relations: Sequence[Relation], labels: Labels) -> bytes:
    """Convert to GraphML in UTF-8; characters invalid in XML become U+FFFD."""
    from networkx import write_graphml

    legible = partial(_NOT_IN_XML.sub, "\ufffd")
    edges = [
        replace(
            each, name=legible(each.name), note=legible(each.note), made_by=legible(each.made_by)
        )
        for each in relations
    ]
    nodes = {target: (legible(name), type_) for target, (name, type_) in labels.items()}
    written = BytesIO()
    write_graphml(as_networkx(edges, nodes), written)
    return written.getvalue()


def write(file: Path, relations: Sequence[Relation], labels: Labels) -> Path:
    if file.suffix not in (".graphml", ".json"):
        raise ConfigError(f"{file}: name a file that ends with .graphml or .json")
    content = (
        as_graphml(relations, labels)
        if file.suffix == ".graphml"
        else json.dumps(as_json(relations, labels), ensure_ascii=False).encode("utf-8", "replace")
    )
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    except OSError as error:
        raise WorkspaceError(f"{file}: {error.strerror}; name a file that you may write") from error
    return file


def as_frame(relations: Sequence[Relation], labels: Labels) -> pd.DataFrame:
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
            **_support(each),
        }
        for each in relations
    ]
    return pd.DataFrame(rows, index=pd.Index([each.id for each in relations], name="id"))


def _support(relation: Relation) -> dict[str, Any]:
    return {
        "weight": relation.weight,
        "evidence": list(relation.evidence),
        "made_by": relation.made_by,
        "note": relation.note,
    }


def node_id(target: Target) -> str:
    return f"{target.kind.value}:{target.id}"
