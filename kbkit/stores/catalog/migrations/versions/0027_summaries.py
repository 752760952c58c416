"""Rename the tables of summaries, which were called cards; add what snapshots and ids need."""

from __future__ import annotations

import json

import sqlalchemy as sa
from alembic import op

revision = "0027"
down_revision = "0024"

_TABLES = {
    "cards": "summaries",
    "card_vectors": "summary_vectors",
    "card_encoders": "summary_encoders",
}
_COLUMNS = {
    "card_embedder": "summary_embedder",
    "card_model": "summary_model",
    "cards_version": "summaries_version",
}
_SETTINGS = {"card_embedding": "summary_embedding", "card_weight": "summary_weight"}


def upgrade() -> None:
    op.create_table(
        "removed_chunks",
        sa.Column("id", sa.Integer(), primary_key=True, autoincrement=True, nullable=False),
        sa.Column(
            "kb_id",
            sa.String(),
            sa.ForeignKey("knowledge_bases.id", ondelete="CASCADE"),
            nullable=False,
        ),
        sa.Column("chunk_seq", sa.Integer()),
        sqlite_autoincrement=True,
    )
    op.create_index("removed_chunks_by_kb", "removed_chunks", ["kb_id", "id"])
    op.create_table(
        "name_uses",
        sa.Column("name", sa.String(), primary_key=True, nullable=False),
        sa.Column("times", sa.Integer(), nullable=False),
    )
    op.drop_index("cards_by_kb")
    for name, new in _TABLES.items():
        op.rename_table(name, new)
    op.create_index("summaries_by_kb", "summaries", ["kb_id"])
    for table in ("summaries", "summary_vectors"):
        version = sa.Column("version", sa.Integer(), nullable=False, server_default="0")
        op.add_column(table, version)
        op.create_index(f"{table}_by_version", table, ["kb_id", "version"])
    for name, new in _COLUMNS.items():
        op.execute(f"ALTER TABLE knowledge_bases RENAME COLUMN {name} TO {new}")
    op.execute("ALTER TABLE expansions RENAME COLUMN card TO summary")
    bases = sa.table("knowledge_bases", sa.column("id"), sa.column("config", sa.JSON))
    for kb_id, config in op.get_bind().execute(sa.select(bases)).all():
        text = json.dumps(config)
        for name, new in _SETTINGS.items():
            text = text.replace(f'"{name}":', f'"{new}":')
        op.execute(bases.update().where(bases.c.id == kb_id).values(config=json.loads(text)))
