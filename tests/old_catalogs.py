"""What has to go from a catalog before it looks as an older kbkit left it."""

KNOWLEDGE_TABLES = (
    "statement_vectors", "graph_edits", "annotator_answers", "built_graphs", "related_chunks",
    "merges", "relation_evidence", "relations", "entities", "annotation_subjects", "subjects",
    "annotations", "gazetteers", "named_documents", "document_names", "files", "file_names",
    "file_links", "entries", "learned_folders", "tokens", "jobs", "replayed_answers",
    "removed_chunks", "name_uses",
)  # fmt: skip
"""What revisions 0017 to 0026 of the catalog brought, in an order in which they can go."""


def forget_card_versions(connection):
    """Take from the tables of cards what revision 0025 brought."""
    for table in ("cards", "card_vectors"):
        connection.execute(f"DROP INDEX {table}_by_version")
        connection.execute(f"ALTER TABLE {table} DROP COLUMN version")
