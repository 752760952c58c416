"""What gaps are found by: how often entities are named, and where. Functions of a transaction."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from typing import NamedTuple

import sqlalchemy as sa

from kbkit.models import DocumentState, SubjectKind, TargetKind
from kbkit.stores.catalog.database import Transaction
from kbkit.stores.catalog.knowledge_schema import (
    annotation_subjects,
    entities,
    relations,
    subjects,
)
from kbkit.stores.catalog.schema import chunks, documents, knowledge_bases, ratings


class NamedEntity(NamedTuple):
    """An entity with how often it is named."""

    id: str
    name: str
    type: str
    description: str
    by_hand: bool
    chunks: int
    documents: int


class NamelessDocument(NamedTuple):
    """A document in which no entity stands."""

    id: str
    title: str
    chunks: int


class BadQuery(NamedTuple):
    """A query whose best answer was rated badly.

    Attributes:
        query: As it was asked.
        best: The best rating.
        raters: How many people rated.
        chunk: A chunk that was rated for it.
    """

    query: str
    best: int
    raters: int
    chunk: str


def named_entities(
    transaction: Transaction, kb_ids: Collection[str]
) -> tuple[list[NamedEntity], Mapping[str, set[str]]]:
    """The entities of some knowledge bases, and those that people made, with their counts.

    Returns:
        Them, and the documents, no lists of links, in which each of them stands, by its id.
    """
    told = (
        sa.select(
            annotation_subjects.c.subject_id,
            chunks.c.document_id,
            sa.func.count(sa.distinct(annotation_subjects.c.chunk_seq)).label("chunks"),
        )
        .join(chunks, chunks.c.seq == annotation_subjects.c.chunk_seq)
        .where(chunks.c.kb_id.in_(list(kb_ids)), chunks.c.document_id.not_in(_lists(kb_ids)))
        .group_by(annotation_subjects.c.subject_id, chunks.c.document_id)
    )
    query = (
        sa.select(
            subjects.c.id,
            subjects.c.name,
            subjects.c.alias_of,
            entities.c.type,
            entities.c.description,
            entities.c.by_hand,
            entities.c.deleted_at,
        )
        .outerjoin(entities, entities.c.subject_id == subjects.c.id)
        .where(subjects.c.kind == SubjectKind.ENTITY.value)
    )
    rows = {row.id: row for row in transaction.execute(query)}
    in_chunks: Counter[str] = Counter()
    in_documents: dict[str, set[str]] = {}
    for known, document_id, count in transaction.execute(told):  # other names count for their own
        if known in rows:
            canonical = rows[known].alias_of or known
            in_chunks[canonical] += count
            in_documents.setdefault(canonical, set()).add(document_id)
    found = [
        NamedEntity(
            row.id, row.name, row.type or "", row.description or "", bool(row.by_hand),
            in_chunks[row.id], len(in_documents.get(row.id, ())),
        )
        for row in rows.values()
        if row.alias_of is None
        and row.deleted_at is None
        and (row.by_hand or row.id in in_documents)
    ]  # fmt: skip
    return found, in_documents


def defining_documents(transaction: Transaction) -> dict[str, set[str]]:
    """The documents that say what an entity is, by its id."""
    query = (
        sa.select(relations.c.source_id, relations.c.target_id)
        .where(relations.c.name == "defined_in", relations.c.deleted_at.is_(None))
        .where(relations.c.weight > 0)
    )
    found: dict[str, set[str]] = {}
    for known, document_id in transaction.execute(query):
        found.setdefault(known, set()).add(document_id)
    return found


def headings(transaction: Transaction, kb_ids: Collection[str]) -> set[str]:
    """The headings of some knowledge bases, and the titles of their documents."""
    of_chunks = sa.select(chunks.c.heading_path).where(chunks.c.kb_id.in_(list(kb_ids)))
    paths = transaction.execute(of_chunks.distinct()).scalars()
    titles = sa.select(documents.c.title).where(documents.c.kb_id.in_(list(kb_ids)))
    return {*transaction.execute(titles).scalars(), *(each for path in paths for each in path)}


def _lists(kb_ids: Collection[str]) -> sa.Select[tuple[str]]:
    """Documents that are lists of links."""
    return sa.select(documents.c.id).where(
        documents.c.kb_id.in_(list(kb_ids)), documents.c.is_index.is_(sa.true())
    )


def nameless_documents(transaction: Transaction, kb_ids: Collection[str]) -> list[NamelessDocument]:
    """The documents, not gone and no lists of links, in which no entity stands."""
    named = (
        sa.exists()
        .where(annotation_subjects.c.chunk_seq == chunks.c.seq)
        .where(subjects.c.id == annotation_subjects.c.subject_id)
        .where(subjects.c.kind == SubjectKind.ENTITY.value)
    )
    with_names = sa.select(chunks.c.document_id).where(chunks.c.kb_id.in_(list(kb_ids)), named)
    query = (
        sa.select(documents.c.id, documents.c.title, sa.func.count(chunks.c.seq))
        .join(chunks, chunks.c.document_id == documents.c.id)
        .where(
            documents.c.kb_id.in_(list(kb_ids)),
            documents.c.state != DocumentState.GONE.value,
            documents.c.id.not_in(_lists(kb_ids)),
            documents.c.id.not_in(with_names),
        )
        .group_by(documents.c.id, documents.c.title)
    )
    return [NamelessDocument(*row) for row in transaction.execute(query)]


def bad_queries(transaction: Transaction, kb_ids: Collection[str], most: int) -> list[BadQuery]:
    """The queries for which nothing was rated above a score, as people last rated."""
    of_one = (ratings.c.target, ratings.c.query, ratings.c.rater)
    newest = (ratings.c.created_at.desc(), ratings.c.id.desc())
    last = (
        sa.select(
            ratings.c.id, sa.func.row_number().over(partition_by=of_one, order_by=newest).label("n")
        )
        .where(ratings.c.kb_id.in_(list(kb_ids)), ratings.c.query != "")
        .subquery()
    )
    query = sa.select(ratings.c.query, ratings.c.score, ratings.c.rater, ratings.c.target,
                      ratings.c.target_type).join(last, last.c.id == ratings.c.id)  # fmt: skip
    query = query.where(last.c.n == 1).order_by(ratings.c.created_at, ratings.c.id)
    found: dict[str, list[tuple[int, str, str]]] = {}
    for row in transaction.execute(query):
        chunk = row.target if row.target_type == TargetKind.CHUNK.value else ""
        found.setdefault(row.query, []).append((row.score, row.rater, chunk))
    return [
        BadQuery(
            query_,
            max(score for score, _, _ in rated),
            len({rater for _, rater, _ in rated}),
            next((chunk for _, _, chunk in rated if chunk), ""),
        )
        for query_, rated in found.items()
        if max(score for score, _, _ in rated) <= most
    ]


def first_chunks(transaction: Transaction, kind: TargetKind, known: str, limit: int) -> list[str]:
    """Where to start: ids of chunks that name an entity most plainly, or begin a document."""
    query = sa.select(chunks.c.id).join(
        knowledge_bases, knowledge_bases.c.id == chunks.c.kb_id
    ).where(knowledge_bases.c.deleted_at.is_(None))  # fmt: skip
    if kind is TargetKind.DOCUMENT:
        query = query.where(chunks.c.document_id == known).order_by(chunks.c.position)
    else:
        own = subjects.alias("own")
        ids = sa.select(own.c.id).where((own.c.id == known) | (own.c.alias_of == known))
        said = sa.select(annotation_subjects.c.chunk_seq).where(
            annotation_subjects.c.subject_id.in_(ids)
        )
        # a short passage says most of it
        query = query.where(chunks.c.seq.in_(said)).order_by(chunks.c.length, chunks.c.id)
    return list(transaction.execute(query.limit(limit)).scalars())
