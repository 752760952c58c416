"""SQLAlchemy tables of the catalog.

Lexical indexes (one FTS5 table a knowledge base) are made by `kbkit.stores.sqlite.transaction`.
"""

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
"""The oldest revision that is migrated; no release had an older one."""


Int64 = Integer().with_variant(BigInteger(), "postgresql")
"""Whole numbers have 64 bits everywhere; SQLite calls them so, and numbers rows by no other."""


class UtcDateTime(TypeDecorator[datetime]):
    """An aware UTC time; SQLite itself keeps no time zone."""

    impl = DateTime
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        return None if value is None else value.astimezone(UTC).replace(tzinfo=None)

    def process_result_value(self, value: Any, dialect: Dialect) -> datetime | None:
        return None if value is None else value.replace(tzinfo=UTC)


class Json(TypeDecorator[Any]):
    """JSON values of one shape; others are damage, and are refused where they are read."""

    impl = JSON
    cache_ok = True

    def __init__(self, shape: type, *, optional: bool = False, none_as_null: bool = False) -> None:
        super().__init__(none_as_null=none_as_null)
        self.shape = shape
        self.optional = optional

    def process_result_value(self, value: Any, dialect: Dialect) -> Any:
        """The value, if it is of the shape."""
        return value if value is None and self.optional else checked_shape(value, self.shape)


def checked_shape(value: Any, shape: type) -> Any:
    """A JSON value of a shape that `Json` knows."""
    wrong = not isinstance(value, shape) or value is None
    if wrong or (shape is list and not all(isinstance(each, str) for each in value)):
        raise ValueError("JSON of another shape")
    return value


metadata = MetaData()


def _kb(*, primary_key: bool = False) -> Column[str]:
    return Column(
        "kb_id",
        String,
        ForeignKey("knowledge_bases.id", ondelete="CASCADE"),
        nullable=False,
        primary_key=primary_key,
    )


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
    Column("created_at", UtcDateTime, nullable=False),
    Column("updated_at", UtcDateTime, nullable=False),
    # counts every committed change of documents and chunks, so that caches know when to renew
    Column("version", Int64, nullable=False, default=0),
    # largest chunks.seq that the Chroma collection holds
    Column("applied_seq", Int64, nullable=False, default=0),
    # revision of the analyzer that made its terms
    Column("analyzer", Int64, nullable=False, server_default="0"),
    # fingerprints of the embedder of the summary vectors that are searched, and of the next one
    Column("summary_embedder", String, nullable=False, server_default=""),
    Column("summary_model", String, nullable=False, server_default=""),
    # counts changes of the vectors that are searched, which no change of documents brought
    Column("summaries_version", Int64, nullable=False, server_default="0"),
    # when it was put into the trash; empty for one that is there
    Column("deleted_at", UtcDateTime),
)

name_uses = Table(
    "name_uses",
    metadata,
    # how many knowledge bases have been made under a name; never forgotten, so no id comes twice
    Column("name", String, primary_key=True),
    Column("times", Integer, nullable=False),
)

sources = Table(
    "sources",
    metadata,
    Column("id", String, primary_key=True),
    _kb(),
    Column("key", String, nullable=False),
    Column("type", String, nullable=False),
    Column("spec", Json(dict), nullable=False),
    Column("base", Text, nullable=False),
    # named by the recipe, so that it goes when the recipe no longer names it
    Column("from_recipe", Boolean, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    # what a place on disk is called in URIs, which say nothing of where it is on this machine
    Column("name", Text, nullable=False, server_default=""),
    # whether a refresh reads it
    Column("enabled", Boolean, nullable=False, server_default=sa.true()),
    UniqueConstraint("kb_id", "key"),
)

runs = Table(
    "runs",
    metadata,
    Column("id", Int64, primary_key=True, autoincrement=True),
    _kb(),
    Column("source_id", String, ForeignKey("sources.id", ondelete="CASCADE"), nullable=False),
    Column("started_at", UtcDateTime, nullable=False),
    # empty while the run goes on, and for ever when it was killed
    Column("finished_at", UtcDateTime),
    Column("report", Json(dict, optional=True)),
    Index("runs_by_source", "source_id", "id"),
    sqlite_autoincrement=True,
)

pages = Table(
    "pages",
    metadata,
    Column("source_id", String, ForeignKey("sources.id", ondelete="CASCADE"), primary_key=True),
    Column("url", String, primary_key=True),
    Column("run_id", Int64, ForeignKey("runs.id", ondelete="CASCADE"), nullable=False),
    Column("depth", Int64, nullable=False),
    Column("etag", String, nullable=False),
    Column("last_modified", String, nullable=False),
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
    _kb(),
    Column("source_id", String, ForeignKey("sources.id", ondelete="SET NULL")),
    Column("run_id", Int64),
    Column("uri", String, nullable=False),
    Column("title", Text, nullable=False),
    Column("content", Text, nullable=False),
    Column("document_type", String, nullable=False),
    Column("tags", Json(list), nullable=False),
    Column("metadata", Json(dict), nullable=False),
    Column("state", String, nullable=False),
    Column("fetched_at", UtcDateTime, nullable=False),
    # of title, content, type, tags, metadata and chunking: equal hashes, nothing to do
    Column("content_hash", String, nullable=False),
    # what a person said of it, which holds whatever its source says; empty where nothing was said
    Column("given_type", String),
    Column("given_tags", Json(list, optional=True, none_as_null=True)),
    # what it is, in a line
    Column("description", Text, nullable=False, server_default=""),
    # mostly links, so that it answers only when nothing else does; empty where an older kbkit,
    # which described none, stored it
    Column("is_index", Boolean),
    UniqueConstraint("kb_id", "uri"),
    Index("documents_by_source", "source_id"),
    # state and type come behind the text, which may be long, in a row
    Index("documents_by_type", "kb_id", "state", "document_type"),
    Index("documents_by_index", "kb_id", "is_index", "id"),
    # all that hits and filters read, so that SQLite need not walk through the text; PostgreSQL
    # keeps long texts apart, and compares no JSON
    Index(
        "documents_shown",
        *("kb_id", "id", "uri", "title", "document_type", "tags", "state", "fetched_at"),
        *("content_hash", "metadata", "description"),
    ).ddl_if(dialect="sqlite"),
)

deleted_documents = Table(
    "deleted_documents",
    metadata,
    # documents in the trash, with all that bringing them back takes; without content once the
    # trash was emptied, so that a source which still has them does not bring them back
    Column("id", String, primary_key=True),
    _kb(),
    # no foreign key: it may be gone when the document comes back
    Column("source_id", String),
    Column("uri", String, nullable=False),
    Column("title", Text, nullable=False),
    Column("content", Text, nullable=False),
    Column("document_type", String, nullable=False),
    Column("tags", Json(list), nullable=False),
    Column("metadata", Json(dict), nullable=False),
    Column("given_type", String),
    Column("given_tags", Json(list, optional=True, none_as_null=True)),
    Column("deleted_at", UtcDateTime, nullable=False),
    UniqueConstraint("kb_id", "uri"),
)

chunks = Table(
    "chunks",
    metadata,
    # never used again, so that "newer than" is "not yet in Chroma"
    Column("seq", Int64, primary_key=True, autoincrement=True),
    Column("id", String, nullable=False, unique=True),
    _kb(),
    Column("document_id", String, ForeignKey("documents.id", ondelete="CASCADE"), nullable=False),
    Column("position", Int64, nullable=False),
    Column("start", Int64, nullable=False),
    Column("end", Int64, nullable=False),
    # equals the document's content[start:end]; kept, since slicing a long page for each hit
    # costs more than the search itself
    Column("text", Text, nullable=False),
    Column("heading_path", Json(list), nullable=False),
    Column("anchor", String, nullable=False),
    Column("page", Int64),
    # analyzer terms of title, heading path and text, joined by spaces
    Column("terms", Text, nullable=False),
    Column("length", Int64, nullable=False),
    # of what the embedder read: equal hashes, equal vectors
    Column("embed_hash", String, nullable=False),
    Index("chunks_by_document", "document_id", "position"),
    Index("chunks_by_kb", "kb_id", "seq", "length"),
    Index("chunks_by_embed_hash", "kb_id", "embed_hash"),
    sqlite_autoincrement=True,
)

vectors = Table(
    "vectors",
    metadata,
    Column("chunk_seq", Int64, ForeignKey("chunks.seq", ondelete="CASCADE"), primary_key=True),
    # float16, little endian
    Column("vector", LargeBinary, nullable=False),
)

outbox = Table(
    "outbox",
    metadata,
    Column("id", Int64, primary_key=True, autoincrement=True),
    _kb(),
    # empty for a deletion: the chunk is no more
    Column("chunk_seq", Int64),
    Column("chunk_id", String, nullable=False),
    Index("outbox_by_kb", "kb_id", "id"),
    sqlite_autoincrement=True,
)

removed_chunks = Table(
    "removed_chunks",
    metadata,
    Column("id", Int64, primary_key=True, autoincrement=True),
    _kb(),
    # empty where older entries were forgotten
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
    _kb(),
    # no foreign key: a rating outlives its chunk, which may come back under the same id
    Column("target", String, nullable=False),
    Column("target_type", String, nullable=False),
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
    _kb(primary_key=True),
    # id of a chunk or a document
    Column("target", String, primary_key=True),
    # raters whose last rating counts, and the mean of those
    Column("raters", Int64, nullable=False),
    Column("average", Float, nullable=False),
)

embedded = Table(
    "embedded",
    metadata,
    # vectors that no chunk has yet: of a document that is being stored, or of an embedder that
    # is going to take over
    _kb(primary_key=True),
    Column("embedder", String, primary_key=True),
    Column("embed_hash", String, primary_key=True),
    # float16, little endian
    Column("vector", LargeBinary, nullable=False),
)

summaries = Table(
    "summaries",
    metadata,
    # what a document is in a few lines; one that has none yet gets it with the next ingest
    Column("document_id", String, ForeignKey("documents.id", ondelete="CASCADE"), primary_key=True),
    _kb(),
    Column("text", Text, nullable=False),
    # of the form of summaries that this one has
    Column("revision", Int64, nullable=False),
    # hash of what the embedder reads
    Column("embed_hash", String, nullable=False),
    Index("summaries_by_kb", "kb_id"),
    # of the summaries of the knowledge base (`summaries_version`), the first that has it
    Column("version", Int64, nullable=False, server_default="0"),
    Index("summaries_by_version", "kb_id", "version"),
)

summary_vectors = Table(
    "summary_vectors",
    metadata,
    # by what was embedded, so that it is embedded once, whichever documents say it and when
    _kb(primary_key=True),
    Column("embedder", String, primary_key=True),
    Column("embed_hash", String, primary_key=True),
    # float16, little endian
    Column("vector", LargeBinary, nullable=False),
    # of the summaries of the knowledge base (`summaries_version`), the first that has it
    Column("version", Int64, nullable=False, server_default="0"),
    Index("summary_vectors_by_version", "kb_id", "version"),
)

expansions = Table(
    "expansions",
    metadata,
    # text of a language model, which makes the summary of a document while its text is the same
    Column("document_id", String, ForeignKey("documents.id", ondelete="CASCADE"), primary_key=True),
    _kb(),
    # of the document's title and content, as the model was given them
    Column("text_hash", String, nullable=False),
    # names the model and the form of what it was asked
    Column("model", String, nullable=False),
    Column("summary", Text, nullable=False),
    Column("questions", Json(list), nullable=False),
    Index("expansions_by_kb", "kb_id"),
)

question_vectors = Table(
    "question_vectors",
    metadata,
    # of questions that somebody rated a chunk well for, case and white space folded; which of
    # them are learned, and for which chunks, the ratings tell
    _kb(primary_key=True),
    Column("question", Text, primary_key=True),
    # fingerprint of what embedded it
    Column("embedder", String, nullable=False),
    # float16, little endian
    Column("vector", LargeBinary, nullable=False),
)


def _encoders(name: str) -> Table:
    return Table(
        name,
        metadata,
        _kb(primary_key=True),
        Column("embedder", String, nullable=False),
        Column("fitted_at", UtcDateTime, nullable=False),
        # knowledge_bases.version and the number of chunks when it was fitted
        Column("version", Int64, nullable=False),
        Column("chunks", Int64, nullable=False),
        # joined by spaces
        Column("terms", Text, nullable=False),
        # float16, little endian, a row a term
        Column("vectors", LargeBinary, nullable=False),
        # how it was fitted, and how well it did
        Column("report", Json(dict), nullable=False),
    )


# fitted to the vectors of chunks, and to what the model of the summaries makes of short texts
query_encoders = _encoders("query_encoders")
summary_encoders = _encoders("summary_encoders")
