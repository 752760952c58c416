"""Text to vectors: the interface of embedders, and the embedders of a workspace."""

import json
import logging
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from kbkit import recipes
from kbkit.errors import ConfigError, EmbedderError, KbkitError
from kbkit.runtime.engine import Engine, WorkerPool, perform

_log = logging.getLogger(__name__)


Vector = NDArray[np.float32]
"""Shape ``(dimensions,)``; a unit vector, or zeros for text without known tokens."""

Matrix = NDArray[np.float32]
"""Shape ``(n, dimensions)``; each row a `Vector`."""


class Embedder(Protocol):
    """Turns text into vectors whose dot product is the cosine similarity.

    An optional attribute ``batch_size`` is the number of texts after which vectors are stored.
    """

    @property
    def fingerprint(self) -> str: ...

    @property
    def dimensions(self) -> int: ...

    def embed_passages(self, texts: Sequence[str]) -> Matrix: ...

    def embed_query(self, text: str) -> Vector: ...


def batch_size(embedder: Embedder) -> int:
    return int(getattr(embedder, "batch_size", 1_000))


def full_rows(texts: Sequence[str]) -> list[int]:
    """Return the numbers of the texts that are not blank; others get zero vectors."""
    return [row for row, text in enumerate(texts) if text and not text.isspace()]


def normalize(vectors: Matrix) -> None:
    """Scale rows to length 1 in place; zeros stay."""
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    np.divide(vectors, norms, out=vectors, where=norms > 0)


@contextmanager
def only_unicode() -> Iterator[None]:
    try:
        yield
    except (TypeError, UnicodeError) as error:
        raise EmbedderError(
            f"a text that is not valid Unicode cannot be embedded ({error}); "
            "replace its lone surrogates"
        ) from error


def open_embedder(spec: recipes.ModelEmbedding, *, base: Path = Path()) -> Embedder:
    """Open the embedder of a recipe; imports only that embedder's libraries."""
    if isinstance(spec, recipes.StaticEmbedding):
        from kbkit.embedding.static import StaticEmbedder

        return StaticEmbedder()
    if isinstance(spec, recipes.MultilingualEmbedding):
        from kbkit.embedding.models import MultilingualEmbedder

        return MultilingualEmbedder()
    if isinstance(spec, recipes.OnnxEmbedding):
        from kbkit.embedding.onnx import MiniLmEmbedder, OnnxEmbedder

        is_minilm = spec == recipes.OnnxEmbedding(preset="minilm")
        return MiniLmEmbedder(spec) if is_minilm else OnnxEmbedder(spec, base=base)
    if isinstance(spec, recipes.PluginEmbedding):
        from kbkit.runtime.plugins import EMBEDDERS, make

        parts = ("fingerprint", "dimensions", "embed_passages", "embed_query")
        return make(EMBEDDERS, spec.name, spec.options, parts)
    from kbkit.embedding.llamaindex import LlamaIndexEmbedder

    return LlamaIndexEmbedder(spec)


_MIN_TEXTS = 16  # worth sending to a worker


@dataclass(frozen=True, slots=True)
class EmbedTask:
    """Texts to embed; a `kbkit.runtime.processes.WorkerTask`."""

    spec: recipes.ModelEmbedding
    fingerprint: str
    texts: tuple[str, ...]

    seconds: ClassVar[float] = 1_800.0  # slow models embed one or two texts per second

    def perform(self) -> Matrix | EmbedderError:
        try:
            embedder = _worker_embedders.open(self.spec)
            if embedder.fingerprint != self.fingerprint:
                return EmbedderError(
                    f"a worker of the cluster has the embedder {embedder.fingerprint}, not "
                    f"{self.fingerprint}; install the same version there"
                )
            return embedder.embed_passages(self.texts)
        except KbkitError as error:
            return EmbedderError(f"on a worker of the cluster: {error}")

    def broken(self, reason: str) -> EmbedderError:
        return EmbedderError(f"texts cannot be embedded: {reason}")


_KEPT = 256  # cached query vectors; the next page of hits needs the same one


class CachingEmbedder:
    """Embeds a query once for the chunks and summaries of all knowledge bases."""

    dimensions: int

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self.fingerprint = embedder.fingerprint
        self._queries: OrderedDict[str, Future[Vector]] = OrderedDict()
        self._lock = Lock()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._embedder, name)

    def embed_passages(self, texts: Sequence[str]) -> Matrix:
        return self._embedder.embed_passages(texts)

    def embed_query(self, text: str) -> Vector:
        with self._lock:
            vector = self._queries.get(text)
            is_new = vector is None
            if vector is None:
                vector = self._queries[text] = Future()
                if len(self._queries) > _KEPT:
                    self._queries.popitem(last=False)
            self._queries.move_to_end(text)
        if is_new:
            try:
                vector.set_result(self._embedder.embed_query(text))
            except BaseException as error:
                with self._lock:  # the next query tries again
                    self._queries.pop(text, None)
                vector.set_exception(error)
        return vector.result()


class SpreadEmbedder(CachingEmbedder):
    """Embeds passages in workers, and queries here."""

    def __init__(self, embedder: Embedder, spec: recipes.ModelEmbedding, pool: WorkerPool) -> None:
        super().__init__(embedder)
        self._spec = spec
        self._pool = pool
        self.batch_size = batch_size(embedder) * pool.count

    def embed_passages(self, texts: Sequence[str]) -> Matrix:
        if len(texts) < _MIN_TEXTS:
            return self._embedder.embed_passages(texts)
        size = max(_MIN_TEXTS, -(-len(texts) // self._pool.count))
        results = perform(
            self._pool,
            (
                EmbedTask(self._spec, self.fingerprint, tuple(texts[start : start + size]))
                for start in range(0, len(texts), size)
            ),
        )
        for result in results:
            if isinstance(result, EmbedderError):
                raise result
        return np.concatenate(results)


class Embedders:
    """Opens embedders, each once: those of chunks and summaries share the vectors of queries."""

    def __init__(self, engine: Engine | None = None) -> None:
        self._engine = engine or Engine()
        self._opened: dict[str, Embedder] = {}
        self._of_summaries: dict[bool, Embedder] = {}
        self._opening = Lock()

    def open(self, spec: recipes.AnyEmbedding) -> Embedder:
        chosen = spec.chosen
        key = json.dumps(chosen.model_dump(mode="json", exclude={"text"}), sort_keys=True)
        with self._opening:
            if key not in self._opened:
                embedder = open_embedder(chosen)
                # services are called from this process, which has the key
                is_spread = not (
                    self._engine.is_local or isinstance(chosen, recipes.LlamaIndexEmbedding)
                )
                self._opened[key] = (
                    SpreadEmbedder(embedder, chosen, self._engine.pool())
                    if is_spread
                    else CachingEmbedder(embedder)
                )
            return self._opened[key]

    def of_summaries(self, *, english: bool) -> Embedder:
        """Return the default embedder of summaries: MiniLM, multilingual or static vectors."""
        from kbkit.embedding import models

        if english not in self._of_summaries:
            spec: recipes.AnyEmbedding = recipes.OnnxEmbedding(preset="minilm")
            if not english:
                installed = models.is_installed()
                spec = recipes.MultilingualEmbedding() if installed else recipes.StaticEmbedding()
            try:
                embedder = self.open(spec)
            except (ConfigError, EmbedderError) as error:
                _log.warning("summaries of documents get static vectors, since %s", error)
                embedder = self.open(recipes.StaticEmbedding())
            self._of_summaries[english] = embedder
        return self._of_summaries[english]


_worker_embedders = Embedders()
