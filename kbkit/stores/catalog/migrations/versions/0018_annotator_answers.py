"""What language models answered when they annotated chunks."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"


def upgrade() -> None:
    kb = sa.ForeignKey("knowledge_bases.id", ondelete="CASCADE")
    op.create_table(
        "annotator_answers",
        sa.Column("kb_id", sa.String(), kb, primary_key=True, nullable=False),
        sa.Column("key", sa.String(), primary_key=True, nullable=False),
        sa.Column("chunk_id", sa.String(), nullable=False),
        sa.Column("statements", sa.JSON(), nullable=False),
    )
