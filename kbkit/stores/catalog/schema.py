"""SQLAlchemy tables of the catalog."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    DateTime,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    TypeDecorator,
    UniqueConstraint,
)
from sqlalchemy.engine import Dialect

HEAD = "0027"
"""Revision of the newest migration."""
OLDEST = "0024"
"""Revision that can be migrated; no release had another."""


Int64 = Integer().with_variant(BigInteger(), "postgresql")
"""64-bit integer; SQLite numbers rows only in columns of type INTEGER."""


class UtcDateTime(TypeDecorator[datetime]):
    """An aware UTC time; SQLite stores no time zone."""

    impl = DateTime
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        return None if value is None else value.astimezone(UTC).replace(tzinfo=None)

    def process_result_value(self, value: Any, dialect: Dialect) -> datetime | None:
        return None if value is None else value.replace(tzinfo=UTC)


class Json(TypeDecorator[Any]):
    """JSON values of one shape; reading any other value raises `ValueError`."""

    impl = JSON
    cache_ok = True

    def __init__(self, shape: type, *, optional: bool = False) -> None:
        super().__init__(none_as_null=True)
        self.shape = shape
        self.optional = optional

    def process_result_value(self, value: Any, dialect: Dialect) -> Any:
        return value if value is None and self.optional else check_shape(value, self.shape)


def check_shape(value: Any, shape: type) -> Any:
    wrong = not isinstance(value, shape) or value is None
    if wrong or (shape is list and not all(isinstance(each, str) for each in value)):
        raise ValueError("JSON of another shape")
    return value


metadata = MetaData()


def required_columns(kind: Any, *names: str) -> list[Column[Any]]:
    return [Column(name, kind, nullable=False) for name in names]


def reference(name: str, target: str, *, primary_key: bool = False) -> Column[Any]:
    kind = Int64 if target in ("chunks.seq", "relations.id", "runs.id") else String
    key = ForeignKey(target, ondelete="CASCADE")
    return Column(name, kind, key, nullable=False, primary_key=primary_key)


knowledge_bases = Table(
    "knowledge_bases",
    metadata,
    Column("id", String, primary_key=True),
    Column("name", String, nullable=False, unique=True),
    Column("description", Text, nullable=False),
    Column("config", Json(dict), nullable=False),
    Column("embedder", String, nullable=False),
    Column("dimensions", Int64, nullable=False),
    Column("collection", String, nullable=False, unique=True),
    *required_columns(UtcDateTime, "created_at", "updated_at"),
    # increases with every committed change of documents or chunks, so that caches can be renewed
    Column("version", Int64, nullable=False, default=0),
    # largest chunks.seq in the Chroma collection
    Column("applied_seq", Int64, nullable=False, default=0),
    # revision of the analyzer that produced the terms
    Column("analyzer", Int64, nullable=False, server_default="0"),
    # fingerprints of the embedders of the searched summary vectors and of those in preparation
    Column("summary_embedder", String, nullable=False, server_default=""),
    Column("summary_model", String, nullable=False, server_default=""),
    # increases when searched vectors change without a change of documents
    Column("summaries_version", Int64, nullable=False, server_default="0"),
    # when the knowledge base was moved to the trash; empty otherwise
    Column("deleted_at", UtcDateTime),
)

name_uses = Table(
    "name_uses",
    metadata,
    # how many knowledge bases a name has had; never deleted, so no id is used twice
    Column("name", String, primary_key=True),
    Column("times", Int64, nullable=False),
)

sources = Table(
    "sources",
    metadata,
    Column("id", String, primary_key=True),
    reference("kb_id", "knowledge_bases.id"),
    *required_columns(String, "key", "type"),
    Column("spec", Json(dict), nullable=False),
    Column("base", Text, nullable=False),
    # from the recipe: deleted when the recipe no longer names it
    Column("from_recipe", Boolean, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    # replaces a local path in URIs, so that they do not reveal it
    Column("name", Text, nullable=False, server_default=""),
    # whether a refresh reads the source
    Column("enabled", Boolean, nullable=False, server_default=sa.true()),
    UniqueConstraint("kb_id", "key"),
)

runs = Table(
    "runs",
    metadata,
    Column("id", Int64, primary_key=True, autoincrement=True),
    reference("kb_id", "knowledge_bases.id"),
    reference("source_id", "sources.id"),
    Column("started_at", UtcDateTime, nullable=False),
    # empty for running and killed runs
    Column("finished_at", UtcDateTime),
    Column("report", Json(dict, optional=True)),
    Index("runs_by_source", "source_id", "id"),
    sqlite_autoincrement=True,
)

pages = Table(
    "pages",
    metadata,
    reference("source_id", "sources.id", primary_key=True),
    Column("url", String, primary_key=True),
    reference("run_id", "runs.id"),
    Column("depth", Int64, nullable=False),
    *required_columns(String, "etag", "last_modified"),
    Column("links", Json(list), nullable=False),
    Column("document_uri", String, nullable=False),
    Column("location", String, nullable=False, server_default=""),
    Column("canonical", String, nullable=False, server_default=""),
    Column("outcome", String, nullable=False),
    Column("reason", Text, nullable=False),
    Column("visited_at", UtcDateTime, nullable=False),
)

documents = Table(
    "documents",
    metadata,
    Column("id", String, primary_key=True),
    reference("kb_id", "knowledge_bases.id"),
    Column("source_id", String, ForeignKey("sources.id", ondelete="SET NULL")),
    Column("run_id", Int64),
    Column("uri", String, nullable=False),
    *required_columns(Text, "title", "content"),
    Column("document_type", String, nullable=False),
    Column("tags", Json(list), nullable=False),
    Column("metadata", Json(dict), nullable=False),
    Column("state", String, nullable=False),
    Column("fetched_at", UtcDateTime, nullable=False),
    # hash of title, content, type, tags, metadata and chunking; if equal, nothing is stored
    Column("content_hash", String, nullable=False),
    # labels by a person override those of the source; empty without labels
    Column("given_type", String),
    Column("given_tags", Json(list, optional=True)),
    # one line
    Column("description", Text, nullable=False, server_default=""),
    # mostly links, so search ranks it last
    Column("is_index", Boolean),
    UniqueConstraint("kb_id", "uri"),
    Index("documents_by_source", "source_id"),
    # rows have state and type after the text, which is slow to skip if long
    Index("documents_by_type", "kb_id", "state", "document_type"),
    Index("documents_by_index", "kb_id", "is_index", "id"),
    # covers all columns that hits and filters read, so that SQLite does not read the text;
    # PostgreSQL stores long texts apart and cannot index JSON
    Index(
        "documents_shown",
        *("kb_id", "id", "uri", "title", "document_type", "tags", "state", "fetched_at"),
        *("content_hash", "metadata", "description"),
    ).ddl_if(dialect="sqlite"),
)

deleted_documents = Table(
    "deleted_documents",
    metadata,
    # the trash; when it is emptied, documents of sources stay without content, so that no refresh
    # restores them
    Column("id", String, primary_key=True),
    reference("kb_id", "knowledge_bases.id"),
    # no foreign key: the source may be deleted before the document is restored
    Column("source_id", String),
    Column("uri", String, nullable=False),
    *required_columns(Text, "title", "content"),
    Column("document_type", String, nullable=False),
    Column("tags", Json(list), nullable=False),
    Column("metadata", Json(dict), nullable=False),
    Column("given_type", String),
    Column("given_tags", Json(list, optional=True)),
    Column("deleted_at", UtcDateTime, nullable=False),
    UniqueConstraint("kb_id", "uri"),
)

chunks = Table(
    "chunks",
    metadata,
    # never reused, so that greater numbers are not in Chroma yet
    Column("seq", Int64, primary_key=True, autoincrement=True),
    Column("id", String, nullable=False, unique=True),
    reference("kb_id", "knowledge_bases.id"),
    reference("document_id", "documents.id"),
    *required_columns(Int64, "position", "start", "end"),
    # the document's content[start:end]; slicing a long page for each hit would take longer than
    # the search
    Column("text", Text, nullable=False),
    Column("heading_path", Json(list), nullable=False),
    Column("anchor", String, nullable=False),
    Column("page", Int64),
    # analyzer terms of title, heading path and text, joined by spaces
    Column("terms", Text, nullable=False),
    Column("length", Int64, nullable=False),
    # hash of the embedder's input; equal hashes mean equal vectors
    Column("embed_hash", String, nullable=False),
    Index("chunks_by_document", "document_id", "position"),
    Index("chunks_by_kb", "kb_id", "seq", "length"),
    Index("chunks_by_embed_hash", "kb_id", "embed_hash"),
    sqlite_autoincrement=True,
)

vectors = Table(
    "vectors",
    metadata,
    reference("chunk_seq", "chunks.seq", primary_key=True),
    # float16, little endian
    Column("vector", LargeBinary, nullable=False),
)

outbox = Table(
    "outbox",
    metadata,
    Column("id", Int64, primary_key=True, autoincrement=True),
    reference("kb_id", "knowledge_bases.id"),
    # empty for a deletion
    Column("chunk_seq", Int64),
    Column("chunk_id", String, nullable=False),
    Index("outbox_by_kb", "kb_id", "id"),
    sqlite_autoincrement=True,
)

removed_chunks = Table(
    "removed_chunks",
    metadata,
    Column("id", Int64, primary_key=True, autoincrement=True),
    reference("kb_id", "knowledge_bases.id"),
    # empty where older entries were deleted
    Column("chunk_seq", Int64),
    Index("removed_chunks_by_kb", "kb_id", "id"),
    sqlite_autoincrement=True,
)

dropped_collections = Table(
    "dropped_collections",
    metadata,
    # collections of deleted knowledge bases that Chroma still has to drop
    Column("name", String, primary_key=True),
)

ratings = Table(
    "ratings",
    metadata,
    Column("id", Int64, primary_key=True, autoincrement=True),
    reference("kb_id", "knowledge_bases.id"),
    # no foreign key: a rating outlives its chunk, which may come back under the same id
    *required_columns(String, "target", "target_type"),
    Column("score", Int64, nullable=False),
    Column("query", Text, nullable=False),
    Column("rater", String, nullable=False),
    Column("note", Text, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    Index("ratings_by_target", "kb_id", "target"),
    sqlite_autoincrement=True,
)

rating_totals = Table(
    "rating_totals",
    metadata,
    reference("kb_id", "knowledge_bases.id", primary_key=True),
    # id of a chunk or a document
    Column("target", String, primary_key=True),
    # number of raters, and the mean of their last ratings
    Column("raters", Int64, nullable=False),
    Column("average", Float, nullable=False),
)

embedded = Table(
    "embedded",
    metadata,
    # vectors without chunks yet: of a document that is being stored, or of the next embedder
    reference("kb_id", "knowledge_bases.id", primary_key=True),
    Column("embedder", String, primary_key=True),
    Column("embed_hash", String, primary_key=True),
    # float16, little endian
    Column("vector", LargeBinary, nullable=False),
)

summaries = Table(
    "summaries",
    metadata,
    # the next ingest adds missing summaries
    reference("document_id", "documents.id", primary_key=True),
    reference("kb_id", "knowledge_bases.id"),
    Column("text", Text, nullable=False),
    # revision of the summary format
    Column("revision", Int64, nullable=False),
    # hash of the embedder's input
    Column("embed_hash", String, nullable=False),
    Index("summaries_by_kb", "kb_id"),
    # first `summaries_version` of the knowledge base with this row
    Column("version", Int64, nullable=False, server_default="0"),
    Index("summaries_by_version", "kb_id", "version"),
)

summary_vectors = Table(
    "summary_vectors",
    metadata,
    # keyed by the embedded text, so that equal texts are embedded once
    reference("kb_id", "knowledge_bases.id", primary_key=True),
    Column("embedder", String, primary_key=True),
    Column("embed_hash", String, primary_key=True),
    # float16, little endian
    Column("vector", LargeBinary, nullable=False),
    # first `summaries_version` of the knowledge base with this row
    Column("version", Int64, nullable=False, server_default="0"),
    Index("summary_vectors_by_version", "kb_id", "version"),
)

expansions = Table(
    "expansions",
    metadata,
    # text by a language model, part of the summary while the document's text is unchanged
    reference("document_id", "documents.id", primary_key=True),
    reference("kb_id", "knowledge_bases.id"),
    # hash of the title and content that the model read
    Column("text_hash", String, nullable=False),
    # name of the model and revision of the prompt
    Column("model", String, nullable=False),
    Column("summary", Text, nullable=False),
    Column("questions", Json(list), nullable=False),
    Index("expansions_by_kb", "kb_id"),
)

question_vectors = Table(
    "question_vectors",
    metadata,
    # questions with a well-rated chunk, case and white space folded; the ratings decide which
    # of them are learned, and for which chunks
    reference("kb_id", "knowledge_bases.id", primary_key=True),
    Column("question", Text, primary_key=True),
    # fingerprint of the embedder
    Column("embedder", String, nullable=False),
    # float16, little endian
    Column("vector", LargeBinary, nullable=False),
)


def _encoders(name: str) -> Table:
    return Table(
        name,
        metadata,
        reference("kb_id", "knowledge_bases.id", primary_key=True),
        Column("embedder", String, nullable=False),
        Column("fitted_at", UtcDateTime, nullable=False),
        # knowledge_bases.version and the number of chunks when it was fitted
        Column("version", Int64, nullable=False),
        Column("chunks", Int64, nullable=False),
        # joined by spaces
        Column("terms", Text, nullable=False),
        # float16, little endian, one row per term
        Column("vectors", LargeBinary, nullable=False),
        # choice and quality of the fit
        Column("report", Json(dict), nullable=False),
    )


# one fitted to chunk vectors, one to the summary embedder's vectors of short texts
query_encoders = _encoders("query_encoders")
summary_encoders = _encoders("summary_encoders")
