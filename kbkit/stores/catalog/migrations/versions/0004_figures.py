"""Figures of a knowledge base: documents by state and type, without reading their text."""

from __future__ import annotations

from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    op.create_index("documents_by_type", "documents", ["kb_id", "state", "document_type"])
