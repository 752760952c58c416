"""Charts of a knowledge base."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import date
from itertools import cycle, pairwise
from pathlib import PurePosixPath

from kbkit.export.pages.document_page import address_link, filled, license_link, unsearched_page
from kbkit.export.pages.outline import ABOUT, FIGURES, SiteOutline
from kbkit.export.pages.paths import relative
from kbkit.models import KnowledgeBaseInfo, telling_types
from kbkit.text.markdown.sanitizing import escape

COLOURS = ("#1b9e77", "#66a61e", "#c8b400", "#e69100", "#d95f02", "#a0522d")
"""From green to brown, visible on white and on black."""

_WIDTH = 640
_LABELS = 130
_NUMBERS = 60
_ROW = 24
_TOP = 50
_LEGEND = 26


def bar_chart(
    title: str, unit: str, rows: Sequence[tuple[str, Mapping[str, int]]], names: Sequence[str]
) -> str:
    """Return horizontal bars as SVG, each with a label and parts in the order of `names`."""
    sums = [sum(parts.values()) for _, parts in rows]
    scale = (_WIDTH - _LABELS - _NUMBERS) / (max(sums, default=0) or 1)
    colours = dict(zip(names, cycle(COLOURS), strict=False))
    bars = []
    for (label, parts), total in zip(rows, sums, strict=True):
        bar, x = [], float(_LABELS)
        for part, colour in colours.items():
            if count := parts.get(part, 0):
                bar.append((part, count, x, count * scale, colour))
                x += count * scale
        bars.append((label, bar, total, round(x) + 6))
    top = _TOP + (_LEGEND if len(names) > 1 else 0)
    chart = filled(
        "chart.svg.j2",
        title=title,
        unit=unit,
        total=sum(sums),
        legend=list(colours.items()) if len(names) > 1 else [],
        rows=bars,
        top=top,
        width=_WIDTH,
        height=top + _ROW * len(rows) + 6,
        labels=_LABELS,
        row=_ROW,
    )
    return f"{chart}\n"


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
    entries = outline.entries.values()
    text = filled(
        "figures.md.j2",
        info=info,
        count=len(entries),
        sections=len(outline.section_paths) - 1,
        types=_types(outline),
        stale=sum(entry.stale for entry in entries),
        ratings=[average for average, _ in outline.facts.ratings.values()],
        days=sorted(entry.day for entry in entries),
        pictures=[
            (PurePosixPath(path).stem.replace("-", " ").capitalize(), path) for path in pictures
        ],
    )
    return unsearched_page(outline, FIGURES, "Figures", [text])


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
    licenses = Counter(entry.license for entry in entries).most_common()
    kept: Counter[str] = Counter()
    total: Counter[str] = Counter()
    for source in outline.facts.sources:
        for kind, (one, other) in source.fidelity.items():
            kept[kind] += one
            total[kind] += other
    text = filled(
        "about.md.j2",
        address_link=address_link,
        license_link=license_link,
        sources=outline.facts.sources,
        licenses=licenses[:LICENSES],
        others=sum(number for _, number in licenses[LICENSES:]),
        unstated=not all(license for license, _ in licenses),
        days=sorted(entry.day for entry in entries),
        stale=sum(entry.stale for entry in entries),
        fidelity=[
            (label, kept[kind], total[kind]) for kind, label in _KINDS.items() if total[kind]
        ],
        pages=total["pages"],
        info=info,
        count=len(entries),
        documents_json=DOCUMENTS,
        full_text=FULL_TEXT,
    )
    return unsearched_page(outline, ABOUT, "Where this comes from", [text])
