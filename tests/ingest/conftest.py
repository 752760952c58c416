"""Embedders that are slow or break on demand."""

from pathlib import Path

import pytest

from kbkit.recipes import ChunkingSpec, KnowledgeBaseSpec


@pytest.fixture
def wordy(monkeypatch):
    """The class of an embedding that counts its batches and can be made to break."""
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    from wordy_embedding import WordyEmbedding

    WordyEmbedding.batches.clear()
    WordyEmbedding.breaks_at = 0
    return WordyEmbedding


@pytest.fixture
def wordy_config(wordy):
    """Makes configurations with that embedding, four texts a batch."""

    def make(**arguments):
        embedding = {"type": "llama-index", "model": "wordy_embedding:WordyEmbedding"}
        embedding |= {"batch_size": 4, "arguments": arguments}
        chunking = ChunkingSpec(size=100)
        return KnowledgeBaseSpec.model_validate({"embedding": embedding, "chunking": chunking})

    return make
