"""Export the graph for other programs."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
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
                "weight": each.weight,
                "evidence": list(each.evidence),
                "made_by": each.made_by,
                "note": each.note,
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
        graph.add_edge(
            node_id(each.source),
            node_id(each.target),
            key=each.name,
            name=each.name,
            weight=each.weight,
            evidence=" ".join(each.evidence),
            made_by=each.made_by,
            note=each.note,
        )
    return graph


def as_graphml(relations: Sequence[Relation], labels: Labels) -> bytes:
    """Convert to GraphML in UTF-8; characters invalid in XML become U+FFFD."""
    from networkx import write_graphml

    legible = [
        replace(
            each,
            name=_xml_text(each.name),
            note=_xml_text(each.note),
            made_by=_xml_text(each.made_by),
        )
        for each in relations
    ]
    named = {target: (_xml_text(name), type_) for target, (name, type_) in labels.items()}
    written = BytesIO()
    write_graphml(as_networkx(legible, named), written)
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


def _xml_text(text: str) -> str:
    return _NOT_IN_XML.sub("\ufffd", text)


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
            "evidence": list(each.evidence),
            "made_by": each.made_by,
            "note": each.note,
        }
        for each in relations
    ]
    return pd.DataFrame(rows, index=pd.Index([each.id for each in relations], name="id"))


def node_id(target: Target) -> str:
    return f"{target.kind.value}:{target.id}"
