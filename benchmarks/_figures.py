"""Figures of each question, kept as JSON, and the tables that are made of them."""

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
"""Sets whose questions are put as people put them, about pages."""
KBKIT, BASELINE = "kbkit", "chunks alone"
MEASURES = {"ndcg": "nDCG@10", "hit": "Hit@1", "mrr": "MRR@10"}


@dataclass(slots=True)
class SetFigures:
    """What was measured on a set.

    Attributes:
        version: The checkout, as git describes it.
        date: The day.
        documents: In the knowledge base.
        chunks: Likewise.
        questions: Their texts.
        systems: By way to search and measure, a figure of each question.
    """

    version: str
    date: str
    documents: int
    chunks: int
    questions: list[str]
    systems: dict[str, dict[str, list[float]]]

    def values(self, system: str, measure: str = "ndcg") -> Values | None:
        """The figures of a way to search, one a question."""
        found = self.systems.get(system, {}).get(measure)
        return None if found is None else np.array(found)


@dataclass(slots=True)
class Figures:
    """What was measured on all sets."""

    sets: dict[str, SetFigures] = field(default_factory=dict)

    @classmethod
    def read(cls, file: Path) -> Figures:
        """What a file has; nothing where it is not there."""
        if not file.is_file():
            return cls()
        values = json.loads(file.read_text(encoding="utf-8"))
        return cls({name: SetFigures(**one) for name, one in values["sets"].items()})

    def write(self, file: Path) -> None:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(asdict(self), indent=1), encoding="utf-8")


def tables(figures: Figures, before: Figures | None = None) -> list[str]:
    """All tables, as lines of Markdown."""
    lines = ["# Quality of search", "", *_systems(figures), "", *_intervals(figures)]
    pairs = [(name, one.values(KBKIT), one.values(BASELINE)) for name, one in figures.sets.items()]
    lines += ["", *_paired(f"{KBKIT} against {BASELINE}", pairs)]
    if before is not None:
        lines += ["", *_paired(*_against(figures, before))]
    made = {f"{one.version} ({one.date})" for one in figures.sets.values()}
    return [*lines, "", *_passages(figures), f"Measured: {', '.join(sorted(made))}."]


def _systems(figures: Figures) -> list[str]:
    """nDCG@10 of all ways to search, by set."""
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
    """All measures of kbkit, with 95 % intervals."""
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
    """Differences of the same questions, with a paired randomisation test."""
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
    """The same questions in another checkout's file."""
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
    """What the first passages hold of the wanted ones, where passages are sought."""
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
