"""Copy a corpus in the catalog: a million chunks in minutes instead of hours.

Copies have a quarter of their words renamed (`_scale_corpus.renamed`). Their chunks keep the
offsets of the originals, are analysed and embedded again, and are stored by the functions of an
ingest. Their summaries have the originals' vectors, slightly moved, because a model takes 40 ms a
summary. Copies are not annotated and not in Chroma; open the workspace with `without_chroma`.

Run from the project's root: ``python benchmarks/_scale_copies.py WORKSPACE CHUNKS``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from itertools import accumulate, count, pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
import sqlalchemy as sa
from _scale_corpus import renamed

import kbkit
from kbkit.embedding import Embedder
from kbkit.ingest.cutting import chunk_id, digest, document_id, embedded_text, new_summary
from kbkit.ingest.embedding import embed
from kbkit.knowledge_base.knowledge_base import handle_of
from kbkit.models import Chunk, Document, Labels
from kbkit.runtime.config import Settings
from kbkit.stores.backend import VectorStore
from kbkit.stores.catalog import reading, summaries, writing
from kbkit.stores.catalog.database import Transaction, pack
from kbkit.stores.catalog.knowledge_bases import KnowledgeBaseRow
from kbkit.stores.catalog.schema import documents, outbox
from kbkit.stores.catalog.schema import summaries as summary_table
from kbkit.stores.catalog.summaries import NewSummary
from kbkit.stores.catalog.writing import NewChunk, NewDocument
from kbkit.stores.snapshots.snapshots import Warmer
from kbkit.stores.stores import Stores
from kbkit.stores.vector_index import VectorIndex
from kbkit.text.analysis import analyzer

_COPY = "again"
"""Prefix of the copies' URIs."""
_FIRST = 1_000
"""Number of the first copy; `_scale_corpus.grow` counts from 0."""
_AT_ONCE = 300
"""Documents in one transaction."""
_MOVED = 0.5
"""How far a summary's vector moves, as a share of its length."""


class Original(NamedTuple):
    """A document to copy, with its chunks in order and the text of its summary."""

    document: Document
    is_index: bool
    chunks: list[Chunk]
    summary: str


def without_chroma(folder: Path) -> kbkit.Workspace:
    """Open a workspace whose vectors are only in the catalog and in snapshots."""
    stores = Stores.open(folder.absolute(), Settings.load())
    vectors = VectorIndex(VectorStore(), stores.database, stores.locks)
    warmer = Warmer(stores.snapshots, vectors)
    return kbkit.Workspace(folder, stores=replace(stores, vectors=vectors, warmer=warmer))


def copy(kb: kbkit.KnowledgeBase, size: int) -> None:
    """Copy the documents of a knowledge base until it has about ``size`` chunks; resumes."""
    handle = handle_of(kb)
    row, stores = handle.row(), handle.stores
    embedder, held = handle.embedders.of(row), kb.info().chunks
    with stores.database.read() as transaction:
        uris = reading.uris_of(transaction, writing.document_ids(transaction, kb.id))
    # in order of id, which is as if by lot
    originals = sorted(known for known, uri in uris.items() if not uri.startswith(_COPY))
    done = len(uris) // len(originals) - 1
    for number in count(_FIRST + done):
        for start in range(0, len(originals), _AT_ONCE):
            if held < size:
                held += _copy_some(kb, row, originals[start : start + _AT_ONCE], number, embedder)
        print(f"{held:,} chunks", flush=True)
        if held >= size:
            break
    with stores.database.write() as transaction:
        summaries.search_with(transaction, kb.id, row.summary_embedder, row.summary_model)
    stores.snapshots.save(kb.id, merging=True)


def _copy_some(
    kb: kbkit.KnowledgeBase, row: KnowledgeBaseRow, ids: list[str], number: int, embedder: Embedder
) -> int:
    """Store copies of some documents and return the number of their chunks."""
    database = handle_of(kb).stores.database
    with database.read() as transaction:
        read = _read(transaction, row, ids)
        held = summaries.vectors_of(transaction, row, ids)
    noise = np.random.default_rng(number).standard_normal(held.vectors.shape, np.float32)
    noise *= _MOVED / np.linalg.norm(noise, axis=1, keepdims=True)
    moved = held.vectors + noise
    moved /= np.linalg.norm(moved, axis=1, keepdims=True)
    packed_summaries = dict(zip(held.document_ids, pack(moved), strict=True))
    terms_of = analyzer(kb.spec.language).terms
    texts: dict[str, str] = {}
    new: list[NewDocument] = []
    made: dict[str, NewSummary] = {}
    vectors: dict[str, bytes] = {}
    for each in read:
        document, held_chunks = _renamed(kb.id, each, number, terms_of, texts)
        new.append(NewDocument(document, held_chunks, None, None, Labels(), each.is_index))
        if vector := packed_summaries.get(each.document.id):
            text = renamed(each.summary, number)
            made[document.id] = new_summary(document, text)
            vectors[made[document.id].embed_hash] = vector
    packed = embed(embedder, texts)
    with database.write() as transaction:
        changes = writing.replace_documents(transaction, kb.id, new, packed)
        summaries.put(transaction, kb.id, summaries.REVISION, made)
        summaries.add_vectors(transaction, kb.id, row.summary_embedder, vectors)
        transaction.execute(outbox.delete().where(outbox.c.kb_id == kb.id))
    return changes.added


def _read(transaction: Transaction, row: KnowledgeBaseRow, ids: list[str]) -> list[Original]:
    query = (
        sa.select(documents.c.id, documents.c.is_index, summary_table.c.text)
        .outerjoin(summary_table, summary_table.c.document_id == documents.c.id)
        .where(documents.c.id.in_(ids))
    )
    beside = {found.id: found for found in transaction.execute(query)}
    return [
        Original(
            document,
            bool(beside[document.id].is_index),
            list(reading.iter_chunks(transaction, row.id, document.id)),
            beside[document.id].text or "",
        )
        for document in reading.documents_of(transaction, ids)
    ]


def _renamed(
    kb_id: str,
    original: Original,
    number: int,
    terms_of: Callable[[str], list[str]],
    texts: dict[str, str],
) -> tuple[Document, list[NewChunk]]:
    """Return a copy of a document and its chunks; texts to embed are added to ``texts``."""
    document, content = original.document, original.document.content
    ends = {end for each in original.chunks for end in (each.start, each.end)}
    places = sorted({0, len(content), *ends})
    parts = [renamed(content[start:end], number) for start, end in pairwise(places)]
    now = dict(zip(places, accumulate(map(len, parts), initial=0), strict=True))
    uri = f"{_COPY}{number}{document.uri}"
    copied = replace(
        document,
        id=document_id(kb_id, uri),
        uri=uri,
        title=renamed(document.title, number),
        content="".join(parts),
        content_hash=digest(f"{number}{document.content_hash}"),
        description=renamed(document.description, number),
    )
    new: list[NewChunk] = []
    for each in original.chunks:
        start, end = now[each.start], now[each.end]
        text = copied.content[start:end]
        headings = tuple(renamed(heading, number) for heading in each.heading_path)
        chunk = replace(
            each,
            id=chunk_id(copied.id, headings, text, each.position),
            document_id=copied.id,
            start=start,
            end=end,
            text=text,
            heading_path=headings,
            anchor=renamed(each.anchor, number),
        )
        read = embedded_text(copied.title, headings, text)
        terms, key = terms_of(read), digest(read)
        texts[key] = read
        new.append(NewChunk(chunk, " ".join(terms), len(terms), key))
    return copied, new


def main() -> None:
    with without_chroma(Path(sys.argv[1])) as workspace:
        copy(workspace["scale"], int(sys.argv[2]))


if __name__ == "__main__":
    main()
