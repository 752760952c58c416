"""The picture on the page of a knowledge base's graph."""

from __future__ import annotations

import hashlib
import html
import json
from collections.abc import Callable
from pathlib import Path

from kbkit.errors import ExportError
from kbkit.export.index.packing import encode_call
from kbkit.export.mkdocs.scripts import scripts
from kbkit.export.pages.outline import GRAPH_DATA

FOLDER = "graphs"
"""Folder of the data of graphs, beside the scripts."""


def graph_script(export: Path, address: Callable[[str], str | None]) -> tuple[str, bytes] | None:
    """The script that gives the data of an export's graph to its page: its name, and its text.

    Where a site has no server, JSON cannot be fetched.

    Args:
        export: Folder of the export.
        address: Gives the address of a page from the site's root, by its path in the export.

    Returns:
        ``None`` where the export has no graph.

    Raises:
        ExportError: The data are damaged.
    """
    path = export / GRAPH_DATA
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
        values["documents"] = [[title, address(page) or ""] for title, page in values["documents"]]
    except FileNotFoundError:
        return None
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise ExportError(f"{path}: damaged ({error}); export again") from error
    data = encode_call("kbkitGraph", [values])
    return f"{hashlib.blake2b(data, digest_size=5).hexdigest()}.js", data


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
