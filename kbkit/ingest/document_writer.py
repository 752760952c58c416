"""Split, embed and store documents, small ones together.

Batches of up to 200,000 characters or half a second save transactions, lookups and embedder calls.
After a kill, unwritten documents are read again.
"""

import json
import time
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import chain
from typing import Self

from kbkit.embedding import batch_size
from kbkit.errors import ConflictError
from kbkit.ingest.cutting import CutDocument, CutTask, digest, document_id
from kbkit.ingest.embedding import IngestTarget, Origin, RunCounters, embed
from kbkit.models import Document, DocumentState, Labels, Problem, SourceDocument
from kbkit.runtime.engine import perform
from kbkit.sources import Outcome, SourceEvent
from kbkit.sources.parts import detect
from kbkit.stores.catalog import corpus, knowledge_bases, runs, writing
from kbkit.stores.catalog.corpus import CHUNK
from kbkit.stores.catalog.database import Database, Transaction
from kbkit.stores.catalog.knowledge_bases import KnowledgeBaseRow
from kbkit.stores.catalog.runs import Visit
from kbkit.stores.catalog.writing import NewDocument, StoredVersion, Touch
from kbkit.stores.stores import IndexWriter
from kbkit.text.analysis import REVISION

_CHARACTERS = 200_000
_MANY = 1_000  # chunks, which take MiniLM 17 s on two cores; more get static vectors first
_MAX_SECONDS = 0.5


class Batch(ABC):
    """Batch of work; the end of its ``with`` block writes the rest."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._size = 0
        self._since = 0.0

    def flush(self) -> None:
        if self._size:
            self._size = 0
            self._write()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.flush()

    def _grow(self, size: int) -> None:
        now = time.monotonic()
        self._since = self._since if self._size else now
        self._size += max(1, size)
        if self._size >= self._limit or now - self._since >= _MAX_SECONDS:
            self.flush()

    @abstractmethod
    def _write(self) -> None:
        """Write the batch in one transaction."""


@dataclass(frozen=True, slots=True)
class _Pending:
    source: SourceDocument
    origin: Origin
    seen: datetime


class DocumentWriter(Batch):
    """Stores documents; the end of its ``with`` block stores the last ones."""

    def __init__(
        self, destination: IngestTarget, counters: RunCounters, follower: IndexWriter | None = None
    ) -> None:
        super().__init__(_CHARACTERS * destination.engine.count)
        self._destination = destination
        self._counters = counters
        self._follower = follower
        self._pending: dict[str, _Pending] = {}

    def add(self, source: SourceDocument, origin: Origin) -> None:
        if source.uri in self._pending:
            self.flush()  # keeps the order of versions
        self._pending[source.uri] = _Pending(self._store_images(source), origin, datetime.now(UTC))
        self._grow(len(source.content))

    def _store_images(self, source: SourceDocument) -> SourceDocument:
        if not source.images:
            return source
        store = self._destination.stores.images
        for image in source.images.values():
            store.add(image)
        names = {address: image.name for address, image in source.images.items()}
        return replace(source, metadata={**source.metadata, "images": names})

    def _write(self) -> None:
        pending, self._pending = self._pending, {}
        kb_id = self._destination.kb_id
        with self._destination.stores.database.read() as transaction:
            deleted = writing.owners_of_deleted(transaction, kb_id, pending)
            ids = _ids(transaction, kb_id, pending, deleted)
        pending = self._without_deleted(pending, deleted)
        waiting = {ids[uri]: entry for uri, entry in pending.items()}
        while waiting:
            versions = self._destination.stores.database.look_up(writing.stored_versions, waiting)
            unchanged, changed = self._split_by_change(waiting, versions)
            if self._store(unchanged, changed, versions):
                break  # otherwise documents or embedder changed meanwhile: try again

    def _without_deleted(
        self, pending: Mapping[str, _Pending], deleted: Mapping[str, tuple[str, str | None]]
    ) -> dict[str, _Pending]:
        """Leave out documents deleted by a person that their source still has."""
        remaining = dict(pending)
        skipped: list[Origin] = []
        for uri, (_, source_id) in deleted.items():
            origin = pending[uri].origin
            if origin.source_id and origin.source_id == source_id and not origin.undeleted:
                skipped.append(remaining.pop(uri).origin)
        if skipped:
            self._destination.stores.database.commit(_record, skipped)
        return remaining

    def _split_by_change(
        self, waiting: Mapping[str, _Pending], versions: Mapping[str, StoredVersion]
    ) -> tuple[list[tuple[Document, Origin]], list[tuple[Document, Origin]]]:
        unchanged, changed = [], []
        for known_as, entry in waiting.items():
            version, stored = versions.get(known_as), entry.origin.stored
            hashed = None if version is None else version.content_hash
            expected = entry.origin.expected if stored is None else stored.content_hash
            if expected is not None and expected != hashed:
                continue
            old_labels = Labels() if version is None else version.labels
            labels = entry.origin.labels or old_labels
            document = self._document(known_as, entry, labels)
            if (hashed, old_labels) == (document.content_hash, labels):
                unchanged.append((document, entry.origin))
            else:
                changed.append((document, replace(entry.origin, labels=labels)))
        return unchanged, changed

    def _store(
        self,
        unchanged: list[tuple[Document, Origin]],
        changed: list[tuple[Document, Origin]],
        versions: Mapping[str, StoredVersion],
    ) -> bool:
        """Cut, embed and store documents; ``False`` if they or the embedder changed meanwhile."""
        with self._counters.time_stage("chunk"):
            new_documents, texts = self._cut(changed)
        texts = self._to_embed(new_documents, texts)
        if self._counters.counts["chunks_embedded"] > _MANY:
            self._give_way()
        with self._counters.time_stage("embed"):
            vectors, pending = self._embed(texts)
        kb_id, fingerprint = self._destination.kb_id, self._destination.embedder.fingerprint
        database = self._destination.stores.database
        with self._counters.time_stage("store"), database.write() as transaction:
            if new_documents:
                row = knowledge_bases.get_by_id(transaction, kb_id)
                if row.embedder != fingerprint:
                    self._reopen(row)
                    return False
                ids = [document.id for document, _ in changed]
                current = writing.stored_versions(transaction, ids)
                if any(current.get(known_as) != versions.get(known_as) for known_as in ids):
                    return False
            changes = writing.replace_documents(transaction, kb_id, new_documents, vectors)
            writing.forget_deleted(transaction, kb_id, [document.uri for document, _ in changed])
            if pending:
                corpus.remove_pending(transaction, kb_id, fingerprint, vectors)
            touches = [
                Touch(document.id, document.state, document.fetched_at, origin.run_id)
                for document, origin in unchanged
            ]
            writing.touch_documents(transaction, touches)
            _record(transaction, [origin for _, origin in (*unchanged, *changed)])
        for document, _ in unchanged:
            self._counters.count(document.id, "same")
        self._counters.read(document.id for document, _ in (*unchanged, *changed))
        for document, _ in changed:
            version = versions.get(document.id)
            is_new = version is None or version.state is DocumentState.GONE
            self._counters.count(document.id, "new" if is_new else "changed")
        self._counters.counts["chunks_added"] += changes.added
        self._counters.counts["chunks_removed"] += changes.removed
        if self._follower is not None:
            self._follower.note_stored(changes.added)
        return True

    def _embed(self, texts: Mapping[str, str]) -> tuple[dict[str, bytes], bool]:
        """Return vectors of texts, and whether some of them are kept as pending ones."""
        database, kb_id = self._destination.stores.database, self._destination.kb_id
        embedder = self._destination.embedder
        fingerprint, size = embedder.fingerprint, batch_size(embedder)
        with database.read() as transaction:
            vectors = corpus.stored_vectors(transaction, kb_id, texts)
            missing = [key for key in texts if key not in vectors]
            pending = corpus.pending_vectors(transaction, kb_id, fingerprint, missing)
        vectors |= pending
        missing = [key for key in missing if key not in pending]
        for start in range(0, len(missing), size):
            keys = missing[start : start + size]
            new_vectors = embed(embedder, {key: texts[key] for key in keys})
            vectors |= new_vectors
            if start + size < len(missing):  # a later batch may fail
                database.commit(corpus.add_pending, kb_id, fingerprint, new_vectors)
        self._counters.counts["chunks_embedded"] += len(missing)
        return vectors, bool(pending) or len(missing) > size

    def _give_way(self) -> None:
        """Continue with a faster embedder, if there is one."""
        give_way = self._destination.give_way
        if give_way is None:
            return
        # a conflict: another process changes it
        with self._counters.time_stage("embed"), suppress(ConflictError):
            self._destination = replace(self._destination, embedder=give_way(), give_way=None)

    def _cut(
        self, changed: Sequence[tuple[Document, Origin]]
    ) -> tuple[list[NewDocument], dict[str, str]]:
        spec, engine = self._destination.spec, self._destination.engine
        documents = [document for document, _ in changed]
        size = -(-len(documents) // engine.count) or 1
        starts = range(0, len(documents), size)
        tasks = (CutTask(tuple(documents[start : start + size]), spec) for start in starts)
        parts: list[CutDocument] = list(chain.from_iterable(perform(engine.pool(), tasks)))
        new_documents = [
            replace(
                document,
                source_id=origin.source_id,
                run_id=origin.run_id,
                labels=origin.labels or Labels(),
            )
            for (document, _), (_, origin) in zip(parts, changed, strict=True)
        ]
        return new_documents, {key: text for _, texts in parts for key, text in texts.items()}

    def _to_embed(self, new_documents: list[NewDocument], texts: dict[str, str]) -> dict[str, str]:
        if self._destination.spec.embedding.text == CHUNK:
            return texts  # vectors of unchanged chunks are found by their texts
        all_chunks = [chunk for document in new_documents for chunk in document.chunks]
        unchanged_ids = self._destination.stores.database.look_up(writing.staying, all_chunks)
        hashes = {chunk.embed_hash for chunk in all_chunks if chunk.chunk.id not in unchanged_ids}
        return {key: text for key, text in texts.items() if key in hashes}

    def _reopen(self, row: KnowledgeBaseRow) -> None:
        """Continue with the embedder that another process has switched to."""
        again = self._destination.reopen
        embedder = again() if again is not None else self._destination.embedder
        if embedder.fingerprint != row.embedder:
            raise ConflictError(
                f"{row.name}: another process has changed its embedder to {row.embedder}; "
                "run this again"
            )
        self._destination = replace(self._destination, embedder=embedder)

    def _document(self, document_id: str, entry: _Pending, labels: Labels) -> Document:
        source, stored = entry.source, entry.origin.stored
        document_type = labels.document_type or source.document_type
        document_type = document_type or detect(source.uri, source.title, source.content)
        tags = source.tags if labels.tags is None else labels.tags
        spec = self._destination.spec
        labelled = [source.title, source.content, document_type, tags, dict(source.metadata)]
        shaping = [*labelled, spec.chunking.model_dump(), spec.language, REVISION]
        state = DocumentState.CURRENT if stored is None else stored.state
        gone = state is DocumentState.GONE
        return Document(
            id=document_id,
            uri=source.uri,
            title=source.title,
            content=source.content,
            document_type=document_type,
            tags=tags,
            metadata=source.metadata,
            state=state,
            fetched_at=entry.seen if stored is None else stored.fetched_at,
            # a document that is gone has no hash, so that it is stored in full if it returns
            content_hash="" if gone else digest(json.dumps(shaping, sort_keys=True, default=str)),
        )


def _ids(
    transaction: Transaction,
    kb_id: str,
    uris: Collection[str],
    deleted: Mapping[str, tuple[str, str | None]],
) -> dict[str, str]:
    """Return document ids by URI, those of the trash included; new ones if unknown."""
    ids = {uri: id_ for uri, (id_, _) in deleted.items()}
    ids |= writing.ids_by_uri(transaction, kb_id, uris)
    new = {uri: document_id(kb_id, uri) for uri in uris if uri not in ids}
    # a document with that id may exist under another URI by now
    used = writing.states(transaction, list(new.values()))
    other_ids = {uri: document_id(kb_id, f"{uri}\0") for uri, id_ in new.items() if id_ in used}
    return ids | new | other_ids


def _record(transaction: Transaction, origins: list[Origin]) -> None:
    visits: dict[tuple[str, int], list[Visit]] = {}
    for origin in origins:
        event = origin.event
        if event is None or event.record is None:
            continue
        assert origin.source_id is not None
        assert origin.run_id is not None
        visit = event.record, event.outcome.value, event.reason, datetime.now(UTC)
        visits.setdefault((origin.source_id, origin.run_id), []).append(visit)
    for (source_id, run_id), documents_seen in visits.items():
        runs.record_visits(transaction, source_id, run_id, documents_seen)


_EVENTS = 200


class EventWriter(Batch):
    """Stores events without a document in batches of up to 200 events or half a second.

    Most pages of a refresh are unchanged; a transaction for each would cost more than its request.
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
        self._pending.append((event, datetime.now(UTC)))
        self._grow(1)

    def _write(self) -> None:
        events, self._pending = self._pending, []
        with self._counters.time_stage("store"), self._database.write() as transaction:
            id_of = writing.ids_by_uri(
                transaction, self._kb_id, {_uri(event) for event, _ in events}
            )
            ids = [id_of.get(_uri(event), "") for event, _ in events]
            states = writing.states(transaction, ids)
            touched: dict[str, Touch] = {}
            visits, run_id = [], self._run_id
            for (event, at), stored_id in zip(events, ids, strict=True):
                exists = states.get(stored_id, DocumentState.GONE) is not DocumentState.GONE
                match event.outcome:
                    case Outcome.UNCHANGED if exists:
                        self._counters.count(stored_id, "same")
                        self._counters.read([stored_id])
                        touched[stored_id] = Touch(stored_id, DocumentState.CURRENT, at, run_id)
                    case Outcome.FAILED:
                        self._counters.failed.append(Problem(event.uri, event.reason))
                        if exists:
                            touched[stored_id] = Touch(stored_id, DocumentState.STALE, None, run_id)
                    case Outcome.SKIPPED if event.reason:  # the source counts others
                        self._counters.skipped.append(Problem(event.uri, event.reason))
                    case Outcome.GONE if exists:
                        changes = writing.retire_document(transaction, self._kb_id, stored_id)
                        self._counters.counts["gone"] += 1
                        self._counters.counts["chunks_removed"] += changes.removed
                        states[stored_id] = DocumentState.GONE
                        touched.pop(stored_id, None)
                    case Outcome.GONE:
                        self._counters.failed.append(Problem(event.uri, event.reason))
                if event.record is not None:
                    visits.append((event.record, event.outcome.value, event.reason, at))
            writing.touch_documents(transaction, touched.values())
            runs.record_visits(transaction, self._source_id, run_id, visits)


def _uri(event: SourceEvent) -> str:
    return event.record.document_uri if event.record and event.record.document_uri else event.uri
