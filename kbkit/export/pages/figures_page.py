"""The page of an export that has its figures and pictures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import PurePosixPath

from kbkit.export.pages.elements import breadcrumbs, front_matter
from kbkit.export.pages.links import relative
from kbkit.export.pages.outline import ABOUT, BROWSE, FIGURES, Outline
from kbkit.markdown.disarming import escape
from kbkit.models import KnowledgeBaseInfo, telling_types
from kbkit.models.plain import pluralize


def figures_page(info: KnowledgeBaseInfo, outline: Outline, pictures: Sequence[str]) -> str:
    """How much the knowledge base holds, in figures and pictures.

    Args:
        info: What the registry knows of it.
        outline: How the pages hang together.
        pictures: Paths of the pictures.
    """
    lines = [breadcrumbs(outline, (), FIGURES), "", "# Figures", "", *_table(info, outline)]
    for path in pictures:
        label = PurePosixPath(path).stem.replace("-", " ").capitalize()
        lines += [f"## {escape(label)}", "", f"![{escape(label)}]({path})", ""]
    meta = {"title": "Figures", "search": {"exclude": True}}
    return "\n".join([front_matter(meta), *lines, ""])


def _table(info: KnowledgeBaseInfo, outline: Outline) -> list[str]:
    found = outline.entries.values()
    days = sorted(entry.day for entry in found)
    stale = sum(entry.stale for entry in found)
    rows = [
        ("Documents", f"[{len(found):,}]({BROWSE})"),
        ("Chunks", f"{info.chunks:,}"),
        ("Sections", f"{len(outline.section_paths) - 1:,}"),
        ("Sources", f"[{escape(', '.join(info.source_types)) or 'none'}]({ABOUT})"),
    ]
    if types := _types(outline):
        rows.insert(3, ("Types", types))
    if stale:
        rows.append(("Not reached lately", pluralize(stale)))
    if outline.facts.ratings:
        averages = [average for average, _ in outline.facts.ratings.values()]
        rated = f"{pluralize(len(averages))}, {sum(averages) / len(averages):.1f} of 5 on average"
        rows.append(("Rated", rated))
    if days:
        rows.append(("Fetched", days[-1] if days[0] == days[-1] else f"{days[0]} to {days[-1]}"))
    table = [f"| {name} | {value or '-'} |" for name, value in rows]
    return ["| What | Figure |", "| --- | --- |", *table, ""]


def _types(outline: Outline) -> str:
    """The types, where these tell documents apart."""
    counts = Counter(entry.document_type for entry in outline.entries.values())
    return ", ".join(
        f"{counts[kind]:,} [{escape(kind.replace('_', ' '))}]"
        f"({relative(outline.type_paths[kind], FIGURES)})"
        for kind in telling_types(counts)
    )
