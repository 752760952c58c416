"""List what a recipe demands beyond the public web and its own folder."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from kbkit.errors import TrustError
from kbkit.models.documents import variables
from kbkit.recipes.annotation import LlmAnnotation, PluginAnnotation
from kbkit.recipes.schema import LlamaIndexEmbedding, OnnxEmbedding, PluginEmbedding, Recipe
from kbkit.recipes.sources import FetchSpec, FilesSource, PackageSource, PluginSource

_MAGIC = re.compile(r"[*?\[{]")


def demands(recipe: Recipe) -> list[str]:
    """List what a stranger's recipe asks for, a line each.

    Paths outside of the recipe's folder, private addresses, a folder to write to, and code that is
    run: packages that are imported, plugins, and models of third parties, which may send text
    elsewhere. A recipe that was made in Python asks for nothing: whoever made it said all this.
    """
    if recipe.path == Path():
        return []
    return [*_read(recipe), *_written(recipe), *_run(recipe)]


def require_trust(recipe: Recipe) -> None:
    """Refuse a recipe that asks for more than the public web and its own folder.

    Raises:
        TrustError: The recipe needs trust; the message says for what.
    """
    if asked := demands(recipe):
        raise TrustError(recipe.path, asked)


def _read(recipe: Recipe) -> Iterator[str]:
    for number, source in enumerate(recipe.sources):
        key = f"sources[{number}]"
        path = getattr(source, "path", None)
        if path is not None and _is_outside(recipe, path, glob=isinstance(source, FilesSource)):
            yield f"{key}: reads {path}, outside of the recipe's folder"
        if isinstance(source, FetchSpec) and (private := source.allow_private):
            named = () if isinstance(private, bool) else private
            yield f"{key}: fetches from {', '.join(named) or 'private addresses'}"
    if isinstance(recipe.questions, str) and _is_outside(recipe, recipe.questions):
        yield f"questions: reads {recipe.questions}, outside of the recipe's folder"
    for key in ("embedding", "card_embedding"):
        spec = getattr(recipe, key)
        if isinstance(spec, OnnxEmbedding):
            for path in (spec.model, spec.tokenizer):
                if path is not None and _is_outside(recipe, path):
                    yield f"{key}: reads {path}, outside of the recipe's folder"


def _written(recipe: Recipe) -> Iterator[str]:
    if recipe.site.directory:
        yield f"site.directory: writes to {recipe.path.parent / recipe.site.directory}"


def _run(recipe: Recipe) -> Iterator[str]:
    for number, source in enumerate(recipe.sources):
        if isinstance(source, PackageSource) and source.introspect:
            yield f"sources[{number}]: imports the package {source.name}, which runs its code"
        if isinstance(source, PluginSource):
            yield f"sources[{number}]: runs the plugin {source.name}"
    for key in ("embedding", "card_embedding", "annotation"):
        spec = getattr(recipe, key)
        if isinstance(spec, LlamaIndexEmbedding):
            yield f"{key}: runs {spec.model}, which may send text elsewhere"
        if isinstance(spec, PluginEmbedding | PluginAnnotation):
            yield f"{key}: runs the plugin {spec.name}"
        if isinstance(spec, LlmAnnotation):
            yield f"{key}: runs {spec.llm}, which may send text elsewhere"
    for key, name in _variables(recipe):
        yield f"{key}: is given the variable {name} of the environment"
    if recipe.expand is not None:
        yield f"expand: runs {recipe.expand.llm}, which may send text elsewhere"
    for number, spec in enumerate(recipe.retrieval.postprocessors):
        yield f"retrieval.postprocessors[{number}]: runs {spec.path}"


def _variables(recipe: Recipe) -> Iterator[tuple[str, str]]:
    parts = {key: getattr(recipe, key) for key in ("embedding", "card_embedding", "annotation")}
    parts["expand"] = recipe.expand
    for number, spec in enumerate(recipe.retrieval.postprocessors):
        parts[f"retrieval.postprocessors[{number}]"] = spec
    for key, spec in parts.items():
        for name in variables(getattr(spec, "arguments", {})):
            yield key, name


def _is_outside(recipe: Recipe, path: str, *, glob: bool = False) -> bool:
    folder = recipe.path.parent.resolve()
    parts = Path(path).parts
    if ".." in parts:
        return True
    plain = next((n for n, part in enumerate(parts) if glob and _MAGIC.search(part)), len(parts))
    try:
        return not folder.joinpath(*parts[:plain]).resolve().is_relative_to(folder)
    except (OSError, RuntimeError, ValueError):  # links in a circle
        return True
