"""Add tables of removed chunks and changed summaries, for snapshots."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0025"
down_revision = "0024"


def upgrade() -> None:
    op.create_table(
        "removed_chunks",
        sa.Column("id", sa.Integer(), primary_key=True, autoincrement=True, nullable=False),
        sa.Column(
            "kb_id",
            sa.String(),
            sa.ForeignKey("knowledge_bases.id", ondelete="CASCADE"),
            nullable=False,
        ),
        sa.Column("chunk_seq", sa.Integer()),
        sqlite_autoincrement=True,
    )
    op.create_index("removed_chunks_by_kb", "removed_chunks", ["kb_id", "id"])
    for table in ("cards", "card_vectors"):
        column = sa.Column("version", sa.Integer(), nullable=False, server_default="0")
        op.add_column(table, column)
        op.create_index(f"{table}_by_version", table, ["kb_id", "version"])
