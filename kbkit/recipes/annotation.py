"""Annotation settings of a recipe."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BeforeValidator, Field

from kbkit.models import EntityType
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
    """Documents that a build describes without `--yes`."""


_NAME_LENGTH = 200
_Text = Annotated[str, Field(min_length=1, max_length=_NAME_LENGTH, pattern=r"\S")]


class NameSpec(Spec):
    """A name that a knowledge base mentions, beside those that its documents define."""

    name: _Text
    """Spelling."""
    type: EntityType = EntityType.NAME
    """Type of the named thing."""
    aliases: tuple[_Text, ...] = ()
    """Other names for it."""


def _or_text(schema: dict[str, Any]) -> None:
    text = {"type": "string", "minLength": 1, "maxLength": _NAME_LENGTH, "pattern": r"\S"}
    schema["items"] = {"anyOf": [schema["items"], text]}


class _Annotation(Spec):
    names: tuple[NameSpec, ...] = Field(default=(), json_schema_extra=_or_text)
    """Additional names; a plain name is short for its mapping."""


class RulesAnnotation(_Annotation):
    """Rules, on this machine: cues of language, kinds of blocks, and known names."""

    type: Literal["rules"] = "rules"


class NoAnnotation(_Annotation):
    """Nothing is annotated."""

    type: Literal["none"] = "none"


class LlmAnnotation(_Annotation, LanguageModelSpec):
    """A language model that annotates chunks.

    Its package must be installed, and it may use the network: what chunks say is sent to it.
    """

    type: Literal["llm"] = "llm"
    batch_size: int = Field(default=8, ge=1, le=64)
    """Chunks that it is given at once."""
    timeout: float = Field(default=120, gt=0, le=3600)
    """Seconds that it may take to answer."""
    limit: int = Field(default=500, ge=0)
    """Chunks that an ingest annotates without confirmation."""


class PluginAnnotation(_Annotation):
    """An annotator that another installed package brings (entry point group `kbkit.annotators`)."""

    type: Literal["plugin"] = "plugin"
    name: str = Field(min_length=1)
    """Its name there."""
    options: dict[str, Any] = Field(default_factory=dict)
    """Keyword arguments for the package's annotator."""


def _spelled_out(value: Any) -> Any:
    if isinstance(value, str):
        return {"type": value}
    if not isinstance(value, dict):
        return value
    spelled = {"type": "rules", **value}
    if isinstance(names := spelled.get("names"), list | tuple):
        spelled["names"] = [{"name": n} if isinstance(n, str) else n for n in names]
    return spelled


AnyAnnotation: TypeAlias = Annotated[
    RulesAnnotation | NoAnnotation | LlmAnnotation | PluginAnnotation,
    Field(discriminator="type"),
    BeforeValidator(_spelled_out),
]
"""An annotator by ``type``; ``rules`` and ``none`` are short forms."""
