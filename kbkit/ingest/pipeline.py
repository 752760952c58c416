"""Read sources and store their documents."""

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

from kbkit.errors import SourceError
from kbkit.ingest.cutting import correct_shared, first_text
from kbkit.ingest.document_writer import DocumentWriter
from kbkit.ingest.embedding import IngestTarget, Origin, RunCounters, source_document
from kbkit.models import IngestReport, Problem, Progress, SourceDocument
from kbkit.runtime.config import Settings
from kbkit.runtime.progress import OnProgress, ignore
from kbkit.sources import DiskPlace, Outcome, SourceContext, SourceEvent, SourceReader
from kbkit.stores.catalog import reading, runs, writing
from kbkit.stores.catalog.runs import SourceRow
from kbkit.stores.stores import index_writer

Stop = Callable[[], bool]


@dataclass(frozen=True, slots=True)
class _Run:
    counters: RunCounters
    note_stored: Callable[[int], None]
    on_progress: OnProgress
    stop: Stop


@dataclass(frozen=True, slots=True)
class Pipeline(IngestTarget):
    """Ingests documents into one knowledge base."""

    settings: Settings

    def run(
        self,
        sources: Sequence[tuple[SourceRow, SourceReader]],
        events: Iterable[SourceEvent] = (),
        *,
        on_progress: OnProgress = ignore,
        stop: Stop = lambda: False,
    ) -> IngestReport:
        """Read sources and store their documents.

        An interrupted run continues. Another process updates Chroma during the run; until then new
        chunks are searched from the catalog.
        """
        counters = RunCounters(outcomes={} if len(sources) > 1 else None)
        with index_writer(self.stores, self.kb_id) as note_stored:
            run = _Run(counters, note_stored, on_progress, stop)
            for row, source in sources:
                task = f"reading the source {row.location}"
                with self.stores.locks.hold(row.lock, wait=0, task=task):
                    failed, count_before = len(counters.failed), _read(counters)
                    run_id = self.stores.database.commit(runs.begin_run, row)
                    try:
                        self._run_source(row, run_id, source, run)
                    except SourceError as error:
                        counters.failed.append(Problem(row.location, str(error)))
                        counters.judge(row.place)
                        if _read(counters) == count_before:  # nothing for the next run to continue
                            self.stores.database.commit(runs.end_run, run_id, {"failed": 1})
                    if len(counters.failed) > failed and _read(counters) == count_before:
                        first = counters.failed[failed].reason
                        counters.failed_sources.append(Problem(row.location, first))
                if counters.interrupted:
                    break
            self._take(events, run)
        if counters.counts["new"] or counters.counts["changed"]:
            correct_shared(self.stores.database, self.kb_id)
        self._index(counters, on_progress)
        return counters.report()

    def context(self, base: Path, stop: Stop) -> SourceContext:
        return SourceContext(
            stop=stop,
            base=base,
            user_agent=self.settings.user_agent,
            timeout=self.settings.timeout,
            provider=self.settings.crawl_provider,
            browser=self.settings.browser,
            browser_sandbox=self.settings.browser_sandbox,
            engine=self.engine,
        )

    def read(
        self, source: SourceReader, place: str, base: Path, stop: Stop
    ) -> Iterator[SourceEvent]:
        """Iterate over the events of a source without memory of earlier visits."""
        try:
            yield from source.events(self.context(base, stop))
        except SourceError as error:
            yield SourceEvent(place, Outcome.FAILED, reason=str(error))

    def _take(self, events: Iterable[SourceEvent], run: _Run) -> None:
        counters = run.counters
        with DocumentWriter(self, counters, run.note_stored) as documents:
            for done, event in enumerate(events, 1):
                if run.stop():
                    counters.interrupted = True
                    break
                if event.document is not None:
                    counters.count_fidelity(event.document)
                    documents.add(event.document, Origin())
                elif event.outcome is not Outcome.SKIPPED:
                    counters.failed.append(Problem(event.uri, event.reason))
                elif event.reason:  # the source counts the rest
                    counters.skipped.append(Problem(event.uri, event.reason))
                run.on_progress(Progress("store", done, None, event.uri, counters.report()))
            counters.interrupted |= run.stop()  # a stopped source ends early

    def store(self, document: SourceDocument, origin: Origin) -> IngestReport:
        counters = RunCounters()
        with DocumentWriter(self, counters) as documents:
            documents.add(document, origin)
        if first_text(document.metadata):
            correct_shared(self.stores.database, self.kb_id)
        with counters.time_stage("index"):
            self.stores.vectors.apply_gathered(self.kb_id)
        return counters.report()

    def renew(
        self, *, on_progress: OnProgress = ignore, stop: Stop = lambda: False
    ) -> IngestReport:
        counters = RunCounters()
        ids = self.stores.database.look_up(writing.document_ids, self.kb_id)
        with (
            index_writer(self.stores, self.kb_id) as note_stored,
            DocumentWriter(self, counters, note_stored) as documents,
        ):
            for done, id_ in enumerate(ids, 1):
                if stop():
                    counters.interrupted = True
                    break
                with self.stores.database.read() as transaction:
                    document = reading.get_document(transaction, self.kb_id, id_)
                    source_id, run_id = writing.origin(transaction, id_)
                origin = Origin(source_id, run_id, stored=document)
                documents.add(source_document(document), origin)
                on_progress(Progress("store", done, len(ids), document.uri))
        correct_shared(self.stores.database, self.kb_id)
        self._index(counters, on_progress)
        return counters.report()

    def _run_source(self, row: SourceRow, run_id: int, source: SourceReader, run: _Run) -> None:
        counters = run.counters
        context = replace(
            self.context(Path(row.base), run.stop),
            memory=runs.RunMemory(self.stores.database, row.id, run_id),
            place=disk_place(row),
        )
        done, before = 0, counters.totals()
        with (
            closing(_closable(source.events(context))) as events,
            DocumentWriter(self, counters, run.note_stored) as documents,
        ):
            while True:
                with counters.time_stage("crawl"):
                    event = next(events, None)
                if event is None:
                    break
                origin = Origin(row.id, run_id, event)
                if event.document is None:
                    documents.note(event, origin)
                else:
                    counters.count_fidelity(event.document)
                    documents.add(event.document, origin)
                done += 1
                run.on_progress(Progress("crawl", done, None, event.uri, counters.report()))
        fidelity = counters.judge(row.place)
        if run.stop():
            counters.interrupted = True
            return
        if not done:
            counters.skipped.append(Problem(row.location, "nothing to read"))
        if source.exhaustive:
            with counters.time_stage("store"), self.stores.database.write() as transaction:
                for document_id in writing.unseen_documents(transaction, row.id, run_id):
                    changes = writing.retire_document(transaction, self.kb_id, document_id)
                    counters.counts.update(gone=1, chunks_removed=changes.removed)
        with self.stores.database.write() as transaction:
            added = counters.totals() - before
            runs.end_run(transaction, run_id, {**added, "fidelity": fidelity})

    def _index(self, counters: RunCounters, on_progress: OnProgress) -> None:
        with counters.time_stage("index"):
            vectors = self.stores.vectors
            vectors.apply(self.kb_id, lambda done: on_progress(Progress("index", done)))


def _closable(events: Iterator[SourceEvent]) -> Generator[SourceEvent]:
    yield from events


def _read(counters: RunCounters) -> int:
    return counters.counts["fetched"] + counters.stored


def disk_place(row: SourceRow) -> DiskPlace | None:
    path = row.spec.get("path")
    return replace(DiskPlace.of(path, Path(row.base)), name=row.name) if path else None
