"""An index over all that hits and filters read of documents."""

from __future__ import annotations

from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    op.create_index(
        "documents_shown",
        "documents",
        [
            "kb_id", "id", "uri", "title", "document_type", "tags", "state", "fetched_at",
            "content_hash", "metadata",
        ],
    )  # fmt: skip
