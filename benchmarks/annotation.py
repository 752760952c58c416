"""Measure the annotator by rules on chunks that a person labelled, by manual.

Frames: the share of chunks with the right type of statement, including none. Entities: precision,
recall and F1 of names. A name is right if it has the same normal form, qualifies the name
(``pathlib.Path.glob`` for ``Path.glob``) or has a ``$`` before it. Names of platforms are contexts
and do not count. Confidence: the share of right frames at each level.

Some manuals were used to choose rules and weights, the others were not. Speed is that of one
process with the names of the labelled chunks.

Run from the project's root: ``python benchmarks/annotation.py``.
"""

from __future__ import annotations

import json
import re
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from _corpora import report, table

from kbkit.annotation import Passage
from kbkit.annotation.gazetteer import NameGazetteer
from kbkit.annotation.problems import RulesAnnotator
from kbkit.models import (
    Annotation,
    Chunk,
    Document,
    DocumentState,
    DocumentType,
    EntityType,
    StatementType,
    SubjectKind,
)
from kbkit.stores.catalog.subjects import GivenName
from kbkit.text import subject_key

LABELS = Path(__file__).parents[1] / "tests" / "annotation" / "labelled"
BINS = ((0.0, 0.6), (0.6, 0.7), (0.7, 0.8), (0.8, 1.01))
_PLATFORMS = frozenset(str.split("linux windows window macos unix posix mac android freebsd"))
_SEPARATORS = re.compile(r"::|->|#")
_ROUNDS = 20


@dataclass(frozen=True, slots=True)
class Labelled:
    """A chunk with a person's labels and the annotator's."""

    manual: str
    tuning: bool
    frame: str | None
    entities: tuple[str, ...]
    annotation: Annotation

    @property
    def is_right(self) -> bool:
        """Return whether the frame is right."""
        return self.annotation.frame == self.frame


@dataclass(frozen=True, slots=True)
class Scores:
    """Figures of some chunks."""

    chunks: int
    accuracy: float
    precision: float
    recall: float

    @property
    def f1(self) -> float:
        """Return the harmonic mean of precision and recall of entities."""
        both = self.precision + self.recall
        return 2 * self.precision * self.recall / both if both else 0.0


def labelled(folder: Path = LABELS) -> list[Labelled]:
    """Return the labelled chunks, annotated with the names that their manuals introduce."""
    gazetteers = _gazetteers(folder)
    rows = _rows(folder)
    annotator = RulesAnnotator()
    found = []
    for row in rows:
        (made,) = annotator.annotate([_passage(row)], gazetteers[row["manual"]])
        entities = tuple(row["entities"])
        found.append(Labelled(row["manual"], row["tuning"], row["frame"], entities, made[0]))
    return found


def labelled_frames(folder: Path = LABELS) -> list[Labelled]:
    """Return chunks of two more manuals, where only the frame was labelled."""
    annotator, nothing = RulesAnnotator(), NameGazetteer()
    found = []
    for row in _rows(folder, "frames.jsonl"):
        (made,) = annotator.annotate([_passage(row)], nothing)
        found.append(Labelled(row["manual"], False, row["frame"], (), made[0]))
    return found


def frames(chunks: Sequence[Labelled]) -> list[tuple[str, int, float, float]]:
    """Tabulate labels, precision and recall of each frame, and of none."""
    found = []
    for frame in (*StatementType, None):
        wanted = [chunk for chunk in chunks if chunk.frame == frame]
        assigned = [chunk for chunk in chunks if chunk.annotation.frame == frame]
        right = sum(chunk.is_right for chunk in assigned)
        found.append(
            (
                frame or "none",
                len(wanted),
                right / max(1, len(assigned)),
                right / max(1, len(wanted)),
            )
        )
    return found


def scores(chunks: Sequence[Labelled]) -> Scores:
    """Score some chunks; an entity counts once a chunk."""
    right = given = met = expected = 0
    for chunk in chunks:
        wanted = _keys(chunk.entities)
        assigned = _keys(chunk.annotation.entities)
        right += sum(any(_same(name, other) for other in wanted) for name in assigned)
        met += sum(any(_same(name, other) for other in assigned) for name in wanted)
        given += len(assigned)
        expected += len(wanted)
    accuracy = sum(chunk.is_right for chunk in chunks) / len(chunks)
    return Scores(len(chunks), accuracy, right / max(given, 1), met / max(expected, 1))


def reliability(chunks: Iterable[Labelled]) -> list[tuple[int, float, float]]:
    """Return number, mean confidence and share of right frames in each bin of confidence."""
    bins: defaultdict[int, list[Labelled]] = defaultdict(list)
    for chunk in chunks:
        confidence = chunk.annotation.confidence
        number = next(n for n, (low, high) in enumerate(BINS) if low <= confidence < high)
        bins[number].append(chunk)
    return [
        (
            len(held),
            sum(chunk.annotation.confidence for chunk in held) / len(held),
            sum(chunk.is_right for chunk in held) / len(held),
        )
        for _, held in sorted(bins.items())
    ]


def chunks_a_second(folder: Path = LABELS) -> float:
    """Return how many chunks one core annotates in a second of its own time."""
    gazetteers = _gazetteers(folder)
    passages = [(_passage(row), gazetteers[row["manual"]]) for row in _rows(folder)]
    annotator = RulesAnnotator()
    start = time.process_time()
    for _ in range(_ROUNDS):
        for passage, gazetteer in passages:
            annotator.annotate([passage], gazetteer)
    return _ROUNDS * len(passages) / (time.process_time() - start)


def _rows(folder: Path, name: str = "chunks.jsonl") -> list[dict[str, Any]]:
    lines = (folder / name).read_text("utf-8").splitlines()
    return [json.loads(line) for line in lines]


def _gazetteers(folder: Path) -> dict[str, NameGazetteer]:
    """Return each manual's names that could occur in its labelled chunks."""
    names: defaultdict[str, list[GivenName]] = defaultdict(list)
    for line in (folder / "names.jsonl").read_text("utf-8").splitlines():
        manual, name, kind, confirmed, documents, defines = json.loads(line)
        names[manual].append(GivenName(name, EntityType(kind), confirmed, documents, defines))
    return {manual: NameGazetteer(given) for manual, given in names.items()}


def _passage(row: dict[str, Any]) -> Passage:
    text, path, title = str(row["text"]), row["path"], str(row["title"])
    assert isinstance(path, list)
    chunk = Chunk("", "", 0, 0, len(text), text, tuple(path), str(row["anchor"]), None)
    document = Document(
        "",
        str(row["page"]),
        title,
        "",
        DocumentType.MANUAL,
        (),
        {},
        DocumentState.CURRENT,
        datetime(2026, 1, 1, tzinfo=UTC),
        "",
    )
    return Passage(chunk, document)


def _keys(names: Iterable[str]) -> set[str]:
    keys = {subject_key(SubjectKind.ENTITY, name) for name in names}
    return {key for key in keys if key and key.lower() not in _PLATFORMS}


def _same(one: str, other: str) -> bool:
    one, other = (_SEPARATORS.sub(".", name.lower()).strip("<>$") for name in (one, other))
    one, other = one.replace(" ", ""), other.replace(" ", "")
    return one == other or one.endswith("." + other) or other.endswith("." + one)


def main() -> None:
    chunks = labelled()
    halves = {"tuning": True, "unseen": False}  # of other manuals
    rows = []
    for half, tuning in halves.items():
        own = [chunk for chunk in chunks if chunk.tuning == tuning]
        for manual in (*dict.fromkeys(chunk.manual for chunk in own), ""):
            some = [chunk for chunk in own if manual in ("", chunk.manual)]
            got = scores(some)
            figures = (got.accuracy, got.precision, got.recall, got.f1)
            rows.append(
                (manual or "all", half, str(got.chunks), *(f"{one:.3f}" for one in figures))
            )
    unseen = [chunk for chunk in chunks if not chunk.tuning]
    bins = [(f"{mean:.2f}", str(held), f"{right:.2f}") for held, mean, right in reliability(unseen)]
    fresh = labelled_frames()
    for manual in (*dict.fromkeys(chunk.manual for chunk in fresh), ""):
        some = [chunk for chunk in fresh if manual in ("", chunk.manual)]
        accuracy = f"{scores(some).accuracy:.3f}"
        rows.append((manual or "all", "frames", str(len(some)), accuracy, "", "", ""))
    sets = {"tuning": [chunk for chunk in chunks if chunk.tuning], "unseen": [*unseen, *fresh]}
    kinds = [
        (frame, name, str(count), f"{precision:.2f}", f"{recall:.2f}")
        for name, some in sets.items()
        for frame, count, precision, recall in frames(some)
    ]
    head = ("manual", "set", "chunks", "frame", "precision", "recall", "F1")
    of_kinds = table(("kind", "set", "labelled", "precision", "recall"), kinds)
    lines = [
        *table(head, rows),
        "",
        *of_kinds,
        "",
        *table(("confidence", "chunks", "right"), bins),
        "",
    ]
    report("annotation", [*lines, f"{chunks_a_second():,.0f} chunks a second"])


if __name__ == "__main__":
    main()
