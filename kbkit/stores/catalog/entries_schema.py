"""SQLAlchemy tables of entries.

Folders are the truth; this is what is known of them. Votes are ratings of kind ``entry``.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Float, Index, String, Table, Text

from kbkit.stores.catalog.schema import Int64, Json, UtcDateTime, metadata

__all__ = ["entries", "learned_folders", "metadata"]

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
