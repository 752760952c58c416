"""Update the index of entries from their folders.

The state of the files is stored after the index of an entry, so interrupted work is repeated. Votes
for the document of an entry are written to its folder.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from hashlib import sha256

from kbkit.entries.folders import NAME, unique
from kbkit.entries.skill_file import VOTES, vote_lines
from kbkit.entries.store import (
    EntryStore,
    Look,
    StoredEntry,
    document_of,
    files_error,
    record_of,
    time_of,
)
from kbkit.errors import FilesError
from kbkit.files.index import TICK, FolderIndex, improve, put_documents, sum_reports
from kbkit.ingest.pipeline import Stop
from kbkit.knowledge_base import KnowledgeBase, handle_of
from kbkit.models import EntrySource, EntryStatus, EntrySyncReport, Problem, Progress, Vote
from kbkit.models.files import ENTRIES
from kbkit.runtime.progress import OnProgress
from kbkit.stores.catalog import indexed_files, knowledge_bases, ratings, writing
from kbkit.stores.catalog.indexed_files import EntryRecord

_BATCH = 100


_MAX_WATCHED = 500  # entries whose files are polled


class EntryIndex(FolderIndex):
    """Index of a workspace's entries."""

    _store: EntryStore

    def revision(self) -> str:
        states = [self.look_up(knowledge_bases.state, ENTRIES)]
        with suppress(OSError):
            for folder in sorted(self._store.root.iterdir())[:_MAX_WATCHED]:
                for name in (NAME, VOTES):
                    with suppress(OSError):
                        about = (folder / name).lstat()
                        states.append(f"{folder.name} {about.st_mtime_ns} {about.st_size}")
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
        looks = self._store.looks(skipped.__setitem__)
        records = self.records()
        report = EntrySyncReport()
        if any(_changes(records, looks)) or self._new_votes(records):
            with self._store.hold_lock(wait=wait):
                report = self._level(on_progress, stop)
            records = self.records()
        problems = {slug: each.problem for slug, each in records.items() if each.problem}
        reported = [Problem(slug, why) for slug, why in sorted({**skipped, **problems}.items())]
        return replace(
            report,
            skipped=tuple(reported),
            synced=sum(not each.problem for each in records.values()),
        )

    def _new_votes(self, records: Mapping[str, EntryRecord]) -> dict[str, list[tuple[int, Vote]]]:
        slugs = {each.document_id: slug for slug, each in records.items() if each.document_id}
        if not slugs:
            return {}
        votes_by_document = self.look_up(indexed_files.document_ratings, ENTRIES, slugs)
        return {slugs[known_id]: votes for known_id, votes in votes_by_document.items()}

    def _level(self, on_progress: OnProgress | None, stop: Stop) -> EntrySyncReport:
        kb = self._knowledge_base()
        for slug, votes in self._new_votes(self.records()).items():
            self._write_votes(kb, slug, votes)
        changed, gone = _changes(self.records(), self._store.looks())
        report, before = EntrySyncReport(), handle_of(kb).row().version
        for start in range(0, max(1, len(changed)), _BATCH):
            if stop():
                break
            part = changed[start : start + _BATCH]
            last = start + _BATCH >= len(changed)
            # deleted entries are last: a folder may only have a new name
            stored = self._store_part(kb, part, gone if last else (), gone)
            report = sum_reports(report, stored)
            if on_progress is not None and part:
                on_progress(Progress("store", start + len(part), len(changed), part[-1]))
        if handle_of(kb).row().version != before:  # a vote changes no document
            improve(kb, len(changed), on_progress, stop)
        return report

    def _write_votes(self, kb: KnowledgeBase, slug: str, votes: list[tuple[int, Vote]]) -> None:
        try:
            self.add_votes(slug, [vote for _, vote in votes])
        except FilesError:
            return  # tried again when the folder is valid
        with self._database.write() as transaction:
            for rating_id, _ in votes:
                ratings.remove(transaction, kb.id, rating_id)

    def add_votes(self, slug: str, votes: Sequence[Vote]) -> None:
        """Write votes into an entry's folder, under a lock."""
        before, data = self._store.read_votes(slug)
        new = [vote for vote in votes if vote not in before]
        end = b"" if data.endswith(b"\n") or not data else b"\n"
        self._store.write(f"{slug}/{VOTES}", data + end + vote_lines(new))

    def _store_part(
        self, kb: KnowledgeBase, part: Sequence[str], forget: Sequence[str], gone: Sequence[str]
    ) -> EntrySyncReport:
        records = self.records()
        seen = time.time_ns()
        new = {slug for slug in part if slug not in records or not records[slug].version}
        read: dict[str, StoredEntry] = {}
        faults: list[EntryRecord] = []
        for slug in part:
            try:
                read[slug] = self._store.read_entry(slug)
            except FilesError as error:
                why = files_error(slug, error)
                look = self._store.look(slug)
                if look is not None:
                    record = records.get(slug) or _unread(slug, look)
                    faults.append(
                        record._replace(
                            problem=why, stamp=look.stamp, changed=look.changed, seen=seen
                        )
                    )
        moved = self._find_moves(read, records, gone)
        with self._database.write() as transaction:
            for slug, was in moved.items():
                indexed_files.rename_document(transaction, kb.id, was, slug)
                indexed_files.forget_entries(transaction, [was])
        put_documents(
            kb,
            [
                document_of(stored)
                for slug, stored in read.items()
                if slug in moved
                or slug in new
                or records[slug].version != stored.version
                or not records[slug].document_id
            ],
        )
        removed = [slug for slug in forget if slug not in moved.values() and slug in records]
        ids = self._ids(read, records, moved, removed)
        with self._database.write() as transaction:
            old = writing.ids_by_uri(transaction, kb.id, removed)
            for document_id in old.values():
                writing.delete_document(transaction, kb.id, document_id)
            indexed_files.forget_entries(transaction, removed)
            id_of = writing.ids_by_uri(transaction, kb.id, list(read))
            made = [
                record_of(stored, ids[slug], id_of.get(slug, ""), seen)
                for slug, stored in read.items()
            ]
            indexed_files.note_entries(transaction, [*made, *faults])
            for slug, stored in read.items():
                indexed_files.put_votes(transaction, kb.id, ids[slug], stored.rating.votes)
        if old:
            self._stores.vectors.apply(kb.id)
        added = [slug for slug in read if slug in new and slug not in moved]
        updated = [
            slug
            for slug in read
            if slug in moved or (slug not in new and _differs(records[slug], read[slug]))
        ]
        return EntrySyncReport(tuple(added), tuple(updated), tuple(removed))

    def _find_moves(
        self,
        read: Mapping[str, StoredEntry],
        records: Mapping[str, EntryRecord],
        gone: Sequence[str],
    ) -> dict[str, str]:
        was = {records[slug].id: slug for slug in gone if slug in records}
        renamed: dict[str, str] = {}
        for slug, stored in read.items():
            if (slug not in records or not records[slug].version) and stored.skill.id in was:
                renamed[slug] = was.pop(stored.skill.id)
        return renamed

    def _ids(
        self,
        read: Mapping[str, StoredEntry],
        records: Mapping[str, EntryRecord],
        moved: Mapping[str, str],
        removed: Sequence[str],
    ) -> dict[str, str]:
        away = {*removed, *moved.values(), *read}
        taken = {each.id for slug, each in records.items() if slug not in away}
        ids: dict[str, str] = {}
        # of a folder and its copy, the older one has the id
        for slug in sorted(
            read, key=lambda each: (each not in records and each not in moved, each)
        ):
            entry_id = read[slug].skill.id or slug
            ids[slug] = entry_id if entry_id not in taken else unique(slug, taken)
            taken.add(ids[slug])
        return ids


def _unread(slug: str, look: Look) -> EntryRecord:
    at = time_of(look.changed)
    draft, manual = EntryStatus.DRAFT.value, EntrySource.MANUAL.value
    return EntryRecord(slug, slug, slug, draft, at, at, manual)


def _changes(
    records: Mapping[str, EntryRecord], looks: Mapping[str, Look]
) -> tuple[list[str], list[str]]:
    """Return the entries that may have changed, and those that are gone."""
    changed = [slug for slug, look in looks.items() if _is_stale(records.get(slug), look)]
    return changed, [slug for slug in records if slug not in looks]


def _is_stale(record: EntryRecord | None, look: Look) -> bool:
    """Whether an entry may have changed since it was read; see `kbkit.files.index`."""
    return record is None or record.stamp != look.stamp or record.seen - record.changed < TICK


def _differs(record: EntryRecord, stored: StoredEntry) -> bool:
    rating = stored.rating
    before = record.version, record.votes, record.average, record.problem
    return before != (stored.version, rating.count, rating.average, "")
