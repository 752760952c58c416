"""Generate the reference of a recipe's keys."""

from __future__ import annotations

import enum
import inspect
import re
import types
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from kbkit import recipes
from kbkit.recipes import Spec
from kbkit.recipes.base import LanguageModelSpec, _Annotation, meanings
from kbkit.recipes.schema import _Embedding
from kbkit.recipes.sources import FetchSpec, SourceSpec, WebSpec

SHARED: dict[type[Spec], str] = {
    WebSpec: "Sources of web pages",
    FetchSpec: "Sources that fetch",
    SourceSpec: "All sources",
    _Embedding: "All embeddings",
    _Annotation: "All annotations",
    LanguageModelSpec: "Language models",
}
"""Base classes whose keys the reference describes once."""
MODELS: tuple[type[Spec], ...] = (
    recipes.Recipe,
    recipes.CrawlSource,
    recipes.PageSource,
    recipes.MirrorSource,
    recipes.FilesSource,
    recipes.JsonlSource,
    recipes.ParquetSource,
    recipes.OpenApiSource,
    recipes.PackageSource,
    recipes.PluginSource,
    WebSpec,
    FetchSpec,
    SourceSpec,
    recipes.ChunkingSpec,
    recipes.AutoEmbedding,
    recipes.StaticEmbedding,
    recipes.MultilingualEmbedding,
    recipes.OnnxEmbedding,
    recipes.LlamaIndexEmbedding,
    recipes.PluginEmbedding,
    _Embedding,
    recipes.RetrievalSpec,
    recipes.PostprocessorSpec,
    recipes.ExpandSpec,
    recipes.RulesAnnotation,
    recipes.LlmAnnotation,
    recipes.PluginAnnotation,
    recipes.NoAnnotation,
    _Annotation,
    LanguageModelSpec,
    recipes.NameSpec,
    recipes.GraphSpec,
    recipes.LearningSpec,
    recipes.StorageSpec,
    recipes.SiteSpec,
    recipes.Question,
)
"""Models in the order of the reference."""


def kind_of(model: type[Spec]) -> str:
    """Return the ``type`` of a model in a union, else ``""``."""
    field = model.model_fields.get("type")
    return field.default if field and get_origin(field.annotation) is Literal else ""


def title(model: type[Spec]) -> str:
    """Return the heading of a model."""
    if model in SHARED:
        return SHARED[model]
    if tag := kind_of(model):
        part = next(
            part for part in ("Source", "Embedding", "Annotation") if part in model.__name__
        )
        return f"{part} `{tag}`"
    return re.sub(r"Spec$", "", model.__name__)


def anchor(model: type[Spec]) -> str:
    """Return the anchor of a model's heading."""
    return re.sub(r"[^a-z0-9]+", "-", title(model).casefold()).strip("-")


def type_name(annotation: Any) -> str:
    """Describe a type in Markdown."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return type_name(arguments[0])
    if origin in {Union, types.UnionType}:
        tagged = [part for part in arguments if isinstance(part, type) and issubclass(part, Spec)]
        if len(tagged) > 1:
            links = (f"[`{kind_of(part)}`](#{anchor(part)})" for part in tagged)
            return f"{title(tagged[0]).split()[0].lower()} {', '.join(links)}"
        return " or ".join(
            dict.fromkeys(type_name(part) for part in arguments if part is not type(None))
        )
    if origin is Literal:
        return ", ".join(f"`{value}`" for value in arguments)
    if origin is tuple:
        return f"list of {type_name(arguments[0])}".replace("list of source ", "list of ")
    if origin is dict:
        return "mapping"
    if isinstance(annotation, type) and issubclass(annotation, enum.Enum):
        return ", ".join(f"`{member.value}`" for member in annotation)
    if isinstance(annotation, type) and issubclass(annotation, Spec):
        return f"[{title(annotation)}](#{anchor(annotation)})"
    return {str: "text", int: "integer", float: "number", bool: "boolean"}[annotation]


def default(value: Any) -> str:
    """Format a default in Markdown."""
    if value is None or value in ("", (), {}):
        return ""
    if isinstance(value, Spec):
        kind = getattr(value, "type", None)
        return f"`type: {kind}`" if kind else ""
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    return f"`{value}`"


def limits(metadata: list[Any]) -> str:
    """Describe the bounds of a number or a list."""
    bounds = {
        name: getattr(each, name)
        for each in metadata
        for name in ("gt", "ge", "lt", "le", "min_length")
        if getattr(each, name, None) is not None
    }
    if {"ge", "le"} <= bounds.keys():
        return f", {bounds['ge']} to {bounds['le']}"
    words = {"gt": "above", "ge": "at least", "lt": "below", "le": "at most"}
    return "".join(f", {words[name]} {bounds[name]}" for name in words if name in bounds)


def cell(text: str) -> str:
    """Prose as one line of a table."""
    return " ".join(text.split()).replace("|", "\\|")


def reference() -> str:
    """Return the reference of all keys in Markdown."""
    lines: list[str] = []
    for model in MODELS:
        own = inspect.get_annotations(model)
        shared = [base for base in model.__mro__[1:] if base in SHARED]
        elsewhere = {name for base in shared for name in inspect.get_annotations(base)}
        tag, fields = kind_of(model), model.model_fields
        order = sorted(
            fields.keys() - elsewhere - ({"type"} if tag else set()),
            key=lambda name: (
                not fields[name].is_required(),
                name not in own,
                list(fields).index(name),
            ),
        )
        about = prose(model.__doc__)
        lines += [f"## {title(model)}", "", about, ""]
        lines += [_key(model, name) for name in order]
        nearest = [base for base in shared if not any(base in each.__mro__[1:] for each in shared)]
        if nearest:
            links = [f"[{title(base).lower()}](#{anchor(base)})" for base in nearest]
            lines.append(f"- Also the keys of {', '.join(links)}.")
        lines.append("")
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines))


def _key(model: type[Spec], name: str) -> str:
    field = model.model_fields[name]
    value = type_name(field.annotation) + limits(field.metadata)
    if field.is_required():
        value += ", required"
    elif shown := default(field.get_default(call_default_factory=True, validated_data={})):
        value += f"; default {shown}"
    return item(f"`{name}` ({value})", meanings(model).get(name, ""))


def item(name: str, meaning: str) -> str:
    """Format a list item."""
    return f"- {name}: {' '.join(meaning.split())}" if meaning else f"- {name}"


def prose(docstring: str | None) -> str:
    return "\n\n".join(" ".join(part.split()) for part in (docstring or "").split("\n\n"))
