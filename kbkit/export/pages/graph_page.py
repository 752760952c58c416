"""The page of a knowledge graph: a list of the most important, and all as JSON.

The plugin puts the picture in between, which a script draws of the JSON; without scripts the list
leads to the documents.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from kbkit.export.facts import GraphFacts, GraphPlace
from kbkit.export.pages.elements import breadcrumbs, front_matter
from kbkit.export.pages.links import in_page, relative
from kbkit.export.pages.outline import GRAPH, GRAPH_DATA, Outline
from kbkit.markdown.disarming import escape
from kbkit.models.plain import pluralize

LISTED = 200
"""Maximum entities on the page."""
FORMAT = 2
"""Version of the data."""


def graph_pages(outline: Outline) -> dict[str, str]:
    """The page and the data by their paths; nothing where there is no graph."""
    graph = outline.facts.graph
    if graph is None:
        return {}
    if graph.pages:
        return dict(graph.pages)
    page = _page(graph, outline)
    return {GRAPH: page, GRAPH_DATA: _data(graph, outline, _digest(page))}


def kept_pages(directory: Path, state: str) -> dict[str, str]:
    try:
        texts = {path: (directory / path).read_bytes().decode() for path in (GRAPH, GRAPH_DATA)}
        values = json.loads(texts[GRAPH_DATA])
        told = values["format"], values["state"], values["page"]
        same = told == (FORMAT, state, _digest(texts[GRAPH]))
    except (OSError, ValueError, LookupError, TypeError):
        return {}
    return texts if same else {}


def _digest(page: str) -> str:
    return hashlib.blake2b(page.encode("utf-8", "replace"), digest_size=10).hexdigest()


def _page(graph: GraphFacts, outline: Outline) -> str:
    shown = len(graph.nodes)
    of = f"the {shown:,} most related of {graph.total:,}" if graph.total > shown else f"{shown:,}"
    lines = [breadcrumbs(outline, (), GRAPH), "", "# Knowledge graph", ""]
    lines += [
        f"This graph shows {of} names in these documents, with "
        f"{pluralize(len(graph.edges), 'relation')}.",
        "",
        "## Most related",
        "",
    ]
    for node in graph.nodes[:LISTED]:
        place = next((place for place in node.places if place.uri in outline.paths), None)
        label = escape(node.name)
        lines.append(
            f"- {f'[{label}]({_link(place, outline)})' if place else label} "
            f"({escape(node.type)}){f': {escape(node.description)}' if node.description else ''}"
        )
    # a table of one entry would take room from the picture
    meta = {"title": "Knowledge graph", "search": {"exclude": True}, "hide": ["toc"]}
    return "\n".join([front_matter(meta), *lines, ""])


def _link(place: GraphPlace, outline: Outline) -> str:
    anchor = in_page(place.anchor) if place.anchor else ""
    return relative(outline.paths[place.uri], GRAPH) + anchor


def _data(graph: GraphFacts, outline: Outline, page: str) -> str:
    """Return the graph as JSON, a node or relation a line; repeated texts appear once.

    The address of each document's page is added when a site is built.
    """
    types = [*(node.type for node in graph.nodes), *(node.type for node in graph.undrawn)]
    names = _numbered(types)
    relations = _numbered(edge.name for edge in (*graph.edges, *graph.further))
    pages: dict[str, int] = {}

    def places(found: Sequence[GraphPlace]) -> list[list[Any]]:
        return [
            [pages.setdefault(place.uri, len(pages)), place.anchor, int(place.defines)]
            for place in found
            if place.uri in outline.paths
        ]

    nodes = [
        [
            node.name,
            names[node.type],
            node.x,
            node.y,
            node.radius,
            node.chunks,
            node.documents,
            places(node.places),
            node.description,
            list(node.aliases),
            list(node.properties),
        ]
        for node in graph.nodes
    ]
    edges = [
        [edge.source, edge.target, relations[edge.name], edge.weight, int(edge.drawn)]
        for edge in graph.edges
    ]
    undrawn = [
        [node.name, names[node.type], node.chunks, node.documents, places(node.places)]
        for node in graph.undrawn
    ]
    further = [
        [edge.source, edge.target, relations[edge.name], edge.weight] for edge in graph.further
    ]
    gaps = [[gap.name, gap.kind, gap.reason, places(gap.places)] for gap in graph.gaps]
    documents = [[outline.entries[uri].title, outline.paths[uri]] for uri in pages]
    values = {
        "format": FORMAT,
        "state": graph.state,
        "page": page,
        "title": outline.title,
        "total": graph.total,
        "types": list(names),
        "relations": list(relations),
    }
    lists: dict[str, list[list[Any]]] = {
        "documents": documents,
        "nodes": nodes,
        "edges": edges,
        "gaps": gaps,
        "undrawn": undrawn,
        "further": further,
    }
    parts = [f'"{name}":[\n' + ",\n".join(map(_json, rows)) + "\n]" for name, rows in lists.items()]
    return f"{_json(values).removesuffix('}')},\n" + ",\n".join(parts) + "}\n"


def _numbered(names: Iterable[str]) -> dict[str, int]:
    return {name: number for number, name in enumerate(dict.fromkeys(names))}


def _json(values: Any) -> str:
    return json.dumps(values, separators=(",", ":"))
