"""Text to vectors: the offline default, ONNX models, and any llama-index embedding."""

from __future__ import annotations

from pathlib import Path

from kbkit.embedding.base import Embedder
from kbkit.recipes import (
    AnyEmbedding,
    MultilingualEmbedding,
    OnnxEmbedding,
    PluginEmbedding,
    StaticEmbedding,
)

__all__ = ["Embedder", "open_embedder"]


def open_embedder(spec: AnyEmbedding, *, base: Path = Path()) -> Embedder:
    """Open the embedder of a recipe; imports only that embedder's libraries."""
    if isinstance(spec, StaticEmbedding):
        from kbkit.embedding.static import StaticEmbedder

        return StaticEmbedder()
    if isinstance(spec, MultilingualEmbedding):
        from kbkit.embedding.models import MultilingualEmbedder

        return MultilingualEmbedder()
    if isinstance(spec, OnnxEmbedding) and spec == OnnxEmbedding(preset="minilm"):
        from kbkit.embedding.short_texts import MiniLmEmbedder

        return MiniLmEmbedder(spec)
    if isinstance(spec, OnnxEmbedding):
        from kbkit.embedding.onnx import OnnxEmbedder

        return OnnxEmbedder(spec, base=base)
    if isinstance(spec, PluginEmbedding):
        from kbkit.runtime.plugins import EMBEDDERS, make

        parts = ("fingerprint", "dimensions", "embed_passages", "embed_query")
        plugin: Embedder = make(EMBEDDERS, spec.name, spec.options, parts)
        return plugin
    from kbkit.embedding.llamaindex import LlamaIndexEmbedder

    return LlamaIndexEmbedder(spec)
