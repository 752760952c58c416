"""Reads documents and chunks out of the catalog. Functions of the caller's transaction."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeVar
from urllib.parse import urlsplit

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray

from kbkit.errors import NotFoundError
from kbkit.globs import matches
from kbkit.models import Chunk, Document, DocumentState, DocumentType, Filters
from kbkit.stores.catalog.schema import chunks, documents, vectors

_T = TypeVar("_T")

Fetch = Callable[[str, tuple[Any, ...]], Iterable[tuple[Any, ...]]]

_VARIABLES = 5_000
"""Values bound in one statement; SQLite allows 32,766."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """What reranking reads of a chunk.

    Attributes:
        heading: Heading path without the document's title, on one line.
        terms: Analyzer terms, joined by spaces.
        length: Number of those terms.
    """

    seq: int
    document_id: str
    title: str
    heading: str
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


def neighbours(
    connection: sa.Connection, kb_id: str, chunk_id: str, before: int, after: int
) -> list[Chunk]:
    """A chunk between those that stand before and after it in its document.

    Raises:
        NotFoundError: There is no such chunk.
    """
    own = connection.execute(
        sa.select(chunks.c.document_id, chunks.c.position).where(
            chunks.c.id == chunk_id, chunks.c.kb_id == kb_id
        )
    ).first()
    if own is None:
        raise NotFoundError(f"no chunk with id {chunk_id!r}")
    rows = connection.execute(
        sa.select(*_CHUNK_COLUMNS)
        .where(
            chunks.c.document_id == own.document_id,
            chunks.c.position.between(own.position - before, own.position + after),
        )
        .order_by(chunks.c.position)
    )
    return [_chunk(row) for row in rows]


def folder_counts(connection: sa.Connection, kb_id: str, depth: int) -> dict[str, int]:
    """How many searched documents lie in each folder of their URIs, sorted by folder."""
    rows = connection.execute(
        sa.select(documents.c.uri).where(
            documents.c.kb_id == kb_id, documents.c.state != DocumentState.GONE.value
        )
    )
    found: Counter[str] = Counter()
    for row in rows:
        parts = _path(row.uri).split("/")[:-1]
        found.update("/".join(parts[:level]) for level in range(1, min(depth, len(parts)) + 1))
    return dict(sorted(found.items()))


def tag_counts(connection: sa.Connection, kb_id: str) -> dict[str, int]:
    """How many searched documents have each tag, the most used first."""
    rows = connection.exec_driver_sql(_TAGS, (kb_id, DocumentState.GONE.value))
    return {row[0]: row[1] for row in rows}


_TAGS = (
    "SELECT each.value, count(*) FROM documents d, json_each(d.tags) each"
    " WHERE d.kb_id = ? AND d.state != ? GROUP BY each.value ORDER BY count(*) DESC, each.value"
)


def get_chunks(fetch: Fetch, seqs: Sequence[int]) -> dict[int, tuple[Chunk, Document]]:
    """Chunks by ``seq``, each with its document (whose ``content`` is left empty: it is long).

    Every search ends with it, so rows come as SQLite gives them: SQLAlchemy's types take longer
    than all the rest.

    Args:
        fetch: Gives the rows of a SELECT, such as `Database.fetch` or a connection's
            ``exec_driver_sql``.
        seqs: Those that are gone are left out.
    """
    found_documents: dict[str, Document] = {}
    found: dict[int, tuple[Chunk, Document]] = {}
    for part in in_parts(seqs):
        marks = ",".join("?" * len(part))
        for seq, chunk_id, document_id, *rest in fetch(_HITS.format(marks), tuple(part)):
            position, start, end, text, heading_path, anchor, page = rest[:7]
            if document_id not in found_documents:
                uri, title, document_type, tags, metadata, state, fetched_at, digest = rest[7:]
                found_documents[document_id] = Document(
                    id=document_id,
                    uri=uri,
                    title=title,
                    content="",
                    document_type=DocumentType(document_type),
                    tags=tuple(json.loads(tags)),
                    metadata=json.loads(metadata),
                    state=DocumentState(state),
                    fetched_at=datetime.fromisoformat(fetched_at).replace(tzinfo=UTC),
                    content_hash=digest,
                )
            chunk = Chunk(
                id=chunk_id,
                document_id=document_id,
                position=position,
                start=start,
                end=end,
                text=text,
                heading_path=tuple(json.loads(heading_path)),
                anchor=anchor,
                page=page,
            )
            found[seq] = (chunk, found_documents[document_id])
    return found


_HITS = (
    "SELECT c.seq, c.id, c.document_id, c.position, c.start, c.end, c.text, c.heading_path,"
    " c.anchor, c.page, d.uri, d.title, d.document_type, d.tags, d.metadata, d.state,"
    " d.fetched_at, d.content_hash"
    " FROM chunks c JOIN documents d INDEXED BY documents_shown"
    " ON d.kb_id = c.kb_id AND d.id = c.document_id WHERE c.seq IN ({})"
)


def heading_text(title: str, heading_path: Sequence[str]) -> str:
    """A heading path on one line, without the document's title where it begins with that."""
    return " > ".join(heading_path[1:] if list(heading_path[:1]) == [title] else heading_path)


def candidates(
    connection: sa.Connection, kb_id: str, dimensions: int, seqs: Sequence[int]
) -> list[Candidate]:
    """What reranking reads of chunks, by ``seq``; those that are gone are left out."""
    rows: dict[int, Any] = {}
    for part in in_parts(seqs):
        found = connection.execute(
            sa.select(
                chunks.c.seq, chunks.c.document_id, documents.c.title, chunks.c.heading_path,
                chunks.c.terms, chunks.c.length, vectors.c.vector,
            )
            .join(vectors, vectors.c.chunk_seq == chunks.c.seq)
            .join(documents, documents.c.id == chunks.c.document_id)
            .where(chunks.c.kb_id == kb_id, chunks.c.seq.in_(part))
        )  # fmt: skip
        rows.update((row.seq, row) for row in found)
    there = [rows[seq] for seq in seqs if seq in rows]
    matrix = unpack([row.vector for row in there], dimensions)
    return [
        Candidate(
            row.seq, row.document_id, row.title, heading_text(row.title, row.heading_path),
            row.terms, row.length, matrix[i],
        )
        for i, row in enumerate(there)
    ]  # fmt: skip


def seqs_by_id(connection: sa.Connection, ids: Sequence[str]) -> dict[str, int]:
    """``seq`` of chunks by id; those that are gone are left out."""
    found: dict[str, int] = {}
    for part in in_parts(ids):
        rows = connection.execute(sa.select(chunks.c.id, chunks.c.seq).where(chunks.c.id.in_(part)))
        found.update((row.id, row.seq) for row in rows)
    return found


def sizes_of(connection: sa.Connection, document_ids: Collection[str]) -> dict[str, int]:
    """Number of chunks of documents, by id."""
    sizes: dict[str, int] = {}
    for part in in_parts(list(document_ids)):
        rows = connection.execute(
            sa.select(chunks.c.document_id, sa.func.count())
            .where(chunks.c.document_id.in_(part))
            .group_by(chunks.c.document_id)
        )
        sizes.update((row[0], row[1]) for row in rows)
    return sizes


def uris_of(connection: sa.Connection, document_ids: Collection[str]) -> dict[str, str]:
    """URIs of documents, by id."""
    found: dict[str, str] = {}
    for part in in_parts(list(document_ids)):
        rows = connection.execute(
            sa.select(documents.c.id, documents.c.uri).where(documents.c.id.in_(part))
        )
        found.update((row.id, row.uri) for row in rows)
    return found


def matching_documents(connection: sa.Connection, kb_id: str, filters: Filters) -> set[str]:
    """Ids of the documents that filters let through, their ratings left aside."""
    conditions = [documents.c.kb_id == kb_id]
    if filters.document_type:
        conditions.append(documents.c.document_type.in_(filters.document_type))
    if filters.state:
        conditions.append(documents.c.state.in_(filters.state))
    if filters.source:
        start = sa.func.substr(documents.c.uri, 1, len(filters.source))
        conditions.append(start == filters.source)
    if filters.after is not None:
        conditions.append(documents.c.fetched_at >= filters.after)
    if filters.before is not None:
        conditions.append(documents.c.fetched_at < filters.before)
    rows = connection.execute(
        sa.select(documents.c.id, documents.c.uri, documents.c.tags).where(*conditions)
    )
    tags = set(filters.tags)
    return {
        row.id
        for row in rows
        if tags.issubset(row.tags)
        and (not filters.path or matches(_path(row.uri), (filters.path,)))
    }


def _path(uri: str) -> str:
    """The path of a URI without query and fragment, or what stands behind its scheme."""
    try:
        return urlsplit(uri).path.lstrip("/")
    except ValueError:
        return uri


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
