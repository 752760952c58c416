"""Peers that answer queries over the same text, each used as its documentation shows.

Their packages go into an environment under ``build/benchmarks`` that sees kbkit's packages.
"""

from __future__ import annotations

import hashlib
import site
import sqlite3
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from _corpora import KEPT, Place

import kbkit
from kbkit.embedding import Embedder, Matrix, open_embedder
from kbkit.ingest.cutting import embedded_text
from kbkit.recipes import AnyEmbedding, OnnxEmbedding, StaticEmbedding

Search = Callable[[str, int], list[Place]]
PEERS = ("bm25s", "llama-index", "chroma")
PACKAGES = (
    "bm25s>=0.3,<0.4",
    "llama-index-retrievers-bm25>=0.6",
    "llama-index-vector-stores-chroma>=0.5",
)


def install() -> None:
    """Make the peers' packages importable; pip installs them the first time."""
    folder = KEPT / "peers"
    packages = Path(
        sysconfig.get_path("purelib", vars={"base": str(folder), "platbase": str(folder)})
    )
    wanted = "\n".join(PACKAGES)
    note = folder / "installed"
    if not note.is_file() or note.read_text() != wanted:
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        # pip sees kbkit's packages, so that it installs only what is missing
        (packages / "kbkit.pth").write_text(sysconfig.get_path("purelib") + "\n")
        python = folder / "bin" / "python"
        subprocess.run([python, "-m", "pip", "install", "--quiet", *PACKAGES], check=True)
        note.write_text(wanted)
    site.addsitedir(str(packages))


def peers(
    kb: kbkit.KnowledgeBase, folder: Path, chosen: Sequence[str]
) -> Iterator[tuple[str, Callable[[], Search]]]:
    """Make each chosen peer when its turn comes.

    Args:
        kb: Knowledge base whose text they get.
        folder: Where they may keep files.
        chosen: Some of `PEERS`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if "bm25s" in chosen:
        yield "bm25s", lambda: bm25s_alone(Chunks(kb, StaticEmbedding()))
        yield "bm25s, pages", lambda: bm25s_pages(kb)
    if "llama-index" in chosen or "chroma" in chosen:
        nodes = Nodes(kb, folder / "chroma")
        if "llama-index" in chosen:
            yield "llama-index, RRF", lambda: nodes.fused("reciprocal_rerank")
            yield "llama-index, relative score", lambda: nodes.fused("relative_score")
        if "chroma" in chosen:
            yield "Chroma, MiniLM", nodes.vectors


class MiniLM:
    """The MiniLM of kbkit, because Chroma downloads its own copy.

    Vectors are kept by hash of the text.
    """

    def __init__(self) -> None:
        self._embedder = open_embedder(OnnxEmbedding(preset="minilm"))
        self._kept = sqlite3.connect(KEPT / "minilm.db", check_same_thread=False)
        self._kept.execute("CREATE TABLE IF NOT EXISTS kept (hash BLOB PRIMARY KEY, vector BLOB)")

    def query(self, text: str) -> list[float]:
        vector: list[float] = self._embedder.embed_query(text).tolist()
        return vector

    def passages(self, texts: Sequence[str]) -> list[list[float]]:
        hashes = [hashlib.sha256(text.encode()).digest() for text in texts]
        found = {key: self._get(key) for key in hashes}
        missing = [i for i, key in enumerate(hashes) if found[key] is None]
        for i, vector in zip(
            missing, self._embedder.embed_passages([texts[i] for i in missing]), strict=True
        ):
            found[hashes[i]] = vector
            values = (hashes[i], vector.astype(np.float32).tobytes())
            self._kept.execute("INSERT OR REPLACE INTO kept VALUES (?, ?)", values)
        self._kept.commit()
        return [np.asarray(found[key]).tolist() for key in hashes]

    def _get(self, key: bytes) -> Any:
        row = self._kept.execute("SELECT vector FROM kept WHERE hash = ?", (key,)).fetchone()
        return None if row is None else np.frombuffer(row[0], np.float32)


class Chunks:
    """The chunks that kbkit searches, with vectors."""

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
        self.embedder: Embedder = open_embedder(embedding.chosen)

    @cached_property
    def vectors(self) -> Matrix:
        return self.embedder.embed_passages(self.texts)

    def at(self, rows: Sequence[int]) -> list[Place]:
        return [self.places[row] for row in rows]


def numpy_scan(chunks: Chunks) -> Search:
    """Compare with every vector: the limit of exact dense search."""

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


def bm25s_alone(chunks: Chunks) -> Search:
    return bm25s_over(chunks.texts, chunks.places)


def bm25s_pages(kb: kbkit.KnowledgeBase) -> Search:
    documents = [one for one in kb.documents if one.state != "gone"]
    return bm25s_over(
        [f"{one.title}\n\n{one.content}" for one in documents],
        [Place(one.uri, 0, len(one.content)) for one in documents],
    )


def bm25s_over(texts: Sequence[str], found: Sequence[Place]) -> Search:
    """bm25s with stop words and a stemmer, as its README recommends."""
    import bm25s
    import Stemmer

    stemmer = Stemmer.Stemmer("english")
    tokens = bm25s.tokenize(texts, stopwords="en", stemmer=stemmer, show_progress=False)
    index = bm25s.BM25()
    index.index(tokens, show_progress=False)

    def search(query: str, limit: int) -> list[Place]:
        asked = bm25s.tokenize([query], stopwords="en", stemmer=stemmer, show_progress=False)
        most = min(limit, len(found))
        rows, _ = index.retrieve(asked, k=most, show_progress=False)
        return [found[int(i)] for i in rows[0]]

    return search


class Nodes:
    """Documents as llama-index cuts them by default, with vectors of MiniLM in Chroma."""

    def __init__(self, kb: kbkit.KnowledgeBase, folder: Path) -> None:
        self._kb, self._folder = kb, folder

    @cached_property
    def _index(self) -> tuple[Any, list[Any]]:
        import chromadb
        from llama_index.core import Document, StorageContext, VectorStoreIndex
        from llama_index.core.node_parser import SentenceSplitter
        from llama_index.vector_stores.chroma import ChromaVectorStore

        model, hidden = MiniLM(), ["uri"]
        nodes = SentenceSplitter().get_nodes_from_documents(
            [
                Document(
                    text=one.content,
                    metadata={"uri": one.uri} | ({"title": one.title} if one.title else {}),
                    excluded_embed_metadata_keys=hidden,
                    excluded_llm_metadata_keys=hidden,
                )
                for one in self._kb.documents
                if one.state != "gone"
            ]
        )
        client = chromadb.PersistentClient(str(self._folder))
        if "chunks" in [one.name for one in client.list_collections()]:
            client.delete_collection("chunks")
        collection = client.create_collection("chunks", embedding_function=None)
        storage = StorageContext.from_defaults(
            vector_store=ChromaVectorStore(chroma_collection=collection)
        )
        embedding = wrapped(model.query, model.passages)
        index = VectorStoreIndex(nodes, storage_context=storage, embed_model=embedding)
        return index, nodes

    def vectors(self) -> Search:
        index, _ = self._index
        return retrieved(lambda limit: index.as_retriever(similarity_top_k=limit))

    def fused(self, mode: str) -> Search:
        """BM25 and vectors in one retriever, as llama-index's guide on fusion shows."""
        import Stemmer
        from llama_index.core.llms import MockLLM
        from llama_index.core.retrievers import QueryFusionRetriever
        from llama_index.core.retrievers.fusion_retriever import FUSION_MODES
        from llama_index.retrievers.bm25 import BM25Retriever

        index, nodes = self._index

        def made(limit: int) -> Any:
            words = BM25Retriever.from_defaults(
                nodes=nodes,
                similarity_top_k=min(limit, len(nodes)),
                stemmer=Stemmer.Stemmer("english"),
                language="english",
            )
            return QueryFusionRetriever(
                [index.as_retriever(similarity_top_k=limit), words],
                llm=MockLLM(),
                mode=FUSION_MODES(mode),
                similarity_top_k=limit,
                num_queries=1,
                use_async=False,
            )

        return retrieved(made)


def retrieved(made: Callable[[int], Any]) -> Search:
    """Wrap a retriever of llama-index, which is made for a fixed number of nodes."""
    known: dict[int, Any] = {}

    def search(query: str, limit: int) -> list[Place]:
        if limit not in known:
            known[limit] = made(limit)
        return [
            Place(
                str(found.node.metadata["uri"]),
                getattr(found.node, "start_char_idx", None) or 0,
                getattr(found.node, "end_char_idx", None) or 0,
            )
            for found in known[limit].retrieve(query)
        ]

    return search


def wrapped(query: Callable[[str], list[float]], passages: Callable[[list[str]], Any]) -> Any:
    """Adapt an embedder to llama-index."""
    from llama_index.core.base.embeddings.base import BaseEmbedding

    class Wrapped(BaseEmbedding):
        def _get_query_embedding(self, text: str) -> list[float]:
            return query(text)

        def _get_text_embedding(self, text: str) -> list[float]:
            return self._get_text_embeddings([text])[0]

        def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
            vectors: list[list[float]] = passages(texts)
            return vectors

        async def _aget_query_embedding(self, text: str) -> list[float]:
            return self._get_query_embedding(text)

    return Wrapped(embed_batch_size=256)
