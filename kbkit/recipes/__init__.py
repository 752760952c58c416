"""Recipes: YAML files that describe a knowledge base; loading names line and field of errors."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from kbkit.errors import ConfigError, ImpossibleError, RecipeError, TrustError
from kbkit.models.documents import variables
from kbkit.paths import bytes_of, split_glob
from kbkit.recipes.base import AnyAnnotation as AnyAnnotation
from kbkit.recipes.base import ExpandSpec as ExpandSpec
from kbkit.recipes.base import LanguageModelSpec as LanguageModelSpec
from kbkit.recipes.base import LlmAnnotation as LlmAnnotation
from kbkit.recipes.base import NameSpec as NameSpec
from kbkit.recipes.base import NoAnnotation as NoAnnotation
from kbkit.recipes.base import PluginAnnotation as PluginAnnotation
from kbkit.recipes.base import PostprocessorSpec as PostprocessorSpec
from kbkit.recipes.base import RecipeProblem, find_problems
from kbkit.recipes.base import RulesAnnotation as RulesAnnotation
from kbkit.recipes.base import Spec as Spec
from kbkit.recipes.base import check_name as check_name
from kbkit.recipes.schema import AnyEmbedding as AnyEmbedding
from kbkit.recipes.schema import AutoEmbedding as AutoEmbedding
from kbkit.recipes.schema import ChunkingSpec as ChunkingSpec
from kbkit.recipes.schema import EmbeddedText as EmbeddedText
from kbkit.recipes.schema import GraphSpec as GraphSpec
from kbkit.recipes.schema import KnowledgeBaseSpec as KnowledgeBaseSpec
from kbkit.recipes.schema import LearningSpec as LearningSpec
from kbkit.recipes.schema import LlamaIndexEmbedding as LlamaIndexEmbedding
from kbkit.recipes.schema import ModelEmbedding as ModelEmbedding
from kbkit.recipes.schema import MultilingualEmbedding as MultilingualEmbedding
from kbkit.recipes.schema import OnnxEmbedding as OnnxEmbedding
from kbkit.recipes.schema import PluginEmbedding as PluginEmbedding
from kbkit.recipes.schema import Question as Question
from kbkit.recipes.schema import Recipe as Recipe
from kbkit.recipes.schema import RetrievalSpec as RetrievalSpec
from kbkit.recipes.schema import SiteSpec as SiteSpec
from kbkit.recipes.schema import StaticEmbedding as StaticEmbedding
from kbkit.recipes.schema import StorageSpec as StorageSpec
from kbkit.recipes.sources import AnySource as AnySource
from kbkit.recipes.sources import CrawlSource as CrawlSource
from kbkit.recipes.sources import FetchSpec as FetchSpec
from kbkit.recipes.sources import FilesSource as FilesSource
from kbkit.recipes.sources import JsonlSource as JsonlSource
from kbkit.recipes.sources import MirrorSource as MirrorSource
from kbkit.recipes.sources import OpenApiSource as OpenApiSource
from kbkit.recipes.sources import PackageSource as PackageSource
from kbkit.recipes.sources import PageSource as PageSource
from kbkit.recipes.sources import ParquetSource as ParquetSource
from kbkit.recipes.sources import PluginSource as PluginSource
from kbkit.recipes.sources import SourceSpec as SourceSpec
from kbkit.recipes.sources import only_sources as only_sources
from kbkit.recipes.sources import parse_source as parse_source
from kbkit.recipes.sources import split_sources as split_sources

if TYPE_CHECKING:
    from kbkit.placed_yaml import YamlMapping

_MAX = 20_000_000  # bytes of a recipe or its questions; 200,000 names take a third
_MAX_LINES = 100  # problems listed of one kind
_KEY = re.compile(
    r"(?:api|access|secret|private)_?key|(?:access|auth|api|bearer)_?token|^token$|secret|"
    r"passw(?:or)?d|credential|authorization",
    re.IGNORECASE,
)


def parse_embedding(name: str) -> AnyEmbedding:
    """Return an embedding by name: ``auto``, ``static``, ``multilingual`` or a preset.

    Raises:
        ConfigError: The preset does not exist.
    """
    for kind in (AutoEmbedding, StaticEmbedding, MultilingualEmbedding):
        if name == kind.model_fields["type"].default:
            return kind()
    try:
        return OnnxEmbedding.model_validate({"preset": name})
    except ValidationError:
        raise ImpossibleError(
            f"embedding={name!r}: choose auto, static, minilm or multilingual, or describe another "
            "as a recipe does"
        ) from None


def load_recipe(path: str | Path) -> Recipe:
    """Read and check a recipe.

    Raises:
        RecipeError: The file is unreadable, not YAML, or invalid; with line and field.
    """
    path = Path(path)
    return parse_recipe(_read(path), path)


def parse_recipe(text: str, path: Path) -> Recipe:
    """Read and check a recipe's YAML, as `load_recipe`; relative paths start at its folder."""
    from kbkit.placed_yaml import YamlFormatError, read_yaml

    try:
        mapping = read_yaml(text)
    except YamlFormatError as fault:
        raise RecipeError([f"{path}:{fault.line}: {fault.reason}"]) from None
    try:
        recipe = Recipe.model_validate(mapping.values)
    except ValidationError as error:
        problems = find_problems(error, Recipe)
        placed = [(_line(mapping, problem), problem) for problem in problems]
        placed.sort(key=lambda item: (not item[1].field, item[0]))
        raise RecipeError(
            [f"{path}:{line}: {each.field or 'recipe'}: {each.message}" for line, each in placed]
        ) from None
    if keys := list(islice(_keys_in_clear(mapping), _MAX_LINES)):
        raise RecipeError(
            [
                f"{path}:{line}: {key}: a key does not belong here; "
                f"put it into the environment, and write {key}: ${{THE_VARIABLE}}"
                for line, key in keys
            ]
        )
    recipe._path = path
    return recipe


def golden_questions(recipe: Recipe) -> tuple[Question, ...]:
    """Return a recipe's golden questions; raises the errors of `load_questions`."""
    if isinstance(recipe.questions, str):
        return load_questions(recipe.path.parent / recipe.questions)
    return recipe.questions


def check_questions(questions: Any) -> Sequence[Question]:
    """Return the questions; raises `ConfigError` for anything else."""
    if isinstance(questions, str) or not isinstance(questions, Sequence):
        raise ConfigError(f"questions={questions!r}: give a list of `Question`s, or judgements")
    for question in questions:
        if not isinstance(question, Question):
            raise ConfigError(
                f"questions: {question!r} is not a `Question`; read them from a file with "
                "`kbkit.recipes.load_questions`"
            )
    if not questions:
        raise ConfigError("there are no questions; write some in the recipe or in a TSV file")
    return questions


def load_questions(path: Path) -> tuple[Question, ...]:
    """Read golden questions from a TSV file: question, tab, relevant pages separated by commas.

    Raises:
        RecipeError: The file cannot be read, is empty, or has an invalid line.
    """
    questions = []
    for number, line in enumerate(_read(path).splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        question, _, pages = line.partition("\t")
        relevant = tuple(page.strip() for page in pages.split(",") if page.strip())
        if not question.strip() or not relevant:
            raise RecipeError(
                [f"{path}:{number}: not a question, a tab, and pages separated by commas"]
            )
        questions.append(Question(question=question.strip(), relevant=relevant))
    if not questions:
        raise RecipeError([f"{path}:1: no questions; write one a line, or name another file"])
    return tuple(questions)


def _read(path: Path) -> str:
    try:
        data = bytes_of(path, _MAX + 1)
        if len(data) > _MAX:
            raise RecipeError([f"{path}: larger than {_MAX / 1e6:g} MB; it is not a recipe"])
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise RecipeError([f"{path}: not UTF-8 text (byte {error.start}); save it as UTF-8"]) from (
            error
        )
    except (OSError, ValueError) as error:  # ValueError: a null character in the path
        reason = getattr(error, "strerror", None) or str(error)
        printable = str(path).replace("\0", "\\0")
        raise RecipeError([f"{printable}: {reason}; name a file that can be read"]) from error


def _keys_in_clear(mapping: YamlMapping) -> Iterator[tuple[int, str]]:
    """Yield line and name of each secret that options or arguments contain literally."""
    for path, place in mapping.keys.items():
        name = str(path[-1])
        if {"arguments", "options"}.isdisjoint(path[:-1]) or not _KEY.search(name):
            continue
        value = mapping.at(path)
        if value and not isinstance(value, dict | list) and not str(value).startswith("${"):
            yield place.line, name


def _line(mapping: YamlMapping, problem: RecipeProblem) -> int:
    place: tuple[str | int, ...] = ()
    line = mapping.places[()].line
    for part in problem.location:  # includes names of types, which are not keys
        if (*place, part) in mapping.places:
            place = (*place, part)
            line = (mapping.keys.get(place) or mapping.places[place]).line
    return line


def demands(recipe: Recipe) -> list[str]:
    """List what a recipe needs trust for, one line each.

    Paths outside its folder, private addresses, a folder to write to, variables of the environment,
    and code: imported packages, plugins and models. A recipe made in Python needs no trust.
    """
    return [] if recipe.path == Path() else [*_path_demands(recipe), *_code_demands(recipe)]


def require_trust(recipe: Recipe) -> None:
    """Raise `TrustError` if a recipe needs more than the public web and its own folder."""
    if needs := demands(recipe):
        raise TrustError(recipe.path, needs)


def _path_demands(recipe: Recipe) -> Iterator[str]:
    for number, source in enumerate(recipe.sources):
        key = f"sources[{number}]"
        path = getattr(source, "path", None)
        if path is not None and _is_outside(recipe, path, glob=isinstance(source, FilesSource)):
            yield f"{key}: reads {path}, outside of the recipe's folder"
        if isinstance(source, FetchSpec) and (private := source.allow_private):
            addresses = () if isinstance(private, bool) else private
            yield f"{key}: fetches from {', '.join(addresses) or 'private addresses'}"
    if isinstance(recipe.questions, str) and _is_outside(recipe, recipe.questions):
        yield f"questions: reads {recipe.questions}, outside of the recipe's folder"
    for key in ("embedding", "summary_embedding"):
        spec = getattr(recipe, key)
        if isinstance(spec, OnnxEmbedding):
            for path in (spec.model, spec.tokenizer):
                if path is not None and _is_outside(recipe, path):
                    yield f"{key}: reads {path}, outside of the recipe's folder"
    if recipe.site.directory:
        yield f"site.directory: writes to {recipe.path.parent / recipe.site.directory}"


def _code_demands(recipe: Recipe) -> Iterator[str]:
    for number, source in enumerate(recipe.sources):
        if isinstance(source, PackageSource) and source.introspect:
            yield f"sources[{number}]: imports the package {source.name}, which runs its code"
        if isinstance(source, PluginSource):
            yield f"sources[{number}]: runs the plugin {source.name}"
    keys = ("embedding", "summary_embedding", "annotation", "expand")
    specs = {key: getattr(recipe, key) for key in keys}
    for number, postprocessor in enumerate(recipe.retrieval.postprocessors):
        specs[f"retrieval.postprocessors[{number}]"] = postprocessor
    for key, spec in specs.items():
        match spec:
            case LlamaIndexEmbedding(model=code) | LanguageModelSpec(llm=code):
                yield f"{key}: runs {code}, which may send text elsewhere"
            case PluginEmbedding(name=code) | PluginAnnotation(name=code):
                yield f"{key}: runs the plugin {code}"
            case PostprocessorSpec(path=code):
                yield f"{key}: runs {code}"
        for name in variables(getattr(spec, "arguments", {})):
            yield f"{key}: is given the variable {name} of the environment"


def _is_outside(recipe: Recipe, path: str, *, glob: bool = False) -> bool:
    folder = recipe.path.parent.resolve()
    if ".." in Path(path).parts:
        return True
    start = split_glob(Path(path).as_posix())[0] if glob else path
    try:
        return not (folder / start).resolve().is_relative_to(folder)
    except (OSError, RuntimeError, ValueError):  # links in a circle
        return True
