"""Draws chunks with their vectors out of the catalog, the same ones each time."""

from __future__ import annotations

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray

from kbkit.models import Chunk, Document
from kbkit.stores.catalog.reading import get_chunks, in_parts, unpack
from kbkit.stores.catalog.schema import chunks, vectors


def sample(
    connection: sa.Connection, kb_id: str, dimensions: int, limit: int, seed: int
) -> tuple[list[tuple[Chunk, Document]], NDArray[np.float32]]:
    """At most ``limit`` chunks, each with its document (whose ``content`` is left empty).

    Returns:
        The chunks as they were stored, and their vectors, shape ``(n, dimensions)``.
    """
    query = sa.select(chunks.c.seq).where(chunks.c.kb_id == kb_id).order_by(chunks.c.seq)
    seqs = connection.execute(query).scalars().all()
    if len(seqs) > limit:
        drawn = np.random.default_rng(seed).choice(len(seqs), limit, replace=False)
        seqs = [seqs[place] for place in np.sort(drawn)]
    packed: dict[int, bytes] = {}
    for part in in_parts(seqs):
        rows = connection.execute(
            sa.select(vectors.c.chunk_seq, vectors.c.vector).where(vectors.c.chunk_seq.in_(part))
        )
        packed.update((row.chunk_seq, row.vector) for row in rows)
    found = get_chunks(connection.exec_driver_sql, seqs)
    there = [seq for seq in seqs if seq in packed and seq in found]
    return [found[seq] for seq in there], unpack([packed[seq] for seq in there], dimensions)
