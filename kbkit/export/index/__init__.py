"""The search index of a published knowledge base, read by browsers piece by piece.

`write_index` makes it of a snapshot and the query encoder; `kbkit.publishing.published_index`
searches it in Python as ``assets/engine.js`` does in the browser.

The index is a folder of *shards*. Each is a script with one call, ``kbkitShard({...})``, so that
it can be fetched, and where nothing can be fetched (``file://``) be loaded as a script:

- ``core``: what every query needs of every chunk: lengths, documents, clusters; projection scales,
  centroids of the clusters, stop words, what parts the terms of each shard from those before,
  and how many chunks each shard of texts has.
- ``t/N``: neighbouring terms: postings, and each one's rows of the query encoders for chunks and
  for cards.
- ``v/N``: the vectors of one cluster of chunks.
- ``c/N``: the vectors of one cluster of cards.
- ``e/N``: the same vectors of cards with all dimensions, in 8 bits, for browsers with the model.
- ``m``: what these need to know besides: of those cards as the core has it of others, and what
  turns the model's vectors into those of chunks, where it embedded them.
- ``x/N``: texts of neighbouring chunks, for what is shown of hits.
- ``a``: what filters by annotations need: the frames of each chunk, the commonest subjects, what
  parts the subjects of each shard from those before.
- ``s/N``: neighbouring subjects, and the chunks that speak of them.

Terms, texts and subjects fill their shards up to a number of bytes: files cost the writer,
copies and serves them, and bytes that it does not need cost a query.

Beside them ``stem`` is a script with the stemmer of the knowledge base's language.

Binary columns are base64 of little endian numbers, *varints* base 128 with the low bits first.
"""

from kbkit.export.index.terms import (
    IndexContent,
    IndexedAnnotations,
    IndexedCards,
    IndexedChunk,
    IndexedDocument,
    IndexedSubject,
)
from kbkit.export.index.writer import IndexReport, is_written, remove_index, write_index

__all__ = [
    "IndexContent",
    "IndexReport",
    "IndexedAnnotations",
    "IndexedCards",
    "IndexedChunk",
    "IndexedDocument",
    "IndexedSubject",
    "is_written",
    "remove_index",
    "write_index",
]
