"""Entries as those who ask for them are told of them."""

from __future__ import annotations

from datetime import UTC, datetime

from kbkit.entries.documents import text_of, title_of
from kbkit.entries.skill_file import NAME
from kbkit.entries.store import PROMPT, README, StoredEntry
from kbkit.models import Entry, EntryFile, EntryInfo, EntryRating, EntrySource, EntryStatus
from kbkit.stores.catalog.entries import EntryRecord


def info_of(record: EntryRecord) -> EntryInfo:
    """What the catalog knows of an entry."""
    return EntryInfo(
        slug=record.slug,
        id=record.id,
        title=record.title,
        description=record.description,
        tags=tuple(record.tags),
        category=record.category,
        status=EntryStatus(record.status),
        rating=EntryRating(record.average, record.votes),
        source=EntrySource(record.source),
        origin_task_id=record.origin_task_id,
        created_at=record.created_at,
        updated_at=record.updated_at,
        version=record.version,
        problem=record.problem,
    )


def entry_of(stored: StoredEntry, record: EntryRecord | None) -> Entry:
    """What the folder of an entry says; its id is that of the catalog, which knows of copies."""
    skill = stored.skill
    own = (NAME, PROMPT, README)
    return Entry(
        slug=stored.slug,
        id=record.id if record and record.version else skill.id or stored.slug,
        title=title_of(stored),
        description=skill.description,
        tags=skill.tags,
        category=skill.category,
        status=skill.status,
        rating=skill.rating,
        source=skill.source,
        origin_task_id=skill.origin_task_id,
        created_at=skill.created_at or datetime.fromtimestamp(stored.made / 1e9, UTC),
        updated_at=skill.updated_at or datetime.fromtimestamp(stored.changed / 1e9, UTC),
        version=stored.version,
        prompt=text_of(stored, PROMPT),
        readme=text_of(stored, README),
        files=tuple(
            EntryFile(path, len(data))
            for path, data in sorted(stored.files.items())
            if path not in own
        ),
    )
