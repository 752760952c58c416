"""The knowledge graph: a picture, a list beside it, and what people change by hand."""
