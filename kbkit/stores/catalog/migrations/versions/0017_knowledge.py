"""Annotations, subjects and the knowledge graph."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"


def _reference(name: str, target: str, *, primary_key: bool = False) -> sa.Column[Any]:
    kind = sa.Integer() if target in ("chunks.seq", "relations.id") else sa.String()
    key = sa.ForeignKey(target, ondelete="CASCADE")
    return sa.Column(name, kind, key, nullable=False, primary_key=primary_key)


def upgrade() -> None:
    _names()
    _annotations()
    _graph()


def _names() -> None:
    op.create_table(
        "document_names",
        _reference("document_id", "documents.id", primary_key=True),
        sa.Column("name", sa.Text(), primary_key=True, nullable=False),
        _reference("kb_id", "knowledge_bases.id"),
        sa.Column("type", sa.String(), nullable=False),
        sa.Column("defines", sa.Boolean(), nullable=False),
        sa.Column("anchor", sa.String(), nullable=False),
        sa.Column("confirmed", sa.Boolean(), nullable=False),
    )
    op.create_index("document_names_by_kb", "document_names", ["kb_id", "name"])
    op.create_table(
        "named_documents",
        _reference("document_id", "documents.id", primary_key=True),
        _reference("kb_id", "knowledge_bases.id"),
        sa.Column("revision", sa.Integer(), nullable=False),
    )
    op.create_index("named_documents_by_kb", "named_documents", ["kb_id"])


def _annotations() -> None:
    op.create_table(
        "gazetteers",
        _reference("kb_id", "knowledge_bases.id", primary_key=True),
        sa.Column("names", sa.LargeBinary(), nullable=False),
    )
    op.create_table(
        "annotations",
        _reference("chunk_seq", "chunks.seq", primary_key=True),
        sa.Column("position", sa.Integer(), primary_key=True, nullable=False),
        _reference("kb_id", "knowledge_bases.id"),
        sa.Column("start", sa.Integer(), nullable=False),
        sa.Column("end", sa.Integer(), nullable=False),
        sa.Column("normalized_text", sa.Text(), nullable=False),
        sa.Column("frame", sa.String(), nullable=False),
        sa.Column("confidence", sa.Float(), nullable=False),
        sa.Column("annotator", sa.String(), nullable=False),
    )
    op.create_index("annotations_by_frame", "annotations", ["kb_id", "frame", "chunk_seq"])
    alias = sa.ForeignKey("subjects.id", ondelete="SET NULL")
    op.create_table(
        "subjects",
        sa.Column("id", sa.String(), primary_key=True, nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("alias_of", sa.String(), alias),
        sa.UniqueConstraint("kind", "key"),
    )
    op.create_index("subjects_by_alias", "subjects", ["alias_of"])
    op.create_table(
        "annotation_subjects",
        _reference("chunk_seq", "chunks.seq", primary_key=True),
        sa.Column("position", sa.Integer(), primary_key=True, nullable=False),
        _reference("subject_id", "subjects.id", primary_key=True),
    )
    columns = ["subject_id", "chunk_seq"]
    op.create_index("annotation_subjects_by_subject", "annotation_subjects", columns)


def _graph() -> None:
    op.create_table(
        "entities",
        _reference("subject_id", "subjects.id", primary_key=True),
        sa.Column("type", sa.String(), nullable=False),
        sa.Column("description", sa.Text(), nullable=False),
        sa.Column("properties", sa.JSON(), nullable=False),
        sa.Column("made_by", sa.String(), nullable=False),
        sa.Column("by_hand", sa.Boolean(), nullable=False),
        sa.Column("updated_at", sa.DateTime(), nullable=False),
        sa.Column("deleted_at", sa.DateTime()),
    )
    op.create_table(
        "relations",
        sa.Column("id", sa.Integer(), primary_key=True, autoincrement=True, nullable=False),
        sa.Column("source_kind", sa.String(), nullable=False),
        sa.Column("source_id", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("target_kind", sa.String(), nullable=False),
        sa.Column("target_id", sa.String(), nullable=False),
        sa.Column("weight", sa.Float(), nullable=False),
        sa.Column("made_by", sa.String(), nullable=False),
        sa.Column("by_hand", sa.Boolean(), nullable=False),
        sa.Column("note", sa.Text(), nullable=False),
        sa.Column("created_at", sa.DateTime(), nullable=False),
        sa.Column("seen_at", sa.DateTime(), nullable=False),
        sa.Column("deleted_at", sa.DateTime()),
        sa.UniqueConstraint("source_kind", "source_id", "name", "target_kind", "target_id"),
        sqlite_autoincrement=True,
    )
    op.create_index("relations_by_target", "relations", ["target_kind", "target_id"])
    op.create_table(
        "relation_evidence",
        _reference("relation_id", "relations.id", primary_key=True),
        _reference("chunk_seq", "chunks.seq", primary_key=True),
        sa.Column("weight", sa.Float(), nullable=False),
    )
    op.create_index("relation_evidence_by_chunk", "relation_evidence", ["chunk_seq"])
    op.create_table(
        "related_chunks",
        _reference("chunk_seq", "chunks.seq", primary_key=True),
        _reference("kb_id", "knowledge_bases.id"),
        sa.Column("digest", sa.String(), nullable=False),
    )
    op.create_index("related_chunks_by_kb", "related_chunks", ["kb_id"])
    op.create_table(
        "built_graphs",
        _reference("kb_id", "knowledge_bases.id", primary_key=True),
        sa.Column("version", sa.Integer(), nullable=False),
    )
    op.create_table(
        "merges",
        _reference("kept_id", "subjects.id", primary_key=True),
        _reference("merged_id", "subjects.id", primary_key=True),
        sa.Column("applied", sa.Boolean(), nullable=False),
        sa.Column("moved", sa.JSON(), nullable=False),
        sa.Column("made_by", sa.String(), nullable=False),
        sa.Column("decided_at", sa.DateTime(), nullable=False),
    )
    op.create_index("merges_by_merged", "merges", ["merged_id"])
