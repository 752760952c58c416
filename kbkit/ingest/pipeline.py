"""Runs sources through chunking and embedding into the stores, one document at a time."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import sqlalchemy as sa

from kbkit.config import Settings
from kbkit.embedding.base import Embedder
from kbkit.errors import ConflictError, SourceError
from kbkit.ingest.chunking import chunk, embedded_text
from kbkit.ingest.embed import vectors_of
from kbkit.ingest.following import Follower
from kbkit.ingest.tally import QuietEvents, Tally, digest, document_id
from kbkit.models import (
    Chunk,
    ChunkSpan,
    Document,
    DocumentState,
    IngestReport,
    Problem,
    Progress,
    SourceDocument,
)
from kbkit.progress import OnProgress
from kbkit.recipes import KnowledgeBaseConfig
from kbkit.sources.base import Source, SourceContext, SourceEvent
from kbkit.sources.doctype import detect
from kbkit.stores import catalog, contents, embedded, registry, runs
from kbkit.stores.catalog import NewChunk, Touch
from kbkit.stores.database import Database
from kbkit.stores.locks import FolderLocks
from kbkit.stores.runs import SourceRow, Visited
from kbkit.stores.vectors import VectorIndex
from kbkit.text import analyzer

Stop = Callable[[], bool]


@dataclass(frozen=True, slots=True)
class _Origin:
    """Where a document comes from; empty for one that was added by hand."""

    source_id: str | None = None
    run_id: int | None = None
    event: SourceEvent | None = None


@dataclass(frozen=True, slots=True)
class _Run:
    """What goes with reading sources."""

    tally: Tally
    follower: Follower
    on_progress: OnProgress | None
    stop: Stop


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Everything that ingesting into one knowledge base needs."""

    database: Database
    vectors: VectorIndex
    locks: FolderLocks
    kb_id: str
    config: KnowledgeBaseConfig
    embedder: Embedder
    settings: Settings

    def run(
        self,
        sources: Sequence[tuple[SourceRow, Source]],
        *,
        on_progress: OnProgress | None = None,
        stop: Stop = lambda: False,
    ) -> IngestReport:
        """Read sources and store what they yield.

        A run that was killed or stopped is taken up where it ended. Chroma follows in a process
        of its own, and is level at the end; until then new chunks are searched from the catalog.

        Args:
            sources: What to read, each with its row in the catalog.
            on_progress: Called after each document.
            stop: Asked often; true ends the run cleanly.

        Raises:
            ConflictError: Another process reads one of the sources right now, or has changed
                the embedder meanwhile.
            EmbedderError: The embedder failed; what was stored stays.
        """
        tally = Tally()
        with self._follower() as follower:
            run = _Run(tally, follower, on_progress, stop)
            for row, source in sources:
                task = f"reading the source {_place(row)}"
                with self.locks.hold(f"source-{row.id}", wait=0, task=task):
                    try:
                        self._run_source(row, source, run)
                    except SourceError as error:
                        tally.failed.append(Problem(_place(row), str(error)))
                if tally.interrupted:
                    break
        self._index(tally, on_progress)
        return tally.report()

    def store(self, document: SourceDocument) -> tuple[str, IngestReport]:
        """Store one document that belongs to no source.

        Returns:
            Its id, and what was done.
        """
        tally = Tally()
        document_id = self._store(document, tally, _Origin())
        self._index(tally, None)
        return document_id, tally.report()

    def renew(
        self, *, on_progress: OnProgress | None = None, stop: Stop = lambda: False
    ) -> IngestReport:
        """Cut and index all stored documents again, after a change of chunking or language."""
        tally = Tally()
        with self.database.read() as connection:
            ids = catalog.document_ids(connection, self.kb_id)
        with self._follower() as follower:
            for done, known in enumerate(ids, 1):
                if stop():
                    tally.interrupted = True
                    break
                with self.database.read() as connection:
                    document = contents.get_document(connection, self.kb_id, known)
                    source_id, run_id = catalog.origin(connection, known)
                source_document = SourceDocument(
                    document.uri, document.title, document.content, document.document_type,
                    document.tags, document.metadata,
                )  # fmt: skip
                self._store(source_document, tally, _Origin(source_id, run_id), follower)
                if on_progress is not None:
                    on_progress(Progress("store", done, len(ids), document.uri))
        self._index(tally, on_progress)
        return tally.report()

    def _run_source(self, row: SourceRow, source: Source, run: _Run) -> None:
        tally = run.tally
        with self.database.write() as connection:
            run_id, _ = runs.begin_run(connection, row)
        context = SourceContext(
            memory=runs.RunMemory(self.database, row.id, run_id),
            stop=run.stop,
            base=Path(row.base),
            user_agent=self.settings.user_agent,
            timeout=self.settings.timeout,
            provider=self.settings.crawl_provider,
        )
        done = 0
        quiet = QuietEvents(self.database, self.kb_id, row.id, run_id, tally)
        with closing(_closable(source.events(context))) as events, quiet:
            while True:
                with tally.timed("crawl"):
                    event = next(events, None)
                if event is None:
                    break
                if event.document is None:
                    quiet.add(event)
                else:
                    quiet.store()  # in the order in which things happened
                    tally.counts["fetched"] += 1
                    tally.measured(event.document)
                    origin = _Origin(row.id, run_id, event)
                    self._store(event.document, tally, origin, run.follower)
                done += 1
                if run.on_progress is not None:
                    run.on_progress(Progress("crawl", done, None, event.uri, tally.report()))
        if run.stop():
            tally.interrupted = True
            return
        if source.exhaustive:
            self._retire_unseen(row, run_id, tally)
        with self.database.write() as connection:
            runs.end_run(connection, run_id, tally.report().to_dict())

    def _store(
        self,
        source_document: SourceDocument,
        tally: Tally,
        origin: _Origin,
        follower: Follower | None = None,
    ) -> str:
        """Chunk, embed and store a document; returns its id."""
        document = self._document(source_document)
        with self.database.read() as connection:
            stored = catalog.content_hash(connection, document.id)
        if stored is not None and stored[0] == document.content_hash:
            tally.counts["same"] += 1
            with tally.timed("store"), self.database.write() as connection:
                touch = Touch(document.id, DocumentState.CURRENT, document.fetched_at)
                catalog.touch_documents(connection, [touch], run_id=origin.run_id)
                _record(connection, origin)
            return document.id
        with tally.timed("chunk"):
            chunks, texts = self._chunks(document)
        with tally.timed("embed"):
            vectors = vectors_of(self.database, self.kb_id, self.embedder, texts)
        tally.counts["chunks_embedded"] += vectors.new
        with tally.timed("store"), self.database.write() as connection:
            self._check_embedder(connection)
            changes = catalog.replace_document(
                connection, self.kb_id, document, chunks, vectors.packed,
                source_id=origin.source_id, run_id=origin.run_id,
            )  # fmt: skip
            if vectors.waiting:
                embedded.remove(connection, self.kb_id, self.embedder.fingerprint, texts)
            _record(connection, origin)
        if follower is not None:
            follower.stored(changes.added)
        back = stored is None or stored[1] is DocumentState.GONE
        tally.counts["new" if back else "changed"] += 1
        tally.counts["chunks_added"] += changes.added
        tally.counts["chunks_removed"] += changes.removed
        return document.id

    def _check_embedder(self, connection: sa.Connection) -> None:
        row = registry.get_by_id(connection, self.kb_id)
        if row.embedder != self.embedder.fingerprint:
            raise ConflictError(
                f"{row.name}: another process has changed its embedder to {row.embedder}; "
                "run this again"
            )

    def _document(self, source: SourceDocument) -> Document:
        document_type = source.document_type or detect(source.uri, source.title, source.content)
        shaping = [
            source.title, source.content, document_type, source.tags, dict(source.metadata),
            self.config.chunking.model_dump(), self.config.language,
        ]  # fmt: skip
        return Document(
            id=document_id(self.kb_id, source.uri),
            uri=source.uri,
            title=source.title,
            content=source.content,
            document_type=document_type,
            tags=source.tags,
            metadata=source.metadata,
            state=DocumentState.CURRENT,
            fetched_at=datetime.now(UTC),
            content_hash=digest(json.dumps(shaping, sort_keys=True, default=str)),
        )

    def _chunks(self, document: Document) -> tuple[list[NewChunk], dict[str, str]]:
        """The chunks of a document, and what search reads of them by ``embed_hash``."""
        terms_of = analyzer(self.config.language).terms
        seen: Counter[tuple[tuple[str, ...], str]] = Counter()
        new = []
        texts = {}
        form = str(document.metadata.get("format", ""))
        spans = chunk(document.content, document.document_type, self.config.chunking, form)
        for position, span in enumerate(spans):
            text = document.content[span.start : span.end]
            occurrence = seen[span.heading_path, text]
            seen[span.heading_path, text] += 1
            read = embedded_text(document.title, span.heading_path, text)
            terms = terms_of(read)
            key = digest(read)
            texts[key] = read
            new.append(
                NewChunk(
                    chunk=_chunk(document, span, text, position, occurrence),
                    terms=" ".join(terms),
                    length=len(terms),
                    embed_hash=key,
                )
            )
        return new, texts

    def _retire_unseen(self, row: SourceRow, run_id: int, tally: Tally) -> None:
        with tally.timed("store"), self.database.write() as connection:
            for document_id in catalog.unseen_documents(connection, row.id, run_id):
                changes = catalog.retire_document(connection, self.kb_id, document_id)
                tally.counts["gone"] += 1
                tally.counts["chunks_removed"] += changes.removed

    def _follower(self) -> Follower:
        return Follower(self.database, self.vectors, self.locks, self.kb_id)

    def _index(self, tally: Tally, on_progress: OnProgress | None) -> None:
        def tell(done: int) -> None:
            if on_progress is not None:
                on_progress(Progress("index", done))

        with tally.timed("index"):
            self.vectors.apply(self.kb_id, tell)


def _closable(events: Iterator[SourceEvent]) -> Generator[SourceEvent]:
    """The events of a source as a generator, which can be closed whatever the source gave."""
    yield from events


def _record(connection: sa.Connection, origin: _Origin) -> None:
    """Remember the page's visit along with what became of its document."""
    event = origin.event
    if event is None or event.visit is None:
        return
    assert origin.source_id is not None
    assert origin.run_id is not None
    visited = Visited(event.visit, event.outcome.value, event.reason, datetime.now(UTC))
    runs.record_visits(connection, origin.source_id, origin.run_id, [visited])


def _place(row: SourceRow) -> str:
    return str(row.spec.get("url") or row.spec.get("path") or row.spec.get("name") or row.type)


def _chunk(document: Document, span: ChunkSpan, text: str, position: int, occurrence: int) -> Chunk:
    identity = json.dumps([document.id, span.heading_path, text, occurrence])
    return Chunk(
        id=digest(identity),
        document_id=document.id,
        position=position,
        start=span.start,
        end=span.end,
        text=text,
        heading_path=span.heading_path,
        anchor=span.anchor,
        page=span.page,
    )
