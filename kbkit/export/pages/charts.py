"""What a knowledge base holds, as pictures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import date
from itertools import pairwise

from kbkit.export.pages.bar_chart import BarChart
from kbkit.export.pages.outline import Outline

FOLDER = "plots"
"""Folder of the pictures."""

_AGES = (("up to a week", 7), ("a month", 30), ("a quarter", 90), ("a year", 365))
_OLDER = "longer"
_LENGTHS = (250, 500, 1000, 2000, 4000)


def charts(outline: Outline) -> dict[str, str]:
    """What the knowledge base holds, as pictures: the SVG of each by its path."""
    files: dict[str, str] = {}
    found = outline.entries.values()
    if found:
        newest = date.fromisoformat(max(entry.day for entry in found))
        rows: dict[str, Counter[str]] = {}
        for entry in found:
            age = (newest - date.fromisoformat(entry.day)).days
            part = next((name for name, most in _AGES if age < most), _OLDER)
            rows.setdefault(entry.document_type, Counter())[part] += 1
        ranked = sorted(rows.items(), key=lambda row: (-row[1].total(), row[0]))
        bars = [(kind.replace("_", " "), parts) for kind, parts in ranked]
        title = f"Documents by type, and how long before {newest} they were fetched"
        names = [*(name for name, _ in _AGES), _OLDER]
        files[f"{FOLDER}/documents-by-type.svg"] = BarChart(title, "documents", bars, names).svg()
    if outline.facts.lengths:
        files[f"{FOLDER}/lengths-of-chunks.svg"] = _length_chart(outline.facts.lengths).svg()
    if outline.facts.scores:
        stars = [
            (f"{score} of 5", {"ratings": outline.facts.scores.get(score, 0)})
            for score in range(5, 0, -1)
        ]
        files[f"{FOLDER}/ratings.svg"] = BarChart("Ratings", "ratings", stars, ["ratings"]).svg()
    return files


def _length_chart(lengths: Sequence[int]) -> BarChart:
    names = [
        f"below {_LENGTHS[0]:,}",
        *(f"{least:,} to {most - 1:,}" for least, most in pairwise(_LENGTHS)),
        f"{_LENGTHS[-1]:,} and more",
    ]
    counts = Counter(sum(length >= least for least in _LENGTHS) for length in lengths)
    rows = [(name, {"chunks": counts[number]}) for number, name in enumerate(names)]
    return BarChart("Lengths of chunks in characters", "chunks", rows, ["chunks"])
