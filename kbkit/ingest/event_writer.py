"""Stores what a source says of pages that bring no document, many at a time."""

from __future__ import annotations

from datetime import UTC, datetime

from kbkit.ingest.batching import Batch
from kbkit.ingest.counters import RunCounters
from kbkit.models import DocumentState, Problem
from kbkit.sources.base import Outcome, SourceEvent
from kbkit.stores.catalog import runs, writing
from kbkit.stores.catalog.database import Database, Transaction
from kbkit.stores.catalog.runs import Visited
from kbkit.stores.catalog.writing import Touch

_EVENTS = 200
"""Events that are stored together at the most."""


class EventWriter(Batch):
    """Events that bring no document: stored many at a time.

    Most pages of a refresh are as they were, and one transaction for each would cost more than
    asking for them. Up to 200 events, or those of half a second, wait for each other; a process
    that is killed meanwhile asks for those pages again, and loses nothing.

    Args:
        database: The catalog.
        kb_id: The knowledge base.
        source_id: The source that is read.
        run_id: Its run.
        counters: Counts what the events say.
    """

    def __init__(
        self, database: Database, kb_id: str, source_id: str, run_id: int, counters: RunCounters
    ) -> None:
        super().__init__(_EVENTS)
        self._database = database
        self._kb_id = kb_id
        self._source_id = source_id
        self._run_id = run_id
        self._counters = counters
        self._pending: list[tuple[SourceEvent, datetime]] = []

    def add(self, event: SourceEvent) -> None:
        """Take an event, and store all that wait when it is time."""
        self._pending.append((event, datetime.now(UTC)))
        self._grow(1)

    def _write(self) -> None:
        events, self._pending = self._pending, []
        with self._counters.timed("store"), self._database.write() as transaction:
            self._store(transaction, events)

    def _store(self, transaction: Transaction, events: list[tuple[SourceEvent, datetime]]) -> None:
        known = writing.ids_by_uri(transaction, self._kb_id, {_uri(event) for event, _ in events})
        ids = [known.get(_uri(event), "") for event, _ in events]
        states = writing.states(transaction, ids)
        touched: dict[str, Touch] = {}
        visits = []
        for (event, at), found in zip(events, ids, strict=True):
            there = states.get(found, DocumentState.GONE) is not DocumentState.GONE
            match event.outcome:
                case Outcome.UNCHANGED if there:
                    self._counters.counts["same"] += 1
                    self._counters.read([found])
                    touched[found] = Touch(found, DocumentState.CURRENT, at)
                case Outcome.FAILED:
                    self._counters.failed.append(Problem(event.uri, event.reason))
                    if there:
                        touched[found] = Touch(found, DocumentState.STALE, None)
                case Outcome.SKIPPED if event.reason:  # else the source sums such pages up
                    self._counters.skipped.append(Problem(event.uri, event.reason))
                case Outcome.GONE if there:
                    changes = writing.retire_document(transaction, self._kb_id, found)
                    self._counters.counts["gone"] += 1
                    self._counters.counts["chunks_removed"] += changes.removed
                    states[found] = DocumentState.GONE
                    touched.pop(found, None)
                case Outcome.GONE:
                    self._counters.failed.append(Problem(event.uri, event.reason))
            if event.record is not None:
                visits.append(Visited(event.record, event.outcome.value, event.reason, at))
        writing.touch_documents(transaction, touched.values(), run_id=self._run_id)
        runs.record_visits(transaction, self._source_id, self._run_id, visits)


def _uri(event: SourceEvent) -> str:
    return event.record.document_uri if event.record and event.record.document_uri else event.uri
