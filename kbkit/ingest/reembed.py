"""Change the embedder of a knowledge base, without fetching or splitting again.

The new vectors wait in the catalog until there is one for every chunk; then one transaction takes
them over. Searches go on with the old ones until then, and what was embedded is kept when the
work is stopped, fails or is killed: the next try goes on from there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from kbkit.embedding.base import Embedder, Matrix, batch_size
from kbkit.ingest.cutting import digest, embedded_text
from kbkit.ingest.embedding import Destination, RunCounters
from kbkit.models import Chunk, Document, IngestReport, Progress
from kbkit.progress import OnProgress
from kbkit.stores.catalog import (
    knowledge_bases,
    outbox,
    packing,
    pending_vectors,
    reading,
    statement_vectors,
)
from kbkit.stores.catalog.database import Database
from kbkit.stores.catalog.outbox import restart
from kbkit.stores.catalog.statement_vectors import CHUNK, Source
from kbkit.stores.stores import Stores


def embedded_texts(
    text: str, document: Document, chunk: Chunk, statements: Sequence[str]
) -> tuple[str, ...]:
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
    """Return the texts behind a chunk's vector, for another embedder.

    Where its annotations have changed since, it is of what they say now; it is made anew then.
    """
    own = embedded_texts(CHUNK, document, chunk, ())
    if hash_of(own) == source.embed_hash:
        return own
    return embedded_texts(source.text or "normalized", document, chunk, source.statements)


def hash_of(texts: Sequence[str]) -> str:
    return digest("\0".join(texts))


def embed_sums(embedder: Embedder, texts: Mapping[str, Sequence[str]]) -> dict[str, bytes]:
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
    """Embed the chunks that lack vectors of the current embedder; resumes after a stop."""
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


def reembed(
    stores: Stores,
    destination: Destination,
    *,
    on_progress: OnProgress | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> IngestReport:
    counters = RunCounters()

    def tell(stage: str, done: int, total: int | None = None) -> None:
        if on_progress is not None:
            on_progress(Progress(stage, done, total))

    task = "changing the embedder of this knowledge base"
    with stores.locks.hold(f"embedder-{destination.kb_id}", wait=0, task=task):
        while not counters.interrupted and not _take_over(destination):
            counters.interrupted = not _embed(destination, counters, tell, stop)
    if not counters.interrupted:
        with counters.timed("index"):
            stores.vectors.apply(destination.kb_id, lambda done: tell("index", done))
            stores.vectors.sweep()
    return counters.report()


def _embed(
    destination: Destination,
    counters: RunCounters,
    tell: Callable[[str, int, int], None],
    stop: Callable[[], bool],
) -> bool:
    """Embed what the new embedder lacks; ``False`` if stopped."""
    database, kb_id, embedder = destination.database, destination.kb_id, destination.embedder
    fingerprint, size = embedder.fingerprint, batch_size(embedder)
    with database.read() as transaction:
        total = pending_vectors.count_without(transaction, kb_id, fingerprint)
    done = last = 0
    while not stop():
        with database.read() as transaction:
            rows = pending_vectors.without(transaction, kb_id, fingerprint, after=last, limit=size)
            seqs = [row.seq for row in rows]
            found = reading.get_chunks(transaction, seqs)
            sources = statement_vectors.sources(transaction, seqs)
        if not rows:
            return True
        texts = {}
        for row in rows:
            chunk, document = found[row.seq]
            texts[row.embed_hash] = texts_of_source(sources[row.seq], document, chunk)
        with counters.timed("embed"):
            made = embed_sums(embedder, texts)
        with database.write() as transaction:
            knowledge_bases.get_by_id(transaction, kb_id)
            pending_vectors.add(transaction, kb_id, fingerprint, made)
        counters.counts["chunks_embedded"] += len(made)
        last = rows[-1].seq
        done += len(rows)
        tell("embed", done, total)
    return False


def _take_over(destination: Destination) -> bool:
    """Switch to the new vectors if every chunk has one; documents may have come meanwhile."""
    kb_id, embedder = destination.kb_id, destination.embedder
    with destination.database.write() as transaction:
        row = knowledge_bases.get_by_id(transaction, kb_id)
        if pending_vectors.without(transaction, kb_id, embedder.fingerprint, after=0, limit=1):
            return False
        pending_vectors.take_over(transaction, row, embedder.fingerprint, embedder.dimensions)
        spec = destination.spec.embedding.model_dump(mode="json")
        knowledge_bases.update(
            transaction,
            kb_id,
            description=row.description,
            config={**row.config, "embedding": spec},
        )
        restart(transaction, row)
    return True
