"""Vectors of questions that people rated chunks well for."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0009"


def upgrade() -> None:
    kb = sa.ForeignKey("knowledge_bases.id", ondelete="CASCADE")
    op.create_table(
        "question_vectors",
        sa.Column("kb_id", sa.String(), kb, primary_key=True),
        sa.Column("question", sa.Text(), primary_key=True),
        sa.Column("embedder", sa.String(), nullable=False),
        sa.Column("vector", sa.LargeBinary(), nullable=False),
    )
