"""Indexed state of entries, and their votes. Functions of the caller's transaction."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import sqlalchemy as sa

from kbkit.models import Target, TargetKind, Vote
from kbkit.stores.catalog import knowledge_bases
from kbkit.stores.catalog import ratings as rating_log
from kbkit.stores.catalog.database import Condition, Transaction
from kbkit.stores.catalog.schema import documents, ratings
from kbkit.stores.catalog.workspace_schema import entries, learned_folders

PRIOR_VOTES, PRIOR_SCORE = 5, 3.0
"""Virtual votes in the middle of the scale, for a Bayesian average."""


class EntryRecord(NamedTuple):
    """A row of ``entries``; see `kbkit.models.EntryInfo`. `changed` and `seen` in nanoseconds."""

    slug: str
    id: str
    document_id: str
    title: str
    description: str
    tags: Sequence[str]
    category: str
    status: str
    average: float
    votes: int
    source: str
    origin_task_id: str
    created_at: datetime
    updated_at: datetime
    version: str
    problem: str
    stamp: str
    changed: int
    seen: int


_COLUMNS = [entries.c[name] for name in EntryRecord._fields]


def records(transaction: Transaction) -> dict[str, EntryRecord]:
    rows = transaction.execute(sa.select(*_COLUMNS)).all()
    return {row[0]: EntryRecord(*row) for row in rows}


def listed(
    transaction: Transaction,
    *,
    status: str | None,
    category: str | None,
    tag: str | None,
    text: str,
    sort: str,
) -> list[EntryRecord]:
    mean = (entries.c.average * entries.c.votes + PRIOR_SCORE * PRIOR_VOTES) / (
        entries.c.votes + PRIOR_VOTES
    )
    order = {
        "rating": [mean.desc(), entries.c.votes.desc()],
        "updated": [entries.c.updated_at.desc()],
        "title": [],
    }[sort]
    # content is read only to search it
    content = documents.c.content if text else sa.literal("")
    query = sa.select(*_COLUMNS, content)
    if text:
        query = query.outerjoin(documents, documents.c.id == entries.c.document_id)
    if status is not None:
        query = query.where(entries.c.status == status)
    rows = transaction.execute(
        query.order_by(*order, sa.func.lower(entries.c.title), entries.c.slug)
    ).all()
    matches = []
    for *values, content in rows:
        record = EntryRecord(*values)
        names = {each.casefold() for each in record.tags}
        if tag is not None and tag.casefold() not in names:
            continue
        if category is not None and record.category.casefold() != category.casefold():
            continue
        if (
            text.casefold()
            in " ".join(
                (
                    record.slug,
                    record.title,
                    record.description,
                    record.category,
                    *names,
                    content or "",
                )
            ).casefold()
        ):
            matches.append(record)
    return matches


def best(transaction: Transaction) -> list[str]:
    """Return the slugs of all entries, best rated first."""
    ranked = listed(transaction, status=None, category=None, tag=None, text="", sort="rating")
    return [record.slug for record in ranked]


def note(transaction: Transaction, stored: Sequence[EntryRecord]) -> None:
    forget(transaction, [record.slug for record in stored])
    transaction.insert(entries, [record._asdict() for record in stored])


def forget(transaction: Transaction, slugs: Collection[str]) -> None:
    """Delete the rows of removed entries; their ratings stay."""
    for slug in slugs:
        transaction.execute(entries.delete().where(entries.c.slug == slug))


def rename_document(transaction: Transaction, kb_id: str, slug: str, to: str) -> None:
    """Rename an entry's document with its folder; id and ratings stay."""
    transaction.execute(
        documents.update().where(documents.c.kb_id == kb_id, documents.c.uri == slug).values(uri=to)
    )
    knowledge_bases.touch(transaction, kb_id)


def votes(transaction: Transaction, kb_id: str, entry_id: str) -> list[Vote]:
    """Return the votes for an entry in the rating log, in order."""
    query = (
        sa.select(ratings.c.created_at, ratings.c.rater, ratings.c.score)
        .where(*_votes_for(kb_id, entry_id))
        .order_by(ratings.c.id)
    )
    return [Vote(*row) for row in transaction.execute(query)]


def _votes_for(kb_id: str, entry_id: str) -> tuple[Condition, ...]:
    of_entry = ratings.c.target_type == TargetKind.ENTRY.value
    return ratings.c.kb_id == kb_id, ratings.c.target == entry_id, of_entry


def put_votes(transaction: Transaction, kb_id: str, entry_id: str, now: Sequence[Vote]) -> None:
    """Replace an entry's votes in the log with those of its folder.

    New votes are appended. If earlier votes were removed or inserted, all are written again,
    because search uses the last vote of each rater.
    """
    stored = votes(transaction, kb_id, entry_id)
    if stored == list(now):
        return
    if stored != list(now[: len(stored)]):
        transaction.execute(ratings.delete().where(*_votes_for(kb_id, entry_id)))
        stored = []
    rating_log.add_votes(transaction, kb_id, Target(TargetKind.ENTRY, entry_id), now[len(stored) :])


def document_ratings(
    transaction: Transaction, kb_id: str, document_ids: Iterable[str]
) -> dict[str, list[tuple[int, Vote]]]:
    wanted = set(document_ids)
    query = sa.select(
        ratings.c.id, ratings.c.target, ratings.c.created_at, ratings.c.rater, ratings.c.score
    ).where(
        ratings.c.kb_id == kb_id,
        ratings.c.target_type == TargetKind.DOCUMENT.value,
        ratings.c.query == "",
    )
    by_document: dict[str, list[tuple[int, Vote]]] = {}
    for row in transaction.execute(query.order_by(ratings.c.id)):
        if row.target in wanted:
            vote = Vote(row.created_at, row.rater, row.score)
            by_document.setdefault(row.target, []).append((row.id, vote))
    return by_document


def learned(transaction: Transaction) -> Mapping[str, Any]:
    return {row.folder: row for row in transaction.execute(sa.select(learned_folders))}


def note_learned(
    transaction: Transaction, folder: str, digest: str, slug: str, problem: str
) -> None:
    transaction.execute(learned_folders.delete().where(learned_folders.c.folder == folder))
    values = {"folder": folder, "digest": digest, "slug": slug, "problem": problem}
    transaction.execute(learned_folders.insert().values(**values))
