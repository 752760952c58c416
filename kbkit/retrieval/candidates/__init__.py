"""Candidates: the chunks that the legs of search find for a query, and what ranking reads of them.

A snapshot of the knowledge base gives them fastest. Where there is none of the catalog's version
(while documents are being stored, say), the lexical index and the catalog give them.
"""
