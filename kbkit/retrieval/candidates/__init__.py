"""Candidates: the chunks that retrievers find for a query.

They are read from a snapshot, or, if none has the current version (for example while documents are
being stored), from the lexical index and the catalog.
"""
