"""The offline default: static token vectors from the ``wordllama`` wheel.

A text's vector is the mean of its tokens' vectors, scaled to length 1. The weights are
WordLlama's ``l2_supercat_256`` (32,000 Llama 2 tokens of 256 dimensions, trained by
D. Lee Miller; the wheel is under the MIT licence, and its vectors derive from token embeddings
of Llama models, to which Meta's licences apply). The package itself is never imported: it looks
for its files in the wrong folder, offers to download, and configures logging.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from kbkit.embedding.base import Matrix, Vector
from kbkit.embedding.files import check_sha256, distribution_file, quieten_forks
from kbkit.errors import EmbedderError

if TYPE_CHECKING:
    from tokenizers import Tokenizer

WEIGHTS_SHA256 = "64b47a2dc493cb8e85944076601189739852d7b64e0e1eedcb1937a251cd9fd5"
TOKENIZER_SHA256 = frozenset(
    {
        # the same tokenizer, written by two versions of the tokenizers library
        "bf467c9e0f536bda271283c6ef85eb1a943e3196b621c8a912d64953b205df83",  # 0.2.2.post0
        "93248f2a9ec36c7b35f700a033d5f36228aae48db61aee31007fa49062cdeb68",  # 0.4.0.post1
    }
)

_DISTRIBUTION = "wordllama"
_WEIGHTS = "l2_supercat_256.safetensors"
_TOKENIZER = "l2_supercat_tokenizer_config.json"
_MEND = "reinstall it: pip install --force-reinstall --no-deps 'wordllama<0.5'"
_BATCH = 256
_SLAB = 1024  # tokens summed at once: 1 MB, which stays in the processor's cache
# No token of this vocabulary has a word mark behind another character, so cutting before each
# run of marks changes no token. It gives the tokenizer whole words, which it remembers: 1.5
# times as many texts a second as the file's own settings, which merge across the whole text.
_WORDS = "▁*[^▁]+|▁+"


class StaticEmbedder:
    """Means of static token vectors. Offline, thread-safe, thousands of texts a second.

    Raises:
        EmbedderError: The files of the ``wordllama`` wheel are missing or not the known ones.
    """

    def __init__(self) -> None:
        self._vectors, self._tokenizer = _load(
            _find(_WEIGHTS, "weights"), _find(_TOKENIZER, "tokenizer")
        )

    @property
    def fingerprint(self) -> str:
        """Names the weights by their hash, and how a text's vector is made of them."""
        return f"static:l2_supercat_256:{WEIGHTS_SHA256[:12]}:mean"

    @property
    def dimensions(self) -> int:
        """256."""
        return int(self._vectors.shape[1])

    @property
    def token_vectors(self) -> NDArray[np.float32]:
        """The vector of each token, by token id; shape ``(32000, 256)``, read-only."""
        return self._vectors

    def embed_passages(self, texts: Sequence[str]) -> Matrix:
        """Embed texts; see `Embedder.embed_passages`."""
        result = np.zeros((len(texts), self.dimensions), np.float32)
        for start in range(0, len(texts), _BATCH):
            self._embed_into(result[start : start + _BATCH], texts[start : start + _BATCH])
        return result

    def embed_query(self, text: str) -> Vector:
        """Embed a question the same way as a passage."""
        vector: Vector = self.embed_passages([text])[0]
        return vector

    def _embed_into(self, rows: Matrix, texts: Sequence[str]) -> None:
        # Encoding "" and " " would differ by a lone word mark; both say nothing.
        full = [row for row, text in enumerate(texts) if text and not text.isspace()]
        if not full:
            return
        try:
            encodings = self._tokenizer.encode_batch_fast(
                [texts[row] for row in full], add_special_tokens=False
            )
        except (TypeError, UnicodeError) as error:
            raise EmbedderError(
                f"a text that is not valid Unicode cannot be embedded ({error}); "
                "replace its lone surrogates"
            ) from error
        # One small buffer for all texts: fresh memory for each costs ten times as much.
        slab = np.empty((_SLAB, self.dimensions), np.float32)
        for row, encoding in zip(full, encodings, strict=True):
            self._sum_into(rows[row], np.array(encoding.ids, np.intp), slab)
        # Sums point where means do.
        norms = np.linalg.norm(rows, axis=1, keepdims=True)
        np.divide(rows, norms, out=rows, where=norms > 0)

    def _sum_into(self, row: Vector, tokens: NDArray[np.intp], slab: Matrix) -> None:
        for start in range(0, len(tokens), _SLAB):
            part = tokens[start : start + _SLAB]
            vectors = slab[: len(part)]
            # mode "clip" spares numpy a copy; every id is inside the vocabulary
            self._vectors.take(part, axis=0, out=vectors, mode="clip")
            row += np.add.reduce(vectors, axis=0)


def _find(name: str, what: str) -> Path:
    path = distribution_file(_DISTRIBUTION, name)
    if path is None:
        raise EmbedderError(
            f"the {what} of the static embedder ({name}) are missing from the installed "
            f"{_DISTRIBUTION} package, or it is not installed; {_MEND}"
        )
    return path


@lru_cache(maxsize=1)
def _load(weights: Path, tokenizer: Path) -> tuple[NDArray[np.float32], Tokenizer]:
    """Read and check both files, once a process."""
    from safetensors import SafetensorError
    from safetensors.numpy import load_file
    from tokenizers import Regex, Tokenizer
    from tokenizers.pre_tokenizers import Split

    check_sha256(weights, frozenset({WEIGHTS_SHA256}), _MEND)
    check_sha256(tokenizer, TOKENIZER_SHA256, _MEND)
    try:
        vectors = load_file(weights)["embedding.weight"].astype(np.float32)
        encoder = Tokenizer.from_file(str(tokenizer))
    except (OSError, KeyError, SafetensorError) as error:
        raise EmbedderError(f"{weights.parent}: cannot be loaded ({error}); {_MEND}") from error
    encoder.no_padding()
    encoder.no_truncation()
    encoder.pre_tokenizer = Split(Regex(_WORDS), "isolated")
    vectors.flags.writeable = False
    quieten_forks()
    return vectors, encoder
