"""Type and tags that a person gave a document, which its source does not change."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    op.add_column("documents", sa.Column("given_type", sa.String()))
    op.add_column("documents", sa.Column("given_tags", sa.JSON()))
