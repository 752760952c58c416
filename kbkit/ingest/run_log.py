"""What a run has done so far: its counts, and the events that bring no document."""

from __future__ import annotations

import hashlib
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import TracebackType
from typing import Self

from kbkit.models import DocumentState, IngestReport, Problem, SourceDocument
from kbkit.models.fidelity import POOR, fidelity_score
from kbkit.sources.base import Outcome, SourceEvent
from kbkit.stores.catalog import runs, writing
from kbkit.stores.catalog.database import Database, Transaction
from kbkit.stores.catalog.runs import Visited
from kbkit.stores.catalog.writing import Touch

_TOGETHER = 200
_SECONDS = 0.5


@dataclass(slots=True)
class Tally:
    """What a run has done so far; becomes an `IngestReport`."""

    counts: Counter[str] = field(default_factory=Counter)
    failed: list[Problem] = field(default_factory=list)
    skipped: list[Problem] = field(default_factory=list)
    seconds: Counter[str] = field(default_factory=Counter)
    interrupted: bool = False
    kept: Counter[str] = field(default_factory=Counter)
    wanted: Counter[str] = field(default_factory=Counter)
    poorly_read: list[Problem] = field(default_factory=list)

    def measured(self, document: SourceDocument) -> None:
        """Take in how faithfully a document was read, if that was measured."""
        if not document.fidelity:
            return
        self.kept["pages"] += 1
        self.wanted["pages"] += 1
        lost = []
        for kind, (kept, wanted) in document.fidelity.items():
            self.kept[kind] += kept
            self.wanted[kind] += wanted
            if kept < wanted:
                lost.append(f"{kind} {kept} of {wanted}")
        if lost and fidelity_score(document.fidelity) < POOR:
            self.poorly_read.append(Problem(document.uri, f"kept of the page: {', '.join(lost)}"))

    @contextmanager
    def timed(self, stage: str) -> Iterator[None]:
        """Add the time of a block to a stage."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[stage] += time.perf_counter() - start  # type: ignore[assignment]

    def report(self) -> IngestReport:
        """The tally as a report."""
        return IngestReport(
            **self.counts,
            failed=tuple(self.failed),
            skipped=tuple(self.skipped),
            seconds={stage: round(value, 3) for stage, value in self.seconds.items()},
            interrupted=self.interrupted,
            fidelity=self.fidelity({}),
            poorly_read=tuple(self.poorly_read),
        )

    def fidelity(self, before: Mapping[str, tuple[int, int]]) -> dict[str, tuple[int, int]]:
        """Kept and wanted things of the pages that were measured after some others."""
        found = {}
        for kind, wanted in self.wanted.items():
            kept_before, wanted_before = before.get(kind, (0, 0))
            if wanted > wanted_before or not before:
                found[kind] = (self.kept[kind] - kept_before, wanted - wanted_before)
        return found


class QuietEvents:
    """Events that bring no document: stored many at a time.

    Most pages of a refresh are as they were, and one transaction for each would cost more than
    asking for them. Up to 200 events, or those of half a second, wait for each other; a process
    that is killed meanwhile asks for those pages again, and loses nothing.

    Args:
        database: The catalog.
        kb_id: The knowledge base.
        source_id: The source that is read.
        run_id: Its run.
        tally: Counts what the events say.
    """

    def __init__(
        self, database: Database, kb_id: str, source_id: str, run_id: int, tally: Tally
    ) -> None:
        self._database = database
        self._kb_id = kb_id
        self._source_id = source_id
        self._run_id = run_id
        self._tally = tally
        self._waiting: list[tuple[SourceEvent, datetime]] = []
        self._since = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.store()

    def add(self, event: SourceEvent) -> None:
        """Take an event, and store all that wait when it is time."""
        now = time.monotonic()
        self._since = self._since if self._waiting else now
        self._waiting.append((event, datetime.now(UTC)))
        if len(self._waiting) >= _TOGETHER or now - self._since >= _SECONDS:
            self.store()

    def store(self) -> None:
        """Store all events that wait, in one transaction."""
        events, self._waiting = self._waiting, []
        if not events:
            return
        with self._tally.timed("store"), self._database.write() as transaction:
            self._store(transaction, events)

    def _store(self, transaction: Transaction, events: list[tuple[SourceEvent, datetime]]) -> None:
        ids = [document_id(self._kb_id, _uri(event)) for event, _ in events]
        states = writing.states(transaction, ids)
        touched: dict[str, Touch] = {}
        visits = []
        for (event, at), found in zip(events, ids, strict=True):
            there = states.get(found, DocumentState.GONE) is not DocumentState.GONE
            match event.outcome:
                case Outcome.UNCHANGED if there:
                    self._tally.counts["same"] += 1
                    touched[found] = Touch(found, DocumentState.CURRENT, at)
                case Outcome.FAILED:
                    self._tally.failed.append(Problem(event.uri, event.reason))
                    if there:
                        touched[found] = Touch(found, DocumentState.STALE, None)
                case Outcome.SKIPPED:
                    self._tally.skipped.append(Problem(event.uri, event.reason))
                case Outcome.GONE if there:
                    changes = writing.retire_document(transaction, self._kb_id, found)
                    self._tally.counts["gone"] += 1
                    self._tally.counts["chunks_removed"] += changes.removed
                    states[found] = DocumentState.GONE
                    touched.pop(found, None)
                case Outcome.GONE:
                    self._tally.failed.append(Problem(event.uri, event.reason))
            if event.record is not None:
                visits.append(Visited(event.record, event.outcome.value, event.reason, at))
        writing.touch_documents(transaction, touched.values(), run_id=self._run_id)
        runs.record_visits(transaction, self._source_id, self._run_id, visits)


def document_id(kb_id: str, uri: str) -> str:
    """The id of a document: the same for ever for one URI in one knowledge base."""
    return digest(f"{kb_id}\0{uri}")


def digest(text: str) -> str:
    """A hash of text, 32 hexadecimal digits."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _uri(event: SourceEvent) -> str:
    return event.record.document_uri if event.record and event.record.document_uri else event.uri
