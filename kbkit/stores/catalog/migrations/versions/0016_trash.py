"""Deleted documents and knowledge bases, which can be brought back."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"


def upgrade() -> None:
    op.add_column("knowledge_bases", sa.Column("deleted_at", sa.DateTime()))
    kb = sa.ForeignKey("knowledge_bases.id", ondelete="CASCADE")
    op.create_table(
        "deleted_documents",
        sa.Column("id", sa.String(), primary_key=True, nullable=False),
        sa.Column("kb_id", sa.String(), kb, nullable=False),
        sa.Column("source_id", sa.String()),
        sa.Column("uri", sa.String(), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("content", sa.Text(), nullable=False),
        sa.Column("document_type", sa.String(), nullable=False),
        sa.Column("tags", sa.JSON(), nullable=False),
        sa.Column("metadata", sa.JSON(), nullable=False),
        sa.Column("given_type", sa.String()),
        sa.Column("given_tags", sa.JSON()),
        sa.Column("deleted_at", sa.DateTime(), nullable=False),
        sa.UniqueConstraint("kb_id", "uri"),
    )
