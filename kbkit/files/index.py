"""Update the index of files from the disk: every file is a document.

The state of a file is stored after its index, so interrupted work is repeated. Unchanged size and
times mean an unchanged file.
"""

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from os import stat_result

from kbkit.errors import FilesError, MissingPathError, SourceError, WorkspaceError
from kbkit.files.folder import version
from kbkit.files.links import links_of, meant, names_of, prose, tags_of
from kbkit.files.store import FileStore
from kbkit.ingest.embedding import Origin
from kbkit.ingest.pipeline import Stop
from kbkit.knowledge_base import KnowledgeBase, handle_of
from kbkit.knowledge_base.improving import Improving
from kbkit.knowledge_base.ingestion import Ingestion
from kbkit.models import Problem, Progress, SourceDocument, SyncReport
from kbkit.models.values import FILES
from kbkit.runtime.progress import OnProgress
from kbkit.sources import Outcome, SourceEvent
from kbkit.sources.files import read_file
from kbkit.sources.formats import FileParser, format_of
from kbkit.sources.untrusted import UnreadableError
from kbkit.stores.catalog import indexed_files, writing
from kbkit.stores.catalog.database import Transaction
from kbkit.stores.catalog.indexed_files import FileRecord, Link
from kbkit.stores.stores import Stores

_LINKING = frozenset({"markdown", "text"})  # formats with links and tags


@dataclass(frozen=True, slots=True)
class Note:
    """Searchable content of a file; ``names`` are normalized names for links."""

    documents: Sequence[SourceDocument]
    names: frozenset[str]
    links: Sequence[Link] = ()
    reason: str = ""


def read_note(path: str, data: bytes, reader: FileParser) -> Note:
    """Parse a file; never fails."""
    try:
        documents = read_file(path, data, reader=reader)
    except SourceError as error:
        reason = str(error).removeprefix(f"{path}: ")
        return Note((), frozenset(names_of(path)), reason=reason)
    first = documents[0]
    names = frozenset(names_of(path, first.title, first.metadata.get("aliases")))
    if not _links(path):
        return Note(documents, names)
    text = prose(first.content)
    tags = tuple(dict.fromkeys((*(tag.removeprefix("#") for tag in first.tags), *tags_of(text))))
    return Note([replace(first, tags=tags)], names, links_of(text, path))


def _links(path: str) -> bool:
    try:
        return format_of(path) in _LINKING
    except UnreadableError:
        return False


LOCK = "files-index"
_WAIT = 600.0
_POLL = 0.01
_BATCH = 200  # files stored under one lock
_FEW = 3  # up to this number, files are stored one by one
TICK = 100_000_000
"""Nanoseconds within which two changes may have the same time."""


@contextmanager
def saying_done(what: str) -> Iterator[None]:
    """Explain in errors that the change on disk was made."""
    try:
        yield
    except WorkspaceError as error:
        reason = str(error).partition(";")[0]
        error.args = (
            f"{what}: that is done, and search will find it once this is fixed, so do not do it "
            f"again: {reason}",
        )
        raise


class FolderIndex:
    """Documents and records of a folder."""

    def __init__(
        self, store: FileStore, stores: Stores, knowledge_base: Callable[[], KnowledgeBase]
    ) -> None:
        self.store = store
        self._stores = stores
        self.database = stores.database
        self.look_up = stores.database.look_up
        self.knowledge_base = knowledge_base


class FileIndex(FolderIndex):
    """The documents of a workspace's files."""

    def level(
        self,
        path: str = "",
        *,
        created: Mapping[str, int] | None = None,
        wait: float = _WAIT,
        on_progress: OnProgress | None = None,
        stop: Stop = lambda: False,
    ) -> SyncReport:
        """Index changes at and below a path; remove files that are gone."""
        self._stores.require_home()
        skipped: list[Problem] = []
        walk = self.store.walk(path, lambda at, why: skipped.append(Problem(at, why)))
        states = {item.path: item.status for item in walk if not item.is_folder}
        records = self.look_up(indexed_files.records, path)
        changed = [each for each, status in states.items() if is_stale(records.get(each), status)]
        deleted = [each for each in records if each not in states]
        report = SyncReport(skipped=tuple(skipped))
        if not changed and not deleted:
            return report
        kb = self.knowledge_base()
        with FileParser() as reader:
            for batch in in_batches(changed, _BATCH, on_progress, stop):
                with self._stores.locks.hold(LOCK, wait=wait, task="storing files", poll=_POLL):
                    batch_report = self._store_part(kb, [*batch, *deleted], created, reader)
                    report = sum_reports(report, batch_report)
                deleted = []
        if report:
            records = self.look_up(indexed_files.records_of, [*report.added, *report.updated])
            uris = [uri for record in records.values() for uri in record.uris]
            improve(kb, uris, on_progress, stop)
        return report

    def created_times(self, path: str) -> dict[str, int]:
        records = self.look_up(indexed_files.records, path)
        return {name[len(path) :].lstrip("/"): record.created for name, record in records.items()}

    def find_record(self, path: str) -> FileRecord | None:
        return self.look_up(indexed_files.records, path).get(path)

    def move(self, source: str, target: str) -> None:
        records = self.look_up(indexed_files.records, source)
        if not records:
            return
        with (
            self._stores.locks.hold(LOCK, wait=_WAIT, task="storing files", poll=_POLL),
            self.database.write() as transaction,
        ):
            paths = {path: target + path[len(source) :] for path in records}
            keys = indexed_files.names(transaction, list(paths))
            indexed_files.move(transaction, FILES, paths)
            self._resolve(transaction, keys)

    def _store_part(
        self,
        kb: KnowledgeBase,
        paths: Sequence[str],
        created: Mapping[str, int] | None,
        reader: FileParser,
    ) -> SyncReport:
        added, updated, removed = list[str](), list[str](), list[str]()
        skipped: list[Problem] = []
        existing = self.look_up(indexed_files.records_of, paths)
        read_at = time.time_ns()
        notes: dict[str, Note] = {}
        records: list[FileRecord] = []
        for path in paths:
            before = existing.get(path)
            try:
                stored = self.store.read(path)
            except FilesError as error:
                if before is not None:
                    removed.append(path)
                if not isinstance(error, MissingPathError):
                    skipped.append(Problem(path, str(error).removeprefix(f"{path}: ")))
                continue
            digest, status = version(stored.data), stored.status
            birth = int(getattr(status, "st_birthtime_ns", status.st_mtime_ns))
            made_at = before.created if before else (created or {}).get(path, birth)
            old_uris = before.uris if before else []
            record = FileRecord(path, *_state(status), digest, read_at, made_at, old_uris)
            records.append(record)
            if before is not None and before.digest == digest:
                continue
            notes[path] = note = read_note(path, stored.data, reader)
            records[-1] = record._replace(uris=[each.uri for each in note.documents])
            if note.reason:
                skipped.append(Problem(path, note.reason))
            (added if before is None else updated).append(path)
        documents = [document for note in notes.values() for document in note.documents]
        put_documents(kb, documents)
        uris = {uri for record in records for uri in record.uris}
        stale_uris = [uri for each in existing.values() for uri in each.uris if uri not in uris]
        with self.database.write() as transaction:
            ids = writing.ids_by_uri(transaction, kb.id, stale_uris)
            for document_id in ids.values():
                writing.delete_document(transaction, kb.id, document_id)
            names = indexed_files.names(transaction, [*notes, *removed])
            indexed_files.forget(transaction, [*notes, *removed])
            names_of = {path: note.names for path, note in notes.items()}
            links = [link for note in notes.values() for link in note.links]
            indexed_files.note(transaction, records, names_of, links)
            names.update(*names_of.values(), (link.key for link in links))
            self._resolve(transaction, names)
        if stale_uris:
            self._stores.vectors.apply(kb.id)
        return SyncReport(tuple(added), tuple(updated), tuple(removed), tuple(skipped))

    def _resolve(self, transaction: Transaction, keys: Iterable[str]) -> None:
        links = indexed_files.links_by_key(transaction, set(keys))
        paths = indexed_files.paths_by_name(transaction, {link.key for link in links})
        ends = [(link, meant(link, sorted(paths.get(link.key, ())))) for link in links]
        changed = [link._replace(leads_to=end) for link, end in ends if end != link.leads_to]
        indexed_files.lead(transaction, changed)


def in_batches(
    changed: Sequence[str], size: int, on_progress: OnProgress | None, stop: Stop
) -> Iterator[Sequence[str]]:
    """Iterate over parts of the changes until stopped; one is empty if nothing changed."""
    for start in range(0, max(1, len(changed)), size):
        if stop():
            return
        if start:
            time.sleep(2 * _POLL)  # lets waiting processes take the lock
        batch = changed[start : start + size]
        yield batch
        if on_progress is not None and batch:
            on_progress(Progress("store", start + len(batch), len(changed), batch[-1]))


def improve(
    kb: KnowledgeBase, changed_uris: Collection[str], on_progress: OnProgress | None, stop: Stop
) -> None:
    handle = handle_of(kb)
    if len(changed_uris) > _FEW:
        Improving(handle).after_ingest(renew=False, on_progress=on_progress, stop=stop)
        handle.stores.snapshots.save(kb.id)
    else:
        Improving(handle).after_few(changed_uris)


def put_documents(kb: KnowledgeBase, documents: Sequence[SourceDocument]) -> None:
    pipeline = Ingestion(handle_of(kb)).pipeline()
    if len(documents) <= _FEW:
        for document in documents:
            pipeline.store(document, Origin())
    else:
        pipeline.run((), (SourceEvent(each.uri, Outcome.FETCHED, each) for each in documents))


def is_stale(record: FileRecord | None, status: stat_result) -> bool:
    """Whether a file may have changed since it was indexed.

    A change in the same clock tick leaves all times equal, so recent files are checked again.
    """
    if record is None or not record.digest:
        return True
    changed = _state(status) != (record.size, record.changed, record.status_changed)
    return changed or record.seen - max(record.changed, record.status_changed) < TICK


def _state(status: stat_result) -> tuple[int, int, int]:
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns


def sum_reports(report: SyncReport, other: SyncReport) -> SyncReport:
    parts = ("added", "updated", "removed", "skipped")
    return replace(report, **{each: getattr(report, each) + getattr(other, each) for each in parts})
