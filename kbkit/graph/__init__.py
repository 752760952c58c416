"""The knowledge graph: relations from documents, walks, merges and gaps."""
