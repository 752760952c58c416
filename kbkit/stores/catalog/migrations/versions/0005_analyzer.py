"""The revision of the analyzer that made a knowledge base's terms."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    op.add_column(
        "knowledge_bases", sa.Column("analyzer", sa.Integer(), nullable=False, server_default="0")
    )
