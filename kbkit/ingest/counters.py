"""What a run has done so far: the counts and times that become its report."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice

from kbkit.models import IngestReport, Problem, SourceDocument
from kbkit.models.fidelity import POOR, fidelity_score, losses, poor_site
from kbkit.models.ingest_report import MOST_DOCUMENTS

_WORST = 3  # pages that a warning names


@dataclass(slots=True)
class RunCounters:
    """What a run has done so far; becomes an `IngestReport`."""

    counts: Counter[str] = field(default_factory=Counter)
    failed: list[Problem] = field(default_factory=list)
    skipped: list[Problem] = field(default_factory=list)
    seconds: Counter[str] = field(default_factory=Counter)
    interrupted: bool = False
    kept: Counter[str] = field(default_factory=Counter)
    wanted: Counter[str] = field(default_factory=Counter)
    poorly_read: list[Problem] = field(default_factory=list)
    notes: list[Problem] = field(default_factory=list)
    warnings: list[Problem] = field(default_factory=list)
    scores: list[tuple[float, str]] = field(default_factory=list)
    failed_sources: list[Problem] = field(default_factory=list)
    documents: list[str] = field(default_factory=list)

    def read(self, document_ids: Iterable[str]) -> None:
        """Note documents that are stored now as their source has them."""
        self.documents += islice(document_ids, MOST_DOCUMENTS - len(self.documents))

    def measured(self, document: SourceDocument) -> None:
        """Take in how faithfully a document was read, if that was measured or is noted."""
        if document.note:
            self.notes.append(Problem(document.uri, document.note))
        if not document.fidelity:
            return
        self.kept["pages"] += 1
        self.wanted["pages"] += 1
        for kind, (kept, wanted) in document.fidelity.items():
            self.kept[kind] += kept
            self.wanted[kind] += wanted
        score = fidelity_score(document.fidelity)
        self.scores.append((score, document.uri))
        if score < POOR:
            self.poorly_read.append(Problem(document.uri, losses(document.fidelity)))

    def judge(self, place: str, before: Mapping[str, tuple[int, int]]) -> None:
        """Warn of a source whose pages were poorly read.

        Args:
            place: What the source reads.
            before: Figures of the sources that were read before it.
        """
        scores, self.scores = sorted(self.scores), []
        if reason := poor_site(self.fidelity(before) if scores else {}):
            worst = ", ".join(uri for _, uri in scores[:_WORST])
            said = f"{reason} ({len(scores):,} pages measured; worst: {worst})"
            self.warnings.append(Problem(place, said))

    @contextmanager
    def timed(self, stage: str) -> Iterator[None]:
        """Add the time of a block to a stage."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[stage] += time.perf_counter() - start  # type: ignore[assignment]

    def report(self) -> IngestReport:
        """The counters as a report."""
        return IngestReport(
            **dict(self.counts),  # type: ignore[arg-type]  # all of them are numbers
            failed=tuple(self.failed),
            skipped=tuple(self.skipped),
            seconds={stage: round(value, 3) for stage, value in self.seconds.items()},
            interrupted=self.interrupted,
            fidelity=self.fidelity({}),
            poorly_read=tuple(self.poorly_read),
            notes=tuple(self.notes),
            warnings=tuple(self.warnings),
            failed_sources=tuple(self.failed_sources),
            documents=tuple(dict.fromkeys(self.documents)),
        )

    def fidelity(self, before: Mapping[str, tuple[int, int]]) -> dict[str, tuple[int, int]]:
        """Kept and wanted things of the pages that were measured after some others."""
        found = {}
        for kind, wanted in self.wanted.items():
            kept_before, wanted_before = before.get(kind, (0, 0))
            if wanted > wanted_before or not before:
                found[kind] = (self.kept[kind] - kept_before, wanted - wanted_before)
        return found
