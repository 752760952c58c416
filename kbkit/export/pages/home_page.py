"""The home page of a knowledge base, lists of its documents, its graph, and the navigation."""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from kbkit.export.facts import GraphFacts, GraphPlace
from kbkit.export.pages.contents import introduces
from kbkit.export.pages.document_page import (
    fill_template,
    front_matter,
    html_title,
    stars,
    unsearched_page,
)
from kbkit.export.pages.outline import ABOUT, BROWSE, FIGURES, GRAPH, GRAPH_DATA, HOME, SiteOutline
from kbkit.export.pages.paths import in_page, relative
from kbkit.export.pages.sections import TreeSection
from kbkit.models import KnowledgeBaseInfo
from kbkit.models.values import plain, pluralize
from kbkit.text.markdown.sanitizing import escape

QUESTIONS = 8
"""Maximum questions on the home page."""
NAMED = 3
"""Documents that the home page lists for a section without a description."""
MAX_DOCUMENTS = 40
"""Maximum documents without a section on the home page."""
CHANGES = 10
"""Maximum changes on the home page."""


def home_page(info: KnowledgeBaseInfo, outline: SiteOutline) -> dict[str, str]:
    root, facts = outline.root, outline.facts
    more: dict[str, str] = {}
    if len(root.documents) > MAX_DOCUMENTS:
        path = outline.section_paths[root.key]
        more = section_pages(outline, TreeSection(root.key, items=list(root.documents)), (), path)
    revisions = [(entry.revision, uri) for uri, entry in outline.entries.items()]
    changes = [change for change in revisions if change[0].change != "first"]
    changes.sort(key=lambda change: (change[0].day, change[1]), reverse=True)
    text = fill_template(
        "home.md.j2",
        outline=outline,
        about=plain(info.description) or _front_description(outline),
        questions=list(_questions(outline))[:QUESTIONS],
        sections=[
            (section, relative(outline.page_of(section), HOME), _about_section(outline, section))
            for section in root.sections
        ],
        best=list(_best(outline)),
        documents=[
            document_line(outline, uri, HOME)
            for uri in ([] if facts.best else root.documents[:MAX_DOCUMENTS])
        ],
        more=relative(next(iter(more)), HOME) if more else "",
        changes=[(_link(outline, uri, HOME), revision) for revision, uri in changes[:CHANGES]],
        day=max((source.day for source in facts.sources), default=""),
    )
    meta = {"title": html_title(outline.title)}
    return {HOME: "\n".join([front_matter(meta), text, ""]), **more}


def _front_description(outline: SiteOutline) -> str:
    first = outline.root.items[:1]
    if first and isinstance(first[0], str) and introduces(first[0]):
        return outline.entries[first[0]].description
    return ""


def _questions(outline: SiteOutline) -> Iterator[tuple[str, list[str]]]:
    for example in outline.facts.questions:
        answers = [_link(outline, uri, HOME) for uri in example.uris if uri in outline.paths]
        if answers and plain(example.question):
            yield plain(example.question), answers[:2]


def _about_section(outline: SiteOutline, section: TreeSection) -> str:
    description = about_line(outline, section.page) if section.page else ""
    titles = (outline.entries[uri].label for uri in section.documents[:NAMED])
    return description or ", ".join(map(escape, titles))


def _best(outline: SiteOutline) -> Iterator[str]:
    entries = [outline.entries[uri] for uri in outline.facts.best if uri in outline.entries]
    for entry in entries[:MAX_DOCUMENTS]:
        average, people = outline.facts.ratings.get(entry.id, (0.0, 0))
        rating = f" {stars(average)} ({people:,})" if people else ""
        yield document_line(outline, entry.uri, HOME) + rating


LISTED = 200
"""Maximum entities on the page."""
FORMAT = 3


def graph_pages(outline: SiteOutline) -> dict[str, str]:
    """Return the graph's page and data by path; empty without a graph."""
    graph = outline.facts.graph
    if graph is None:
        return {}
    if graph.pages:
        return dict(graph.pages)
    page = _page(graph, outline)
    return {GRAPH: page, GRAPH_DATA: _data(graph, outline, _digest(page))}


def unchanged_pages(directory: Path, state: str) -> dict[str, str]:
    try:
        texts = {path: (directory / path).read_bytes().decode() for path in (GRAPH, GRAPH_DATA)}
        values = json.loads(texts[GRAPH_DATA])
        parts = values["format"], values["state"], values["page"]
        is_current = parts == (FORMAT, state, _digest(texts[GRAPH]))
    except (OSError, ValueError, LookupError, TypeError):
        return {}
    return texts if is_current else {}


def _digest(page: str) -> str:
    return hashlib.blake2b(page.encode("utf-8", "replace"), digest_size=10).hexdigest()


def _page(graph: GraphFacts, outline: SiteOutline) -> str:
    rows = []
    nodes = graph.nodes[: graph.pictured]
    for node in nodes[:LISTED]:
        place = next((place for place in node.places if place.uri in outline.paths), None)
        anchor = in_page(place.anchor) if place and place.anchor else ""
        link = relative(outline.paths[place.uri], GRAPH) + anchor if place else ""
        rows.append((node, link))
    edges = sum(max(edge.source, edge.target) < graph.pictured for edge in graph.edges)
    text = fill_template("graph.md.j2", nodes=nodes, total=graph.total, edges=edges, listed=rows)
    # a table of contents with one entry would take space from the picture
    return unsearched_page(outline, GRAPH, "Knowledge graph", [text], meta={"hide": ["toc"]})


def _data(graph: GraphFacts, outline: SiteOutline, page: str) -> str:
    """Return the graph as JSON, one node or relation per line; repeated texts appear once.

    A site's build adds the addresses of documents.
    """
    names = _number_names(node.type for node in graph.nodes)
    relations = _number_names(edge.name for edge in graph.edges)
    pages: dict[str, int] = {}

    def places(graph_places: Sequence[GraphPlace]) -> list[list[Any]]:
        return [
            [pages.setdefault(place.uri, len(pages)), place.anchor, int(place.defines)]
            for place in graph_places
            if place.uri in outline.paths
        ]

    nodes: list[list[Any]] = [
        [
            *(node.name, names[node.type], node.x, node.y, node.radius),
            *(node.chunks, node.documents, places(node.places)),
            *(node.description, node.aliases, node.properties),
        ]
        for node in graph.nodes
    ]
    edges = [
        [edge.source, edge.target, relations[edge.name], edge.weight, int(edge.drawn)]
        for edge in graph.edges
    ]
    gaps = [[gap.name, gap.kind, gap.reason, places(gap.places)] for gap in graph.gaps]
    documents = [[outline.entries[uri].label, outline.paths[uri]] for uri in pages]
    values = {
        "format": FORMAT,
        "state": graph.state,
        "page": page,
        "title": outline.title,
        "total": graph.total,
        "pictured": graph.pictured,
        "types": list(names),
        "relations": list(relations),
    }
    lists = {"documents": documents, "nodes": nodes, "edges": edges, "gaps": gaps}
    parts = [f'"{name}":[\n' + ",\n".join(map(_json, rows)) + "\n]" for name, rows in lists.items()]
    return f"{_json(values).removesuffix('}')},\n" + ",\n".join(parts) + "}\n"


def _number_names(names: Iterable[str]) -> dict[str, int]:
    return {name: number for number, name in enumerate(dict.fromkeys(names))}


def _json(values: Any) -> str:
    return json.dumps(values, separators=(",", ":"))


def navigation(outline: SiteOutline) -> Iterator[dict[str, Any]]:
    """Iterate over the pages in the source's order."""
    home = {"title": "Home", "path": HOME}
    if len(outline.root.documents) > MAX_DOCUMENTS:
        home["list"] = outline.section_paths[outline.root.key]
    yield home
    yield from _items(outline, outline.root)
    yield {"title": "By type and tag", "path": BROWSE}
    if outline.facts.graph is not None:
        yield {"title": "Knowledge graph", "path": GRAPH}
    yield {"title": "Figures", "path": FIGURES}
    yield {"title": "Where this comes from", "path": ABOUT}


def _items(outline: SiteOutline, section: TreeSection) -> Iterator[dict[str, Any]]:
    for item in section.items:
        if isinstance(item, str):
            yield {"title": outline.entries[item].label, "path": outline.paths[item]}
        else:
            path = outline.page_of(item)
            entry = {"title": plain(item.label), "path": path}
            list_path = outline.section_paths.get(item.key, path)
            extra = {"list": list_path} if list_path != path else {}
            yield {**entry, **extra, "children": list(_items(outline, item))}


PAGE_SIZE = 500
"""Maximum documents of a list page."""
DESCRIPTION_LENGTH = 140
"""Maximum characters of a description in a list."""


def list_pages(outline: SiteOutline) -> dict[str, str]:
    files: dict[str, str] = {}
    for above, section in outline.root.walk():
        if path := outline.section_paths.get(section.key):
            files |= section_pages(outline, section, above, path)
    files[BROWSE] = _browse_page(outline)
    for kind, path in outline.type_paths.items():
        uris = [uri for uri, entry in outline.entries.items() if entry.document_type == kind]
        files |= _listing(outline, f"Type: {kind.replace('_', ' ')}", uris, path)
    for tag, path in outline.tag_paths.items():
        uris = [uri for uri, entry in outline.entries.items() if tag in entry.tags]
        files |= _listing(outline, f"Tag: {tag}", uris, path)
    return files


def section_pages(
    outline: SiteOutline, section: TreeSection, above: Sequence[TreeSection], path: str
) -> dict[str, str]:
    label = plain(section.label) or f"{outline.title}: documents"
    uris = [section.page, *section.documents] if section.page else section.documents
    parts = [section_line(outline, part, path) for part in section.sections]
    head = [pluralize(section.size), "", *parts, *([""] if parts else [])]
    return _listing(outline, label, uris, path, above=above, head=head)


def _listing(
    outline: SiteOutline,
    label: str,
    uris: Sequence[str],
    path: str,
    *,
    above: Sequence[TreeSection] = (),
    head: Sequence[str] = (),
) -> dict[str, str]:
    pages: dict[str, str] = {}
    number_of_pages = max(1, -(-len(uris) // PAGE_SIZE))
    for number in range(number_of_pages):
        page_path = numbered_path(path, number)
        lines = [] if number else [*(head or (pluralize(len(uris)), ""))]
        if number_of_pages > 1:
            links = [
                str(other + 1)
                if other == number
                else f"[{other + 1}]({relative(numbered_path(path, other), page_path)})"
                for other in range(number_of_pages)
            ]
            lines += [f"Page {' '.join(links)}", ""]
        if part := uris[number * PAGE_SIZE : (number + 1) * PAGE_SIZE]:
            lines += [*(document_line(outline, uri, page_path) for uri in part), ""]
        pages[page_path] = unsearched_page(outline, page_path, label, lines, above=above)
    return pages


def numbered_path(path: str, number: int) -> str:
    return path if number == 0 else f"{path.removesuffix('.md')}-page-{number + 1}.md"


def _browse_page(outline: SiteOutline) -> str:
    entries = outline.entries.values()
    tags = Counter(tag for entry in entries for tag in entry.tags)
    text = fill_template(
        "browse.md.j2",
        outline=outline,
        relative=partial(relative, path=BROWSE),
        types=Counter(entry.document_type for entry in entries),
        tags=tags,
        rarer=len(tags) - len(outline.tag_paths),
    )
    return unsearched_page(outline, BROWSE, "By type and tag", [text])


def section_line(outline: SiteOutline, section: TreeSection, here: str) -> str:
    link = relative(outline.page_of(section), here)
    line = f"- [{escape(section.label)}]({link}) ({pluralize(section.size)})"
    description = about_line(outline, section.page) if section.page else ""
    return f"{line}: {description}" if description else line


def document_line(outline: SiteOutline, uri: str, here: str) -> str:
    line, description = f"- {_link(outline, uri, here)}", about_line(outline, uri)
    return f"{line}: {description}" if description else line


def _link(outline: SiteOutline, uri: str, here: str) -> str:
    return f"[{escape(outline.entries[uri].label)}]({relative(outline.paths[uri], here)})"


def about_line(outline: SiteOutline, uri: str) -> str:
    text = outline.entries[uri].description
    if len(text) > DESCRIPTION_LENGTH:
        cut = text[:DESCRIPTION_LENGTH]
        text = (cut.rpartition(" ")[0] or cut).rstrip(",;:.") + " …"
    return escape(text)
