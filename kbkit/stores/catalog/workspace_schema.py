"""SQLAlchemy tables of annotations, the graph, files, entries and the state of a server."""

import sqlalchemy as sa

from kbkit.stores.catalog.schema import Int64, Json, UtcDateTime, reference, required_columns, table

document_names = table(
    "document_names",
    # names in a document; together, those of a knowledge base are its gazetteer
    reference("document_id", "documents.id", primary_key=True),
    sa.Column("name", sa.Text, primary_key=True),
    reference("kb_id", "knowledge_bases.id"),
    sa.Column("type", sa.String, nullable=False),
    sa.Column("defines", sa.Boolean, nullable=False),
    sa.Column("anchor", sa.String, nullable=False),
    sa.Column("confirmed", sa.Boolean, nullable=False),
    sa.Index("document_names_by_kb", "kb_id", "name"),
)

named_documents = table(
    "named_documents",
    # documents whose names were read, and by which revision; deleted when a document changes
    reference("document_id", "documents.id", primary_key=True),
    reference("kb_id", "knowledge_bases.id"),
    sa.Column("revision", Int64, nullable=False),
    sa.Index("named_documents_by_kb", "kb_id"),
)

gazetteers = table(
    "gazetteers",
    # the names that chunks were last searched for, compressed, to detect changes
    reference("kb_id", "knowledge_bases.id", primary_key=True),
    sa.Column("names", sa.LargeBinary, nullable=False),
)

annotations = table(
    "annotations",
    reference("chunk_seq", "chunks.seq", primary_key=True),
    # number of the annotation in its chunk, from 0
    sa.Column("position", Int64, primary_key=True),
    reference("kb_id", "knowledge_bases.id"),
    # character offsets in the chunk
    *required_columns(Int64, "start", "end"),
    sa.Column("normalized_text", sa.Text, nullable=False),
    # empty if the type of statement is unknown
    sa.Column("frame", sa.String, nullable=False),
    sa.Column("confidence", sa.Float, nullable=False),
    # fingerprint of the annotator
    sa.Column("annotator", sa.String, nullable=False),
    # sa.JSON: source, name and target of each relation; empty without relations
    sa.Column("relations", sa.Text, nullable=False, server_default=""),
    sa.Index("annotations_by_frame", "kb_id", "frame", "chunk_seq"),
)

statement_vectors = table(
    "statement_vectors",
    # chunks whose vectors were made from annotations; all others are made from the text
    reference("chunk_seq", "chunks.seq", primary_key=True),
    reference("kb_id", "knowledge_bases.id"),
    # name of the input in the recipe; empty if the annotations changed since
    sa.Column("text", sa.String, nullable=False),
    # hash of the embedder's input; replaces `chunks.embed_hash`
    sa.Column("embed_hash", sa.String, nullable=False),
    # version of the knowledge base in which the chunk got the vector
    sa.Column("version", Int64, nullable=False),
    sa.Index("statement_vectors_by_kb", "kb_id", "text"),
)

annotator_answers = table(
    "annotator_answers",
    # answers of a language model about chunks, by a hash of the prompt
    reference("kb_id", "knowledge_bases.id", primary_key=True),
    sa.Column("key", sa.String, primary_key=True),
    sa.Column("chunk_id", sa.String, nullable=False),
    sa.Column("statements", Json(object), nullable=False),
)

subjects = table(
    "subjects",
    # derived from kind and key, so that all workspaces have the same ids
    sa.Column("id", sa.String, primary_key=True),
    sa.Column("kind", sa.String, nullable=False),
    # the normalized name
    *required_columns(sa.Text, "key", "name"),
    # the main name of this alias
    sa.Column("alias_of", sa.String, sa.ForeignKey("subjects.id", ondelete="SET NULL")),
    sa.UniqueConstraint("kind", "key"),
    sa.Index("subjects_by_alias", "alias_of"),
)

annotation_subjects = table(
    "annotation_subjects",
    reference("chunk_seq", "chunks.seq", primary_key=True),
    # number of the annotation in its chunk
    sa.Column("position", Int64, primary_key=True),
    reference("subject_id", "subjects.id", primary_key=True),
    sa.Index("annotation_subjects_by_subject", "subject_id", "chunk_seq"),
)

entities = table(
    "entities",
    # details of subjects of kind entity
    reference("subject_id", "subjects.id", primary_key=True),
    sa.Column("type", sa.String, nullable=False),
    sa.Column("description", sa.Text, nullable=False),
    sa.Column("properties", Json(dict, optional=True), nullable=False),
    # the annotator, or a person (`by_hand`), whose values no rebuild changes
    sa.Column("made_by", sa.String, nullable=False),
    sa.Column("by_hand", sa.Boolean, nullable=False),
    sa.Column("updated_at", UtcDateTime, nullable=False),
    # deleted by a person; no rebuild restores it
    sa.Column("deleted_at", UtcDateTime),
)

relations = table(
    "relations",
    sa.Column("id", Int64, primary_key=True, autoincrement=True),
    *required_columns(sa.String, "source_kind", "source_id", "name", "target_kind", "target_id"),
    sa.Column("weight", sa.Float, nullable=False),
    sa.Column("made_by", sa.String, nullable=False),
    sa.Column("by_hand", sa.Boolean, nullable=False),
    sa.Column("note", sa.Text, nullable=False),
    *required_columns(UtcDateTime, "created_at", "seen_at"),
    # deleted by a person; no rebuild restores it
    sa.Column("deleted_at", UtcDateTime),
    sa.UniqueConstraint("source_kind", "source_id", "name", "target_kind", "target_id"),
    sa.Index("relations_by_target", "target_kind", "target_id"),
)

ENDS = ("source_kind", "source_id", "name", "target_kind", "target_id")
"""Columns that identify a relation."""

relation_evidence = table(
    "relation_evidence",
    reference("relation_id", "relations.id", primary_key=True),
    reference("chunk_seq", "chunks.seq", primary_key=True),
    # weight that the chunk adds to the relation
    sa.Column("weight", sa.Float, nullable=False),
    sa.Index("relation_evidence_by_chunk", "chunk_seq"),
)

related_chunks = table(
    "related_chunks",
    # chunks whose relations were read
    reference("chunk_seq", "chunks.seq", primary_key=True),
    reference("kb_id", "knowledge_bases.id"),
    # digest of the names in the chunk, its definitions and the reader's revision
    sa.Column("digest", sa.String, nullable=False),
    sa.Index("related_chunks_by_kb", "kb_id"),
)

built_graphs = table(
    "built_graphs",
    # knowledge_bases.version when the relations of a knowledge base were last read
    reference("kb_id", "knowledge_bases.id", primary_key=True),
    sa.Column("version", Int64, nullable=False),
)

merges = table(
    "merges",
    # decisions by people whether two entities are the same
    reference("kept_id", "subjects.id", primary_key=True),
    reference("merged_id", "subjects.id", primary_key=True),
    sa.Column("applied", sa.Boolean, nullable=False),
    # ids of the merged entity's aliases, which became aliases of the kept one
    sa.Column("moved", Json(list), nullable=False),
    sa.Column("made_by", sa.String, nullable=False),
    sa.Column("decided_at", UtcDateTime, nullable=False),
    sa.Index("merges_by_merged", "merged_id"),
)

graph_edits = table(
    "graph_edits",
    # edits by people, with the rows before and after
    sa.Column("id", Int64, primary_key=True, autoincrement=True),
    # readable description
    sa.Column("what", sa.Text, nullable=False),
    sa.Column("made_by", sa.String, nullable=False),
    sa.Column("made_at", UtcDateTime, nullable=False),
    *required_columns(Json(object), "before", "after"),
    # built_graphs.version of each knowledge base at that time
    sa.Column("built", Json(dict), nullable=False),
    sa.Index("graph_edits_by_person", "made_by", "id"),
)


entries = table(
    "entries",
    # name of the folder
    sa.Column("slug", sa.String, primary_key=True),
    # does not change when the folder is renamed
    sa.Column("id", sa.String, nullable=False),
    # id of the searched document; empty until it is stored
    sa.Column("document_id", sa.String, nullable=False),
    *required_columns(sa.Text, "title", "description"),
    sa.Column("tags", Json(list), nullable=False),
    sa.Column("category", sa.Text, nullable=False),
    sa.Column("status", sa.String, nullable=False),
    sa.Column("average", sa.Float, nullable=False),
    sa.Column("votes", Int64, nullable=False),
    sa.Column("source", sa.String, nullable=False),
    sa.Column("origin_task_id", sa.Text, nullable=False),
    *required_columns(UtcDateTime, "created_at", "updated_at"),
    # digest of the content, without votes
    sa.Column("version", sa.String, nullable=False),
    # fault of skill.yaml; the columns above then keep their last valid values
    sa.Column("problem", sa.Text, nullable=False),
    # digest of names, sizes and times of the files when they were read; time of the last change
    # and of the reading, in nanoseconds
    sa.Column("stamp", sa.String, nullable=False),
    *required_columns(sa.BigInteger, "changed", "seen"),
    sa.Index("entries_by_id", "id", unique=True),
)

learned_folders = table(
    "learned_folders",
    # output folders of tasks by a digest of their content, so that each is learned once
    sa.Column("folder", sa.Text, primary_key=True),
    *required_columns(sa.String, "digest", "slug"),
    # why nothing was learned
    sa.Column("problem", sa.Text, nullable=False),
)


files = table(
    "files",
    sa.Column("path", sa.Text, primary_key=True),
    # state of the file when its documents were stored; times in nanoseconds
    *required_columns(sa.BigInteger, "size", "changed", "status_changed"),
    sa.Column("digest", sa.String, nullable=False),
    # when the state was read: times do not show a later change in the same tick of the clock
    *required_columns(sa.BigInteger, "seen", "created"),
    # URIs of the documents; none for files that are not searched
    sa.Column("uris", Json(list), nullable=False),
)

file_names = table(
    "file_names",
    # normalized names by which links may refer to a file: file name, title and aliases
    sa.Column("path", sa.Text, primary_key=True),
    sa.Column("key", sa.Text, primary_key=True),
    sa.Index("file_names_by_key", "key"),
)

file_links = table(
    "file_links",
    # links of a file: as written, the normalized name, and the path to which it currently leads
    sa.Column("path", sa.Text, primary_key=True),
    sa.Column("target", sa.Text, primary_key=True),
    sa.Column("key", sa.Text, nullable=False),
    # empty if the file does not exist
    sa.Column("leads_to", sa.Text, nullable=False),
    sa.Index("file_links_by_key", "key"),
    sa.Index("file_links_by_end", "leads_to"),
)

tokens = table(
    "tokens",
    # the public part
    sa.Column("id", sa.String, primary_key=True),
    sa.Column("name", sa.String, nullable=False),
    # SHA-256 of the whole token; with 256 random bits no slow hash is needed
    *required_columns(sa.String, "digest", "scope"),
    # names of knowledge bases; empty for all
    sa.Column("kbs", Json(list), nullable=False),
    sa.Column("created_at", UtcDateTime, nullable=False),
    sa.Column("expires_at", UtcDateTime),
    sa.Column("used_at", UtcDateTime),
    sa.Index("tokens_by_name", "name", unique=True),
)

jobs = table(
    "jobs",
    sa.Column("id", sa.String, primary_key=True),
    sa.Column("kind", sa.String, nullable=False),
    sa.Column("kbs", Json(list), nullable=False),
    *required_columns(sa.String, "owner", "state"),
    sa.Column("arguments", Json(dict), nullable=False),
    sa.Column("progress", Json(object, optional=True)),
    sa.Column("result", Json(object, optional=True)),
    sa.Column("problem", Json(object, optional=True)),
    # whether a client asked to cancel it
    sa.Column("cancelled", sa.Boolean, nullable=False),
    sa.Column("attempts", Int64, nullable=False),
    sa.Column("created_at", UtcDateTime, nullable=False),
    sa.Column("started_at", UtcDateTime),
    sa.Column("ended_at", UtcDateTime),
    sa.Index("jobs_by_creation", "created_at"),
)
