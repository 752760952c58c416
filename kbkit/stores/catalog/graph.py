"""What a rebuild of the graph reads. Functions of the caller's transaction.

Each chunk says by itself which relations it supports: its rows of `relation_evidence`, read again
when the names in it change. Only co-occurrence is of a whole knowledge base. Ends are the subjects
that stand in the text, whatever those were merged into.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa

from kbkit.models import DocumentState, EntityType, SubjectKind
from kbkit.stores.catalog import knowledge_schema
from kbkit.stores.catalog.database import Transaction
from kbkit.stores.catalog.knowledge_schema import (
    annotation_subjects,
    built_graphs,
    document_names,
    related_chunks,
    subjects,
)
from kbkit.stores.catalog.packing import in_parts
from kbkit.stores.catalog.schema import chunks, documents, knowledge_bases

CO_OCCURS = "co_occurs"
"""The relation that is counted over a whole knowledge base."""
_NONE_YET = -1
"""The version whose relations were read while those of none were."""


class Fact(NamedTuple):
    """A relation that a chunk supports.

    Attributes:
        seq: Of the chunk.
        source_kind: Of a `kbkit.models.TargetKind`, as text.
        source_id: Its id.
        name: Of the relation.
        target_kind: Likewise.
        target_id: Its id.
        weight: How much the chunk says so.
    """

    seq: int
    source_kind: str
    source_id: str
    name: str
    target_kind: str
    target_id: str
    weight: float


class ChunkPlace(NamedTuple):
    """Where a chunk stands: in which document, under which headings."""

    seq: int
    document_id: str
    heading_path: tuple[str, ...]
    anchor: str


class DefinedName(NamedTuple):
    """A name that a document gives; see `kbkit.models.Name`."""

    document_id: str
    name: str
    type: EntityType
    defines: bool
    anchor: str
    confirmed: bool


class DocumentFacts(NamedTuple):
    """What relations need of a document beside its chunks."""

    id: str
    uri: str
    title: str
    metadata: Mapping[str, Any]


def places(transaction: Transaction, kb_id: str) -> list[ChunkPlace]:
    """Where the chunks of a knowledge base stand, in order of their documents' URIs."""
    # documents apart: beside each chunk SQLite would walk through their text
    listed = sa.select(documents.c.id, documents.c.uri).where(
        documents.c.kb_id == kb_id, documents.c.state != DocumentState.GONE.value
    )
    uris: dict[str, str] = {row.id: row.uri for row in transaction.execute(listed)}
    query = sa.select(
        chunks.c.seq,
        chunks.c.document_id,
        chunks.c.heading_path,
        chunks.c.anchor,
        chunks.c.position,
    ).where(chunks.c.kb_id == kb_id)
    rows = [row for row in transaction.execute(query) if row.document_id in uris]
    rows.sort(key=lambda row: (uris[row.document_id], row.position))
    return [
        ChunkPlace(row.seq, row.document_id, tuple(row.heading_path), row.anchor) for row in rows
    ]


def mentions(transaction: Transaction, kb_id: str) -> dict[int, list[str]]:
    """Ids of the entities that stand in each chunk, in order; what was merged, as itself."""
    query = (
        sa.select(annotation_subjects.c.chunk_seq, annotation_subjects.c.subject_id)
        .join(subjects, subjects.c.id == annotation_subjects.c.subject_id)
        .join(chunks, chunks.c.seq == annotation_subjects.c.chunk_seq)
        .where(chunks.c.kb_id == kb_id, subjects.c.kind == SubjectKind.ENTITY.value)
        .distinct()
        .order_by(annotation_subjects.c.chunk_seq, annotation_subjects.c.subject_id)
    )
    found: dict[int, list[str]] = {}
    for seq, known in transaction.execute(query):
        found.setdefault(seq, []).append(known)
    return found


def entity_names(transaction: Transaction) -> dict[str, str]:
    """What the entities of a workspace are called, by id, other names included."""
    query = sa.select(subjects.c.id, subjects.c.name)
    rows = transaction.execute(query.where(subjects.c.kind == SubjectKind.ENTITY.value))
    return {row.id: row.name for row in rows}


def given_names(transaction: Transaction, kb_id: str) -> list[DefinedName]:
    """The names that documents of a knowledge base give, in order."""
    table = document_names.c
    query = sa.select(
        table.document_id, table.name, table.type, table.defines, table.anchor, table.confirmed
    )
    rows = transaction.execute(
        query.where(table.kb_id == kb_id).order_by(table.document_id, table.name)
    )
    return [
        DefinedName(
            row.document_id, row.name, EntityType(row.type), row.defines, row.anchor, row.confirmed
        )
        for row in rows
    ]


def document_facts(transaction: Transaction, kb_id: str) -> dict[str, DocumentFacts]:
    """The documents of a knowledge base, not gone, by id."""
    query = sa.select(
        documents.c.id, documents.c.uri, documents.c.title, documents.c.metadata
    ).where(documents.c.kb_id == kb_id, documents.c.state != DocumentState.GONE.value)
    return {row.id: DocumentFacts(*row) for row in transaction.execute(query)}


def digests(transaction: Transaction, kb_id: str) -> dict[int, str]:
    """With what each chunk was read whose relations are known."""
    query = sa.select(related_chunks.c.chunk_seq, related_chunks.c.digest)
    rows = transaction.execute(query.where(related_chunks.c.kb_id == kb_id))
    return {row.chunk_seq: row.digest for row in rows}


def texts(transaction: Transaction, seqs: Sequence[int]) -> dict[int, str]:
    """The texts of some chunks."""
    found: dict[int, str] = {}
    for part in in_parts(seqs):
        query = sa.select(chunks.c.seq, chunks.c.text).where(chunks.c.seq.in_(part))
        found |= {row.seq: row.text for row in transaction.execute(query)}
    return found


def waits(transaction: Transaction, kb_id: str) -> bool:
    """Whether a knowledge base is annotated, and changed since its relations were read."""
    gone = sa.select(documents.c.id).where(
        documents.c.kb_id == kb_id, documents.c.state == DocumentState.GONE.value
    )
    of_kb = sa.select(chunks.c.seq).where(
        chunks.c.kb_id == kb_id, chunks.c.document_id.not_in(gone)
    )
    said = sa.exists().where(knowledge_schema.annotations.c.chunk_seq == chunks.c.seq)
    if transaction.execute(of_kb.where(~said).limit(1)).first():
        return False
    read = sa.exists().where(related_chunks.c.chunk_seq == chunks.c.seq)
    same = built_version(transaction, kb_id) == version(transaction, kb_id)
    return not same or transaction.execute(of_kb.where(~read).limit(1)).first() is not None


def count(transaction: Transaction, kb_id: str) -> int:
    """How many chunks a knowledge base has."""
    query = sa.select(sa.func.count()).select_from(chunks).where(chunks.c.kb_id == kb_id)
    return int(transaction.execute(query).scalar_one())


def version(transaction: Transaction, kb_id: str) -> int:
    """What the version of a knowledge base is now."""
    query = sa.select(knowledge_bases.c.version).where(knowledge_bases.c.id == kb_id)
    return int(transaction.execute(query).scalar_one())


def built_version(transaction: Transaction, kb_id: str) -> int | None:
    """The version of a knowledge base whose relations were read; ``None`` if no build began."""
    query = sa.select(built_graphs.c.version).where(built_graphs.c.kb_id == kb_id)
    return transaction.execute(query).scalar()


def begin(transaction: Transaction, kb_ids: Sequence[str]) -> None:
    """Note that the first relations of knowledge bases are being read."""
    for kb_id in kb_ids:
        transaction.execute(built_graphs.insert().values(kb_id=kb_id, version=_NONE_YET))


def note_built(transaction: Transaction, read: Sequence[tuple[str, int]]) -> None:
    """Note which versions of knowledge bases have their relations read.

    Where they are to be read again (`forget_built`) since that began, nothing is noted.
    """
    for kb_id, version_ in read:
        own = built_graphs.c.kb_id == kb_id
        transaction.execute(built_graphs.update().where(own).values(version=version_))


def forget_built(transaction: Transaction, kb_id: str) -> None:
    """Have the relations of a knowledge base be read again: it is wanted otherwise."""
    transaction.execute(built_graphs.delete().where(built_graphs.c.kb_id == kb_id))
