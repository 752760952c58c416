"""The embedders of a workspace: each is opened once, whoever asks for it."""

from __future__ import annotations

import json
import logging

from kbkit.embedding import open_embedder
from kbkit.embedding.base import Embedder
from kbkit.embedding.spread import SpreadEmbedder
from kbkit.engine import Engine, LocalEngine
from kbkit.errors import ConfigError, EmbedderError
from kbkit.recipes import (
    AnyEmbedding,
    LlamaIndexEmbedding,
    MultilingualEmbedding,
    OnnxEmbedding,
    StaticEmbedding,
)

_log = logging.getLogger(__name__)


class Embedders:
    """Opens embedders, each once.

    Args:
        engine: Whose workers embed passages; by default this machine does.
    """

    def __init__(self, engine: Engine | None = None) -> None:
        self._engine = engine or LocalEngine()
        self._opened: dict[str, Embedder] = {}
        self._of_cards: dict[bool, Embedder] = {}

    def open(self, spec: AnyEmbedding) -> Embedder:
        """The embedder that a recipe names.

        Raises:
            ConfigError: It cannot be made; see `kbkit.embedding.open_embedder`.
            EmbedderError: Its files, its package or its model cannot be had.
        """
        key = json.dumps(spec.model_dump(mode="json", exclude={"text"}), sort_keys=True)
        if key not in self._opened:
            found = open_embedder(spec)
            # a service is asked from here, where its key is
            if not self._engine.is_local and not isinstance(spec, LlamaIndexEmbedding):
                found = SpreadEmbedder(found, spec, self._engine.pool())
            self._opened[key] = found
        return self._opened[key]

    def of_cards(self, *, english: bool) -> Embedder:
        """What embeds cards where a recipe names nothing.

        MiniLM learned English alone; for other languages the multilingual encoder, if its extra
        is installed. Static vectors, which know no context, where neither can be had.

        Args:
            english: Whether the text is English.
        """
        from kbkit.embedding import multilingual

        if english not in self._of_cards:
            spec: AnyEmbedding = OnnxEmbedding(preset="minilm")
            if not english:
                installed = multilingual.is_installed()
                spec = MultilingualEmbedding() if installed else StaticEmbedding()
            try:
                found = self.open(spec)
            except (ConfigError, EmbedderError) as error:
                _log.warning("static vectors serve the cards of documents, since %s", error)
                found = self.open(StaticEmbedding())
            self._of_cards[english] = found
        return self._of_cards[english]
