"""Cards: what each document is, in a few lines, with a vector of its own."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    document = sa.ForeignKey("documents.id", ondelete="CASCADE")
    kb = sa.ForeignKey("knowledge_bases.id", ondelete="CASCADE")
    op.create_table(
        "cards",
        sa.Column("document_id", sa.String(), document, primary_key=True),
        sa.Column("kb_id", sa.String(), kb, nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("embedder", sa.String(), nullable=False),
        sa.Column("vector", sa.LargeBinary(), nullable=False),
    )
    op.create_index("cards_by_kb", "cards", ["kb_id"])
