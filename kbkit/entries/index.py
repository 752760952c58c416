"""Update the index of entries from their folders.

The state of the files is stored after the index of an entry, so interrupted work is repeated. Votes
for the document of an entry are written to its folder.
"""

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from hashlib import sha256

from kbkit.entries.folders import NAME, unique
from kbkit.entries.skill_file import VOTES, vote_lines
from kbkit.entries.store import EntryStore, FolderState, StoredEntry, document_of, record_of
from kbkit.errors import FilesError
from kbkit.files.folder import time_of
from kbkit.files.index import TICK, FolderIndex, improve, in_batches, put_documents, sum_reports
from kbkit.ingest.pipeline import Stop
from kbkit.knowledge_base import KnowledgeBase, handle_of
from kbkit.models import EntrySource, EntryStatus, EntrySyncReport, Problem, Vote
from kbkit.models.files import SyncReport
from kbkit.models.values import ENTRIES, TargetKind
from kbkit.runtime.progress import OnProgress
from kbkit.stores.catalog import indexed_files, knowledge_bases, ratings, writing
from kbkit.stores.catalog.indexed_files import EntryRecord

_BATCH = 100


_MAX_WATCHED = 500  # entries whose files are polled


class EntryIndex(FolderIndex):
    """Index of a workspace's entries."""

    store: EntryStore

    def revision(self) -> str:
        states = [self.look_up(knowledge_bases.state, ENTRIES)]
        with suppress(OSError):
            for folder in sorted(self.store.root.iterdir())[:_MAX_WATCHED]:
                for name in (NAME, VOTES):
                    with suppress(OSError):
                        status = (folder / name).lstat()
                        states.append(f"{folder.name} {status.st_mtime_ns} {status.st_size}")
        return sha256("\n".join(states).encode("utf-8", "replace")).hexdigest()

    def records(self) -> dict[str, EntryRecord]:
        return self.look_up(indexed_files.entry_records)

    def ids(self) -> dict[str, str]:
        return {slug: record.id for slug, record in self.records().items()}

    def level(
        self,
        *,
        wait: float | None = None,
        on_progress: OnProgress | None = None,
        stop: Stop = lambda: False,
    ) -> EntrySyncReport:
        self._stores.require_home()
        skipped: dict[str, str] = {}
        states = self.store.states(skipped.__setitem__)
        records = self.records()
        report = SyncReport()
        if any(_changes(records, states)) or self._new_votes(records):
            with self.store.hold_lock(wait=wait):
                report = self._level(on_progress, stop)
            records = self.records()
        problems = {slug: each.problem for slug, each in records.items() if each.problem}
        reported = [Problem(slug, why) for slug, why in sorted({**skipped, **problems}.items())]
        changes = report.added, report.updated, report.removed
        return EntrySyncReport(*changes, tuple(reported), len(records) - len(problems))

    def _new_votes(self, records: Mapping[str, EntryRecord]) -> dict[str, dict[int, Vote]]:
        slugs = {each.document_id: slug for slug, each in records.items() if each.document_id}
        votes_of = self.look_up(ratings.votes, ENTRIES, TargetKind.DOCUMENT, slugs.keys())
        return {slugs[document_id]: votes for document_id, votes in votes_of.items()}

    def _level(self, on_progress: OnProgress | None, stop: Stop) -> SyncReport:
        kb = self.knowledge_base()
        for slug, votes in self._new_votes(self.records()).items():
            try:
                self.add_votes(slug, list(votes.values()))
            except FilesError:
                continue  # retried once the folder is valid
            with self.database.write() as transaction:
                for rating_id in votes:
                    ratings.remove(transaction, kb.id, rating_id)
        changed, deleted = _changes(self.records(), self.store.states(lambda slug, why: None))
        report, before = SyncReport(), handle_of(kb).row().version
        for batch in in_batches(changed, _BATCH, on_progress, stop):
            is_last = batch[-1:] == changed[-1:]
            # deletions come last, since a folder may have been renamed
            batch_report = self._store_part(kb, batch, deleted if is_last else (), deleted)
            report = sum_reports(report, batch_report)
        if handle_of(kb).row().version != before:  # a vote changes no document
            improve(kb, [*report.added, *report.updated], on_progress, stop)
        return report

    def add_votes(self, slug: str, votes: Sequence[Vote]) -> None:
        """Write votes into an entry's folder, under a lock."""
        stored = self.store.read_entry(slug)
        data = stored.files.get(VOTES, b"")
        new_votes = [vote for vote in votes if vote not in stored.rating.votes]
        newline = b"" if data.endswith(b"\n") or not data else b"\n"
        self.store.write(f"{slug}/{VOTES}", data + newline + vote_lines(new_votes))

    def _store_part(
        self, kb: KnowledgeBase, batch: Sequence[str], forget: Sequence[str], deleted: Sequence[str]
    ) -> SyncReport:
        records = self.records()
        read_at = time.time_ns()
        new_slugs = {slug for slug in batch if slug not in records or not records[slug].version}
        entries: dict[str, StoredEntry] = {}
        faults: list[EntryRecord] = []
        for slug in batch:
            try:
                entries[slug] = self.store.read_entry(slug)
            except FilesError as error:
                reason = str(error).removeprefix(f"{slug}/").removeprefix(f"{slug}: ")
                if (state := self.store.state(slug)) is not None:
                    record = records.get(slug) or _unread(slug, state)
                    faults.append(
                        record._replace(
                            problem=reason, stamp=state.stamp, changed=state.changed, seen=read_at
                        )
                    )
        old_slugs = {records[slug].id: slug for slug in deleted if slug in records}
        moved = {
            slug: old_slugs.pop(stored.skill.id)
            for slug, stored in entries.items()
            if slug in new_slugs and stored.skill.id in old_slugs
        }
        with self.database.write() as transaction:
            for slug, old_slug in moved.items():
                indexed_files.rename_document(transaction, kb.id, old_slug, slug)
                indexed_files.forget_entries(transaction, [old_slug])
        documents = [
            document_of(stored)
            for slug, stored in entries.items()
            if slug in new_slugs
            or records[slug].version != stored.version
            or not records[slug].document_id
        ]
        put_documents(kb, documents)
        removed = [slug for slug in forget if slug not in moved.values() and slug in records]
        ids = self._ids(entries, records, moved, removed)
        with self.database.write() as transaction:
            removed_ids = writing.ids_by_uri(transaction, kb.id, removed)
            for document_id in removed_ids.values():
                writing.delete_document(transaction, kb.id, document_id)
            indexed_files.forget_entries(transaction, removed)
            id_of = writing.ids_by_uri(transaction, kb.id, list(entries))
            entry_records = [
                record_of(stored, ids[slug], id_of.get(slug, ""), read_at)
                for slug, stored in entries.items()
            ]
            indexed_files.note_entries(transaction, [*entry_records, *faults])
            for slug, stored in entries.items():
                indexed_files.put_votes(transaction, kb.id, ids[slug], stored.rating.votes)
        if removed_ids:
            self._stores.vectors.apply(kb.id)
        added = [slug for slug in entries if slug in new_slugs and slug not in moved]
        updated = [
            slug
            for slug in entries
            if slug in moved or (slug not in new_slugs and _differs(records[slug], entries[slug]))
        ]
        return SyncReport(tuple(added), tuple(updated), tuple(removed))

    def _ids(
        self,
        entries: Mapping[str, StoredEntry],
        records: Mapping[str, EntryRecord],
        moved: Mapping[str, str],
        removed: Sequence[str],
    ) -> dict[str, str]:
        excluded = {*removed, *moved.values(), *entries}
        used_ids = {each.id for slug, each in records.items() if slug not in excluded}
        ids: dict[str, str] = {}
        # if a folder was copied, the original keeps the id
        for slug in sorted(
            entries, key=lambda each: (each not in records and each not in moved, each)
        ):
            entry_id = entries[slug].skill.id or slug
            ids[slug] = entry_id if entry_id not in used_ids else unique(slug, used_ids)
            used_ids.add(ids[slug])
        return ids


def _unread(slug: str, state: FolderState) -> EntryRecord:
    changed_at = time_of(state.changed)
    draft, manual = EntryStatus.DRAFT.value, EntrySource.MANUAL.value
    return EntryRecord(slug, slug, slug, draft, changed_at, changed_at, manual)


def _changes(
    records: Mapping[str, EntryRecord], states: Mapping[str, FolderState]
) -> tuple[list[str], list[str]]:
    """Return the entries that may have changed, and those that are gone."""
    changed = [slug for slug, state in states.items() if _is_stale(records.get(slug), state)]
    return changed, [slug for slug in records if slug not in states]


def _is_stale(record: EntryRecord | None, state: FolderState) -> bool:
    """Whether an entry may have changed since it was read; see `kbkit.files.index`."""
    return record is None or record.stamp != state.stamp or record.seen - record.changed < TICK


def _differs(record: EntryRecord, stored: StoredEntry) -> bool:
    rating = stored.rating
    before = record.version, record.votes, record.average, record.problem
    return before != (stored.version, rating.count, rating.average, "")
