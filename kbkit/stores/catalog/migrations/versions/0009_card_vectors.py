"""Vectors of cards by what was embedded, whose are searched, and the revision of cards."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    def kb(*, primary_key: bool = False) -> sa.Column[str]:
        key = sa.ForeignKey("knowledge_bases.id", ondelete="CASCADE")
        return sa.Column("kb_id", sa.String(), key, primary_key=primary_key, nullable=False)

    op.create_table(
        "card_vectors",
        kb(primary_key=True),
        sa.Column("embedder", sa.String(), primary_key=True),
        sa.Column("embed_hash", sa.String(), primary_key=True),
        sa.Column("vector", sa.LargeBinary(), nullable=False),
    )
    for name in ("card_embedder", "card_model"):
        op.add_column("knowledge_bases", sa.Column(name, sa.String(), nullable=False,
                                                   server_default=""))  # fmt: skip
    op.add_column(
        "knowledge_bases",
        sa.Column("cards_version", sa.Integer(), nullable=False, server_default="0"),
    )
    # what there is serves until it is made anew, as is everything of an older revision
    op.execute(
        "INSERT INTO card_vectors (kb_id, embedder, embed_hash, vector) "
        "SELECT kb_id, embedder, document_id, vector FROM cards"
    )
    op.execute(
        "UPDATE knowledge_bases SET card_embedder = coalesce((SELECT embedder FROM cards "
        "WHERE cards.kb_id = knowledge_bases.id GROUP BY embedder ORDER BY count(*) DESC LIMIT 1), "
        "'')"
    )
    op.drop_index("cards_by_kb", "cards")
    op.rename_table("cards", "old_cards")
    document = sa.ForeignKey("documents.id", ondelete="CASCADE")
    op.create_table(
        "cards",
        sa.Column("document_id", sa.String(), document, primary_key=True),
        kb(),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("embed_hash", sa.String(), nullable=False),
    )
    op.execute(
        "INSERT INTO cards (document_id, kb_id, text, revision, embed_hash) "
        "SELECT document_id, kb_id, text, 0, document_id FROM old_cards"
    )
    op.drop_table("old_cards")
    op.create_index("cards_by_kb", "cards", ["kb_id"])
