"""Figures of each question, kept as JSON, and the tables made from them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np
from _corpora import table

from kbkit.feedback.statistics import Values, confidence_interval, difference

MANUALS = (
    *("python", "sqlite", "apache", "django", "pandas"),
    *("ncurses", "policy", "faq", "postfix", "mkdocs"),
)
"""Sets of people's own questions about pages."""
KBKIT, BASELINE = "kbkit", "chunks alone"
MEASURES = {"ndcg": "nDCG@10", "hit": "Hit@1", "mrr": "MRR@10"}


@dataclass(slots=True)
class SetFigures:
    """Figures of a set.

    Attributes:
        version: The checkout, as ``git describe`` names it.
        date: Day of the run.
        documents: Number of documents.
        chunks: Number of chunks.
        questions: The texts.
        systems: A figure for each question, by system and measure.
    """

    version: str
    date: str
    documents: int
    chunks: int
    questions: list[str]
    systems: dict[str, dict[str, list[float]]]

    def values(self, system: str, measure: str = "ndcg") -> Values | None:
        """Return a system's figures, one for each question."""
        found = self.systems.get(system, {}).get(measure)
        return None if found is None else np.array(found)


@dataclass(slots=True)
class Figures:
    """Figures of all sets."""

    sets: dict[str, SetFigures] = field(default_factory=dict)

    @classmethod
    def read(cls, file: Path) -> Figures:
        """Read a file; without a file the figures are empty."""
        if not file.is_file():
            return cls()
        values = json.loads(file.read_text(encoding="utf-8"))
        return cls({name: SetFigures(**one) for name, one in values["sets"].items()})

    def write(self, file: Path) -> None:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(asdict(self), indent=1), encoding="utf-8")


def tables(figures: Figures, before: Figures | None = None) -> list[str]:
    """Return all tables as lines of Markdown."""
    lines = ["# Quality of search", "", *_systems(figures), "", *_intervals(figures)]
    pairs = [(name, one.values(KBKIT), one.values(BASELINE)) for name, one in figures.sets.items()]
    lines += ["", *_paired(f"{KBKIT} against {BASELINE}", pairs)]
    if before is not None:
        lines += ["", *_paired(*_against(figures, before))]
    made = {f"{one.version} ({one.date})" for one in figures.sets.values()}
    return [*lines, "", *_passages(figures), f"Measured: {', '.join(sorted(made))}."]


def _systems(figures: Figures) -> list[str]:
    """Compare nDCG@10 of all systems, by set."""
    heads = list(dict.fromkeys(way for one in figures.sets.values() for way in one.systems))
    rows = []
    for name, one in figures.sets.items():
        means = [None if (v := one.values(way)) is None else float(v.mean()) for way in heads]
        size = [f"{one.documents:,}", str(len(one.questions))]
        rows.append([name, *size, *_best(means)])
    there = [one for name, one in figures.sets.items() if name in MANUALS]
    means = [_mean([one.values(way) for one in there]) for way in heads]
    if there:
        asked = str(sum(len(one.questions) for one in there))
        rows.append(["mean of manuals", "", asked, *_best(means)])
    head = ["nDCG@10", "documents", "questions", *heads]
    return table(head, rows)


def _intervals(figures: Figures) -> list[str]:
    """List all measures of kbkit with 95 % intervals."""
    rows = []
    for name, one in figures.sets.items():
        cells = []
        for measure in MEASURES:
            values = one.values(KBKIT, measure)
            if values is not None:
                low, high = confidence_interval(values)
                cells.append(f"{values.mean():.3f} [{low:.3f}, {high:.3f}]")
        rows.append([name, *cells])
    return table([KBKIT, *MEASURES.values()], rows)


def _paired(title: str, pairs: Sequence[tuple[str, Values | None, Values | None]]) -> list[str]:
    """Compare systems on the same questions by a paired randomisation test."""
    both = [(name, a, b) for name, a, b in pairs if a is not None and b is not None]
    rows = [[name, *_difference(ours, other)] for name, ours, other in both]
    some = [(ours, other) for name, ours, other in both if name in MANUALS]
    if len(some) > 1:
        ours, others = (np.concatenate(one) for one in zip(*some, strict=True))
        rows.append(["all manuals", *_difference(ours, others)])
    return table([title, "before", "difference of nDCG@10", "p", "better", "worse"], rows)


def _difference(ours: Values, others: Values) -> list[str]:
    found = difference(ours, others)
    change = f"{found.mean:+.3f} [{found.low:+.3f}, {found.high:+.3f}]"
    better, worse = int((ours > others + 1e-9).sum()), int((ours < others - 1e-9).sum())
    return [f"{others.mean():.3f}", change, f"{found.p_value:.4f}", str(better), str(worse)]


def _against(
    figures: Figures, before: Figures
) -> tuple[str, list[tuple[str, Values | None, Values | None]]]:
    """Compare with the figures of another checkout on the same questions."""
    pairs: list[tuple[str, Values | None, Values | None]] = []
    for name, one in figures.sets.items():
        values, other = one.values(KBKIT), before.sets.get(name)
        theirs = None if other is None else other.values(KBKIT)
        if values is None or other is None or theirs is None:
            continue
        known = {text: row for row, text in enumerate(other.questions)}
        rows = [(i, known[text]) for i, text in enumerate(one.questions) if text in known]
        if rows:
            here, there = (list(one) for one in zip(*rows, strict=True))
            pairs.append((name, values[here], theirs[there]))
    versions = {one.version for one in before.sets.values()}
    return f"{KBKIT} against {', '.join(sorted(versions))}", pairs


def _passages(figures: Figures) -> list[str]:
    """Show how much of the wanted passages the first hits hold."""
    rows = []
    for one in figures.sets.values():
        for way in one.systems:
            recall, iou = one.values(way, "recall"), one.values(way, "iou")
            if recall is not None and iou is not None:
                rows.append([way, f"{100 * recall.mean():.1f}", f"{100 * iou.mean():.1f}"])
    return [*table(["chunking, first 5 passages", "recall %", "IoU %"], rows), ""] if rows else []


def _mean(values: Sequence[Values | None]) -> float | None:
    means = [float(one.mean()) for one in values if one is not None]
    return sum(means) / len(means) if means and len(means) == len(values) else None


def _best(means: Sequence[float | None]) -> list[str]:
    top = max((f"{one:.3f}" for one in means if one is not None), default="")
    shown = ["" if one is None else f"{one:.3f}" for one in means]
    return [f"**{one}**" if one and one == top else one for one in shown]
