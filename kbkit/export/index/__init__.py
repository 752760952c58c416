"""The search index of a published knowledge base, read in parts.

`write_index` writes it. ``assets/engine.js`` searches it in the browser,
`kbkit.export.publishing.published_index` in Python.

The index is a folder of *shards*, scripts with one call ``kbkitShard({...})``. Browsers fetch them,
or load them as scripts under ``file://``.

- ``core``: data for each query: lengths, documents and clusters of all chunks, projection scales,
  centroids, stop words, the first term of each shard, the chunks of each text shard.
- ``t/N``: terms in order: postings, and the rows of the query encoders for chunks and summaries.
- ``v/N`` and ``c/N``: vectors of one cluster of chunks, or of summaries.
- ``e/N``: vectors of summaries with all dimensions, in 8 bits, for browsers with the model.
- ``m``: scales of ``e``, and the map from the model's vectors to those of chunks.
- ``x/N``: texts of chunks in order.
- ``a``: statement types of each chunk, the most common subjects, the first subject of each shard.
- ``s/N``: subjects in order, and their chunks.

Shards of terms, texts or subjects have a target size: smaller shards cost the writer and servers,
larger ones each query. ``stem`` is a script with the stemmer of the language.

Binary columns are base64 of little endian numbers; *varints* are base 128, low bits first.
"""

from kbkit.export.index.terms import (
    IndexContent,
    IndexedAnnotations,
    IndexedChunk,
    IndexedDocument,
    IndexedSubject,
    IndexedSummaries,
)
from kbkit.export.index.writer import IndexReport, is_written, remove_index, write_index

__all__ = [
    "IndexContent",
    "IndexReport",
    "IndexedAnnotations",
    "IndexedChunk",
    "IndexedDocument",
    "IndexedSubject",
    "IndexedSummaries",
    "is_written",
    "remove_index",
    "write_index",
]
