"""SQLAlchemy tables of the knowledge filesystem.

Files are the truth; this is what is known of them, to tell what has changed and what links where.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Index, String, Table, Text

from kbkit.stores.catalog.schema import Json, metadata

__all__ = ["file_links", "file_names", "files", "metadata"]

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
