"""Annotations of chunks: names, statement types, problems and resolutions."""
