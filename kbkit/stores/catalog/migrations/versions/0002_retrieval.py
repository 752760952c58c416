"""Retrieval: totals of ratings, vectors that wait for their chunks, query encoders."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.create_table(
        "rating_totals",
        sa.Column("kb_id", sa.String(), nullable=False),
        sa.Column("target", sa.String(), nullable=False),
        sa.Column("raters", sa.Integer(), nullable=False),
        sa.Column("average", sa.Float(), nullable=False),
        sa.ForeignKeyConstraint(["kb_id"], ["knowledge_bases.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("kb_id", "target"),
    )
    op.execute(
        # the last rating of each rater counts
        """
        INSERT INTO rating_totals (kb_id, target, raters, average)
        SELECT kb_id, target, COUNT(*), AVG(score) FROM ratings
        WHERE id IN (SELECT MAX(id) FROM ratings GROUP BY kb_id, target, rater)
        GROUP BY kb_id, target
        """
    )
    op.create_table(
        "embedded",
        sa.Column("kb_id", sa.String(), nullable=False),
        sa.Column("embedder", sa.String(), nullable=False),
        sa.Column("embed_hash", sa.String(), nullable=False),
        sa.Column("vector", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["kb_id"], ["knowledge_bases.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("kb_id", "embedder", "embed_hash"),
    )
    op.create_table(
        "query_encoders",
        sa.Column("kb_id", sa.String(), nullable=False),
        sa.Column("embedder", sa.String(), nullable=False),
        sa.Column("fitted_at", sa.DateTime(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("chunks", sa.Integer(), nullable=False),
        sa.Column("terms", sa.Text(), nullable=False),
        sa.Column("vectors", sa.LargeBinary(), nullable=False),
        sa.Column("report", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(["kb_id"], ["knowledge_bases.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("kb_id"),
    )
