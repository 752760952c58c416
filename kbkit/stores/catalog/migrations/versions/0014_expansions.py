"""What language models write of documents: a card and questions."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"


def upgrade() -> None:
    kb = sa.ForeignKey("knowledge_bases.id", ondelete="CASCADE")
    document = sa.ForeignKey("documents.id", ondelete="CASCADE")
    op.create_table(
        "expansions",
        sa.Column("document_id", sa.String(), document, primary_key=True, nullable=False),
        sa.Column("kb_id", sa.String(), kb, nullable=False),
        sa.Column("text_hash", sa.String(), nullable=False),
        sa.Column("model", sa.String(), nullable=False),
        sa.Column("card", sa.Text(), nullable=False),
        sa.Column("questions", sa.JSON(), nullable=False),
    )
    op.create_index("expansions_by_kb", "expansions", ["kb_id"])
