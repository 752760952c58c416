"""Tables of a workspace: files, entries, and what a server keeps."""

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
    # name of its folder
    Column("slug", String, primary_key=True),
    # stays when the folder gets another name
    Column("id", String, nullable=False),
    # of the document that is searched; empty until there is one
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
    # of what it says, votes aside
    Column("version", String, nullable=False),
    # what its skill.yaml is faulted for; all of the above is then as it was before
    Column("problem", Text, nullable=False),
    # how its files were when they were read: names, sizes and times; the last change, and when
    # that was looked at, in nanoseconds
    Column("stamp", String, nullable=False),
    Column("changed", BigInteger, nullable=False),
    Column("seen", BigInteger, nullable=False),
    Index("entries_by_id", "id", unique=True),
)

learned_folders = Table(
    "learned_folders",
    metadata,
    # what a task left, by the folder and a digest of what was in it; learned once
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
    # as the file was when its documents were stored: times in nanoseconds
    Column("size", BigInteger, nullable=False),
    Column("changed", BigInteger, nullable=False),
    Column("status_changed", BigInteger, nullable=False),
    Column("digest", String, nullable=False),
    # when that was looked at: a change in the same tick of the clock cannot be told by times
    Column("seen", BigInteger, nullable=False),
    Column("created", BigInteger, nullable=False),
    # of its documents; none for a file that is not searched
    Column("uris", Json(list), nullable=False),
)

file_names = Table(
    "file_names",
    metadata,
    # what a link may call a file: its name, its title, its aliases, in a normal form
    Column("path", Text, primary_key=True),
    Column("key", Text, primary_key=True),
    Index("file_names_by_key", "key"),
)

file_links = Table(
    "file_links",
    metadata,
    # what a file links to: as it is written, the name in it, and the path that this means now
    Column("path", Text, primary_key=True),
    Column("target", Text, primary_key=True),
    Column("key", Text, nullable=False),
    # empty while there is no such file
    Column("leads_to", Text, nullable=False),
    Index("file_links_by_key", "key"),
    Index("file_links_by_end", "leads_to"),
)

tokens = Table(
    "tokens",
    metadata,
    # the part that is no secret
    Column("id", String, primary_key=True),
    Column("name", String, nullable=False),
    # SHA-256 of the whole; the secret has 256 random bits, so no slow hash is needed
    Column("digest", String, nullable=False),
    Column("scope", String, nullable=False),
    # names; empty for all
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
    # somebody wants it to end
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
    # digest of who asked and the key
    Column("key", String, primary_key=True),
    # of what was asked
    Column("digest", String, nullable=False),
    Column("status", Int64, nullable=False),
    Column("headers", Json(dict), nullable=False),
    Column("body", LargeBinary, nullable=False),
    Column("media_type", Text, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
)
