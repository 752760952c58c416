"""SQLAlchemy tables of annotations, the graph, files, entries and the state of a server."""

import sqlalchemy as sa

from kbkit.stores.catalog.schema import Int64, Json, UtcDateTime, reference, required, table

document_names = table(
    "document_names",
    # names in a document; together, those of a knowledge base are its gazetteer
    reference("document_id", "documents.id", primary_key=True),
    sa.Column("name", sa.Text, primary_key=True),
    reference("kb_id", "knowledge_bases.id"),
    *required(type=sa.String, defines=sa.Boolean, anchor=sa.String, confirmed=sa.Boolean),
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
    *required(start=Int64, end=Int64, normalized_text=sa.Text),
    # empty if the type of statement is unknown; fingerprint of the annotator
    *required(frame=sa.String, confidence=sa.Float, annotator=sa.String),
    # JSON: source, name and target of each relation; empty without relations
    sa.Column("relations", sa.Text, nullable=False, server_default=""),
    sa.Index("annotations_by_frame", "kb_id", "frame", "chunk_seq"),
)

statement_vectors = table(
    "statement_vectors",
    # chunks whose vectors were made from annotations; all others are made from the text
    reference("chunk_seq", "chunks.seq", primary_key=True),
    reference("kb_id", "knowledge_bases.id"),
    # name of the input in the recipe, empty if the annotations changed since; hash of the
    # embedder's input, which replaces `chunks.embed_hash`; version of the knowledge base in which
    # the chunk got the vector
    *required(text=sa.String, embed_hash=sa.String, version=Int64),
    sa.Index("statement_vectors_by_kb", "kb_id", "text"),
)

annotator_answers = table(
    "annotator_answers",
    # answers of a language model about chunks, by a hash of the prompt
    reference("kb_id", "knowledge_bases.id", primary_key=True),
    sa.Column("key", sa.String, primary_key=True),
    *required(chunk_id=sa.String, statements=Json(object)),
)

subjects = table(
    "subjects",
    # derived from kind and key, so that all workspaces have the same ids
    sa.Column("id", sa.String, primary_key=True),
    # key: the normalized name
    *required(kind=sa.String, key=sa.Text, name=sa.Text),
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
    *required(type=sa.String, description=sa.Text, properties=Json(dict, optional=True)),
    # the annotator, or a person (`by_hand`), whose values no rebuild changes
    *required(made_by=sa.String, by_hand=sa.Boolean, updated_at=UtcDateTime),
    # deleted by a person; no rebuild restores it
    sa.Column("deleted_at", UtcDateTime),
)

relations = table(
    "relations",
    sa.Column("id", Int64, primary_key=True, autoincrement=True),
    *required(source_kind=sa.String, source_id=sa.String, name=sa.String, target_kind=sa.String),
    *required(target_id=sa.String, weight=sa.Float, made_by=sa.String, by_hand=sa.Boolean),
    *required(note=sa.Text, created_at=UtcDateTime, seen_at=UtcDateTime),
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
    # moved: ids of the merged entity's aliases, which became aliases of the kept one
    *required(applied=sa.Boolean, moved=Json(list), made_by=sa.String, decided_at=UtcDateTime),
    sa.Index("merges_by_merged", "merged_id"),
)

graph_edits = table(
    "graph_edits",
    # edits by people, with the rows before and after
    sa.Column("id", Int64, primary_key=True, autoincrement=True),
    # readable description
    *required(what=sa.Text, made_by=sa.String, made_at=UtcDateTime, before=Json(object)),
    # built_graphs.version of each knowledge base at that time
    *required(after=Json(object), built=Json(dict)),
    sa.Index("graph_edits_by_person", "made_by", "id"),
)


entries = table(
    "entries",
    # name of the folder
    sa.Column("slug", sa.String, primary_key=True),
    # does not change when the folder is renamed
    sa.Column("id", sa.String, nullable=False),
    # id of the searched document; empty until it is stored
    *required(document_id=sa.String, title=sa.Text, description=sa.Text, tags=Json(list)),
    *required(category=sa.Text, status=sa.String, average=sa.Float, votes=Int64, source=sa.String),
    *required(origin_task_id=sa.Text, created_at=UtcDateTime, updated_at=UtcDateTime),
    # digest of the content, without votes; fault of skill.yaml: the columns above then keep their
    # last valid values
    *required(version=sa.String, problem=sa.Text),
    # digest of names, sizes and times of the files when they were read; time of the last change
    # and of the reading, in nanoseconds
    *required(stamp=sa.String, changed=sa.BigInteger, seen=sa.BigInteger),
    sa.Index("entries_by_id", "id", unique=True),
)

learned_folders = table(
    "learned_folders",
    # output folders of tasks by a digest of their content, so that each is learned once
    sa.Column("folder", sa.Text, primary_key=True),
    # problem: why nothing was learned
    *required(digest=sa.String, slug=sa.String, problem=sa.Text),
)


files = table(
    "files",
    sa.Column("path", sa.Text, primary_key=True),
    # state of the file when its documents were stored; times in nanoseconds
    *required(size=sa.BigInteger, changed=sa.BigInteger, status_changed=sa.BigInteger),
    # seen: when the state was read; times do not show a later change in the same tick of the clock
    *required(digest=sa.String, seen=sa.BigInteger, created=sa.BigInteger),
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
    # leads_to: empty if the file does not exist
    *required(key=sa.Text, leads_to=sa.Text),
    sa.Index("file_links_by_key", "key"),
    sa.Index("file_links_by_end", "leads_to"),
)

tokens = table(
    "tokens",
    # the public part
    sa.Column("id", sa.String, primary_key=True),
    # SHA-256 of the whole token: with 256 random bits no slow hash is needed; names of knowledge
    # bases, empty for all
    *required(name=sa.String, digest=sa.String, scope=sa.String),
    *required(kbs=Json(list), created_at=UtcDateTime),
    sa.Column("expires_at", UtcDateTime),
    sa.Column("used_at", UtcDateTime),
    sa.Index("tokens_by_name", "name", unique=True),
)

jobs = table(
    "jobs",
    sa.Column("id", sa.String, primary_key=True),
    *required(kind=sa.String, kbs=Json(list), owner=sa.String, state=sa.String),
    *required(arguments=Json(dict)),
    sa.Column("progress", Json(object, optional=True)),
    sa.Column("result", Json(object, optional=True)),
    sa.Column("problem", Json(object, optional=True)),
    # whether a client asked to cancel it
    *required(cancelled=sa.Boolean, attempts=Int64, created_at=UtcDateTime),
    sa.Column("started_at", UtcDateTime),
    sa.Column("ended_at", UtcDateTime),
    sa.Index("jobs_by_creation", "created_at"),
)
