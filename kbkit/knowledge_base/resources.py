"""What the knowledge bases of one workspace share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kbkit.config import Settings
from kbkit.embedding.base import Embedder
from kbkit.recipes import AnyEmbedding
from kbkit.stores.stores import Stores


@dataclass(frozen=True, slots=True)
class Resources:
    """What the knowledge bases of one workspace share.

    Attributes:
        embedder: Opens embedders, each once.
        card_embedder: Opens what embeds cards where a recipe names nothing, by whether the text is
            English.
    """

    stores: Stores
    settings: Settings
    embedder: Callable[[AnyEmbedding], Embedder]
    card_embedder: Callable[[bool], Embedder]
