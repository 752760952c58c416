"""llama-index embeddings as embedders, by short form or import path."""

import hashlib
import json
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TypeVar

import numpy as np

from kbkit.embedding import Matrix, Vector, full_rows, normalize
from kbkit.errors import EmbedderError, EmbedderUnreachableError
from kbkit.recipes import LlamaIndexEmbedding
from kbkit.runtime.third_party import SECRET_NAME, open_class, resolve_model, safe_message

_T = TypeVar("_T")

_TRIES = 3
_STATUSES = frozenset({408, 429, *range(500, 600)})
_STATUS_NAMES = ("status_code", "status", "http_status", "code")


def is_unreachable(error: BaseException) -> bool:
    """Whether an error or its cause is a failed connection, timeout, or status 408, 429 or 5xx."""
    import httpx

    kinds = (ConnectionError, TimeoutError, socket.gaierror, httpx.TransportError)
    return any(
        isinstance(cause, kinds) or _statuses(cause) & _STATUSES != set() for cause in _chain(error)
    )


def retry(ask: Callable[[], _T], wait: float) -> _T:
    """Ask up to three times while the model is unreachable."""
    import tenacity

    retrying = tenacity.Retrying(
        stop=tenacity.stop_after_attempt(_TRIES),
        wait=tenacity.wait_exponential(multiplier=wait) + tenacity.wait_random(0, wait / 2),
        retry=tenacity.retry_if_exception(is_unreachable),
        reraise=True,
    )
    return retrying(ask)


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        yield current
        current = current.__cause__ or current.__context__


def _statuses(error: BaseException) -> set[int]:
    holders = (error, getattr(error, "response", None))
    codes = (getattr(holder, name, None) for holder in holders for name in _STATUS_NAMES)
    return {value for value in codes if isinstance(value, int)}


SHORT_FORMS = {
    "cohere": ("cohere", "CohereEmbedding", "model_name"),
    "fastembed": ("fastembed", "FastEmbedEmbedding", "model_name"),
    "google": ("google_genai", "GoogleGenAIEmbedding", "model_name"),
    "huggingface": ("huggingface", "HuggingFaceEmbedding", "model_name"),
    "mistral": ("mistralai", "MistralAIEmbedding", "model_name"),
    "ollama": ("ollama", "OllamaEmbedding", "model_name"),
    "openai": ("openai", "OpenAIEmbedding", "model"),
    "voyage": ("voyageai", "VoyageEmbedding", "model_name"),
}
"""Module of `llama_index.embeddings`, class, and argument for the model's name."""
_MAX_BATCH = 2048  # limit of llama-index


class LlamaIndexEmbedder:
    """A llama-index ``BaseEmbedding`` with unit vectors; retries for passages, not for queries."""

    def __init__(self, spec: LlamaIndexEmbedding, *, wait: float = 1.0) -> None:
        from llama_index.core.base.embeddings.base import BaseEmbedding

        self._spec = spec
        self._wait = wait
        self.batch_size = spec.batch_size
        self._path, self._arguments = resolve_model(
            spec.model, spec.arguments, SHORT_FORMS, group="embeddings", error=EmbedderError
        )
        self._model = open_class(
            self._path,
            self._arguments,
            BaseEmbedding,  # type: ignore[type-abstract]
            kind="llama-index embedding",
            name=spec.model,
            error=EmbedderError,
            check="embedding.arguments and the keys in the environment",
        )
        if "embed_batch_size" not in self._arguments:  # not every constructor takes it
            self._model.embed_batch_size = min(spec.batch_size, _MAX_BATCH)
        self._dimensions = 0
        self._lock = threading.Lock()

    @property
    def fingerprint(self) -> str:
        arguments = {
            name: value
            for name, value in self._arguments.items()
            if name != "embed_batch_size" and not SECRET_NAME.search(name)
        }
        text = json.dumps(arguments, sort_keys=True, default=repr)
        digest = hashlib.sha256(f"{self._path}\n{text}".encode()).hexdigest()
        return f"llama-index:{self._spec.model}:{digest[:16]}"

    @property
    def dimensions(self) -> int:
        """Length of a vector; the first access embeds a word."""
        if not self._dimensions:
            self.embed_passages(["kbkit"])
        return self._dimensions

    def embed_passages(self, texts: Sequence[str]) -> Matrix:
        """Embed texts; blank texts get zero vectors without the model."""
        nonblank = full_rows(texts)
        batches = []
        for start in range(0, len(nonblank), self._spec.batch_size):
            rows = nonblank[start : start + self._spec.batch_size]
            batch = [texts[row] for row in rows]
            ask = partial(self._model.get_text_embedding_batch, batch)
            batches.append(self._vectors(partial(retry, ask, self._wait), len(batch)))
        result = np.zeros((len(texts), self.dimensions if texts else self._dimensions), np.float32)
        if batches:
            result[nonblank] = np.concatenate(batches)
        return result

    def embed_query(self, text: str) -> Vector:
        if not text or text.isspace():
            return np.zeros(self.dimensions, np.float32)
        return np.asarray(self._vectors(lambda: [self._model.get_query_embedding(text)], 1)[0])

    def _vectors(self, ask: Callable[[], Sequence[Sequence[float]]], expected: int) -> Matrix:
        try:
            vectors = np.array(ask(), np.float32)
        except Exception as error:  # a third party's client may raise anything
            if is_unreachable(error):
                raise EmbedderUnreachableError(
                    f"{self._spec.model}: cannot be reached ({self._safe(error)}); check the "
                    "network and run this again: embedded texts are kept"
                ) from None
            raise EmbedderError(f"{self._spec.model}: failed ({self._safe(error)})") from None
        if vectors.ndim != 2 or len(vectors) != expected or not np.isfinite(vectors).all():
            raise EmbedderError(
                f"{self._spec.model}: gave an array of shape {vectors.shape} for {expected} "
                "texts, or numbers that are not finite"
            )
        with self._lock:
            dimensions = self._dimensions = self._dimensions or vectors.shape[1]
        if vectors.shape[1] != dimensions:
            raise EmbedderError(
                f"{self._spec.model}: gave {vectors.shape[1]} dimensions after {dimensions}"
            )
        normalize(vectors)
        return vectors

    def _safe(self, error: Exception) -> str:
        return safe_message(error, self._arguments)
