"""The home page of an export: figures, newest changes, sections, documents, pictures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath

from kbkit.export.pages.elements import front_matter, html_title, pluralize
from kbkit.export.pages.links import relative
from kbkit.export.pages.list_pages import document_list, section_list, section_pages
from kbkit.export.pages.outline import ABOUT, BROWSE, HOME, Outline
from kbkit.export.pages.revisions import latest_changes
from kbkit.export.pages.sections import Section
from kbkit.markdown.disarming import escape
from kbkit.models import KnowledgeBaseInfo

HOME_SIZE = 50
"""Most documents that the home page lists."""
INNER_SECTIONS = 40
"""Most sections within sections that the home page names."""
CHANGES = 10
"""Most changes that the home page names."""


def home_page(
    info: KnowledgeBaseInfo, outline: Outline, pictures: Sequence[str] = ()
) -> dict[str, str]:
    """The home page, and more pages where the knowledge base lists many documents at its top.

    Returns:
        The Markdown of each page by its path; the first is `HOME`.
    """
    root = outline.root
    more: dict[str, str] = {}
    lines = [f"# {escape(outline.title)}", ""]
    if info.description:
        lines += [escape(info.description), ""]
    lines += [*_figures(info, outline), *_changes(outline)]
    if root.sections:
        inner = sum(len(section.sections) for section in root.sections) <= INNER_SECTIONS
        lines += ["## Sections", "", *section_list(outline, root, HOME, inner=inner)]
    if len(root.documents) > HOME_SIZE:
        path = outline.section_paths[root.folders]
        more = section_pages(outline, Section(root.folders, "", root.documents), (), path)
        link = relative(path, HOME)
        lines += ["## Documents", "", f"[{pluralize(len(root.documents))}]({link})", ""]
    elif root.documents:
        lines += ["## Documents", "", *document_list(outline, root.documents, HOME)]
    if pictures:
        lines += ["## In pictures", ""]
        for path in pictures:
            label = PurePosixPath(path).stem.replace("-", " ")
            lines += [f"![{escape(label.capitalize())}]({path})", ""]
    meta = {"title": html_title(outline.title)}
    return {HOME: "\n".join([front_matter(meta), *lines, ""]), **more}


def _figures(info: KnowledgeBaseInfo, outline: Outline) -> list[str]:
    found = outline.entries.values()
    days = sorted(entry.day for entry in found)
    types = Counter(entry.document_type for entry in found)
    stale = sum(entry.stale for entry in found)
    rows = [
        ("Documents", f"[{len(found):,}]({BROWSE})"),
        ("Chunks", f"{info.chunks:,}"),
        ("Sections", f"{len(outline.section_paths) - 1:,}"),
        ("Types", _types(outline, types, HOME)),
        ("Sources", f"[{escape(', '.join(info.source_types)) or 'none'}]({ABOUT})"),
    ]
    if stale:
        rows.append(("Not reached lately", pluralize(stale)))
    if outline.facts.ratings:
        averages = [average for average, _ in outline.facts.ratings.values()]
        rated = f"{pluralize(len(averages))}, {sum(averages) / len(averages):.1f} of 5 on average"
        rows.append(("Rated", rated))
    if days:
        rows.append(("Fetched", days[-1] if days[0] == days[-1] else f"{days[0]} to {days[-1]}"))
    table = [f"| {name} | {value or '-'} |" for name, value in rows]
    return [table[0], "| --- | --- |", *table[1:], ""]


def _types(outline: Outline, types: Mapping[str, int], here: str) -> str:
    return ", ".join(
        f"{number:,} [{escape(kind.replace('_', ' '))}]({relative(outline.type_paths[kind], here)})"
        for kind, number in sorted(types.items())
    )


def _changes(outline: Outline) -> list[str]:
    """What came and changed since the first export."""
    lines = [
        f"- [{escape(outline.entries[uri].title)}]({relative(outline.paths[uri], HOME)}): "
        f"{revision.change} {revision.day}"
        for uri, revision in latest_changes(outline.history(), CHANGES)
    ]
    return ["## Newest changes", "", *lines, ""] if lines else []
