"""Embedding models with names, and the places of fetched models."""

import hashlib
import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from kbkit.embedding.models import sha256
from kbkit.errors import EmbedderError
from kbkit.models import Value
from kbkit.runtime.config import Settings

NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,95}(?:/[A-Za-z0-9][\w.-]{0,95})?")
"""A preset, or ``OWNER/MODEL`` of the hub."""


@dataclass(frozen=True, slots=True)
class ModelFacts(Value):
    """Facts about an embedding model; see `kbkit.workflows.embedding_models.ModelInfo`."""

    name: str
    dimensions: int
    megabytes: int
    license: str
    languages: str
    good_for: str
    cost: int


@dataclass(frozen=True, slots=True)
class Preset(ModelFacts):
    """A model with a name in recipes and `kbkit models`.

    Attributes:
        repository: ``OWNER/MODEL`` on the hub; ``""`` if a package contains it.
        package: Package that contains it; ``""`` if it is fetched.
        query_prefix: Prefix of queries if its configuration has none.
    """

    repository: str = ""
    package: str = ""
    query_prefix: str = ""
    passage_prefix: str = ""


_TABLE = tomllib.loads(Path(__file__).with_name("presets.toml").read_text("utf-8"))
PRESETS = {name: Preset(name, **values) for name, values in _TABLE.items()}


def model_folder(name: str, models: Path | None = None) -> Path:
    if not NAME.fullmatch(name) or ("/" not in name and name not in PRESETS):
        names = ", ".join(sorted(PRESETS))
        raise EmbedderError(
            f"{name[:100]!r} is not a known model; choose from {names}, or OWNER/MODEL of the hub"
        )
    return (models or Settings.load().models) / name.replace("/", "--")


def fetch_model(name: str) -> tuple[Path, Path]:
    folder = model_folder(name)
    lock = read_lock(folder)
    if not folder.is_dir() or lock is None:
        raise EmbedderError(
            f"the model {name} is not installed; fetch it with `kbkit models fetch {name}`"
        )
    for file, locked in lock["files"].items():
        path = folder / file
        if not path.is_file() or sha256(path) != locked["sha256"]:
            raise EmbedderError(
                f"{path}: not the file that was fetched (truncated, changed or gone); fix it with "
                f"`kbkit models fetch {name}`"
            )
    return folder / str(lock["model"]), folder


def lock_path(folder: Path) -> Path:
    """Return the path of a fetch's record, next to the model, since it outlives the model."""
    return folder.with_name(f"{folder.name}.lock.json")


def read_lock(folder: Path) -> Mapping[str, Any] | None:
    path = lock_path(folder)
    if not path.is_file():
        return None
    try:
        lock: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        if lock["model"] not in lock["files"] or not all(
            isinstance(locked["sha256"], str) for locked in lock["files"].values()
        ):
            raise ValueError("files are missing")
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise EmbedderError(
            f"{path}: cannot be read ({error}); delete it and fetch the model again"
        ) from error
    return lock


Pooling = Literal["mean", "cls"]

MODULES = "modules.json"
MODEL_FILES = (
    "model.onnx",
    "onnx/model.onnx",
    "onnx/model_quantized.onnx",
    "onnx/model_int8.onnx",
    "model_quantized.onnx",
    "model_int8.onnx",
)
"""Paths of ONNX files; a folder's model is the first of them."""
_MAX_BYTES = 5_000_000
_MAX_LENGTH = 8192
_QUERY_NAMES = ("query", "retrieval.query", "search_query")
_PASSAGE_NAMES = ("document", "passage", "retrieval.passage", "search_document")
_ACTIVATIONS = ("identity", "tanh")


@dataclass(frozen=True, slots=True)
class DenseLayer:
    """A linear layer after pooling; shapes ``(out, in)`` and ``(out,)``."""

    weight: NDArray[np.float32]
    bias: NDArray[np.float32]
    activation: str

    def __call__(self, vectors: NDArray[np.float32]) -> NDArray[np.float32]:
        result: NDArray[np.float32] = vectors @ self.weight.T + self.bias
        if self.activation == "tanh":
            np.tanh(result, out=result)
        return result

    @property
    def digest(self) -> str:
        parts = (self.weight.tobytes(), self.bias.tobytes(), self.activation.encode())
        return hashlib.sha256(b"".join(parts)).hexdigest()


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """Options in a model's files; `vocabulary` is the number of tokens with vectors."""

    pooling: Pooling | None = None
    max_length: int | None = None
    query_prefix: str | None = None
    passage_prefix: str | None = None
    vocabulary: int | None = None
    dense: tuple[DenseLayer, ...] = ()


def module_folders(modules: Any, where: str) -> dict[str, str]:
    folders: dict[str, str] = {}
    if not isinstance(modules, list) or len(modules) > 20:
        raise EmbedderError(f"{where}: not a list of modules; fetch the model again")
    for module in modules:
        kind = str(module.get("type", "")).rpartition(".")[2] if isinstance(module, dict) else ""
        if kind not in ("Transformer", "Pooling", "Dense", "Normalize"):
            raise EmbedderError(
                f"{where}: has the module {kind[:60] or '?'!r}, which kbkit cannot run; choose a "
                "model of Transformer, Pooling, Dense and Normalize"
            )
        folder = str(module.get("path", ""))
        if folder and not is_inside(folder):
            raise EmbedderError(f"{where}: names a folder outside of the model ({folder[:80]!r})")
        folders[f"{kind}{len(folders)}" if kind == "Dense" else kind] = folder
    return folders


def is_inside(path: str) -> bool:
    parts = PurePosixPath(path).parts
    return (
        bool(parts)
        and not path.startswith("/")
        and ".." not in parts
        and not any(character in path for character in "\\:\0")
        and path.isprintable()
    )


def read_config(folder: Path) -> ModelConfig:
    """Read the configuration of a model's folder; missing files are ignored."""
    transformer = _read(folder / "config.json")
    sentence = _read(folder / "sentence_bert_config.json")
    tokenizer = _read(folder / "tokenizer_config.json")
    values = _read(folder / "config_sentence_transformers.json")
    modules: dict[str, str] = {}
    if (folder / MODULES).is_file():
        modules = module_folders(_load(folder / MODULES), str(folder / MODULES))
    pooling = folder / modules.get("Pooling", "1_Pooling") / "config.json"
    prompts = values.get("prompts")
    prompts = prompts if isinstance(prompts, Mapping) else {}
    lengths = (
        sentence.get("max_seq_length"),
        tokenizer.get("model_max_length"),
        transformer.get("max_position_embeddings"),
    )
    length = next((n for n in lengths if isinstance(n, int) and 8 <= n <= 10**6), None)
    vocabulary = transformer.get("vocab_size")
    layers = [path for kind, path in modules.items() if kind.startswith("Dense")]
    return ModelConfig(
        pooling=_pooling(pooling),
        max_length=min(length, _MAX_LENGTH) if length else None,
        query_prefix=_prompt(prompts, _QUERY_NAMES),
        passage_prefix=_prompt(prompts, _PASSAGE_NAMES),
        vocabulary=vocabulary if isinstance(vocabulary, int) and vocabulary > 0 else None,
        dense=tuple(_dense(folder / path) for path in layers),
    )


def _prompt(prompts: Mapping[str, Any], names: tuple[str, ...]) -> str | None:
    return next((str(prompts[name])[:1_000] for name in names if name in prompts), None)


def _pooling(path: Path) -> Pooling | None:
    values = _read(path)
    modes = {name for name, value in values.items() if name.startswith("pooling_mode_") and value}
    if isinstance(values.get("pooling_mode"), str):
        modes = {f"pooling_mode_{values['pooling_mode']}"}
    if not modes:
        return None
    if modes <= {"pooling_mode_mean_tokens", "pooling_mode_mean"}:
        return "mean"
    if modes <= {"pooling_mode_cls_token", "pooling_mode_cls"}:
        return "cls"
    names = ", ".join(sorted(modes))[:200]
    raise EmbedderError(
        f"{path}: pools by {names}, which kbkit cannot do; choose a model that pools by mean or by "
        "the first token"
    )


def _dense(folder: Path) -> DenseLayer:
    values = _read(folder / "config.json")
    activation = str(values.get("activation_function", "")).rpartition(".")[2].lower()
    if activation not in _ACTIVATIONS:
        raise EmbedderError(
            f"{folder / 'config.json'}: has the activation {activation[:60]!r}, which kbkit cannot "
            "compute; choose a model whose dense layer is linear or tanh"
        )
    path = folder / "model.safetensors"
    if not path.is_file():
        raise EmbedderError(
            f"{path}: the weights of a dense layer are missing (pickled ones are never read); "
            "fetch a model that has them as safetensors"
        )
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    try:
        tensors = load_file(path)
        weight = tensors["linear.weight"].astype(np.float32)
        bias = tensors.get("linear.bias", np.zeros(len(weight))).astype(np.float32)
    except (KeyError, OSError, TypeError, SafetensorError) as error:
        raise EmbedderError(
            f"{path}: not the weights of a dense layer ({error}); fetch the model again"
        ) from error
    if weight.ndim != 2 or bias.shape != weight.shape[:1]:
        raise EmbedderError(f"{path}: weights and bias do not fit; fetch the model again")
    return DenseLayer(weight, bias, activation)


def _read(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    values = _load(path)
    if not isinstance(values, dict):
        raise EmbedderError(f"{path}: not a JSON object; fetch the model again")
    return values


def _load(path: Path) -> Any:
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise EmbedderError(f"{path}: too large for a configuration; fetch the model again")
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise EmbedderError(
            f"{path}: cannot be read ({str(error)[:200]}); fetch the model again"
        ) from error
