"""Embedding models by name: list, fetch, remove.

Nothing is ever fetched by itself: search and ingest say which command does it.
"""

from kbkit.embedding_models.fetching import ModelInfo, fetch_model, list_models, remove_model

__all__ = ["ModelInfo", "fetch_model", "list_models", "remove_model"]
