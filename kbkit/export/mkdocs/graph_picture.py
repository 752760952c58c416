"""The picture on the page of a knowledge base's graph."""

from __future__ import annotations

import hashlib
import html
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from kbkit.errors import ExportError
from kbkit.export.index.packing import encode_call
from kbkit.export.mkdocs.scripts import scripts
from kbkit.export.pages.outline import GRAPH_DATA

FOLDER = "graphs"
"""Folder of the data of graphs, beside the scripts."""


_ROWS = 250
"""Entities of a part."""
_NEIGHBORS = 60
"""Most neighbours of one there."""


def graph_scripts(export: Path, address: Callable[[str], str | None]) -> dict[str, bytes]:
    """The scripts that give the data of an export's graph to its page, by their names.

    Where a site has no server, JSON cannot be fetched. The first has what is drawn; the others, in
    a folder called like it, have the neighbours of what is not, and are read when somebody looks
    for it.

    Args:
        export: Folder of the export.
        address: Gives the address of a page from the site's root, by its path in the export.

    Returns:
        Nothing where the export has no graph.

    Raises:
        ExportError: The data are damaged.
    """
    path = export / GRAPH_DATA
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
        values["documents"] = [[title, address(page) or ""] for title, page in values["documents"]]
        rows = _neighborhoods(values)
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise ExportError(f"{path}: damaged ({error}); export again") from error
    parts = [rows[start : start + _ROWS] for start in range(0, len(rows), _ROWS)]
    values = {name: held for name, held in values.items() if name not in ("undrawn", "further")}
    values["parts"] = [part[0][0] for part in parts]
    data = encode_call("kbkitGraph", [values])
    written = [encode_call("kbkitGraphPart", [n, part]) for n, part in enumerate(parts)]
    name = hashlib.blake2b(b"".join([data, *written]), digest_size=5).hexdigest()
    return {f"{name}.js": data} | {f"{name}/{n}.js": each for n, each in enumerate(written)}


def _neighborhoods(values: Mapping[str, Any]) -> list[list[Any]]:
    """Entities that have neighbours which are not drawn, or are not drawn themselves, by name.

    A row has name, type, passages, documents, places, and of each neighbour the relation, whether
    it points there, its weight, and the number of a node that is drawn, or name and type.
    """
    nodes, undrawn = values["nodes"], values["undrawn"]
    brief = [[row[0], row[1], *row[5:8]] for row in nodes] + undrawn
    near: dict[int, list[list[Any]]] = {}
    for source, target, relation, weight in values["further"]:
        for here, other in ((source, target), (target, source)):
            found = near.setdefault(here, [])
            if len(found) < _NEIGHBORS:
                end = [other] if other < len(nodes) else brief[other][:2]
                found.append([relation, int(here == source), weight, *end])
    rows = [[*brief[here], found] for here, found in near.items()]
    # as browsers compare texts
    return sorted(rows, key=lambda row: row[0].encode("utf-16-be", "surrogatepass"))


def picture(name: str, kb: str, assets: str) -> str:
    """The HTML that a graph is drawn in.

    Args:
        name: Of the script with its data.
        kb: The knowledge base as the search of the site knows it, ``""`` where it has none.
        assets: Address of the folder of scripts, from the page.
    """
    style, script = scripts()["graph.css"][0], scripts()["graph.js"][0]
    return (
        f'<link rel="stylesheet" href="{assets}/{style}">'
        f'<div id="kb-graph" class="kb-graph-page" data-kb="{html.escape(kb)}"></div>'
        f'<script src="{assets}/{script}" defer></script>'
        f'<script src="{assets}/{FOLDER}/{name}" defer></script>'
    )
