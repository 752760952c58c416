"""Reads documents and chunks out of the catalog. Functions of the caller's transaction."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray

from kbkit.errors import NotFoundError
from kbkit.models import Chunk, Document, DocumentState, DocumentType
from kbkit.stores.schema import chunks, documents, vectors

_T = TypeVar("_T")

_VARIABLES = 5_000
"""Values bound in one statement; SQLite allows 32,766."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """What reranking reads of a chunk."""

    seq: int
    id: str
    document_id: str
    title: str
    terms: str
    length: int
    vector: NDArray[np.float32]


def pack(matrix: NDArray[np.float32]) -> list[bytes]:
    """Vectors as the catalog keeps them: float16, little endian."""
    return [row.tobytes() for row in matrix.astype("<f2")]


def unpack(blobs: Sequence[bytes], dimensions: int) -> NDArray[np.float32]:
    """Vectors as they are computed with, shape ``(len(blobs), dimensions)``."""
    flat = np.frombuffer(b"".join(blobs), dtype="<f2")
    return flat.reshape(len(blobs), dimensions).astype(np.float32)


_DOCUMENT_COLUMNS = [
    documents.c[name]
    for name in (
        "id", "uri", "title", "content", "document_type", "tags", "metadata", "state",
        "fetched_at", "content_hash",
    )
]  # fmt: skip


def _document(row: Any) -> Document:
    values = dict(row._mapping)
    values["document_type"] = DocumentType(values["document_type"])
    values["state"] = DocumentState(values["state"])
    values["tags"] = tuple(values["tags"])
    return Document(**values)


def get_document(connection: sa.Connection, kb_id: str, document_id: str) -> Document:
    """Look a document up by id or by URI.

    Raises:
        NotFoundError: There is no such document.
    """
    row = connection.execute(
        sa.select(*_DOCUMENT_COLUMNS).where(
            documents.c.kb_id == kb_id,
            sa.or_(documents.c.id == document_id, documents.c.uri == document_id),
        )
    ).first()
    if row is None:
        raise NotFoundError(f"no document with id or URI {document_id!r}")
    return _document(row)


def iter_documents(
    connection: sa.Connection, kb_id: str, *, gone: bool = True
) -> Iterator[Document]:
    """All documents of a knowledge base in order of URI, read as they are asked for."""
    query = sa.select(*_DOCUMENT_COLUMNS).where(documents.c.kb_id == kb_id)
    if not gone:
        query = query.where(documents.c.state != DocumentState.GONE.value)
    for row in connection.execute(query.order_by(documents.c.uri)).yield_per(100):
        yield _document(row)


_CHUNK_COLUMNS = [
    chunks.c[name]
    for name in (
        "id", "document_id", "position", "start", "end", "text", "heading_path", "anchor", "page",
    )
]  # fmt: skip


def _chunk(row: Any) -> Chunk:
    values = dict(row._mapping)
    values["heading_path"] = tuple(values["heading_path"])
    return Chunk(**values)


def kind_of(connection: sa.Connection, kb_id: str, target: str) -> str | None:
    """Whether an id is that of a ``chunk`` or a ``document``; ``None`` for neither."""
    for kind, table in (("chunk", chunks), ("document", documents)):
        query = sa.select(table.c.id).where(table.c.id == target, table.c.kb_id == kb_id)
        if connection.execute(query).first():
            return kind
    return None


def iter_chunks(
    connection: sa.Connection, kb_id: str, document_id: str | None = None
) -> Iterator[Chunk]:
    """Chunks of a knowledge base or of one document, in document order."""
    query = (
        sa.select(*_CHUNK_COLUMNS)
        .join(documents, documents.c.id == chunks.c.document_id)
        .where(chunks.c.kb_id == kb_id)
        .order_by(documents.c.uri, chunks.c.position)
    )
    if document_id is not None:
        query = query.where(chunks.c.document_id == document_id)
    for row in connection.execute(query).yield_per(500):
        yield _chunk(row)


def get_chunks(connection: sa.Connection, seqs: Sequence[int]) -> dict[int, tuple[Chunk, Document]]:
    """Chunks by ``seq``, each with its document (whose ``content`` is left empty: it is long)."""
    columns = [sa.literal("").label("content") if c.name == "content" else c
               for c in _DOCUMENT_COLUMNS]  # fmt: skip
    found_documents: dict[str, Document] = {}
    found: dict[int, tuple[Chunk, Document]] = {}
    for part in in_parts(list(seqs)):
        rows = connection.execute(
            sa.select(chunks.c.seq, *_CHUNK_COLUMNS).where(chunks.c.seq.in_(part))
        ).all()
        wanted = {row.document_id for row in rows} - found_documents.keys()
        for row in connection.execute(sa.select(*columns).where(documents.c.id.in_(wanted))):
            found_documents[row.id] = _document(row)
        for row in rows:
            values = dict(row._mapping)
            seq = values.pop("seq")
            values["heading_path"] = tuple(values["heading_path"])
            found[seq] = (Chunk(**values), found_documents[row.document_id])
    return found


def candidates(
    connection: sa.Connection,
    kb_id: str,
    dimensions: int,
    *,
    seqs: Iterable[int] = (),
    ids: Iterable[str] = (),
) -> list[Candidate]:
    """What reranking reads of chunks, given by ``seq`` or by id; those that are gone are left out.

    A chunk that is named both ways comes once.
    """
    rows: dict[int, Any] = {}
    for column, keys in ((chunks.c.seq, list(seqs)), (chunks.c.id, list(ids))):
        for part in in_parts(keys):
            found = connection.execute(
                sa.select(
                    chunks.c.seq, chunks.c.id, chunks.c.document_id, documents.c.title,
                    chunks.c.terms, chunks.c.length, vectors.c.vector,
                )
                .join(vectors, vectors.c.chunk_seq == chunks.c.seq)
                .join(documents, documents.c.id == chunks.c.document_id)
                .where(chunks.c.kb_id == kb_id, column.in_(part))
            )  # fmt: skip
            rows.update((row.seq, row) for row in found)
    ordered = [rows[seq] for seq in sorted(rows)]
    matrix = unpack([row.vector for row in ordered], dimensions)
    return [
        Candidate(row.seq, row.id, row.document_id, row.title, row.terms, row.length, matrix[i])
        for i, row in enumerate(ordered)
    ]


def corpus_size(connection: sa.Connection, kb_id: str) -> tuple[int, int]:
    """Number of chunks, and of the terms of all of them."""
    row = connection.execute(
        sa.select(sa.func.count(), sa.func.coalesce(sa.func.sum(chunks.c.length), 0)).where(
            chunks.c.kb_id == kb_id
        )
    ).one()
    return row[0], row[1]


def in_parts(values: Sequence[_T]) -> Iterator[Sequence[_T]]:
    """Parts of a list, each short enough for the variables of one statement."""
    for start in range(0, len(values), _VARIABLES):
        yield values[start : start + _VARIABLES]
