"""Query encoders for the vectors of cards, beside those for the vectors of chunks."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"


def upgrade() -> None:
    key = sa.ForeignKey("knowledge_bases.id", ondelete="CASCADE")
    op.create_table(
        "card_encoders",
        sa.Column("kb_id", sa.String(), key, primary_key=True, nullable=False),
        sa.Column("embedder", sa.String(), nullable=False),
        sa.Column("fitted_at", sa.DateTime(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("chunks", sa.Integer(), nullable=False),
        sa.Column("terms", sa.Text(), nullable=False),
        sa.Column("vectors", sa.LargeBinary(), nullable=False),
        sa.Column("report", sa.JSON(), nullable=False),
    )
