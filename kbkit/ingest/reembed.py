"""Gives a knowledge base another embedder, without fetching or cutting anything again.

The new vectors wait in the catalog until there is one for every chunk; then one transaction takes
them over. Searches go on with the old ones until then, and what was embedded is kept when the
work is stopped, fails or is killed: the next try goes on from there.
"""

from __future__ import annotations

from collections.abc import Callable

from kbkit.embedding.base import batch_size
from kbkit.ingest.counters import RunCounters
from kbkit.ingest.prepared import Destination
from kbkit.ingest.statement_vectors import embed_sums, texts_of_source
from kbkit.models import IngestReport, Progress
from kbkit.progress import OnProgress
from kbkit.stores.catalog import knowledge_bases, pending_vectors, reading, statement_vectors
from kbkit.stores.catalog.outbox import restart
from kbkit.stores.stores import Stores


def reembed(
    stores: Stores,
    destination: Destination,
    *,
    on_progress: OnProgress | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> IngestReport:
    """Embed all chunks of a knowledge base anew, and take the vectors over.

    Args:
        stores: Of the workspace.
        destination: The knowledge base, with its new embedder; of the spec only what says how that
            is opened is taken over.
        on_progress: Called after each batch.
        stop: Asked before each batch; true ends the work cleanly, and what was done is kept.

    Returns:
        How many texts were embedded, and whether the work was stopped.

    Raises:
        ConflictError: Another process does the same.
        EmbedderError: The embedder failed; what was embedded is kept.
        NotFoundError: The knowledge base was deleted.
    """
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
    """Embed what has no vector of the new embedder; false when it was stopped."""
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
    """Take the vectors over if there is one for every chunk; documents may have come meanwhile."""
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
