"""The knowledge graph panel."""
