"""A query encoder that needs no fit: static vectors of words, which are added up anyway."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from kbkit.embedding.fitted import FittedEncoder
from kbkit.embedding.static import StaticEmbedder
from kbkit.embedding.term_vectors import term_vectors
from kbkit.errors import EmbedderError


def word_encoder(
    texts: Iterable[str], terms_of: Callable[[str], Sequence[str]]
) -> FittedEncoder | None:
    """The static vectors of words, whose sum is nearly what the static embedder makes of a query.

    Args:
        texts: Hold the words.
        terms_of: The analyzer.

    Returns:
        ``None`` where there are no words, or no static vectors on this machine.
    """
    try:
        model = StaticEmbedder()
    except EmbedderError:
        return None
    found = term_vectors(model, texts, terms_of)
    if not found:
        return None
    return FittedEncoder(model.fingerprint, tuple(found), np.stack(list(found.values())), {})
