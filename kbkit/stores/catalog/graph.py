"""Input for rebuilding the graph.

Evidence belongs to a chunk and is read again when the names in it change; only co-occurrence is
counted over a whole knowledge base. Ends of relations are the subjects before merges.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import sqlalchemy as sa

from kbkit import models
from kbkit.models import DocumentState, EntityType, SubjectKind, Target, TargetKind
from kbkit.stores.catalog import entities, workspace_schema
from kbkit.stores.catalog import ratings as rating_log
from kbkit.stores.catalog.database import Transaction, alive
from kbkit.stores.catalog.schema import chunks, documents, knowledge_bases
from kbkit.stores.catalog.workspace_schema import (
    annotation_subjects,
    built_graphs,
    document_names,
    related_chunks,
    subjects,
)

CO_OCCURS = "co_occurs"
_NONE_YET = -1
"""Version before the first relations were read."""


class ChunkRelation(NamedTuple):
    """A relation that a chunk supports; `source_kind` is a `kbkit.models.TargetKind`."""

    seq: int
    source_kind: str
    source_id: str
    name: str
    target_kind: str
    target_id: str
    weight: float


class ChunkPlace(NamedTuple):
    """Document and headings of a chunk."""

    seq: int
    document_id: str
    heading_path: tuple[str, ...]
    anchor: str


class DefinedName(NamedTuple):
    """A name in a document; see `kbkit.models.Name`."""

    document_id: str
    name: str
    type: EntityType
    defines: bool
    anchor: str = ""
    confirmed: bool = True


class DocumentFacts(NamedTuple):
    """Fields of a document from which relations are read."""

    id: str
    uri: str
    title: str
    metadata: Mapping[str, Any]


def places(transaction: Transaction, kb_id: str) -> list[ChunkPlace]:
    """List the places of chunks, ordered by document URI."""
    # two queries: a join would read the text of the document for each chunk
    live_documents = sa.select(documents.c.id, documents.c.uri).where(*alive(kb_id))
    uris: dict[str, str] = transaction.mapping(live_documents)
    place = (chunks.c[name] for name in ChunkPlace._fields)
    query = sa.select(*place, chunks.c.position).where(chunks.c.kb_id == kb_id)
    rows = [row for row in transaction.execute(query) if row.document_id in uris]
    rows.sort(key=lambda row: (uris[row.document_id], row.position))
    return [
        ChunkPlace(row.seq, row.document_id, tuple(row.heading_path), row.anchor) for row in rows
    ]


def entity_names(transaction: Transaction) -> dict[str, str]:
    query = sa.select(subjects.c.id, subjects.c.name)
    return transaction.mapping(query.where(subjects.c.kind == SubjectKind.ENTITY.value))


def given_names(transaction: Transaction, kb_id: str) -> list[DefinedName]:
    table = document_names.c
    query = sa.select(*(table[name] for name in DefinedName._fields)).where(table.kb_id == kb_id)
    rows = transaction.execute(query.order_by(table.document_id, table.name))
    types = {kind.value: kind for kind in EntityType}
    return [DefinedName(id_, name, types[kind], *rest) for id_, name, kind, *rest in rows]


def document_facts(transaction: Transaction, kb_id: str) -> dict[str, DocumentFacts]:
    columns = (documents.c[name] for name in DocumentFacts._fields)
    query = sa.select(*columns).where(*alive(kb_id))
    return {row.id: DocumentFacts(*row) for row in transaction.execute(query)}


def digests(transaction: Transaction, kb_id: str) -> dict[int, str]:
    query = sa.select(related_chunks.c.chunk_seq, related_chunks.c.digest)
    return transaction.mapping(query.where(related_chunks.c.kb_id == kb_id))


def texts(transaction: Transaction, seqs: Sequence[int]) -> dict[int, str]:
    query = sa.select(chunks.c.seq, chunks.c.text).where(transaction.is_in(chunks.c.seq, seqs))
    return transaction.mapping(query)


def waits(transaction: Transaction, kb_id: str) -> bool:
    """Whether annotations changed since relations were read."""
    gone_ids = sa.select(documents.c.id).where(
        documents.c.kb_id == kb_id, documents.c.state == DocumentState.GONE.value
    )
    of_kb = sa.select(chunks.c.seq).where(
        chunks.c.kb_id == kb_id, chunks.c.document_id.not_in(gone_ids)
    )
    annotated = sa.exists().where(workspace_schema.annotations.c.chunk_seq == chunks.c.seq)
    if transaction.execute(of_kb.where(~annotated).limit(1)).first():
        return False
    is_read = sa.exists().where(related_chunks.c.chunk_seq == chunks.c.seq)
    version = sa.select(knowledge_bases.c.version).where(knowledge_bases.c.id == kb_id)
    is_built = built_version(transaction, kb_id) == transaction.execute(version).scalar()
    return not is_built or transaction.execute(of_kb.where(~is_read).limit(1)).first() is not None


def built_version(transaction: Transaction, kb_id: str) -> int | None:
    """Return the version whose relations were read; ``None`` if no build started."""
    query = sa.select(built_graphs.c.version).where(built_graphs.c.kb_id == kb_id)
    return transaction.execute(query).scalar()


def begin(transaction: Transaction, kb_ids: Sequence[str]) -> None:
    """Record that the first build of knowledge bases started."""
    transaction.insert(built_graphs, [{"kb_id": id_, "version": _NONE_YET} for id_ in kb_ids])


def note_built(transaction: Transaction, read: Sequence[tuple[str, int]]) -> None:
    """Record the versions whose relations were read, unless `forget_built` ran meanwhile."""
    for kb_id, version_ in read:
        transaction.update(built_graphs, built_graphs.c.kb_id == kb_id, version=version_)


def forget_built(transaction: Transaction, kb_id: str) -> None:
    """Let the next build read all relations of a knowledge base again."""
    transaction.delete(built_graphs, built_graphs.c.kb_id == kb_id)


class BadQuery(NamedTuple):
    """A query without a well-rated answer."""

    query: str
    best: int
    raters: int
    chunk: str


def named_entities(
    transaction: Transaction, kb_ids: Collection[str]
) -> tuple[list[models.Entity], Mapping[str, set[str]]]:
    """Return entities of knowledge bases and those made by hand, with counts, and documents.

    Index pages are not counted.
    """
    query = (
        sa.select(
            annotation_subjects.c.subject_id,
            chunks.c.document_id,
            sa.func.count(sa.distinct(annotation_subjects.c.chunk_seq)).label("chunks"),
        )
        .join(chunks, chunks.c.seq == annotation_subjects.c.chunk_seq)
        .where(chunks.c.kb_id.in_(list(kb_ids)), chunks.c.document_id.not_in(_lists(kb_ids)))
        .group_by(annotation_subjects.c.subject_id, chunks.c.document_id)
    )
    aliases = entities.aliases_of(transaction)
    in_chunks: Counter[str] = Counter()
    in_documents: defaultdict[str, set[str]] = defaultdict(set)
    for id_, document_id, count in transaction.execute(query):
        in_chunks[aliases.get(id_, id_)] += count
        in_documents[aliases.get(id_, id_)].add(document_id)
    ids = sorted(in_documents.keys() | entities.ids_by_hand(transaction))
    counted = [
        replace(entity, chunks=in_chunks[entity.id], documents=len(in_documents.get(entity.id, ())))
        for entity in entities.entities_of(transaction, ids, counted=False)
    ]
    return counted, in_documents


def headings(transaction: Transaction, kb_ids: Collection[str]) -> set[str]:
    # as text, because PostgreSQL does not compare JSON
    path = sa.cast(chunks.c.heading_path, sa.Text)
    of_chunks = sa.select(path).where(chunks.c.kb_id.in_(list(kb_ids)))
    paths = map(json.loads, transaction.scalars(of_chunks.distinct()))
    titles = sa.select(documents.c.title).where(documents.c.kb_id.in_(list(kb_ids)))
    return {*transaction.scalars(titles), *(heading for path in paths for heading in path)}


def _lists(kb_ids: Collection[str]) -> sa.Select[tuple[str]]:
    return sa.select(documents.c.id).where(
        documents.c.kb_id.in_(list(kb_ids)), documents.c.is_index.is_(sa.true())
    )


def nameless_documents(
    transaction: Transaction, kb_ids: Collection[str]
) -> list[tuple[str, str, int]]:
    """Return id, title and number of chunks of documents that mention no entity."""
    mention = annotation_subjects.c
    of_chunk = mention.chunk_seq == chunks.c.seq, subjects.c.id == mention.subject_id
    is_named = sa.exists().where(*of_chunk, subjects.c.kind == SubjectKind.ENTITY.value)
    with_names = sa.select(chunks.c.document_id).where(chunks.c.kb_id.in_(list(kb_ids)), is_named)
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
    return [(id_, title, count) for id_, title, count in transaction.execute(query)]


def bad_queries(transaction: Transaction, kb_ids: Collection[str], limit: int) -> list[BadQuery]:
    """Return queries whose best rating is at most ``limit``; each rater's last rating counts."""
    last: dict[str, dict[tuple[Target, str], int]] = {}
    for kb_id in kb_ids:
        for rating in rating_log.list_ratings(transaction, kb_id):
            if rating.query:
                of_query = last.setdefault(rating.query, {})
                of_query[rating.target, rating.rater] = rating.score
    return [
        BadQuery(
            query,
            max(scores.values()),
            len({rater for _, rater in scores}),
            next((target.id for target, _ in scores if target.kind is TargetKind.CHUNK), ""),
        )
        for query, scores in last.items()
        if max(scores.values()) <= limit
    ]


def first_chunks(transaction: Transaction, kind: TargetKind, id_: str, limit: int) -> list[str]:
    query = sa.select(chunks.c.id).join(knowledge_bases, knowledge_bases.c.id == chunks.c.kb_id)
    query = query.where(knowledge_bases.c.deleted_at.is_(None))
    if kind is TargetKind.DOCUMENT:
        query = query.where(chunks.c.document_id == id_).order_by(chunks.c.position)
    else:
        subject = subjects.alias("own")
        ids = sa.select(subject.c.id).where((subject.c.id == id_) | (subject.c.alias_of == id_))
        annotated = sa.select(annotation_subjects.c.chunk_seq).where(
            annotation_subjects.c.subject_id.in_(ids)
        )
        # short passages first: they are mostly about the entity
        query = query.where(chunks.c.seq.in_(annotated)).order_by(chunks.c.length, chunks.c.id)
    return transaction.scalars(query.limit(limit))
