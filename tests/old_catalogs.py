"""What has to go from a catalog before it looks as an older kbkit left it."""

KNOWLEDGE_TABLES = (
    "statement_vectors", "graph_edits", "annotator_answers", "built_graphs", "related_chunks",
    "merges", "relation_evidence", "relations", "entities", "annotation_subjects", "subjects",
    "annotations", "gazetteers", "named_documents", "document_names", "files", "file_names",
    "file_links", "entries", "learned_folders",
)  # fmt: skip
"""What revisions 0017 to 0023 of the catalog brought, in an order in which they can go."""
