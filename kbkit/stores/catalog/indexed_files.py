"""Indexed state of files and entries, links and votes. All in the caller's transaction."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import sqlalchemy as sa

from kbkit.models import Target, TargetKind, Vote
from kbkit.models.values import FILES
from kbkit.stores.catalog import knowledge_bases
from kbkit.stores.catalog import ratings as rating_log
from kbkit.stores.catalog.database import Transaction, alive, byte_length, containing
from kbkit.stores.catalog.schema import chunks, documents, ratings
from kbkit.stores.catalog.workspace_schema import (
    entries,
    file_links,
    file_names,
    files,
    learned_folders,
)


class FileRecord(NamedTuple):
    """State of a file when its documents were stored; times in nanoseconds."""

    path: str
    size: int
    changed: int
    status_changed: int
    digest: str
    seen: int
    created: int
    uris: Sequence[str]


class Link(NamedTuple):
    """A link in a file.

    Attributes:
        key: Normalized name of the target.
        leads_to: Path of the target; ``""`` if it does not exist.
    """

    path: str
    target: str
    key: str
    leads_to: str


class MissingNote(NamedTuple):
    """A link target that does not exist, and the files that link to it."""

    target: str
    sources: Sequence[str]


class PageRow(NamedTuple):
    """A document that the filesystem shows as a file."""

    uri: str
    size: int
    fetched_at: datetime
    version: str


_COLUMNS = [files.c[name] for name in FileRecord._fields]


def _below(column: sa.Column[str], path: str) -> sa.ColumnElement[bool]:
    if not path:
        return sa.true()
    # "0" follows "/" in ASCII; unlike LIKE, a range uses the index and needs no escaping
    return sa.or_(column == path, sa.and_(column >= f"{path}/", column < f"{path}0"))


def records(transaction: Transaction, path: str = "") -> dict[str, FileRecord]:
    rows = transaction.execute(sa.select(*_COLUMNS).where(_below(files.c.path, path))).all()
    return {row[0]: FileRecord(*row) for row in rows}


def records_of(transaction: Transaction, paths: Collection[str]) -> dict[str, FileRecord]:
    query = sa.select(*_COLUMNS).where(transaction.is_in(files.c.path, paths))
    return {row[0]: FileRecord(*row) for row in transaction.execute(query)}


def note(
    transaction: Transaction,
    new_records: Sequence[FileRecord],
    names_of: Mapping[str, Iterable[str]],
    links: Iterable[Link],
) -> None:
    transaction.put(files, [record._asdict() for record in new_records])
    names = [{"path": path, "key": key} for path, keys in names_of.items() for key in keys]
    transaction.insert(file_names, names)
    transaction.insert(file_links, [link._asdict() for link in links])


def forget(transaction: Transaction, paths: Sequence[str]) -> None:
    for table in (files, file_names, file_links):
        transaction.delete(table, transaction.is_in(table.c.path, paths))


def move(transaction: Transaction, kb_id: str, paths: Mapping[str, str]) -> None:
    """Move files and their documents; keep document ids."""
    moved = records_of(transaction, paths)
    renamed = {
        uri: paths[path] + uri[len(path) :] for path, record in moved.items() for uri in record.uris
    }
    if renamed:
        for uri, new_uri in renamed.items():
            of_uri = documents.c.kb_id == kb_id, documents.c.uri == uri
            transaction.update(documents, *of_uri, uri=new_uri)
        knowledge_bases.touch(transaction, kb_id)
    new_records = [
        record._replace(
            path=paths[path],
            uris=[renamed[uri] for uri in record.uris],
            digest="",  # so that the file is read again, because its name is part of the text
        )
        for path, record in moved.items()
    ]
    forget(transaction, list(moved))
    transaction.insert(files, [record._asdict() for record in new_records])


def names(transaction: Transaction, paths: Sequence[str]) -> set[str]:
    query = sa.select(file_names.c.key).where(transaction.is_in(file_names.c.path, paths))
    return set(transaction.scalars(query))


def paths_by_name(transaction: Transaction, keys: Collection[str]) -> dict[str, list[str]]:
    query = sa.select(file_names.c.key, file_names.c.path)
    return transaction.grouped(query.where(transaction.is_in(file_names.c.key, keys)))


def links_by_key(transaction: Transaction, keys: Collection[str]) -> list[Link]:
    query = sa.select(file_links).where(transaction.is_in(file_links.c.key, keys))
    return [Link(**row._mapping) for row in transaction.execute(query)]


def lead(transaction: Transaction, links: Sequence[Link]) -> None:
    transaction.update_each(file_links, ["path", "target"], [link._asdict() for link in links])


def backlinks(transaction: Transaction, path: str) -> list[str]:
    query = sa.select(file_links.c.path).where(file_links.c.leads_to == path).distinct()
    return sorted(transaction.scalars(query))


def links(transaction: Transaction, path: str) -> list[Link]:
    query = sa.select(file_links).where(file_links.c.path == path).order_by(file_links.c.target)
    return [Link(**row._mapping) for row in transaction.execute(query)]


def missing(transaction: Transaction) -> list[MissingNote]:
    query = sa.select(file_links).where(file_links.c.leads_to == "")
    by_key: dict[str, list[Any]] = {}
    for row in transaction.execute(query.order_by(file_links.c.path, file_links.c.target)):
        by_key.setdefault(row.key, []).append(row)
    return [
        MissingNote(rows[0].target, list(dict.fromkeys(row.path for row in rows)))
        for rows in by_key.values()
    ]


def linked_documents(transaction: Transaction, kb_id: str) -> dict[str, dict[str, str]]:
    if kb_id != FILES:
        return {}
    source, end = documents.alias("source"), documents.alias("end")
    query = (
        sa.select(source.c.id, file_links.c.target, end.c.id.label("end_id"))
        .join(source, sa.and_(source.c.uri == file_links.c.path, source.c.kb_id == kb_id))
        .join(end, sa.and_(end.c.uri == file_links.c.leads_to, end.c.kb_id == kb_id))
    )
    targets_of: dict[str, dict[str, str]] = {}
    for row in transaction.execute(query):
        targets_of.setdefault(row.id, {})[row.target] = row.end_id
    return targets_of


def chunks_with(
    transaction: Transaction, kb_id: str, uris: Sequence[str], text: str, limit: int
) -> list[str]:
    query = (
        sa.select(chunks.c.id)
        .join(documents, documents.c.id == chunks.c.document_id)
        .where(
            documents.c.kb_id == kb_id,
            documents.c.uri.in_(list(uris)[:100]),
            containing(chunks.c.text, text),
        )
        .order_by(documents.c.uri, chunks.c.position)
    )
    return transaction.scalars(query.limit(limit))


def pages(transaction: Transaction, kb_id: str) -> list[PageRow]:
    """List the documents of a knowledge base that are not gone, by URI."""
    size = byte_length(documents.c.content)
    columns = (documents.c.uri, size, documents.c.fetched_at, documents.c.content_hash)
    query = sa.select(*columns).where(*alive(kb_id))
    return [PageRow(*row) for row in transaction.execute(query.order_by(documents.c.uri))]


PRIOR_VOTES, PRIOR_SCORE = 5, 3.0
"""Virtual votes in the middle of the scale, for a Bayesian average."""


class EntryRecord(NamedTuple):
    """A row of ``entries``; see `kbkit.models.EntryInfo`. `changed` and `seen` in nanoseconds."""

    slug: str
    id: str
    title: str
    status: str
    created_at: datetime
    updated_at: datetime
    source: str
    document_id: str = ""
    description: str = ""
    tags: Sequence[str] = ()
    category: str = ""
    average: float = 0.0
    votes: int = 0
    origin_task_id: str = ""
    version: str = ""
    problem: str = ""
    stamp: str = ""
    changed: int = 0
    seen: int = 0


_ENTRY_COLUMNS = [entries.c[name] for name in EntryRecord._fields]


def entry_records(transaction: Transaction) -> dict[str, EntryRecord]:
    rows = transaction.execute(sa.select(*_ENTRY_COLUMNS)).all()
    return {row[0]: EntryRecord(*row) for row in rows}


def list_entries(
    transaction: Transaction,
    *,
    status: str | None = None,
    category: str | None = None,
    tag: str | None = None,
    text: str = "",
    sort: str = "rating",
) -> list[EntryRecord]:
    mean = (entries.c.average * entries.c.votes + PRIOR_SCORE * PRIOR_VOTES) / (
        entries.c.votes + PRIOR_VOTES
    )
    best_first = [mean.desc(), entries.c.votes.desc()]
    order = {"rating": best_first, "updated": [entries.c.updated_at.desc()], "title": []}[sort]
    # content is read only to search it
    content = documents.c.content if text else sa.literal("")
    query = sa.select(*_ENTRY_COLUMNS, content)
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
        folded_tags = [each.casefold() for each in record.tags]
        texts = (record.slug, record.title, record.description, record.category, *folded_tags)
        if (
            (tag is None or tag.casefold() in folded_tags)
            and (category is None or record.category.casefold() == category.casefold())
            and text.casefold() in " ".join((*texts, content or "")).casefold()
        ):
            matches.append(record)
    return matches


def note_entries(transaction: Transaction, stored: Sequence[EntryRecord]) -> None:
    forget_entries(transaction, [record.slug for record in stored])
    transaction.insert(
        entries, [{**record._asdict(), "tags": list(record.tags)} for record in stored]
    )


def forget_entries(transaction: Transaction, slugs: Collection[str]) -> None:
    """Delete the rows of removed entries; keep their ratings."""
    transaction.delete(entries, transaction.is_in(entries.c.slug, slugs))


def rename_document(transaction: Transaction, kb_id: str, slug: str, to: str) -> None:
    """Rename an entry's document with its folder; keep id and ratings."""
    transaction.update(documents, documents.c.kb_id == kb_id, documents.c.uri == slug, uri=to)
    knowledge_bases.touch(transaction, kb_id)


def put_votes(transaction: Transaction, kb_id: str, entry_id: str, now: Sequence[Vote]) -> None:
    """Replace an entry's votes in the log with those of its folder.

    New votes are appended. If earlier votes were removed or inserted, all are written again,
    because search uses the last vote of each rater.
    """
    target = Target(TargetKind.ENTRY, entry_id)
    votes = rating_log.votes(transaction, kb_id, target.kind, [entry_id]).get(entry_id, {})
    logged = list(votes.values())
    if logged == list(now):
        return
    if logged != list(now[: len(logged)]):
        transaction.delete(ratings, transaction.is_in(ratings.c.id, votes))
        logged = []
    rating_log.add_votes(transaction, kb_id, target, now[len(logged) :])


def list_learned(transaction: Transaction) -> Mapping[str, Any]:
    return {row.folder: row for row in transaction.execute(sa.select(learned_folders))}


def note_learned(
    transaction: Transaction, folder: str, digest: str, slug: str, problem: str
) -> None:
    values = {"folder": folder, "digest": digest, "slug": slug, "problem": problem}
    transaction.put(learned_folders, [values])
