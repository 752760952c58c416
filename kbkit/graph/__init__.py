"""The knowledge graph: relations out of what documents say, walks, merges and gaps."""
