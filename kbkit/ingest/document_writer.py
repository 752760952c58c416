"""Split, embed and store documents, small ones together.

Batches of up to 200,000 characters (or 200 other events) or half a second save transactions,
lookups and embedder calls. After a kill, unwritten documents are read again.
"""

import json
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
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
from kbkit.stores.catalog.database import Transaction
from kbkit.stores.catalog.knowledge_bases import KnowledgeBaseRow
from kbkit.stores.catalog.writing import NewDocument, StoredVersion, Touch
from kbkit.text.analysis import REVISION

_CHARACTERS = 200_000
_MANY = 1_000  # chunks, which take MiniLM 17 s on two cores; more get static vectors first
_MAX_SECONDS = 0.5
_EVENTS = 200  # without a document; a transaction for each would cost more than its request

_Pending = tuple[SourceDocument, Origin]
_Documents = list[tuple[Document, Origin]]


class DocumentWriter:
    """Stores documents and other events; the end of its ``with`` block stores the last ones."""

    def __init__(
        self,
        destination: IngestTarget,
        counters: RunCounters,
        note_stored: Callable[[int], None] = lambda _: None,
    ) -> None:
        self._destination = destination
        self._counters = counters
        self._note_stored = note_stored
        # only one of the two has a batch at a time, which keeps the order of events
        self._pending: dict[str, _Pending] = {}
        self._events: list[tuple[SourceEvent, Origin]] = []
        self._limit = _CHARACTERS * destination.engine.count
        self._size = 0
        self._since = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.flush()

    def add(self, source: SourceDocument, origin: Origin) -> None:
        if self._events or source.uri in self._pending:
            self.flush()  # keeps the order of versions
        self._pending[source.uri] = self._store_images(source), origin
        self._grow(len(source.content))

    def note(self, event: SourceEvent, origin: Origin) -> None:
        """Store an event without a document."""
        if self._pending:
            self.flush()
        self._events.append((event, origin))
        self._grow(self._limit // _EVENTS)

    def _grow(self, size: int) -> None:
        now = time.monotonic()
        self._since = self._since if self._size else now
        self._size += max(1, size)
        if self._size >= self._limit or now - self._since >= _MAX_SECONDS:
            self.flush()

    def flush(self) -> None:
        self._size = 0
        if self._pending:
            self._store_documents()
        if self._events:
            self._store_events()

    def _store_images(self, source: SourceDocument) -> SourceDocument:
        if not source.images:
            return source
        store = self._destination.stores.images
        for image in source.images.values():
            store.add(image)
        names = {address: image.name for address, image in source.images.items()}
        return replace(source, metadata={**source.metadata, "images": names})

    def _store_documents(self) -> None:
        pending, self._pending = self._pending, {}
        database, kb_id = self._destination.stores.database, self._destination.kb_id
        with database.read() as transaction:
            deleted = writing.owners_of_deleted(transaction, kb_id, pending)
            ids = _ids(transaction, kb_id, pending, deleted)
        # leave out documents deleted by a person that their source still has
        skipped = []
        for uri, (_, source_id) in deleted.items():
            origin = pending[uri][1]
            if origin.source_id and origin.source_id == source_id and not origin.undeleted:
                skipped.append(origin)
                del pending[uri]
        if skipped:
            database.commit(_record, skipped)
        waiting = {ids[uri]: entry for uri, entry in pending.items()}
        while waiting:
            versions = database.look_up(writing.stored_versions, waiting)
            unchanged, changed = self._split_by_change(waiting, versions)
            if self._store(unchanged, changed, versions):
                break  # otherwise documents or embedder changed meanwhile: try again

    def _split_by_change(
        self, waiting: Mapping[str, _Pending], versions: Mapping[str, StoredVersion]
    ) -> tuple[_Documents, _Documents]:
        unchanged, changed = [], []
        for known_as, (source, origin) in waiting.items():
            version, stored = versions.get(known_as), origin.stored
            hashed = None if version is None else version.content_hash
            expected = origin.expected if stored is None else stored.content_hash
            if expected is not None and expected != hashed:
                continue
            old_labels = Labels() if version is None else version.labels
            labels = origin.labels or old_labels
            document = self._document(known_as, source, origin, labels)
            if (hashed, old_labels) == (document.content_hash, labels):
                unchanged.append((document, origin))
            else:
                changed.append((document, replace(origin, labels=labels)))
        return unchanged, changed

    def _store(
        self, unchanged: _Documents, changed: _Documents, versions: Mapping[str, StoredVersion]
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
        for document, _ in changed:
            version = versions.get(document.id)
            is_new = version is None or version.state is DocumentState.GONE
            self._counters.count(document.id, "new" if is_new else "changed")
        self._counters.read(document.id for document, _ in (*unchanged, *changed))
        self._counters.counts.update(chunks_added=changes.added, chunks_removed=changes.removed)
        self._note_stored(changes.added)
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

    def _cut(self, changed: _Documents) -> tuple[list[NewDocument], dict[str, str]]:
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

    def _document(
        self, document_id: str, source: SourceDocument, origin: Origin, labels: Labels
    ) -> Document:
        stored = origin.stored
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
            fetched_at=origin.seen if stored is None else stored.fetched_at,
            # a document that is gone has no hash, so that it is stored in full if it returns
            content_hash="" if gone else digest(json.dumps(shaping, sort_keys=True, default=str)),
        )

    def _store_events(self) -> None:
        events, self._events = self._events, []
        counters, kb_id = self._counters, self._destination.kb_id
        database = self._destination.stores.database
        with counters.time_stage("store"), database.write() as transaction:
            id_of = writing.ids_by_uri(transaction, kb_id, {_uri(event) for event, _ in events})
            ids = [id_of.get(_uri(event), "") for event, _ in events]
            versions = writing.stored_versions(transaction, ids)
            states = {id_: version.state for id_, version in versions.items()}
            touched: dict[str, tuple[DocumentState, datetime | None]] = {}
            for (event, origin), stored_id in zip(events, ids, strict=True):
                exists = states.get(stored_id, DocumentState.GONE) is not DocumentState.GONE
                match event.outcome:
                    case Outcome.UNCHANGED if exists:
                        counters.count(stored_id, "same")
                        counters.read([stored_id])
                        touched[stored_id] = DocumentState.CURRENT, origin.seen
                    case Outcome.FAILED:
                        counters.failed.append(Problem(event.uri, event.reason))
                        if exists:
                            touched[stored_id] = DocumentState.STALE, None
                    case Outcome.SKIPPED if event.reason:  # the source counts others
                        counters.skipped.append(Problem(event.uri, event.reason))
                    case Outcome.GONE if exists:
                        changes = writing.retire_document(transaction, kb_id, stored_id)
                        counters.counts.update(gone=1, chunks_removed=changes.removed)
                        states[stored_id] = DocumentState.GONE
                        touched.pop(stored_id, None)
                    case Outcome.GONE:
                        counters.failed.append(Problem(event.uri, event.reason))
            origins = [origin for _, origin in events]
            touches = [Touch(id_, *each, origins[0].run_id) for id_, each in touched.items()]
            writing.touch_documents(transaction, touches)
            _record(transaction, origins)


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
    used = writing.stored_versions(transaction, list(new.values()))
    other_ids = {uri: document_id(kb_id, f"{uri}\0") for uri, id_ in new.items() if id_ in used}
    return ids | new | other_ids


def _record(transaction: Transaction, origins: Sequence[Origin]) -> None:
    """Record the visits of pages; all are of one run."""
    visits = [
        (origin.event.record, origin.event.outcome.value, origin.event.reason, origin.seen)
        for origin in origins
        if origin.event and origin.event.record
    ]
    if visits:
        source_id, run_id = origins[0].source_id, origins[0].run_id
        assert source_id is not None
        assert run_id is not None
        runs.record_visits(transaction, source_id, run_id, visits)


def _uri(event: SourceEvent) -> str:
    return event.record.document_uri if event.record and event.record.document_uri else event.uri
