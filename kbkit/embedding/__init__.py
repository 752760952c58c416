"""Text to vectors: the offline default, ONNX models, and any llama-index embedding."""

from __future__ import annotations

from pathlib import Path

from kbkit.embedding.base import Embedder
from kbkit.recipes import AnyEmbedding, OnnxEmbedding, StaticEmbedding

__all__ = ["Embedder", "open_embedder"]


def open_embedder(spec: AnyEmbedding, *, base: Path = Path()) -> Embedder:
    """Open the embedder that a recipe names. Only its own libraries are imported.

    Args:
        spec: The ``embedding`` part of a recipe.
        base: Folder that relative paths start from; a recipe's folder.

    Raises:
        EmbedderError: Its files, its package or its model cannot be had.
    """
    if isinstance(spec, StaticEmbedding):
        from kbkit.embedding.static import StaticEmbedder

        return StaticEmbedder()
    if isinstance(spec, OnnxEmbedding):
        from kbkit.embedding.onnx import OnnxEmbedder

        return OnnxEmbedder(spec, base=base)
    from kbkit.embedding.llamaindex import LlamaIndexEmbedder

    return LlamaIndexEmbedder(spec)
