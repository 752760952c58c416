"""Candidates: the chunks that retrievers find for a query.

A snapshot of the knowledge base gives them fastest. Where there is none of the catalog's version
(while documents are being stored, say), the lexical index and the catalog give them.
"""
