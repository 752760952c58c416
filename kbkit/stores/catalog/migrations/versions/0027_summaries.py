"""Rename the tables and columns of document summaries, which were called cards."""

from __future__ import annotations

import json

import sqlalchemy as sa
from alembic import op

revision = "0027"
down_revision = "0026"

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
_INDEXES = {
    "cards_by_kb": ("summaries", ["kb_id"]),
    "cards_by_version": ("summaries", ["kb_id", "version"]),
    "card_vectors_by_version": ("summary_vectors", ["kb_id", "version"]),
}
_SETTINGS = {"card_embedding": "summary_embedding", "card_weight": "summary_weight"}


def upgrade() -> None:
    for name in _INDEXES:
        op.drop_index(name)
    for name, new in _TABLES.items():
        op.rename_table(name, new)
    for index, (table, columns) in _INDEXES.items():
        op.create_index(_renamed(index), table, columns)
    for name, new in _COLUMNS.items():
        op.execute(f"ALTER TABLE knowledge_bases RENAME COLUMN {name} TO {new}")
    op.execute("ALTER TABLE expansions RENAME COLUMN card TO summary")
    bases = sa.table("knowledge_bases", sa.column("id"), sa.column("config", sa.JSON))
    for kb_id, config in op.get_bind().execute(sa.select(bases)).all():
        text = json.dumps(config)
        for name, new in _SETTINGS.items():
            text = text.replace(f'"{name}":', f'"{new}":')
        op.execute(bases.update().where(bases.c.id == kb_id).values(config=json.loads(text)))


def _renamed(index: str) -> str:
    return index.replace("cards", "summaries").replace("card", "summary")
