"""Read documents and chunks. All functions use the caller's transaction."""

import hashlib
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from itertools import chain
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import sqlalchemy as sa

from kbkit import models
from kbkit.errors import NotFoundError
from kbkit.models.documents import image_names_of, version_of
from kbkit.paths import matches
from kbkit.stores.catalog import workspace_schema
from kbkit.stores.catalog.database import (
    CHUNK_COLUMNS,
    DOCUMENT_COLUMNS,
    Condition,
    Transaction,
    alive,
)
from kbkit.stores.catalog.schema import chunks, deleted_documents, documents, knowledge_bases
from kbkit.stores.catalog.workspace_schema import annotation_subjects, entries, subjects
from kbkit.text.markdown.structure import passage_ends

_TYPES = {str(each): each for each in models.DocumentType}
_STATES = {str(each): each for each in models.DocumentState}


def document_of(row: Sequence[Any]) -> models.Document:
    """Return the document of a row of `DOCUMENT_COLUMNS`."""
    values = [*row]
    values[4], values[5], values[7] = _TYPES[row[4]], tuple(row[5]), _STATES[row[7]]
    return models.Document(*values)


def _chunk(row: Sequence[Any]) -> models.Chunk:
    values = [*row]
    values[6] = tuple(row[6])
    return models.Chunk(*values)


def get_document(transaction: Transaction, kb_id: str, document_id: str) -> models.Document:
    is_named = (documents.c.id == document_id) | (documents.c.uri == document_id)
    row = transaction.first(DOCUMENT_COLUMNS, documents.c.kb_id == kb_id, is_named)
    if row is None:
        raise NotFoundError(f"no document with id or URI {document_id!r}")
    return document_of(row)


def beginnings(transaction: Transaction, kb_id: str) -> list[str]:
    """Return the beginnings of the documents with the lowest ids, a pseudo-random sample."""
    text = sa.func.substr(documents.c.content, 1, 1_000)
    query = sa.select(text).where(*alive(kb_id)).order_by(documents.c.id).limit(200)
    return transaction.scalars(query)


def image_names(transaction: Transaction) -> set[str]:
    names: set[str] = set()
    for table in (documents, deleted_documents):
        column = table.c.metadata
        query = sa.select(column).where(sa.cast(column, sa.Text).contains('"images"'))
        for metadata in transaction.scalars(query):
            names.update(image_names_of(metadata).values())
    return names


def iter_documents(
    transaction: Transaction,
    kb_id: str,
    *,
    after: str = "",
    among: Collection[str] | None = None,
    content: bool = True,
    in_trash: bool = True,
) -> Iterator[models.Document]:
    """Iterate over documents by URI, from after a URI; ``among`` are document ids."""
    columns = DOCUMENT_COLUMNS if content else _WITHOUT_CONTENT
    query = sa.select(*columns).where(documents.c.kb_id == kb_id, documents.c.uri > after)
    if not in_trash:
        query = query.where(documents.c.state != models.DocumentState.GONE.value)
    for row in transaction.execute(query.order_by(documents.c.uri)).yield_per(100):
        if among is None or row.id in among:
            yield document_of(row)


def documents_of(transaction: Transaction, document_ids: Collection[str]) -> list[models.Document]:
    query = sa.select(*DOCUMENT_COLUMNS).where(transaction.is_in(documents.c.id, document_ids))
    return [document_of(row) for row in transaction.execute(query)]


def kind_of(transaction: Transaction, kb_id: str, target: str) -> str | None:
    """Return ``chunk`` or ``document`` for an id; ``None`` for neither."""
    for kind, table in (("chunk", chunks), ("document", documents)):
        if transaction.first([table.c.id], table.c.id == target, table.c.kb_id == kb_id):
            return kind
    return None


def find_entry(transaction: Transaction, name: str) -> str | None:
    is_match = sa.or_(entries.c.id == name, entries.c.slug == name)
    query = sa.select(entries.c.id).where(is_match).order_by(entries.c.slug != name)
    return transaction.execute(query.limit(1)).scalar()


def later_than(place: tuple[str, int]) -> Condition:
    """Select chunks after a document URI and position; all for an empty URI."""
    uri, position = place
    if not uri:
        return sa.true()
    same_document = sa.and_(documents.c.uri == uri, chunks.c.position > position)
    return sa.or_(documents.c.uri > uri, same_document)


def iter_chunks(
    transaction: Transaction,
    kb_id: str,
    document_id: str | None = None,
    *,
    after: tuple[str, int] = ("", -1),
    limit: int | None = None,
) -> Iterator[models.Chunk]:
    query = sa.select(*CHUNK_COLUMNS).join(documents, documents.c.id == chunks.c.document_id)
    query = query.where(chunks.c.kb_id == kb_id, later_than(after))
    query = query.order_by(documents.c.uri, chunks.c.position)
    if document_id is not None:
        query = query.where(chunks.c.document_id == document_id)
    for row in transaction.execute(query.limit(limit)).yield_per(500):
        yield _chunk(row)


def neighbours(
    transaction: Transaction, kb_id: str, chunk_id: str, before: int, after: int
) -> list[models.Chunk]:
    """Return a chunk with its neighbours in the document."""
    columns = chunks.c.document_id, chunks.c.position
    place = transaction.first(columns, chunks.c.id == chunk_id, chunks.c.kb_id == kb_id)
    if place is None:
        raise NotFoundError(f"no chunk with id {chunk_id!r}")
    is_near = chunks.c.position.between(place.position - before, place.position + after)
    query = sa.select(*CHUNK_COLUMNS).where(chunks.c.document_id == place.document_id, is_near)
    return [_chunk(row) for row in transaction.execute(query.order_by(chunks.c.position))]


def places_by_id(
    transaction: Transaction, chunk_ids: Collection[str]
) -> dict[str, tuple[int, str]]:
    """Map chunk ids, in order, to ``seq`` and the id of the knowledge base."""
    query = (
        sa.select(chunks.c.id, chunks.c.seq, chunks.c.kb_id)
        .join(knowledge_bases, knowledge_bases.c.id == chunks.c.kb_id)
        .where(knowledge_bases.c.deleted_at.is_(None), chunks.c.id.in_(list(chunk_ids)))
    )
    place_of = {row.id: (row.seq, row.kb_id) for row in transaction.execute(query)}
    return {chunk_id: place_of[chunk_id] for chunk_id in chunk_ids if chunk_id in place_of}


def get_chunks(
    transaction: Transaction, seqs: Sequence[int]
) -> dict[int, tuple[models.Chunk, models.Document]]:
    """Return existing chunks by ``seq``, with their documents (``content`` empty)."""
    by_id: dict[str, models.Document] = {}
    passages: dict[int, tuple[models.Chunk, models.Document]] = {}
    for row in transaction.rows_in(_PASSAGES, chunks.c.seq, seqs):
        if row[2] not in by_id:
            by_id[row[2]] = document_of(row[10:])
        passages[row[0]] = (_chunk(row[1:10]), by_id[row[2]])
    return passages


def list_documents(transaction: Transaction, kb_id: str) -> list[models.Document]:
    """List documents by URI; ``content`` is empty."""
    query = sa.select(*_WITHOUT_CONTENT).where(documents.c.kb_id == kb_id)
    # sorted here, so that SQLite reads the covering index and not the texts
    rows = sorted(transaction.execute(query), key=lambda row: row.uri)
    return [document_of(row) for row in rows]


def given_descriptions(transaction: Transaction, kb_id: str) -> Sequence[sa.Row[str, str, str]]:
    """List documents that have a description in their metadata: id, that, and the shown one."""
    given = sa.type_coerce(documents.c.metadata, sa.JSON)["description"].as_string()
    query = sa.select(documents.c.id, given, documents.c.description)
    return transaction.execute(query.where(documents.c.kb_id == kb_id, given.is_not(None))).all()


_WITHOUT_CONTENT = [
    sa.literal("").label("content") if column.name == "content" else column
    for column in DOCUMENT_COLUMNS
]


_PASSAGES = sa.select(chunks.c.seq, *CHUNK_COLUMNS, *_WITHOUT_CONTENT).join(
    documents, sa.and_(documents.c.kb_id == chunks.c.kb_id, documents.c.id == chunks.c.document_id)
)


def searched_uris(transaction: Transaction, kb_id: str) -> list[str]:
    query = sa.select(documents.c.uri).where(*alive(kb_id))
    return sorted(transaction.scalars(query))  # without texts, as above


def folder_counts(transaction: Transaction, kb_id: str, depth: int) -> dict[str, int]:
    counts: Counter[str] = Counter()
    for uri in searched_uris(transaction, kb_id):
        parts = uri_path(uri).split("/")[:-1]
        counts.update("/".join(parts[:level]) for level in range(1, min(depth, len(parts)) + 1))
    return dict(sorted(counts.items()))


def uri_path(uri: str) -> str:
    try:
        return urlsplit(uri).path.lstrip("/")
    except ValueError:
        return uri


_VERSION = sa.type_coerce(documents.c.metadata, sa.JSON)["version"].label("version")
"""Version in a source's metadata, as a JSON value."""


def matching_documents(transaction: Transaction, kb_id: str, filters: models.Filters) -> set[str]:
    """Return the ids of matching documents; filters on ratings are ignored."""
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
    query = sa.select(documents.c.id).where(*conditions)
    if filters.path or filters.version:
        query = query.add_columns(documents.c.uri)
    if filters.tags:
        query = query.add_columns(documents.c.tags)
    if filters.version:
        query = query.add_columns(_VERSION)
    tags = set(filters.tags)
    return {
        row.id
        for row in transaction.execute(query)
        if (not filters.version or _version(row) == filters.version)
        and (not tags or tags.issubset(row.tags))
        and (not filters.path or matches(uri_path(row.uri), (filters.path,)))
    }


def versions(transaction: Transaction, kb_id: str) -> set[str]:
    rows = transaction.execute(sa.select(documents.c.uri, _VERSION).where(*alive(kb_id)))
    return {_version(row) for row in rows} - {""}


def _version(row: Any) -> str:
    return version_of(row.uri, {"version": row.version})


def tag_counts(transaction: Transaction, kb_id: str) -> dict[str, int]:
    """Count searchable documents by tag, the most frequent first."""
    listed = list_documents(transaction, kb_id)
    tags = (each.tags for each in listed if each.state is not models.DocumentState.GONE)
    counts = Counter(chain.from_iterable(tags))
    return dict(sorted(counts.items(), key=lambda each: (-each[1], each[0])))


def uris_of(transaction: Transaction, document_ids: Collection[str]) -> dict[str, str]:
    query = sa.select(documents.c.id, documents.c.uri)
    return transaction.mapping(query.where(transaction.is_in(documents.c.id, document_ids)))


def places_of(transaction: Transaction, seqs: Sequence[int]) -> dict[int, tuple[str, str]]:
    query = sa.select(chunks.c.seq, chunks.c.anchor, chunks.c.text)
    rows = transaction.execute(query.where(transaction.is_in(chunks.c.seq, seqs)))
    return {seq: (anchor, passage_ends(text)) for seq, anchor, text in rows}


def chunk_lengths(transaction: Transaction, kb_id: str) -> list[int]:
    query = sa.select(chunks.c.end - chunks.c.start).where(chunks.c.kb_id == kb_id)
    return transaction.scalars(query)


def heading_text(title: str, heading_path: Sequence[str]) -> str:
    return " > ".join(heading_path[1:] if list(heading_path[:1]) == [title] else heading_path)


_rows = workspace_schema.annotations


class NamedSubject(NamedTuple):
    """A name of a subject; `root` is the id of the main name."""

    id: str
    kind: models.SubjectKind
    key: str
    name: str
    root: str


def state(transaction: Transaction, kb_id: str) -> str:
    """Return a digest of annotations, gazetteer, aliases and edited entities."""
    of_kb = _rows.c.kb_id == kb_id
    seq, place = _rows.c.chunk_seq, _rows.c.position + 1
    total = sa.cast(sa.func.sum(seq * place), sa.BigInteger)
    frames = sa.select(_rows.c.annotator, _rows.c.frame, sa.func.count(), total).where(of_kb)
    gazetteer = workspace_schema.gazetteers
    packed_names = sa.select(gazetteer.c.names).where(gazetteer.c.kb_id == kb_id)
    aliases = sa.select(subjects.c.id, subjects.c.alias_of).where(subjects.c.alias_of > "")
    edited = workspace_schema.entities
    by_hand = sa.select(edited.c.subject_id, edited.c.updated_at).where(edited.c.by_hand)
    parts = [
        sorted(map(tuple, transaction.execute(frames.group_by(_rows.c.annotator, _rows.c.frame)))),
        transaction.scalars(packed_names),
        sorted(map(tuple, transaction.execute(aliases))),
        sorted((row[0], row[1].isoformat()) for row in transaction.execute(by_hand)),
    ]
    return hashlib.blake2b(repr(parts).encode(), digest_size=16).hexdigest()


def graph_state(transaction: Transaction, kb_id: str) -> str:
    """Return a digest of a knowledge base's graph.

    Evidence from other knowledge bases, which changes only weights, does not change it.
    """
    table = workspace_schema.relations.c
    version = sa.select(knowledge_bases.c.version).where(knowledge_bases.c.id == kb_id)
    by_hand = sa.select(table.id, table.seen_at).where(table.by_hand).order_by(table.id)
    parts = [
        state(transaction, kb_id),
        transaction.execute(version).scalar(),
        [(row[0], row[1].isoformat()) for row in transaction.execute(by_hand)],
    ]
    return hashlib.blake2b(repr(parts).encode(), digest_size=16).hexdigest()


def iter_frames(transaction: Transaction, kb_id: str) -> Iterator[tuple[int, models.StatementType]]:
    query = sa.select(_rows.c.chunk_seq, _rows.c.frame).where(_rows.c.kb_id == kb_id)
    query = query.where(_rows.c.frame != "").order_by(_rows.c.chunk_seq, _rows.c.position)
    for seq, frame in transaction.execute(query):
        yield seq, models.StatementType(frame)


def mentions(transaction: Transaction, kb_id: str) -> dict[str, list[int]]:
    query = sa.select(annotation_subjects.c.subject_id, annotation_subjects.c.chunk_seq).distinct()
    query = query.join(chunks, chunks.c.seq == annotation_subjects.c.chunk_seq)
    seqs_of = transaction.grouped(query.where(chunks.c.kb_id == kb_id))
    for seqs in seqs_of.values():
        seqs.sort()
    return seqs_of


def names(transaction: Transaction) -> dict[str, NamedSubject]:
    table = subjects.c
    query = sa.select(table.id, table.kind, table.key, table.name, table.alias_of)
    kinds = {kind.value: kind for kind in models.SubjectKind}
    return {
        row.id: NamedSubject(row.id, kinds[row.kind], row.key, row.name, row.alias_of or row.id)
        for row in transaction.execute(query)
    }
