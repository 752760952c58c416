"""What each document is, in a line, and whether it is mostly links."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    op.add_column(
        "documents", sa.Column("description", sa.Text(), nullable=False, server_default="")
    )
    op.add_column("documents", sa.Column("is_index", sa.Boolean()))
    op.create_index("documents_by_index", "documents", ["kb_id", "is_index", "id"])
    op.drop_index("documents_shown", "documents")
    op.create_index(
        "documents_shown",
        "documents",
        [
            "kb_id", "id", "uri", "title", "document_type", "tags", "state", "fetched_at",
            "content_hash", "metadata", "description",
        ],
    )  # fmt: skip
