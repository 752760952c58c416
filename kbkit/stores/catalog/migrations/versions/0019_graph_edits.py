"""What people changed in the knowledge graph, so that it can be taken back."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"


def upgrade() -> None:
    op.create_table(
        "graph_edits",
        sa.Column("id", sa.Integer(), primary_key=True, autoincrement=True),
        sa.Column("what", sa.Text(), nullable=False),
        sa.Column("made_by", sa.String(), nullable=False),
        sa.Column("made_at", sa.DateTime(), nullable=False),
        sa.Column("before", sa.JSON(), nullable=False),
        sa.Column("after", sa.JSON(), nullable=False),
        sa.Column("built", sa.JSON(), nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index("graph_edits_by_person", "graph_edits", ["made_by", "id"])
