"""SQLAlchemy tables of the catalog."""

from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Dialect

HEAD = "0027"
"""Revision of the newest migration."""
OLDEST = "0024"
"""Revision that can be migrated; no release had another."""


Int64 = sa.Integer().with_variant(sa.BigInteger(), "postgresql")
"""64-bit integer; SQLite numbers rows only in columns of type INTEGER."""


class UtcDateTime(sa.TypeDecorator[datetime]):
    """An aware UTC time; SQLite stores no time zone."""

    impl = sa.DateTime
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        return None if value is None else value.astimezone(UTC).replace(tzinfo=None)

    def process_result_value(self, value: Any, dialect: Dialect) -> datetime | None:
        return None if value is None else value.replace(tzinfo=UTC)


class Json(sa.TypeDecorator[Any]):
    """JSON values of one shape; reading any other value raises `ValueError`."""

    impl = sa.JSON
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


metadata = sa.MetaData()


def table(name: str, *items: sa.schema.SchemaItem) -> sa.Table:
    """Define a table; a key with `autoincrement` never gets a number twice."""
    numbered = any(isinstance(item, sa.Column) and item.autoincrement is True for item in items)
    return sa.Table(name, metadata, *items, sqlite_autoincrement=numbered)


def required(**kinds: Any) -> list[sa.Column[Any]]:
    return [sa.Column(name, kind, nullable=False) for name, kind in kinds.items()]


def reference(name: str, target: str, *, primary_key: bool = False) -> sa.Column[Any]:
    kind = Int64 if target in ("chunks.seq", "relations.id", "runs.id") else sa.String
    key = sa.ForeignKey(target, ondelete="CASCADE")
    return sa.Column(name, kind, key, nullable=False, primary_key=primary_key)


knowledge_bases = table(
    "knowledge_bases",
    sa.Column("id", sa.String, primary_key=True),
    sa.Column("name", sa.String, nullable=False, unique=True),
    *required(description=sa.Text, config=Json(dict), embedder=sa.String, dimensions=Int64),
    sa.Column("collection", sa.String, nullable=False, unique=True),
    *required(created_at=UtcDateTime, updated_at=UtcDateTime),
    # increases with every committed change of documents or chunks, so that caches can be renewed
    sa.Column("version", Int64, nullable=False, default=0),
    # largest chunks.seq in the Chroma collection
    sa.Column("applied_seq", Int64, nullable=False, default=0),
    # revision of the analyzer that produced the terms
    sa.Column("analyzer", Int64, nullable=False, server_default="0"),
    # fingerprints of the embedders of the searched summary vectors and of those in preparation
    sa.Column("summary_embedder", sa.String, nullable=False, server_default=""),
    sa.Column("summary_model", sa.String, nullable=False, server_default=""),
    # increases when searched vectors change without a change of documents
    sa.Column("summaries_version", Int64, nullable=False, server_default="0"),
    # when the knowledge base was moved to the trash; empty otherwise
    sa.Column("deleted_at", UtcDateTime),
)

name_uses = table(
    "name_uses",
    # how many knowledge bases a name has had; never deleted, so no id is used twice
    sa.Column("name", sa.String, primary_key=True),
    sa.Column("times", Int64, nullable=False),
)

sources = table(
    "sources",
    sa.Column("id", sa.String, primary_key=True),
    reference("kb_id", "knowledge_bases.id"),
    *required(key=sa.String, type=sa.String, spec=Json(dict), base=sa.Text),
    # from the recipe: deleted when the recipe no longer names it
    *required(from_recipe=sa.Boolean, created_at=UtcDateTime),
    # replaces a local path in URIs, so that they do not reveal it
    sa.Column("name", sa.Text, nullable=False, server_default=""),
    # whether a refresh reads the source
    sa.Column("enabled", sa.Boolean, nullable=False, server_default=sa.true()),
    sa.UniqueConstraint("kb_id", "key"),
)

runs = table(
    "runs",
    sa.Column("id", Int64, primary_key=True, autoincrement=True),
    reference("kb_id", "knowledge_bases.id"),
    reference("source_id", "sources.id"),
    sa.Column("started_at", UtcDateTime, nullable=False),
    # empty for running and killed runs
    sa.Column("finished_at", UtcDateTime),
    sa.Column("report", Json(dict, optional=True)),
    sa.Index("runs_by_source", "source_id", "id"),
)

pages = table(
    "pages",
    reference("source_id", "sources.id", primary_key=True),
    sa.Column("url", sa.String, primary_key=True),
    reference("run_id", "runs.id"),
    *required(depth=Int64, etag=sa.String, last_modified=sa.String),
    *required(links=Json(list), document_uri=sa.String),
    sa.Column("location", sa.String, nullable=False, server_default=""),
    sa.Column("canonical", sa.String, nullable=False, server_default=""),
    *required(outcome=sa.String, reason=sa.Text, visited_at=UtcDateTime),
)

documents = table(
    "documents",
    sa.Column("id", sa.String, primary_key=True),
    reference("kb_id", "knowledge_bases.id"),
    sa.Column("source_id", sa.String, sa.ForeignKey("sources.id", ondelete="SET NULL")),
    sa.Column("run_id", Int64),
    *required(uri=sa.String, title=sa.Text, content=sa.Text, document_type=sa.String),
    *required(tags=Json(list), metadata=Json(dict), state=sa.String, fetched_at=UtcDateTime),
    # hash of title, content, type, tags, metadata and chunking; if equal, nothing is stored
    sa.Column("content_hash", sa.String, nullable=False),
    # labels by a person override those of the source; empty without labels
    sa.Column("given_type", sa.String),
    sa.Column("given_tags", Json(list, optional=True)),
    # one line
    sa.Column("description", sa.Text, nullable=False, server_default=""),
    # mostly links, so search ranks it last
    sa.Column("is_index", sa.Boolean),
    sa.UniqueConstraint("kb_id", "uri"),
    sa.Index("documents_by_source", "source_id"),
    # rows have state and type after the text, which is slow to skip if long
    sa.Index("documents_by_type", "kb_id", "state", "document_type", "source_id"),
    sa.Index("documents_by_index", "kb_id", "is_index", "id"),
    # covers all columns that hits and filters read, so that SQLite does not read the text;
    # PostgreSQL stores long texts apart and cannot index JSON
    sa.Index(
        "documents_shown",
        *("kb_id", "id", "uri", "title", "document_type", "tags", "state", "fetched_at"),
        *("content_hash", "metadata", "description"),
    ).ddl_if(dialect="sqlite"),
)

deleted_documents = table(
    "deleted_documents",
    # the trash; when it is emptied, documents of sources stay without content, so that no refresh
    # restores them
    sa.Column("id", sa.String, primary_key=True),
    reference("kb_id", "knowledge_bases.id"),
    # no foreign key: the source may be deleted before the document is restored
    sa.Column("source_id", sa.String),
    *required(uri=sa.String, title=sa.Text, content=sa.Text, document_type=sa.String),
    *required(tags=Json(list), metadata=Json(dict)),
    sa.Column("given_type", sa.String),
    sa.Column("given_tags", Json(list, optional=True)),
    sa.Column("deleted_at", UtcDateTime, nullable=False),
    sa.UniqueConstraint("kb_id", "uri"),
)

chunks = table(
    "chunks",
    # never reused, so that greater numbers are not in Chroma yet
    sa.Column("seq", Int64, primary_key=True, autoincrement=True),
    sa.Column("id", sa.String, nullable=False, unique=True),
    reference("kb_id", "knowledge_bases.id"),
    reference("document_id", "documents.id"),
    *required(position=Int64, start=Int64, end=Int64),
    # the document's content[start:end]; slicing a long page for each hit would take longer than
    # the search
    *required(text=sa.Text, heading_path=Json(list), anchor=sa.String),
    sa.Column("page", Int64),
    # analyzer terms of title, heading path and text, joined by spaces, and their number; hash of
    # the embedder's input: equal hashes mean equal vectors
    *required(terms=sa.Text, length=Int64, embed_hash=sa.String),
    sa.Index("chunks_by_document", "document_id", "position"),
    sa.Index("chunks_by_kb", "kb_id", "seq", "length"),
    sa.Index("chunks_by_embed_hash", "kb_id", "embed_hash"),
)

vectors = table(
    "vectors",
    reference("chunk_seq", "chunks.seq", primary_key=True),
    # float16, little endian
    sa.Column("vector", sa.LargeBinary, nullable=False),
)

outbox = table(
    "outbox",
    sa.Column("id", Int64, primary_key=True, autoincrement=True),
    reference("kb_id", "knowledge_bases.id"),
    # empty for a deletion
    sa.Column("chunk_seq", Int64),
    sa.Column("chunk_id", sa.String, nullable=False),
    sa.Index("outbox_by_kb", "kb_id", "id"),
)

removed_chunks = table(
    "removed_chunks",
    sa.Column("id", Int64, primary_key=True, autoincrement=True),
    reference("kb_id", "knowledge_bases.id"),
    # empty where older entries were deleted
    sa.Column("chunk_seq", Int64),
    sa.Index("removed_chunks_by_kb", "kb_id", "id"),
)

dropped_collections = table(
    "dropped_collections",
    # collections of deleted knowledge bases that Chroma still has to drop
    sa.Column("name", sa.String, primary_key=True),
)

ratings = table(
    "ratings",
    sa.Column("id", Int64, primary_key=True, autoincrement=True),
    reference("kb_id", "knowledge_bases.id"),
    # no foreign key: a rating outlives its chunk, which may come back under the same id
    *required(target=sa.String, target_type=sa.String, score=Int64, query=sa.Text, rater=sa.String),
    *required(note=sa.Text, created_at=UtcDateTime),
    sa.Index("ratings_by_target", "kb_id", "target"),
)

rating_totals = table(
    "rating_totals",
    reference("kb_id", "knowledge_bases.id", primary_key=True),
    # id of a chunk or a document
    sa.Column("target", sa.String, primary_key=True),
    # number of raters, and the mean of their last ratings
    *required(raters=Int64, average=sa.Float),
)

embedded = table(
    "embedded",
    # vectors without chunks yet: of a document that is being stored, or of the next embedder
    reference("kb_id", "knowledge_bases.id", primary_key=True),
    sa.Column("embedder", sa.String, primary_key=True),
    sa.Column("embed_hash", sa.String, primary_key=True),
    # float16, little endian
    sa.Column("vector", sa.LargeBinary, nullable=False),
)

summaries = table(
    "summaries",
    # the next ingest adds missing summaries
    reference("document_id", "documents.id", primary_key=True),
    reference("kb_id", "knowledge_bases.id"),
    # revision of the summary format; hash of the embedder's input
    *required(text=sa.Text, revision=Int64, embed_hash=sa.String),
    sa.Index("summaries_by_text", "kb_id", "embed_hash"),
    # first `summaries_version` of the knowledge base with this row
    sa.Column("version", Int64, nullable=False, server_default="0"),
    sa.Index("summaries_by_version", "kb_id", "version"),
)

summary_vectors = table(
    "summary_vectors",
    # keyed by the embedded text, so that equal texts are embedded once
    reference("kb_id", "knowledge_bases.id", primary_key=True),
    sa.Column("embedder", sa.String, primary_key=True),
    sa.Column("embed_hash", sa.String, primary_key=True),
    # float16, little endian
    sa.Column("vector", sa.LargeBinary, nullable=False),
    # first `summaries_version` of the knowledge base with this row
    sa.Column("version", Int64, nullable=False, server_default="0"),
    sa.Index("summary_vectors_by_version", "kb_id", "version"),
)

expansions = table(
    "expansions",
    # text by a language model, part of the summary while the document's text is unchanged
    reference("document_id", "documents.id", primary_key=True),
    reference("kb_id", "knowledge_bases.id"),
    # hash of the title and content that the model read; its name and revision of the prompt
    *required(text_hash=sa.String, model=sa.String, summary=sa.Text, questions=Json(list)),
    sa.Index("expansions_by_kb", "kb_id"),
)

question_vectors = table(
    "question_vectors",
    # questions with a well-rated chunk, case and white space folded; the ratings decide which
    # of them are learned, and for which chunks
    reference("kb_id", "knowledge_bases.id", primary_key=True),
    sa.Column("question", sa.Text, primary_key=True),
    # fingerprint of the embedder; float16, little endian
    *required(embedder=sa.String, vector=sa.LargeBinary),
)


def _encoders(name: str) -> sa.Table:
    return table(
        name,
        reference("kb_id", "knowledge_bases.id", primary_key=True),
        # knowledge_bases.version and the number of chunks when it was fitted
        *required(embedder=sa.String, fitted_at=UtcDateTime, version=Int64, chunks=Int64),
        # joined by spaces; float16, little endian, one row per term; choice and quality of the fit
        *required(terms=sa.Text, vectors=sa.LargeBinary, report=Json(dict)),
    )


# one fitted to chunk vectors, one to the summary embedder's vectors of short texts
query_encoders = _encoders("query_encoders")
summary_encoders = _encoders("summary_encoders")
