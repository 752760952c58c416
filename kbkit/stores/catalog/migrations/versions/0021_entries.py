"""What is known of entries."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0020"


def upgrade() -> None:
    number, at = sa.BigInteger(), sa.DateTime()
    op.create_table(
        "entries",
        sa.Column("slug", sa.String(), primary_key=True, nullable=False),
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("document_id", sa.String(), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("description", sa.Text(), nullable=False),
        sa.Column("tags", sa.JSON(), nullable=False),
        sa.Column("category", sa.Text(), nullable=False),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("average", sa.Float(), nullable=False),
        sa.Column("votes", sa.Integer(), nullable=False),
        sa.Column("source", sa.String(), nullable=False),
        sa.Column("origin_task_id", sa.Text(), nullable=False),
        sa.Column("created_at", at, nullable=False),
        sa.Column("updated_at", at, nullable=False),
        sa.Column("version", sa.String(), nullable=False),
        sa.Column("problem", sa.Text(), nullable=False),
        sa.Column("stamp", sa.String(), nullable=False),
        sa.Column("changed", number, nullable=False),
        sa.Column("seen", number, nullable=False),
    )
    op.create_index("entries_by_id", "entries", ["id"], unique=True)
    op.create_table(
        "learned_folders",
        sa.Column("folder", sa.Text(), primary_key=True, nullable=False),
        sa.Column("digest", sa.String(), nullable=False),
        sa.Column("slug", sa.String(), nullable=False),
        sa.Column("problem", sa.Text(), nullable=False),
    )
