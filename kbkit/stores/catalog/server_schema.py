"""SQLAlchemy tables of a server."""

from __future__ import annotations

from sqlalchemy import Boolean, Column, Index, LargeBinary, String, Table, Text

from kbkit.stores.catalog.schema import Int64, Json, UtcDateTime, metadata

__all__ = ["jobs", "metadata", "replayed_answers", "tokens"]

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
