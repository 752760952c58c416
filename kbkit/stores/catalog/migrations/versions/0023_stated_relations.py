"""Relations that annotators state."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0023"
down_revision = "0022"


def upgrade() -> None:
    column = sa.Column("relations", sa.Text(), nullable=False, server_default="")
    op.add_column("annotations", column)
