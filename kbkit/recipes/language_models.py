"""Parts of a recipe that name a language model."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from kbkit.recipes.base import Spec


class LanguageModelSpec(Spec):
    """A language model of llama-index.

    Its package must be installed, and it may use the network: what documents say is sent to it.
    """

    llm: str
    """A short form (`openai:gpt-4o-mini`) or the import path of a llama-index LLM
    (`llama_index.llms.ollama:Ollama`)."""
    arguments: dict[str, Any] = Field(default_factory=dict)
    """Arguments of its constructor. A key is a reference to the environment:
    `api_key: ${OPENAI_API_KEY}`."""


class ExpandSpec(LanguageModelSpec):
    """A language model that writes a card and questions of each document, for search.

    Whether search gains by it is not known. Its package must be installed, and it may use the
    network: what documents say is sent to it.
    """

    questions: int = Field(default=5, ge=0, le=10)
    """Questions that it writes of a document."""
    limit: int = Field(default=100, ge=0)
    """Documents that a build asks it about by itself; for more, it has to be told `--yes`."""
