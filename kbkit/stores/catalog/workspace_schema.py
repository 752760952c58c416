"""SQLAlchemy tables of annotations, the graph, files, entries and the state of a server."""

import sqlalchemy as sa
from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Float,
    ForeignKey,
    Index,
    LargeBinary,
    String,
    Table,
    Text,
)

from kbkit.stores.catalog.schema import (
    Int64,
    Json,
    UtcDateTime,
    metadata,
    reference,
    required_columns,
)

document_names = Table(
    "document_names",
    metadata,
    # names in a document; together, those of a knowledge base are its gazetteer
    reference("document_id", "documents.id", primary_key=True),
    Column("name", Text, primary_key=True),
    reference("kb_id", "knowledge_bases.id"),
    Column("type", String, nullable=False),
    Column("defines", Boolean, nullable=False),
    Column("anchor", String, nullable=False),
    Column("confirmed", Boolean, nullable=False),
    Index("document_names_by_kb", "kb_id", "name"),
)

named_documents = Table(
    "named_documents",
    metadata,
    # documents whose names were read, and by which revision; deleted when a document changes
    reference("document_id", "documents.id", primary_key=True),
    reference("kb_id", "knowledge_bases.id"),
    Column("revision", Int64, nullable=False),
    Index("named_documents_by_kb", "kb_id"),
)

gazetteers = Table(
    "gazetteers",
    metadata,
    # the names that chunks were last searched for, compressed, to detect changes
    reference("kb_id", "knowledge_bases.id", primary_key=True),
    Column("names", LargeBinary, nullable=False),
)

annotations = Table(
    "annotations",
    metadata,
    reference("chunk_seq", "chunks.seq", primary_key=True),
    # number of the annotation in its chunk, from 0
    Column("position", Int64, primary_key=True),
    reference("kb_id", "knowledge_bases.id"),
    # character offsets in the chunk
    *required_columns(Int64, "start", "end"),
    Column("normalized_text", Text, nullable=False),
    # empty if the type of statement is unknown
    Column("frame", String, nullable=False),
    Column("confidence", Float, nullable=False),
    # fingerprint of the annotator
    Column("annotator", String, nullable=False),
    # JSON: source, name and target of each relation; empty without relations
    Column("relations", Text, nullable=False, server_default=""),
    Index("annotations_by_frame", "kb_id", "frame", "chunk_seq"),
)

statement_vectors = Table(
    "statement_vectors",
    metadata,
    # chunks whose vectors were made from annotations; all others are made from the text
    reference("chunk_seq", "chunks.seq", primary_key=True),
    reference("kb_id", "knowledge_bases.id"),
    # name of the input in the recipe; empty if the annotations changed since
    Column("text", String, nullable=False),
    # hash of the embedder's input; replaces `chunks.embed_hash`
    Column("embed_hash", String, nullable=False),
    # version of the knowledge base in which the chunk got the vector
    Column("version", Int64, nullable=False),
    Index("statement_vectors_by_kb", "kb_id", "text"),
)

annotator_answers = Table(
    "annotator_answers",
    metadata,
    # answers of a language model about chunks, by a hash of the prompt
    reference("kb_id", "knowledge_bases.id", primary_key=True),
    Column("key", String, primary_key=True),
    Column("chunk_id", String, nullable=False),
    Column("statements", Json(object), nullable=False),
)

subjects = Table(
    "subjects",
    metadata,
    # derived from kind and key, so that all workspaces have the same ids
    Column("id", String, primary_key=True),
    Column("kind", String, nullable=False),
    # the normalized name
    *required_columns(Text, "key", "name"),
    # the main name of this alias
    Column("alias_of", String, ForeignKey("subjects.id", ondelete="SET NULL")),
    sa.UniqueConstraint("kind", "key"),
    Index("subjects_by_alias", "alias_of"),
)

annotation_subjects = Table(
    "annotation_subjects",
    metadata,
    reference("chunk_seq", "chunks.seq", primary_key=True),
    # number of the annotation in its chunk
    Column("position", Int64, primary_key=True),
    reference("subject_id", "subjects.id", primary_key=True),
    Index("annotation_subjects_by_subject", "subject_id", "chunk_seq"),
)

entities = Table(
    "entities",
    metadata,
    # details of subjects of kind entity
    reference("subject_id", "subjects.id", primary_key=True),
    Column("type", String, nullable=False),
    Column("description", Text, nullable=False),
    Column("properties", Json(dict, optional=True), nullable=False),
    # the annotator, or a person (`by_hand`), whose values no rebuild changes
    Column("made_by", String, nullable=False),
    Column("by_hand", Boolean, nullable=False),
    Column("updated_at", UtcDateTime, nullable=False),
    # deleted by a person; no rebuild restores it
    Column("deleted_at", UtcDateTime),
)

relations = Table(
    "relations",
    metadata,
    Column("id", Int64, primary_key=True, autoincrement=True),
    *required_columns(String, "source_kind", "source_id", "name", "target_kind", "target_id"),
    Column("weight", Float, nullable=False),
    Column("made_by", String, nullable=False),
    Column("by_hand", Boolean, nullable=False),
    Column("note", Text, nullable=False),
    *required_columns(UtcDateTime, "created_at", "seen_at"),
    # deleted by a person; no rebuild restores it
    Column("deleted_at", UtcDateTime),
    sa.UniqueConstraint("source_kind", "source_id", "name", "target_kind", "target_id"),
    Index("relations_by_target", "target_kind", "target_id"),
    sqlite_autoincrement=True,
)

ENDS = ("source_kind", "source_id", "name", "target_kind", "target_id")
"""Columns that identify a relation."""

relation_evidence = Table(
    "relation_evidence",
    metadata,
    reference("relation_id", "relations.id", primary_key=True),
    reference("chunk_seq", "chunks.seq", primary_key=True),
    # weight that the chunk adds to the relation
    Column("weight", Float, nullable=False),
    Index("relation_evidence_by_chunk", "chunk_seq"),
)

related_chunks = Table(
    "related_chunks",
    metadata,
    # chunks whose relations were read
    reference("chunk_seq", "chunks.seq", primary_key=True),
    reference("kb_id", "knowledge_bases.id"),
    # digest of the names in the chunk, its definitions and the reader's revision
    Column("digest", String, nullable=False),
    Index("related_chunks_by_kb", "kb_id"),
)

built_graphs = Table(
    "built_graphs",
    metadata,
    # knowledge_bases.version when the relations of a knowledge base were last read
    reference("kb_id", "knowledge_bases.id", primary_key=True),
    Column("version", Int64, nullable=False),
)

merges = Table(
    "merges",
    metadata,
    # decisions by people whether two entities are the same
    reference("kept_id", "subjects.id", primary_key=True),
    reference("merged_id", "subjects.id", primary_key=True),
    Column("applied", Boolean, nullable=False),
    # ids of the merged entity's aliases, which became aliases of the kept one
    Column("moved", Json(list), nullable=False),
    Column("made_by", String, nullable=False),
    Column("decided_at", UtcDateTime, nullable=False),
    Index("merges_by_merged", "merged_id"),
)

graph_edits = Table(
    "graph_edits",
    metadata,
    # edits by people, with the rows before and after
    Column("id", Int64, primary_key=True, autoincrement=True),
    # readable description
    Column("what", Text, nullable=False),
    Column("made_by", String, nullable=False),
    Column("made_at", UtcDateTime, nullable=False),
    *required_columns(Json(object), "before", "after"),
    # built_graphs.version of each knowledge base at that time
    Column("built", Json(dict), nullable=False),
    Index("graph_edits_by_person", "made_by", "id"),
    sqlite_autoincrement=True,
)


entries = Table(
    "entries",
    metadata,
    # name of the folder
    Column("slug", String, primary_key=True),
    # does not change when the folder is renamed
    Column("id", String, nullable=False),
    # id of the searched document; empty until it is stored
    Column("document_id", String, nullable=False),
    *required_columns(Text, "title", "description"),
    Column("tags", Json(list), nullable=False),
    Column("category", Text, nullable=False),
    Column("status", String, nullable=False),
    Column("average", Float, nullable=False),
    Column("votes", Int64, nullable=False),
    Column("source", String, nullable=False),
    Column("origin_task_id", Text, nullable=False),
    *required_columns(UtcDateTime, "created_at", "updated_at"),
    # digest of the content, without votes
    Column("version", String, nullable=False),
    # fault of skill.yaml; the columns above then keep their last valid values
    Column("problem", Text, nullable=False),
    # digest of names, sizes and times of the files when they were read; time of the last change
    # and of the reading, in nanoseconds
    Column("stamp", String, nullable=False),
    *required_columns(BigInteger, "changed", "seen"),
    Index("entries_by_id", "id", unique=True),
)

learned_folders = Table(
    "learned_folders",
    metadata,
    # output folders of tasks by a digest of their content, so that each is learned once
    Column("folder", Text, primary_key=True),
    *required_columns(String, "digest", "slug"),
    # why nothing was learned
    Column("problem", Text, nullable=False),
)


files = Table(
    "files",
    metadata,
    Column("path", Text, primary_key=True),
    # state of the file when its documents were stored; times in nanoseconds
    *required_columns(BigInteger, "size", "changed", "status_changed"),
    Column("digest", String, nullable=False),
    # when the state was read: times do not show a later change in the same tick of the clock
    *required_columns(BigInteger, "seen", "created"),
    # URIs of the documents; none for files that are not searched
    Column("uris", Json(list), nullable=False),
)

file_names = Table(
    "file_names",
    metadata,
    # normalized names by which links may refer to a file: file name, title and aliases
    Column("path", Text, primary_key=True),
    Column("key", Text, primary_key=True),
    Index("file_names_by_key", "key"),
)

file_links = Table(
    "file_links",
    metadata,
    # links of a file: as written, the normalized name, and the path to which it currently leads
    Column("path", Text, primary_key=True),
    Column("target", Text, primary_key=True),
    Column("key", Text, nullable=False),
    # empty if the file does not exist
    Column("leads_to", Text, nullable=False),
    Index("file_links_by_key", "key"),
    Index("file_links_by_end", "leads_to"),
)

tokens = Table(
    "tokens",
    metadata,
    # the public part
    Column("id", String, primary_key=True),
    Column("name", String, nullable=False),
    # SHA-256 of the whole token; with 256 random bits no slow hash is needed
    *required_columns(String, "digest", "scope"),
    # names of knowledge bases; empty for all
    Column("kbs", Json(list), nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    Column("expires_at", UtcDateTime),
    Column("used_at", UtcDateTime),
    Index("tokens_by_name", "name", unique=True),
)

jobs = Table(
    "jobs",
    metadata,
    Column("id", String, primary_key=True),
    Column("kind", String, nullable=False),
    Column("kbs", Json(list), nullable=False),
    *required_columns(String, "owner", "state"),
    Column("arguments", Json(dict), nullable=False),
    Column("progress", Json(object, optional=True)),
    Column("result", Json(object, optional=True)),
    Column("problem", Json(object, optional=True)),
    # whether a client asked to cancel it
    Column("cancelled", Boolean, nullable=False),
    Column("attempts", Int64, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    Column("started_at", UtcDateTime),
    Column("ended_at", UtcDateTime),
    Index("jobs_by_creation", "created_at"),
)
