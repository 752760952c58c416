"""Sentence-transformer models in ONNX form, run by onnxruntime on this machine."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import cached_property, lru_cache
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kbkit.embedding import Matrix, Vector, full_rows, models, normalize, only_unicode, presets
from kbkit.errors import EmbedderError
from kbkit.recipes import OnnxEmbedding

_MIN_VOCABULARY_SHARE = 0.9  # tokens per token vector; some models pad their vectors
_INPUTS = frozenset({"input_ids", "attention_mask", "token_type_ids"})
MAX_LENGTH = 256
_THREADS = max(1, min(4, os.cpu_count() or 1))  # onnxruntime releases the interpreter's lock
_opening = Lock()
_SENTENCE_RANK, _TOKEN_RANK = 2, 3


class _Files(NamedTuple):
    model: Path
    tokenizer: Path
    config: presets.ModelConfig = presets.ModelConfig()


@dataclass(frozen=True, slots=True)
class _Options:
    """Model options: from the recipe, else the model's files, else defaults."""

    pooling: str
    max_length: int
    normalize: bool
    query_prefix: str
    passage_prefix: str


_DEFAULTS = presets.ModelConfig("mean", MAX_LENGTH, "", "")


def _options_of(spec: OnnxEmbedding, config: presets.ModelConfig) -> _Options:
    sources = (spec, config, presets.PRESETS.get(spec.preset or ""), _DEFAULTS)

    def chosen(name: str) -> Any:
        values = (getattr(source, name, None) for source in sources)
        return next(value for value in values if value is not None)

    return _Options(
        pooling=chosen("pooling"),
        max_length=chosen("max_length"),
        normalize=spec.normalize,
        query_prefix=chosen("query_prefix"),
        passage_prefix=chosen("passage_prefix"),
    )


class OnnxEmbedder:
    """A transformer that turns text into vectors with onnxruntime. Thread-safe."""

    batch_size = 512

    def __init__(self, spec: OnnxEmbedding, *, base: Path = Path()) -> None:
        self._spec = spec
        files = _preset_files(spec.preset) if spec.preset else _model_files(spec, base)
        self._options = _options_of(spec, files.config)
        self._dense = files.config.dense
        with _opening:  # prevents two threads from loading the same files
            self._session = _session(files.model, models.file_version(files.model))
            self._tokenizer = tokenizer_of(
                files.tokenizer, models.file_version(files.tokenizer), self._options.max_length
            )
        tokens, vocabulary = self._tokenizer.get_vocab_size(), files.config.vocabulary
        if vocabulary and not _MIN_VOCABULARY_SHARE * vocabulary <= tokens <= vocabulary:
            raise EmbedderError(
                f"{files.tokenizer}: has {tokens:,} tokens and the model {vocabulary:,}: it is "
                "another model's; fetch or copy the whole model again"
            )
        self._inputs = [value.name for value in self._session.get_inputs()]
        unknown_inputs = set(self._inputs) - _INPUTS
        if unknown_inputs:
            raise EmbedderError(
                f"{files.model}: needs inputs that kbkit cannot provide "
                f"({', '.join(sorted(unknown_inputs))})"
                "; use the export of a plain text encoder"
            )
        self._output, self._rank, width = self._choose_output(files.model)
        if self._dense and self._rank == _SENTENCE_RANK:
            self._dense = ()  # a pooled output has passed the dense layers
        self._check_dense(files.model, width)
        self.dimensions = (None if self._dense else width) or int(self._run(["."]).shape[1])
        self.fingerprint = _fingerprint(files, spec, self._options, self._dense)

    def embed_passages(self, texts: Sequence[str]) -> Matrix:
        return self._embed(texts, self._options.passage_prefix)

    def embed_query(self, text: str) -> Vector:
        return np.asarray(self._embed([text], self._options.query_prefix)[0])

    def _embed(self, texts: Sequence[str], prefix: str) -> Matrix:
        result = np.zeros((len(texts), self.dimensions), np.float32)
        nonblank = full_rows(texts)
        # batches of texts with similar lengths need little padding
        nonblank.sort(key=lambda row: len(texts[row]))
        size = self._spec.batch_size
        batches = [nonblank[start : start + size] for start in range(0, len(nonblank), size)]

        def fill(rows: list[int]) -> None:
            result[rows] = self._run([prefix + texts[row] for row in rows])

        if min(len(batches), _THREADS) < 2:
            for batch in batches:
                fill(batch)
            return result
        with ThreadPoolExecutor(_THREADS) as threads:
            try:
                for _ in threads.map(fill, batches):
                    pass
            except BaseException:  # an interrupt does not wait for other batches
                threads.shutdown(wait=False, cancel_futures=True)
                raise
        return result

    def _run(self, texts: list[str]) -> Matrix:
        encodings = encode_texts(self._tokenizer, texts)
        shape = (len(texts), max(len(encoding.ids) for encoding in encodings))
        feed = {name: np.zeros(shape, np.int64) for name in _INPUTS}
        for row, encoding in enumerate(encodings):
            length = len(encoding.ids)
            feed["input_ids"][row, :length] = encoding.ids
            feed["token_type_ids"][row, :length] = encoding.type_ids
            feed["attention_mask"][row, :length] = 1
        try:
            (output,) = self._session.run(
                [self._output], {name: feed[name] for name in self._inputs}
            )
        except Exception as error:  # onnxruntime raises classes of its own extension module
            raise EmbedderError(f"the ONNX model failed: {str(error)[:300]}") from error
        vectors = self._pool(np.asarray(output, np.float32), feed["attention_mask"])
        for layer in self._dense:
            vectors = layer(vectors)
        if not np.isfinite(vectors).all():
            raise EmbedderError("the ONNX model gave vectors that are not finite numbers")
        if self._options.normalize:
            normalize(vectors)
        return vectors

    def _pool(self, output: NDArray[np.float32], mask: NDArray[np.int64]) -> Matrix:
        if self._rank == _SENTENCE_RANK:
            return output.copy()
        if self._options.pooling == "cls":
            return output[:, 0].copy()
        weights = mask[:, :, None].astype(np.float32)
        return np.asarray((output * weights).sum(axis=1) / weights.sum(axis=1))

    def _check_dense(self, model: Path, width: int | None) -> None:
        for layer in self._dense:
            if width is not None and layer.weight.shape[1] != width:
                raise EmbedderError(
                    f"{model}: gives {width} numbers where its dense layer takes "
                    f"{layer.weight.shape[1]}; fetch or copy the whole model again"
                )
            width = layer.weight.shape[0]

    def _choose_output(self, model: Path) -> tuple[str, int, int | None]:
        """Choose the output of token vectors, else that of sentence vectors."""
        outputs = [(value.name, value.shape) for value in self._session.get_outputs()]
        for rank in (_TOKEN_RANK, _SENTENCE_RANK):
            for name, shape in outputs:
                if len(shape) == rank:
                    return name, rank, shape[-1] if isinstance(shape[-1], int) else None
        raise EmbedderError(f"{model}: has no output of token or sentence vectors")


def minilm_fingerprint() -> str:
    spec = OnnxEmbedding(preset="minilm")
    files = _preset_files("minilm")
    return _fingerprint(files, spec, _options_of(spec, files.config), ())


def _preset_files(name: str) -> _Files:
    if name == "minilm":
        return _Files(*models.minilm_files())
    if name in presets.PRESETS and presets.PRESETS[name].package:
        raise EmbedderError(f"{name} is not an ONNX model; write `embedding: {{type: {name}}}`")
    model, folder = presets.fetch_model(name)
    return _Files(model, _tokenizer_beside(model), presets.read_config(folder))


def _model_files(spec: OnnxEmbedding, base: Path) -> _Files:
    model = base / Path(spec.model or "").expanduser()
    if model.is_dir():
        existing = [model / name for name in presets.MODEL_FILES if (model / name).is_file()]
        model = existing[0] if existing else model / "model.onnx"
    if spec.tokenizer:
        tokenizer = base / Path(spec.tokenizer).expanduser()
    else:
        tokenizer = _tokenizer_beside(model)
    for path, key in ((model, "model"), (tokenizer, "tokenizer")):
        if not path.is_file():
            raise EmbedderError(f"{path}: no such file; set embedding.{key} to its path")
    folder = model.parent.parent if model.parent.name == "onnx" else model.parent
    return _Files(model, tokenizer, presets.read_config(folder))


def _tokenizer_beside(model: Path) -> Path:
    # sentence-transformers stores the model in a subfolder, the tokenizer above it
    tokenizer = model.with_name("tokenizer.json")
    if not tokenizer.is_file() and model.parent.name == "onnx":
        tokenizer = model.parent.parent / "tokenizer.json"
    return tokenizer


@lru_cache(maxsize=4)
def _session(model: Path, _version: tuple[int, int]) -> Any:
    try:
        import onnxruntime
    except ImportError as error:
        raise EmbedderError(
            f"the onnx embedder needs onnxruntime ({error}); pip install onnxruntime"
        ) from error
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    # one thread without spinning: more threads take more processor time from concurrent work
    options.intra_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    # sums of 8-bit products do not overflow on processors without VNNI
    options.add_session_config_entry("session.x64quantprecision", "1")
    try:
        return onnxruntime.InferenceSession(
            str(model), sess_options=options, providers=["CPUExecutionProvider"]
        )
    except Exception as error:  # onnxruntime raises classes of its own extension module
        raise EmbedderError(
            f"{model}: onnxruntime cannot load it ({str(error)[:300]}); it is truncated or no "
            "ONNX model: fetch or copy it again"
        ) from error


@lru_cache(maxsize=8)
def tokenizer_of(path: Path, _version: tuple[int, int], max_length: int) -> Any:
    """Return a file's tokenizer, shared in the process, with truncation."""
    from tokenizers import Tokenizer

    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises bare Exception for a file it cannot parse
        raise EmbedderError(
            f"{path}: not a tokenizer of the tokenizers library ({str(error)[:200]})"
        ) from error
    tokenizer.no_padding()
    tokenizer.enable_truncation(max_length)
    return tokenizer


def encode_texts(tokenizer: Any, texts: list[str]) -> list[Any]:
    with only_unicode():
        return list(tokenizer.encode_batch_fast(texts))


def _fingerprint(
    files: _Files, spec: OnnxEmbedding, options: _Options, dense: Sequence[presets.DenseLayer]
) -> str:
    digest = hashlib.sha256()
    weights = sorted(files.model.parent.glob(f"{files.model.name}?data"))  # of large models
    for path in (files.model, *weights, files.tokenizer):
        digest.update(models.sha256(path).encode())
    digest.update(json.dumps(asdict(options), separators=(",", ":"), ensure_ascii=False).encode())
    for layer in dense:
        digest.update(layer.digest.encode())
    return f"onnx:{spec.preset or files.model.parent.name}:{digest.hexdigest()[:16]}"


_NUMPY_QUERIES = 4  # opening an onnxruntime session takes as long as a dozen queries in numpy


class MiniLmEmbedder:
    """MiniLM, the default. Thread-safe.

    numpy embeds the first few queries, onnxruntime the others and passages; their vectors are equal
    to three digits.
    """

    dimensions = models.DIMENSIONS
    batch_size = OnnxEmbedder.batch_size

    def __init__(self, spec: OnnxEmbedding) -> None:
        self._spec = spec
        self.fingerprint = minilm_fingerprint()
        path = models.minilm_files()[1]
        self._tokenizer = tokenizer_of(path, models.file_version(path), MAX_LENGTH)
        self._queries = count()
        if find_spec("onnxruntime") is None:
            _ = self._model  # raises the error

    def embed_passages(self, texts: Sequence[str]) -> Matrix:
        return self._model.embed_passages(texts)

    def embed_query(self, text: str) -> Vector:
        if (
            not text
            or text.isspace()
            or "_model" in vars(self)
            or next(self._queries) >= _NUMPY_QUERIES
        ):
            return self._model.embed_query(text)
        (tokens,) = encode_texts(self._tokenizer, [text])
        vector: Vector = models.token_vectors(models.minilm_weights(), tokens.ids).mean(axis=0)
        vector /= np.linalg.norm(vector)
        return vector

    @cached_property
    def _model(self) -> OnnxEmbedder:
        return OnnxEmbedder(self._spec)
