"""The offline default: static token vectors from the ``wordllama`` wheel.

A text's vector is the mean of its tokens' vectors, scaled to length 1. The weights are WordLlama's
``l2_supercat_256``: 32,000 Llama 2 tokens of 256 dimensions, trained by D. Lee Miller. The wheel is
under the MIT license; the vectors derive from token embeddings of Llama models, to which Meta's
licenses apply. The package is never imported: it searches the wrong folder for its files, offers
downloads, and configures logging.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from kbkit.embedding import Matrix, Vector, full_rows, normalize, only_unicode
from kbkit.embedding.fitted import FittedEncoder
from kbkit.embedding.models import distribution_file, read_checked
from kbkit.embedding.regression import term_vectors
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
_MAX_REMEMBERED = 200_000
_MAX_REMEMBERED_LENGTH = 40
# In this vocabulary, digits and line ends are tokens of one character, a word mark (a space) only
# starts a token, and no token joins letters and other signs. So text cut at these places has the
# same tokens, and the pieces are few enough for a cache.
_PIECE = re.compile(r" *+[^\W0-9_²]++|[0-9\n]| *+(?:[^\w \n]++|[_²]++)++| ++")
# equal for ASCII, in half the time
_ASCII_PIECE = re.compile(r" *+[A-Za-z]++|[0-9\n]| *+[^A-Za-z0-9 \n]++| ++")
_SPECIAL_TOKENS = ("<unk>", "<s>", "</s>")
_SPECIAL = re.compile("(<unk>|</?s>)")


_Table = NDArray[np.float16] | NDArray[np.float32]


class StaticEmbedder:
    """Averages static token vectors. Offline, thread-safe, thousands of texts a second."""

    fingerprint = f"static:l2_supercat_256:{WEIGHTS_SHA256[:12]}:mean"

    def __init__(self) -> None:
        # searched once: listing a package's files takes as long as embedding 50 texts
        self._files = _find(_WEIGHTS, "weights"), _find(_TOKENIZER, "tokenizer")
        self._packed, self._tokens = _load(*self._files)
        self.dimensions = int(self._packed.shape[1])

    @property
    def token_vectors(self) -> NDArray[np.float32]:
        """Vectors by token id; shape ``(32000, 256)``, read-only."""
        return _float32_vectors(*self._files)

    def embed_passages(self, texts: Sequence[str]) -> Matrix:
        result = np.zeros((len(texts), self.dimensions), np.float32)
        for start in range(0, len(texts), _BATCH):
            batch = slice(start, start + _BATCH)
            result[batch] = self._embed(texts[batch], self.token_vectors)
        return result

    def embed_query(self, text: str) -> Vector:
        # a query does not wait for the conversion of the whole table
        return np.asarray(self._embed([text], self._packed)[0])

    def _embed(self, texts: Sequence[str], vectors: _Table) -> Matrix:
        result = np.zeros((len(texts), self.dimensions), np.float32)
        # one small buffer for all texts: allocating memory for each takes ten times as long
        slab = np.empty((_SLAB, self.dimensions), np.float32)
        nonblank = full_rows(texts)  # "" and " " would differ by a word mark
        with only_unicode():
            tokens = [self._tokens.of(texts[row]) for row in nonblank]
        for row, ids in zip(nonblank, tokens, strict=True):
            _sum_into(result[row], np.array(ids, np.intp), vectors, slab)
        # sums and means have the same direction
        normalize(result)
        return result


def count_tokens(text: str) -> int:
    """Count the tokens of a text in the vocabulary of Llama 2."""
    return _counter().count(text)


def _sum_into(row: Vector, tokens: NDArray[np.intp], vectors: _Table, slab: Matrix) -> None:
    for start in range(0, len(tokens), _SLAB):
        ids = tokens[start : start + _SLAB]
        rows = slab[: len(ids)]
        if vectors.dtype == rows.dtype:
            # mode "clip" avoids a copy; all ids are valid
            vectors.take(ids, axis=0, out=rows, mode="clip")
        else:
            rows[:] = vectors[ids]
        row += np.add.reduce(rows, axis=0)


class _Tokens(dict[str, tuple[int, ...]]):
    """Tokenizes texts, with a cache of pieces: a hundredth of the tokenizer's time. Thread-safe."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        super().__init__()
        # the model alone takes a fifth of the tokenizer's time
        self._model = tokenizer.model
        for token in _SPECIAL_TOKENS:
            self[token] = tuple(tokenizer.encode(token, add_special_tokens=False).ids)

    def of(self, text: str) -> list[int]:
        return list(chain.from_iterable(map(self.__getitem__, self._pieces(text))))

    def count(self, text: str) -> int:
        return sum(map(len, map(self.__getitem__, self._pieces(text))))

    def _pieces(self, text: str) -> list[str]:
        pieces: list[str] = []
        # the file's normalizer puts a mark before each part between special tokens
        for part in _SPECIAL.split(text) if "<" in text else (text,):
            if part in _SPECIAL_TOKENS:
                pieces.append(part)
            elif part:
                pattern = _ASCII_PIECE if part.isascii() else _PIECE
                pieces += pattern.findall(" " + part.replace("▁", " "))
        return pieces

    def __missing__(self, piece: str) -> tuple[int, ...]:
        ids = tuple(token.id for token in self._model.tokenize(piece.replace(" ", "▁")))
        if len(piece) <= _MAX_REMEMBERED_LENGTH and len(self) < _MAX_REMEMBERED:
            self[piece] = ids
        return ids


def _find(name: str, content: str) -> Path:
    path = distribution_file(_DISTRIBUTION, name)
    if path is None:
        raise EmbedderError(
            f"the {content} of the static embedder ({name}) are missing from the installed "
            f"{_DISTRIBUTION} package, or it is not installed; {_MEND}"
        )
    return path


@lru_cache(maxsize=1)
def _counter() -> _Tokens:
    return _load(_find(_WEIGHTS, "weights"), _find(_TOKENIZER, "tokenizer"))[1]


@lru_cache(maxsize=1)
def _float32_vectors(weights: Path, tokenizer: Path) -> NDArray[np.float32]:
    vectors = _load(weights, tokenizer)[0].astype(np.float32)
    vectors.flags.writeable = False
    return vectors


@lru_cache(maxsize=1)
def _load(weights: Path, tokenizer: Path) -> tuple[_Table, _Tokens]:
    """Read and check both files; the vectors keep their stored type."""
    from safetensors import SafetensorError
    from safetensors.numpy import load
    from tokenizers import Tokenizer

    table = read_checked(weights, {WEIGHTS_SHA256}, _MEND)
    config = read_checked(tokenizer, TOKENIZER_SHA256, _MEND)
    try:
        vectors = load(table)["embedding.weight"]
        encoder = Tokenizer.from_buffer(config)
    except (KeyError, SafetensorError) as error:
        raise EmbedderError(f"{weights.parent}: cannot be loaded ({error}); {_MEND}") from error
    encoder.no_padding()
    encoder.no_truncation()
    vectors.flags.writeable = False
    return vectors, _Tokens(encoder)


def word_encoder(
    texts: Iterable[str], terms_of: Callable[[str], Sequence[str]]
) -> FittedEncoder | None:
    try:
        model = StaticEmbedder()
    except EmbedderError:
        return None
    vectors = term_vectors(model, texts, terms_of)
    if not vectors:
        return None
    return FittedEncoder(model.fingerprint, tuple(vectors), np.stack(list(vectors.values())), {})
