"""What is known of the files that agents and people write."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"


def upgrade() -> None:
    number = sa.BigInteger()
    op.create_table(
        "files",
        sa.Column("path", sa.Text(), primary_key=True, nullable=False),
        sa.Column("size", number, nullable=False),
        sa.Column("changed", number, nullable=False),
        sa.Column("status_changed", number, nullable=False),
        sa.Column("digest", sa.String(), nullable=False),
        sa.Column("seen", number, nullable=False),
        sa.Column("created", number, nullable=False),
        sa.Column("uris", sa.JSON(), nullable=False),
    )
    op.create_table(
        "file_names",
        sa.Column("path", sa.Text(), primary_key=True, nullable=False),
        sa.Column("key", sa.Text(), primary_key=True, nullable=False),
    )
    op.create_index("file_names_by_key", "file_names", ["key"])
    op.create_table(
        "file_links",
        sa.Column("path", sa.Text(), primary_key=True, nullable=False),
        sa.Column("target", sa.Text(), primary_key=True, nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("leads_to", sa.Text(), nullable=False),
    )
    op.create_index("file_links_by_key", "file_links", ["key"])
    op.create_index("file_links_by_end", "file_links", ["leads_to"])
