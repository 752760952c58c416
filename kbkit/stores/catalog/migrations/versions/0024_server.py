"""What a server keeps: tokens, jobs, and answers that are given again."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0024"
down_revision = "0023"


def upgrade() -> None:
    text, at = sa.String(), sa.DateTime()
    op.create_table(
        "tokens",
        sa.Column("id", text, primary_key=True, nullable=False),
        sa.Column("name", text, nullable=False),
        sa.Column("digest", text, nullable=False),
        sa.Column("scope", text, nullable=False),
        sa.Column("kbs", sa.JSON(), nullable=False),
        sa.Column("created_at", at, nullable=False),
        sa.Column("expires_at", at),
        sa.Column("used_at", at),
    )
    op.create_index("tokens_by_name", "tokens", ["name"], unique=True)
    op.create_table(
        "jobs",
        sa.Column("id", text, primary_key=True, nullable=False),
        sa.Column("kind", text, nullable=False),
        sa.Column("kbs", sa.JSON(), nullable=False),
        sa.Column("owner", text, nullable=False),
        sa.Column("state", text, nullable=False),
        sa.Column("arguments", sa.JSON(), nullable=False),
        sa.Column("progress", sa.JSON()),
        sa.Column("result", sa.JSON()),
        sa.Column("problem", sa.JSON()),
        sa.Column("cancelled", sa.Boolean(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("created_at", at, nullable=False),
        sa.Column("started_at", at),
        sa.Column("ended_at", at),
    )
    op.create_index("jobs_by_creation", "jobs", ["created_at"])
    op.create_table(
        "replayed_answers",
        sa.Column("key", text, primary_key=True, nullable=False),
        sa.Column("digest", text, nullable=False),
        sa.Column("status", sa.Integer(), nullable=False),
        sa.Column("headers", sa.JSON(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.Column("media_type", sa.Text(), nullable=False),
        sa.Column("created_at", at, nullable=False),
    )
