"""Peers that answer queries over the same chunks: each as its own documentation shows it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from _corpora import Place

import kbkit
from kbkit.embedding import open_embedder
from kbkit.embedding.base import Embedder, Matrix
from kbkit.ingest.chunking import embedded_text
from kbkit.recipes import AnyEmbedding

Search = Callable[[str, int], list[Place]]


class Chunks:
    """The chunks of a knowledge base as peers get them: what kbkit itself searches, and vectors."""

    def __init__(self, kb: kbkit.KnowledgeBase, embedding: AnyEmbedding, most: int = 0) -> None:
        documents = {document.id: document for document in kb.documents if document.state != "gone"}
        self.places: list[Place] = []
        self.texts: list[str] = []
        for chunk in kb.chunks:
            if most and len(self.texts) == most:
                break
            document = documents[chunk.document_id]
            self.places.append(Place(document.uri, chunk.start, chunk.end))
            self.texts.append(embedded_text(document.title, chunk.heading_path, chunk.text))
        self.documents = [(document.uri, document.content) for document in documents.values()]
        self.embedder: Embedder = open_embedder(embedding)
        self.vectors: Matrix = self.embedder.embed_passages(self.texts)

    def at(self, rows: Sequence[int]) -> list[Place]:
        return [self.places[row] for row in rows]


def numpy_scan(chunks: Chunks) -> Search:
    """Every vector, every time: the physical limit of exact dense search."""

    def search(query: str, limit: int) -> list[Place]:
        scores = chunks.vectors @ chunks.embedder.embed_query(query)
        top = np.argpartition(-scores, limit)[:limit]
        return chunks.at([int(i) for i in top[np.argsort(-scores[top])]])

    return search


def chroma_alone(chunks: Chunks, folder: Path) -> Search:
    """Chroma with documents and given embeddings."""
    import chromadb

    client = chromadb.PersistentClient(str(folder / "chroma-alone"))
    collection = client.create_collection("chunks", embedding_function=None)
    most = client.get_max_batch_size()
    for start in range(0, len(chunks.texts), most):
        rows = range(start, min(start + most, len(chunks.texts)))
        collection.add(
            ids=[str(row) for row in rows],
            embeddings=chunks.vectors[rows.start : rows.stop],
            documents=chunks.texts[rows.start : rows.stop],
        )

    def search(query: str, limit: int) -> list[Place]:
        found = collection.query(
            query_embeddings=chunks.embedder.embed_query(query)[None, :], n_results=limit
        )
        return chunks.at([int(known) for known in found["ids"][0]])

    return search


def rank_bm25_alone(chunks: Chunks) -> Search:
    """rank-bm25 over words in lower case, as its README begins."""
    from rank_bm25 import BM25Okapi

    index = BM25Okapi([text.lower().split() for text in chunks.texts])

    def search(query: str, limit: int) -> list[Place]:
        scores = index.get_scores(query.lower().split())
        top = np.argsort(-scores)[:limit]
        return chunks.at([int(i) for i in top if scores[i] > 0])

    return search


def bm25s_alone(chunks: Chunks) -> Search:
    """bm25s with stop words and a stemmer, as its README recommends."""
    import bm25s
    import Stemmer

    stemmer = Stemmer.Stemmer("english")
    tokens = bm25s.tokenize(chunks.texts, stopwords="en", stemmer=stemmer, show_progress=False)
    index = bm25s.BM25()
    index.index(tokens, show_progress=False)

    def search(query: str, limit: int) -> list[Place]:
        asked = bm25s.tokenize([query], stopwords="en", stemmer=stemmer, show_progress=False)
        rows, _ = index.retrieve(asked, k=limit, show_progress=False)
        return chunks.at([int(i) for i in rows[0]])

    return search


def llama_index_chroma(chunks: Chunks, folder: Path) -> Search:
    """llama-index over Chroma: its own splitter, a vector index, its retriever."""
    import chromadb
    from llama_index.core import Document, StorageContext, VectorStoreIndex
    from llama_index.core.base.embeddings.base import BaseEmbedding
    from llama_index.vector_stores.chroma import ChromaVectorStore

    class Wrapped(BaseEmbedding):
        """The same embedder as everybody's."""

        def _get_query_embedding(self, query: str) -> list[float]:
            vector: list[float] = chunks.embedder.embed_query(query).tolist()
            return vector

        def _get_text_embedding(self, text: str) -> list[float]:
            return self._get_text_embeddings([text])[0]

        def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
            vectors: list[list[float]] = chunks.embedder.embed_passages(texts).tolist()
            return vectors

        async def _aget_query_embedding(self, query: str) -> list[float]:
            return self._get_query_embedding(query)

    client = chromadb.PersistentClient(str(folder / "chroma-llama"))
    collection = client.create_collection("chunks", embedding_function=None)
    storage = StorageContext.from_defaults(
        vector_store=ChromaVectorStore(chroma_collection=collection)
    )
    index = VectorStoreIndex.from_documents(
        [Document(text=text, metadata={"uri": uri}) for uri, text in chunks.documents],
        storage_context=storage,
        embed_model=Wrapped(embed_batch_size=256),
    )
    retrievers: dict[int, Any] = {}

    def search(query: str, limit: int) -> list[Place]:
        if limit not in retrievers:
            retrievers[limit] = index.as_retriever(similarity_top_k=limit)
        return [
            Place(
                str(found.node.metadata["uri"]),
                getattr(found.node, "start_char_idx", None) or 0,
                getattr(found.node, "end_char_idx", None) or 0,
            )
            for found in retrievers[limit].retrieve(query)
        ]

    return search
