"""Tables of a workspace: files, entries and the state of a server."""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Column, Float, Index, LargeBinary, String, Table, Text

from kbkit.stores.catalog.schema import Int64, Json, UtcDateTime, metadata

__all__ = [
    "entries",
    "file_links",
    "file_names",
    "files",
    "jobs",
    "learned_folders",
    "metadata",
    "replayed_answers",
    "tokens",
]

entries = Table(
    "entries",
    metadata,
    # name of the folder
    Column("slug", String, primary_key=True),
    # stays when the folder is renamed
    Column("id", String, nullable=False),
    # id of the searched document; empty until it is stored
    Column("document_id", String, nullable=False),
    Column("title", Text, nullable=False),
    Column("description", Text, nullable=False),
    Column("tags", Json(list), nullable=False),
    Column("category", Text, nullable=False),
    Column("status", String, nullable=False),
    Column("average", Float, nullable=False),
    Column("votes", Int64, nullable=False),
    Column("source", String, nullable=False),
    Column("origin_task_id", Text, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    Column("updated_at", UtcDateTime, nullable=False),
    # digest of the content, without votes
    Column("version", String, nullable=False),
    # fault of skill.yaml; the columns above then keep their last valid values
    Column("problem", Text, nullable=False),
    # digest of names, sizes and times of the files when they were read; time of the last change
    # and of the reading, in nanoseconds
    Column("stamp", String, nullable=False),
    Column("changed", BigInteger, nullable=False),
    Column("seen", BigInteger, nullable=False),
    Index("entries_by_id", "id", unique=True),
)

learned_folders = Table(
    "learned_folders",
    metadata,
    # output folders of tasks by a digest of their content, so that each is learned once
    Column("folder", Text, primary_key=True),
    Column("digest", String, nullable=False),
    Column("slug", String, nullable=False),
    # why nothing was learned
    Column("problem", Text, nullable=False),
)


files = Table(
    "files",
    metadata,
    Column("path", Text, primary_key=True),
    # state of the file when its documents were stored; times in nanoseconds
    Column("size", BigInteger, nullable=False),
    Column("changed", BigInteger, nullable=False),
    Column("status_changed", BigInteger, nullable=False),
    Column("digest", String, nullable=False),
    # when the state was read: times do not show a later change in the same tick of the clock
    Column("seen", BigInteger, nullable=False),
    Column("created", BigInteger, nullable=False),
    # URIs of the documents; none for files that are not searched
    Column("uris", Json(list), nullable=False),
)

file_names = Table(
    "file_names",
    metadata,
    # normalized names by which links may refer to a file: file name, title and aliases
    Column("path", Text, primary_key=True),
    Column("key", Text, primary_key=True),
    Index("file_names_by_key", "key"),
)

file_links = Table(
    "file_links",
    metadata,
    # links of a file: as written, the normalized name, and the path that it currently means
    Column("path", Text, primary_key=True),
    Column("target", Text, primary_key=True),
    Column("key", Text, nullable=False),
    # empty if the file does not exist
    Column("leads_to", Text, nullable=False),
    Index("file_links_by_key", "key"),
    Index("file_links_by_end", "leads_to"),
)

tokens = Table(
    "tokens",
    metadata,
    # the public part
    Column("id", String, primary_key=True),
    Column("name", String, nullable=False),
    # SHA-256 of the whole token; with 256 random bits no slow hash is needed
    Column("digest", String, nullable=False),
    Column("scope", String, nullable=False),
    # names of knowledge bases; empty for all
    Column("kbs", Json(list), nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    Column("expires_at", UtcDateTime),
    Column("used_at", UtcDateTime),
    Index("tokens_by_name", "name", unique=True),
)

jobs = Table(
    "jobs",
    metadata,
    Column("id", String, primary_key=True),
    Column("kind", String, nullable=False),
    Column("kbs", Json(list), nullable=False),
    Column("owner", String, nullable=False),
    Column("state", String, nullable=False),
    Column("arguments", Json(dict), nullable=False),
    Column("progress", Json(object, optional=True)),
    Column("result", Json(object, optional=True)),
    Column("problem", Json(object, optional=True)),
    # whether a client asked to cancel it
    Column("cancelled", Boolean, nullable=False),
    Column("attempts", Int64, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    Column("started_at", UtcDateTime),
    Column("ended_at", UtcDateTime),
    Index("jobs_by_creation", "created_at"),
)

replayed_answers = Table(
    "replayed_answers",
    metadata,
    # digest of the client and the idempotency key
    Column("key", String, primary_key=True),
    # digest of the request
    Column("digest", String, nullable=False),
    Column("status", Int64, nullable=False),
    Column("headers", Json(dict), nullable=False),
    Column("body", LargeBinary, nullable=False),
    Column("media_type", Text, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
)
