"""Add the number of uses of each name, from which ids of knowledge bases follow."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0026"
down_revision = "0025"


def upgrade() -> None:
    op.create_table(
        "name_uses",
        sa.Column("name", sa.String(), primary_key=True, nullable=False),
        sa.Column("times", sa.Integer(), nullable=False),
    )
