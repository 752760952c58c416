"""Has chunks found by what they say: embeds what their annotations say, or that beside their text.

Chunks are stored with vectors of their text. Behind their annotation they get others, some at a
time; those whose annotations change get theirs anew. The lexical leg reads their text all the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from kbkit.embedding.base import Embedder, Matrix, batch_size
from kbkit.ingest.chunking import embedded_text
from kbkit.ingest.ids import digest
from kbkit.models import Chunk, Document
from kbkit.stores.catalog import knowledge_bases, outbox, packing, reading, statement_vectors
from kbkit.stores.catalog.database import Database
from kbkit.stores.catalog.statement_vectors import CHUNK, Source


def embedded_texts(
    text: str, document: Document, chunk: Chunk, statements: Sequence[str]
) -> tuple[str, ...]:
    """The texts of which the vector of a chunk is made.

    Args:
        text: ``chunk``, ``normalized`` or ``both``, as a recipe has it.
        document: The chunk's document.
        chunk: The chunk.
        statements: What its annotations say; where that is nothing, its text is embedded.
    """
    own = embedded_text(document.title, chunk.heading_path, chunk.text)
    said = tuple(
        dict.fromkeys(
            embedded_text(document.title, chunk.heading_path, each) for each in statements if each
        )
    )
    if text == CHUNK or not said:
        return (own,)
    return said if text == "normalized" else (own, *said)


def texts_of_source(source: Source, document: Document, chunk: Chunk) -> tuple[str, ...]:
    """The texts of which the vector of a chunk is made now, for another embedder to read.

    Where its annotations have changed since, it is of what they say now; it is made anew then.
    """
    own = embedded_texts(CHUNK, document, chunk, ())
    if hash_of(own) == source.embed_hash:
        return own
    return embedded_texts(source.text or "normalized", document, chunk, source.statements)


def hash_of(texts: Sequence[str]) -> str:
    """Identifies what a vector is made of."""
    return digest("\0".join(texts))


def embed_sums(embedder: Embedder, texts: Mapping[str, Sequence[str]]) -> dict[str, bytes]:
    """Packed vectors, each the sum of those of its texts scaled to length 1, by the same keys.

    Raises:
        EmbedderError: The embedder failed.
    """
    matrix = embedder.embed_passages([each for group in texts.values() for each in group])
    sizes = [len(group) for group in texts.values()]
    starts = np.cumsum([0, *sizes[:-1]])
    sums: Matrix = np.add.reduceat(matrix, starts, axis=0, dtype=np.float32) if sizes else matrix
    lengths = np.linalg.norm(sums, axis=1, keepdims=True)
    several = (np.array(sizes)[:, None] > 1) & (lengths > 0)
    scaled = np.divide(sums, lengths, out=sums.copy(), where=several)
    return dict(zip(texts, packing.pack(scaled), strict=True))


def embed_statements(
    database: Database,
    kb_id: str,
    embedder: Embedder,
    *,
    tell: Callable[[int, int], None] = lambda done, total: None,
    stop: Callable[[], bool] = lambda: False,
) -> None:
    """Give the chunks of a knowledge base vectors of what its spec says; it goes on where it was.

    Args:
        database: The catalog.
        kb_id: The knowledge base.
        embedder: The one whose vectors its chunks have.
        tell: Called with how many are done, of how many.
        stop: Asked often; true ends the work cleanly.

    Raises:
        EmbedderError: The embedder failed; what it made before is kept.
        NotFoundError: The knowledge base was deleted.
    """
    size, done = batch_size(embedder), 0
    with database.read() as transaction:
        text = knowledge_bases.get_by_id(transaction, kb_id).embedded_text
        total = statement_vectors.count_lacking(transaction, kb_id, text)
    while not stop():
        with database.read() as transaction:
            row = knowledge_bases.get_by_id(transaction, kb_id)
            seqs = statement_vectors.lacking(transaction, kb_id, text, size)
            before = statement_vectors.sources(transaction, seqs)
            found = reading.get_chunks(transaction, seqs)
        if not seqs or (row.embedder, row.embedded_text) != (embedder.fingerprint, text):
            break  # another process may have changed what is wanted
        texts: dict[str, tuple[str, ...]] = {}
        hashes: dict[int, str] = {}
        for seq, (chunk, document) in found.items():
            wanted = embedded_texts(text, document, chunk, before[seq].statements)
            hashes[seq] = key = hash_of(wanted)
            if key != before[seq].embed_hash:
                texts[key] = wanted
        packed = embed_sums(embedder, texts)
        with database.write() as transaction:
            row = knowledge_bases.get_by_id(transaction, kb_id)
            if (row.embedder, row.embedded_text) != (embedder.fingerprint, text):
                break
            now = statement_vectors.sources(transaction, seqs)
            kept = {seq: key for seq, key in hashes.items() if now.get(seq) == before[seq]}
            changed = {before[seq].id: seq for seq, key in kept.items() if key in packed}
            version = row.version + 1
            statement_vectors.put(transaction, kb_id, kept, packed, text=text, version=version)
            if changed:
                outbox.add(transaction, kb_id, dict(changed))
                knowledge_bases.touch(transaction, kb_id)
        done += len(kept)
        tell(min(done, total), total)
