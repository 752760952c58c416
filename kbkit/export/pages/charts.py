"""Charts of a knowledge base."""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from itertools import cycle, pairwise
from pathlib import PurePosixPath

from kbkit.export.facts import SourceFacts
from kbkit.export.pages.document_page import address_link, license_link, unsearched_page
from kbkit.export.pages.outline import ABOUT, BROWSE, FIGURES, SiteOutline
from kbkit.export.pages.paths import relative
from kbkit.models import KnowledgeBaseInfo, License, telling_types
from kbkit.models.values import pluralize
from kbkit.text.markdown.sanitizing import escape

COLOURS = ("#1b9e77", "#66a61e", "#c8b400", "#e69100", "#d95f02", "#a0522d")
"""From green to brown, visible on white and on black."""

_WIDTH = 640
_LABELS = 130
_NUMBERS = 60
_ROW = 24
_TOP = 50
_LEGEND = 26
_SWATCH = 105


def bar_chart(
    title: str, unit: str, rows: Sequence[tuple[str, Mapping[str, int]]], names: Sequence[str]
) -> str:
    """Return horizontal bars as SVG, each with a label and parts in the order of `names`."""
    most = max((sum(parts.values()) for _, parts in rows), default=0) or 1
    total = sum(sum(parts.values()) for _, parts in rows)
    legend = _LEGEND if len(names) > 1 else 0
    height = _TOP + legend + _ROW * len(rows) + 6
    name = html.escape(f"{title}: {total:,} {unit}")
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}" '
        f'viewBox="0 0 {_WIDTH} {height}" role="img" aria-label="{name}" '
        'font-family="sans-serif" font-size="13" fill="currentColor" color="#767676">',
        _text(0, 16, title, 'font-weight="bold"'),
        _text(0, 35, f"{total:,} {unit}", 'opacity="0.8"'),
    ]
    colours = dict(zip(names, cycle(COLOURS), strict=False))
    for number, (part, colour) in enumerate(colours.items() if legend else ()):
        x = number * _SWATCH
        lines.append(f'<rect x="{x}" y="{_TOP - 1}" width="12" height="12" fill="{colour}"/>')
        lines.append(_text(x + 17, _TOP + 10, part))
    for number, (label, parts) in enumerate(rows):
        lines += _bar(label, parts, colours, most, _TOP + legend + _ROW * number)
    return "\n".join([*lines, "</svg>\n"])


def _bar(
    label: str, parts: Mapping[str, int], colours: Mapping[str, str], limit: int, y: int
) -> Iterator[str]:
    yield _text(_LABELS - 8, y + 15, label, 'text-anchor="end"')
    scale = (_WIDTH - _LABELS - _NUMBERS) / limit
    x = float(_LABELS)
    for part, colour in colours.items():
        width = parts.get(part, 0) * scale
        if width:
            yield (
                f'<rect x="{x:.1f}" y="{y + 2}" width="{width:.1f}" height="{_ROW - 6}" '
                f'fill="{colour}"><title>{html.escape(part)}: {parts[part]:,}</title></rect>'
            )
        x += width
    yield _text(round(x) + 6, y + 15, f"{sum(parts.values()):,}")


def _text(x: int, y: int, text: str, more: str = "") -> str:
    attributes = f" {more}" if more else ""
    return f'<text x="{x}" y="{y}"{attributes}>{html.escape(text)}</text>'


FOLDER = "plots"

_AGES = (("up to a week", 7), ("a month", 30), ("a quarter", 90), ("a year", 365))
_OLDER = "longer"
_LENGTHS = (250, 500, 1000, 2000, 4000)


def charts(outline: SiteOutline) -> dict[str, str]:
    files: dict[str, str] = {}
    entries = outline.entries.values()
    if entries:
        newest = date.fromisoformat(max(entry.day for entry in entries))
        rows: dict[str, Counter[str]] = {}
        for entry in entries:
            age = (newest - date.fromisoformat(entry.day)).days
            part = next((name for name, most in _AGES if age < most), _OLDER)
            rows.setdefault(entry.document_type, Counter())[part] += 1
        ranked = sorted(rows.items(), key=lambda row: (-row[1].total(), row[0]))
        bars = [(kind.replace("_", " "), parts) for kind, parts in ranked]
        title = f"Documents by type, and how long before {newest} they were fetched"
        names = [*(name for name, _ in _AGES), _OLDER]
        files[f"{FOLDER}/documents-by-type.svg"] = bar_chart(title, "documents", bars, names)
    if outline.facts.lengths:
        files[f"{FOLDER}/lengths-of-chunks.svg"] = _length_chart(outline.facts.lengths)
    if outline.facts.scores:
        stars = [
            (f"{score} of 5", {"ratings": outline.facts.scores.get(score, 0)})
            for score in range(5, 0, -1)
        ]
        files[f"{FOLDER}/ratings.svg"] = bar_chart("Ratings", "ratings", stars, ["ratings"])
    return files


def _length_chart(lengths: Sequence[int]) -> str:
    names = [
        f"below {_LENGTHS[0]:,}",
        *(f"{least:,} to {most - 1:,}" for least, most in pairwise(_LENGTHS)),
        f"{_LENGTHS[-1]:,} and more",
    ]
    counts = Counter(sum(length >= least for least in _LENGTHS) for length in lengths)
    rows = [(name, {"chunks": counts[number]}) for number, name in enumerate(names)]
    return bar_chart("Lengths of chunks in characters", "chunks", rows, ["chunks"])


def figures_page(info: KnowledgeBaseInfo, outline: SiteOutline, pictures: Sequence[str]) -> str:
    lines = _table(info, outline)
    for path in pictures:
        label = PurePosixPath(path).stem.replace("-", " ").capitalize()
        lines += [f"## {escape(label)}", "", f"![{escape(label)}]({path})", ""]
    return unsearched_page(outline, FIGURES, "Figures", lines)


def _table(info: KnowledgeBaseInfo, outline: SiteOutline) -> list[str]:
    entries = outline.entries.values()
    days = sorted(entry.day for entry in entries)
    stale = sum(entry.stale for entry in entries)
    rows = [
        ("Documents", f"[{len(entries):,}]({BROWSE})"),
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


def _types(outline: SiteOutline) -> str:
    counts = Counter(entry.document_type for entry in outline.entries.values())
    return ", ".join(
        f"{counts[kind]:,} [{escape(kind.replace('_', ' '))}]"
        f"({relative(outline.type_paths[kind], FIGURES)})"
        for kind in telling_types(counts)
    )


DOCUMENTS = "documents.json"
FULL_TEXT = "llms-full.txt"
LICENSES = 100
"""Maximum number of listed licenses."""

_KINDS = {
    "words": "words",
    "code": "code blocks",
    "headings": "headings",
    "anchors": "anchors of headings",
    "terms": "terms that are explained",
    "rows": "table rows",
    "links": "links",
}


def about_page(info: KnowledgeBaseInfo, outline: SiteOutline) -> str:
    entries = outline.entries.values()
    days = sorted(entry.day for entry in entries)
    lines = [
        "The pages of this part of the site were made by kbkit from the sources below, and belong "
        "to their authors. The foot of each page names its source and license, which applies "
        "here, too.",
        "",
        "## Sources",
        "",
    ]
    if outline.facts.sources:
        lines += ["| Source | Place | Last read |", "| --- | --- | --- |"]
        lines += [
            f"| {escape(source.type)} | {address_link(source.place)} | {source.day or '-'} |"
            for source in outline.facts.sources
        ]
    else:
        lines += ["Documents were added one by one."]
    lines += ["", "## Licenses", "", *_licenses([entry.license for entry in entries])]
    lines += ["", "## Days", ""]
    if days:
        stale = sum(entry.stale for entry in entries)
        lines += [
            f"Fetched on {days[0]}."
            if days[0] == days[-1]
            else f"Fetched from {days[0]} to {days[-1]}.",
            f"{pluralize(stale)} could not be fetched again since; their pages say so."
            if stale
            else "All could be fetched when they were last asked for.",
            "A page shows since when it has its text; "
            f"[{DOCUMENTS}]({DOCUMENTS}) has the last fetch of each.",
            "",
        ]
    lines += ["## How faithful the text is", "", *_fidelity(outline.facts.sources), ""]
    lines += [
        "## How it is searched",
        "",
        f"{pluralize(info.chunks, 'chunk')} of {pluralize(len(entries))}, embedded by "
        f"{escape(info.embedder)} ({info.dimensions:,} dimensions).",
        "",
        "## For programs",
        "",
        f"[{DOCUMENTS}]({DOCUMENTS}) lists all documents; [{FULL_TEXT}]({FULL_TEXT}) has their "
        "text for language models.",
    ]
    return unsearched_page(outline, ABOUT, "Where this comes from", lines)


def _licenses(stated: Sequence[License]) -> list[str]:
    counts = Counter(stated).most_common()
    rows = [
        f"| {license_link(license) if license else 'none stated'} "
        f"| {escape(license.attribution) or '-'} | {number:,} |"
        for license, number in counts[:LICENSES]
    ]
    lines = ["| License | Credit | Documents |", "| --- | --- | --- |", *rows]
    if left := sum(number for _, number in counts[LICENSES:]):
        lines += ["", f"{pluralize(left)} state others; [{DOCUMENTS}]({DOCUMENTS}) has them."]
    if not all(stated):
        lines += ["", "Where none is stated, assume that all rights are reserved."]
    return lines if rows else ["There are no documents."]


def _fidelity(sources: Sequence[SourceFacts]) -> list[str]:
    retained: dict[str, int] = {}
    total: dict[str, int] = {}
    for source in sources:
        for kind, (one, other) in source.fidelity.items():
            retained[kind] = retained.get(kind, 0) + one
            total[kind] = total.get(kind, 0) + other
    rows = [
        f"| {label} | {retained[kind]:,} of {total[kind]:,} | {retained[kind] / total[kind]:.1%} |"
        for kind, label in _KINDS.items()
        if total.get(kind)
    ]
    if not rows:
        return ["It was not measured: these sources are no web pages."]
    pages = pluralize(total.get("pages", 0), "page")
    head = f"How much of the sources the pages keep, measured on {pages}."
    return [head, "", "| What | Kept | Share |", "| --- | --- | --- |", *rows]
