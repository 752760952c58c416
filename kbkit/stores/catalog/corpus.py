"""Chunks and their vectors as search reads them, and vectors without chunks yet.

The vector of a chunk without a row in ``statement_vectors`` is made from its text. Pending vectors
are kept so that interrupted embedding is not repeated.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray

from kbkit.models import Chunk, Document
from kbkit.stores.catalog.database import Condition, Transaction, unpack
from kbkit.stores.catalog.reading import get_chunks
from kbkit.stores.catalog.schema import chunks, documents, embedded, vectors
from kbkit.stores.catalog.workspace_schema import annotations as _statements
from kbkit.stores.catalog.workspace_schema import statement_vectors as rows

LAST = 2**62
"""Greater than every ``chunks.seq``."""
_ROWS_AT_ONCE = 2_000
"""Chunks read at once, to limit memory."""


def seqs_by_id(transaction: Transaction, ids: Sequence[str]) -> dict[str, int]:
    """Map chunk ids to ``seq``; unknown ids are left out."""
    query = sa.select(chunks.c.id, chunks.c.seq).where(transaction.is_in(chunks.c.id, ids))
    return transaction.mapping(query)


def indexes(transaction: Transaction, kb_id: str) -> frozenset[str]:
    query = sa.select(documents.c.id).where(documents.c.kb_id == kb_id, documents.c.is_index)
    return frozenset(transaction.scalars(query))


def seqs_on_pages(transaction: Transaction, kb_id: str, pages: Collection[int]) -> list[int]:
    is_on_page = transaction.is_in(chunks.c.page, pages)
    query = sa.select(chunks.c.seq).where(chunks.c.kb_id == kb_id, is_on_page)
    return sorted(transaction.scalars(query))


def vectors_of(
    transaction: Transaction, dimensions: int, seqs: Sequence[int]
) -> NDArray[np.float32]:
    """Return vectors of existing chunks, shape ``(len(seqs), dimensions)``."""
    packed = _packed_vectors(transaction, seqs)
    return unpack([packed[seq] for seq in seqs], dimensions)


def _packed_vectors(transaction: Transaction, seqs: Sequence[int]) -> dict[int, bytes]:
    query = sa.select(vectors.c.chunk_seq, vectors.c.vector)
    return transaction.mapping(query.where(transaction.is_in(vectors.c.chunk_seq, seqs)))


def vectors_by_id(
    transaction: Transaction, dimensions: int, ids: Sequence[str]
) -> NDArray[np.float32]:
    seqs = seqs_by_id(transaction, ids)
    return vectors_of(transaction, dimensions, [seqs[id_] for id_ in ids])


class ChunkTerms(NamedTuple):
    """A chunk for the search index."""

    seq: int
    id: str
    document_id: str
    title: str
    heading_path: Sequence[str]
    terms: str
    length: int
    vector: bytes


def iter_indexed(
    transaction: Transaction, kb_id: str, *, after: int = 0, until: int = LAST
) -> Iterator[ChunkTerms]:
    """Iterate lazily over chunks with ``after < seq <= until``, by ``seq``."""
    table = chunks.c
    terms = documents.c.title, table.heading_path, table.terms, table.length
    query = (
        sa.select(table.seq, table.id, table.document_id, *terms, vectors.c.vector)
        .join(documents, documents.c.id == chunks.c.document_id)
        .join(vectors, vectors.c.chunk_seq == chunks.c.seq)
        .where(*_between(kb_id, after, until))
        .order_by(chunks.c.seq)
    )
    return map(ChunkTerms._make, transaction.execute(query).yield_per(_ROWS_AT_ONCE))


def chunk_seqs(
    transaction: Transaction, kb_id: str, *, after: int = 0, until: int = LAST
) -> NDArray[np.int64]:
    query = sa.select(chunks.c.seq).where(*_between(kb_id, after, until))
    seqs = transaction.scalars(query.order_by(chunks.c.seq))
    return np.fromiter(seqs, np.int64)


def _between(kb_id: str, after: int, until: int) -> tuple[Condition, ...]:
    return chunks.c.kb_id == kb_id, chunks.c.seq > after, chunks.c.seq <= until


def last_chunks(
    transaction: Transaction, kb_id: str, *, after: int = 0, until: int, limit: int
) -> list[tuple[int, str]]:
    """Return ``seq`` and id of the newest chunks in a range, newest first."""
    query = sa.select(chunks.c.seq, chunks.c.id).where(*_between(kb_id, after, until))
    rows = transaction.execute(query.order_by(chunks.c.seq.desc()).limit(limit))
    return [(row.seq, row.id) for row in rows]


def count_chunks(transaction: Transaction, kb_id: str, *, after: int = 0, until: int = LAST) -> int:
    return transaction.count(chunks, *_between(kb_id, after, until))


def some_chunks(transaction: Transaction, kb_id: str, limit: int) -> int:
    query = sa.select(chunks.c.seq).where(chunks.c.kb_id == kb_id).limit(limit)
    return transaction.count(query.subquery())


def titles(
    transaction: Transaction, kb_id: str, *, after: int = 0, until: int = LAST
) -> dict[str, str]:
    """Map document ids to titles; optionally only of documents with chunks in a range."""
    query = sa.select(documents.c.id, documents.c.title).where(documents.c.kb_id == kb_id)
    if after or until != LAST:
        document_ids = sa.select(chunks.c.document_id).where(*_between(kb_id, after, until))
        query = query.where(documents.c.id.in_(document_ids))
    return transaction.mapping(query)


def sample(
    transaction: Transaction, kb_id: str, dimensions: int, limit: int, seed: int
) -> tuple[list[tuple[Chunk, Document]], NDArray[np.float32]]:
    """Draw at most ``limit`` chunks with their documents (``content`` empty) and vectors."""
    all_seqs = chunk_seqs(transaction, kb_id)
    if len(all_seqs) > limit:
        drawn = np.random.default_rng(seed).choice(all_seqs, limit, replace=False)
        all_seqs = np.sort(drawn)
    seqs = all_seqs.tolist()
    packed = _packed_vectors(transaction, seqs)
    passages = get_chunks(transaction, seqs)
    valid = [seq for seq in seqs if seq in packed and seq in passages]
    return [passages[seq] for seq in valid], unpack([packed[seq] for seq in valid], dimensions)


CHUNK = "chunk"
"""Name of the chunk's own text in a recipe."""

EMBED_HASH = sa.func.coalesce(
    sa.select(rows.c.embed_hash)
    .where(rows.c.chunk_seq == chunks.c.seq)
    .correlate(chunks)
    .scalar_subquery(),
    chunks.c.embed_hash,
)
"""SQL expression: hash of the text from which a chunk's vector was made."""


class Source(NamedTuple):
    """Input of a chunk's vector: `text` is its name, ``""`` if annotations changed since."""

    id: str
    text: str
    embed_hash: str
    statements: tuple[str, ...]


def count_lacking_vectors(transaction: Transaction, kb_id: str, text: str) -> int:
    """Count chunks whose vectors are not made from ``text``."""
    return transaction.count(lacking(kb_id, text).subquery())


def lacking_vectors(transaction: Transaction, kb_id: str, text: str, limit: int) -> list[int]:
    return transaction.scalars(lacking(kb_id, text).limit(limit))


def vector_sources(transaction: Transaction, seqs: Sequence[int]) -> dict[int, Source]:
    source_of: dict[int, Source] = {}
    columns = _statements.c
    stated = sa.select(columns.chunk_seq, columns.normalized_text)
    stated = stated.where(transaction.is_in(columns.chunk_seq, seqs))
    texts = transaction.grouped(stated.order_by(columns.chunk_seq, columns.position))
    query = sa.select(chunks.c.seq, chunks.c.id, rows.c.text, EMBED_HASH.label("made_of"))
    query = query.outerjoin(rows, rows.c.chunk_seq == chunks.c.seq)
    for row in transaction.execute(query.where(transaction.is_in(chunks.c.seq, seqs))):
        text = CHUNK if row.text is None else row.text
        source_of[row.seq] = Source(row.id, text, row.made_of, tuple(texts.get(row.seq, ())))
    return source_of


def put_vectors(
    transaction: Transaction,
    kb_id: str,
    keys: Mapping[int, str],
    packed: Mapping[str, bytes],
    *,
    text: str,
    version: int,
) -> None:
    query = sa.select(rows.c.chunk_seq, rows.c.version)
    version_of = transaction.mapping(query.where(transaction.is_in(rows.c.chunk_seq, keys)))
    version_of |= {seq: version for seq, key in keys.items() if key in packed}
    values = [
        {"chunk_seq": seq, "kb_id": kb_id, "text": text, "embed_hash": key}
        | {"version": version_of.get(seq, 0)}
        for seq, key in keys.items()
    ]
    transaction.put(rows, values)
    changed = [{"chunk_seq": s, "vector": packed[k]} for s, k in keys.items() if k in packed]
    transaction.update_each(vectors, ["chunk_seq"], changed)


def outdate_vectors(transaction: Transaction, seqs: Collection[int]) -> None:
    transaction.update(rows, transaction.is_in(rows.c.chunk_seq, seqs), text="")


def count_changed_vectors(transaction: Transaction, kb_id: str, version: int) -> int:
    return transaction.count(rows, rows.c.kb_id == kb_id, rows.c.version > version)


def changed_vectors(transaction: Transaction, kb_id: str, version: int) -> dict[int, bytes]:
    """Return packed vectors that changed after a version, by ``chunks.seq``."""
    query = sa.select(vectors.c.chunk_seq, vectors.c.vector)
    query = query.join(rows, rows.c.chunk_seq == vectors.c.chunk_seq)
    return transaction.mapping(query.where(rows.c.kb_id == kb_id, rows.c.version > version))


def lacking(kb_id: str | sa.Column[str], text: str) -> sa.Select[tuple[int]]:
    if text == CHUNK:
        return sa.select(rows.c.chunk_seq).where(rows.c.kb_id == kb_id, rows.c.text != text)
    table = _statements.c
    has_vector = sa.exists().where(rows.c.chunk_seq == table.chunk_seq, rows.c.text == text)
    return sa.select(table.chunk_seq).where(table.kb_id == kb_id, table.position == 0, ~has_vector)


def stored_vectors(
    transaction: Transaction, kb_id: str, hashes: Collection[str]
) -> dict[str, bytes]:
    return transaction.mapping(
        sa.select(chunks.c.embed_hash, vectors.c.vector)
        .join(vectors, vectors.c.chunk_seq == chunks.c.seq)
        .where(
            chunks.c.kb_id == kb_id,
            transaction.is_in(chunks.c.embed_hash, hashes),
            chunks.c.embed_hash == EMBED_HASH,
        )
    )


def pending_vectors(
    transaction: Transaction, kb_id: str, embedder: str, hashes: Collection[str]
) -> dict[str, bytes]:
    query = sa.select(embedded.c.embed_hash, embedded.c.vector)
    is_wanted = transaction.is_in(embedded.c.embed_hash, hashes)
    return transaction.mapping(query.where(*_pending_of(kb_id, embedder), is_wanted))


def add_pending(
    transaction: Transaction, kb_id: str, embedder: str, packed: Mapping[str, bytes]
) -> None:
    rows = [
        {"kb_id": kb_id, "embedder": embedder, "embed_hash": key, "vector": vector}
        for key, vector in packed.items()
    ]
    transaction.put(embedded, rows, replace=False)  # another process may have stored some


def remove_pending(
    transaction: Transaction, kb_id: str, embedder: str, hashes: Collection[str]
) -> None:
    transaction.delete(
        embedded, *_pending_of(kb_id, embedder), transaction.is_in(embedded.c.embed_hash, hashes)
    )


def without_pending(
    transaction: Transaction, kb_id: str, embedder: str, *, after: int, limit: int
) -> list[Any]:
    """Return chunks without a pending vector, by ``seq``."""
    query = sa.select(chunks.c.seq, EMBED_HASH.label("embed_hash")).where(
        chunks.c.seq > after, *_without(kb_id, embedder)
    )
    return list(transaction.execute(query.order_by(chunks.c.seq).limit(limit)))


def count_without_pending(transaction: Transaction, kb_id: str, embedder: str) -> int:
    return transaction.count(chunks, *_without(kb_id, embedder))


def _without(kb_id: str, embedder: str) -> tuple[sa.ColumnElement[bool], ...]:
    pending = sa.exists().where(*_pending_of(kb_id, embedder), embedded.c.embed_hash == EMBED_HASH)
    return chunks.c.kb_id == kb_id, ~pending


def take_over(transaction: Transaction, kb_id: str, embedder: str, keep: str = "") -> None:
    """Replace all chunk vectors with the pending ones; those of the embedder ``keep`` stay pending.

    The caller makes sure that no chunk lacks one, sets the embedder and starts a new collection.
    """
    is_own = embedded.c.embed_hash == EMBED_HASH, chunks.c.seq == vectors.c.chunk_seq
    query = sa.select(embedded.c.vector).select_from(embedded, chunks)
    vector = query.where(*_pending_of(kb_id, embedder), *is_own).scalar_subquery()
    seqs = sa.select(chunks.c.seq).where(chunks.c.kb_id == kb_id)
    if keep:
        _keep(transaction, kb_id, keep)
    transaction.update(vectors, vectors.c.chunk_seq.in_(seqs), vector=vector)
    transaction.delete(embedded, embedded.c.kb_id == kb_id, embedded.c.embedder != keep)


def _keep(transaction: Transaction, kb_id: str, embedder: str) -> None:
    pending = sa.select(embedded.c.embed_hash).where(*_pending_of(kb_id, embedder))
    of_kb = chunks.c.kb_id == kb_id
    first = sa.select(sa.func.min(chunks.c.seq)).where(of_kb).group_by(EMBED_HASH)
    query = sa.select(sa.literal(kb_id), sa.literal(embedder), EMBED_HASH, vectors.c.vector)
    query = query.join(vectors, vectors.c.chunk_seq == chunks.c.seq)
    query = query.where(chunks.c.seq.in_(first), EMBED_HASH.not_in(pending))
    names = ["kb_id", "embedder", "embed_hash", "vector"]
    transaction.execute(embedded.insert().from_select(names, query))


def _pending_of(kb_id: str, embedder: str) -> tuple[sa.ColumnElement[bool], ...]:
    return embedded.c.kb_id == kb_id, embedded.c.embedder == embedder
