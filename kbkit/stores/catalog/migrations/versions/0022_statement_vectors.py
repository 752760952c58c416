"""Vectors of what annotations say, in place of those of chunks."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0022"
down_revision = "0021"


def upgrade() -> None:
    op.create_table(
        "statement_vectors",
        sa.Column("chunk_seq", sa.Integer(), nullable=False),
        sa.Column("kb_id", sa.String(), nullable=False),
        sa.Column("text", sa.String(), nullable=False),
        sa.Column("embed_hash", sa.String(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["chunk_seq"], ["chunks.seq"], ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["kb_id"], ["knowledge_bases.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("chunk_seq"),
    )
    op.create_index("statement_vectors_by_kb", "statement_vectors", ["kb_id", "text"])
