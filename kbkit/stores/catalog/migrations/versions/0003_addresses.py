"""Crawls: which addresses are one page, so that an interrupted crawl knows it too."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    for name in ("location", "canonical"):
        op.add_column("pages", sa.Column(name, sa.String(), nullable=False, server_default=""))
