"""Load recipes and golden questions; errors name line and field."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter, ValidationError

from kbkit.errors import ConfigError, ImpossibleError, RecipeError, TrustError
from kbkit.models.documents import variables
from kbkit.recipes.base import LlmAnnotation, PluginAnnotation, RecipeProblem, find_problems
from kbkit.recipes.schema import (
    AnyEmbedding,
    AutoEmbedding,
    LlamaIndexEmbedding,
    MultilingualEmbedding,
    OnnxEmbedding,
    PluginEmbedding,
    Question,
    Recipe,
    StaticEmbedding,
)
from kbkit.recipes.sources import AnySource, FetchSpec, FilesSource, PackageSource, PluginSource
from kbkit.regular_files import bytes_of

if TYPE_CHECKING:
    import yaml


_MAX_DEPTH = 50
_MAX_EXPANSION = 20  # by aliases, beyond `_FREE` values
_FREE = 10_000
_MAX_NUMBER = 100
_UNREADABLE = re.compile("[\\0\ud800-\udfff]")
_SMALL = 1_000_000  # characters of a text that is parsed again, slowly, for a better message


def compose(text: str) -> yaml.Node | None:
    """Parse YAML into nodes; refuse nodes that take long to construct."""
    import yaml

    fast = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:  # a recipe of 200,000 names takes a tenth of the time with libyaml
        _check_depth(text, fast)
        root = yaml.compose(text, Loader=fast)
    except yaml.composer.ComposerError:
        raise
    except yaml.YAMLError:  # libyaml words its messages differently
        if len(text) > _SMALL:
            raise
        _check_depth(text, yaml.SafeLoader)
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    if root is not None:
        _check_nodes(root)
    return root


def _check_depth(text: str, loader: Any) -> None:
    import yaml

    depth = 0
    for event in yaml.parse(text, Loader=loader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > _MAX_DEPTH:
                raise _refused(f"more than {_MAX_DEPTH} nested lists and mappings", event)
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


def _check_nodes(root: yaml.Node) -> None:
    import yaml

    measures: dict[int, tuple[int, int]] = {}  # values and depth, with aliases expanded
    above: set[int] = set()

    def measure(node: yaml.Node) -> tuple[int, int]:
        if (measured := measures.get(id(node))) is not None:
            return measured
        if id(node) in above:
            raise _refused("an alias refers to itself", node)
        if isinstance(node, yaml.ScalarNode):
            _check_scalar(node)
            size = depth = 1
        else:
            above.add(id(node))
            parts = node.value
            if isinstance(node, yaml.MappingNode):
                parts = [part for pair in parts for part in pair]
            sizes = [measure(part) for part in parts]
            above.discard(id(node))
            size = 1 + sum(each for each, _ in sizes)
            depth = 1 + max((each for _, each in sizes), default=0)
            if depth > _MAX_DEPTH + 1:
                raise _refused(f"more than {_MAX_DEPTH} nested lists and mappings", node)
        measures[id(node)] = size, depth
        return size, depth

    if measure(root)[0] > len(measures) * _MAX_EXPANSION + _FREE:
        raise _refused("its aliases expand to too many values", root)


def _check_scalar(node: yaml.ScalarNode) -> None:
    if _UNREADABLE.search(node.value):
        raise _refused("a text has a null character, or half of one", node)
    if node.tag.endswith((":int", ":float")) and len(node.value) > _MAX_NUMBER:
        raise _refused(f"a number has more than {_MAX_NUMBER} characters", node)


def _refused(problem: str, where: Any) -> yaml.MarkedYAMLError:
    import yaml

    return yaml.composer.ComposerError(None, None, problem, where.start_mark)


_MAX = 20_000_000  # bytes of a recipe or its questions; 200,000 names take a third
_MAX_LINES = 100  # problems listed of one kind
_KEY = re.compile(
    r"(?:api|access|secret|private)_?key|(?:access|auth|api|bearer)_?token|^token$|secret|"
    r"passw(?:or)?d|credential|authorization",
    re.IGNORECASE,
)


def parse_source(values: Mapping[str, Any]) -> AnySource:
    """Parse a source part of a recipe from JSON values.

    Raises:
        ConfigError: The values describe no source; the message begins with the wrong key.
    """
    try:
        source: AnySource = TypeAdapter(AnySource).validate_python(values)
    except ValidationError as error:
        lines = "\n".join(map(str, find_problems(error, AnySource)))
        if any(fault["type"] == "value_error" for fault in error.errors()):
            # a validator refused a value, which no JSON schema expresses
            raise ImpossibleError(lines) from None
        raise ConfigError(lines) from None
    return source


def parse_embedding(name: str) -> AnyEmbedding:
    """Return the embedding of a name: ``auto``, ``static``, ``multilingual`` or a preset.

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
    import yaml

    try:
        root = compose(text)
        repeated = _repeated_keys(root) if isinstance(root, yaml.MappingNode) else []
        values = yaml.SafeLoader("").construct_document(root) if root is not None else None
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise RecipeError([f"{path}:{line}: not YAML: {error.problem}"]) from error
    except yaml.YAMLError as error:
        raise RecipeError([f"{path}:1: not YAML: {error}"]) from error
    except (ValueError, TypeError, LookupError, AttributeError, OverflowError) as error:
        # a tag or date with unsuitable text: 2026-02-31
        raise RecipeError([f"{path}:1: invalid value: {error}"]) from error
    if not isinstance(root, yaml.MappingNode):
        raise RecipeError([f"{path}:1: a recipe is a mapping of keys such as name and sources"])
    if repeated:
        lines = ((key.start_mark.line + 1, key.value[:80]) for key in repeated[:_MAX_LINES])
        raise RecipeError([f"{path}:{line}: {key}: given twice; keep one" for line, key in lines])
    try:
        recipe = Recipe.model_validate(values)
    except ValidationError as error:
        problems = find_problems(error, Recipe)
        raise RecipeError([_line(path, root, problem) for problem in problems]) from None
    if keys := _keys_in_clear(root):
        raise RecipeError(
            [
                f"{path}:{key.start_mark.line + 1}: {key.value}: a key does not belong here; "
                f"put it into the environment, and write {key.value}: ${{THE_VARIABLE}}"
                for key in keys[:_MAX_LINES]
            ]
        )
    recipe._path = path
    return recipe


def golden_questions(recipe: Recipe) -> tuple[Question, ...]:
    """Return a recipe's golden questions; raises the errors of `load_questions`."""
    if isinstance(recipe.questions, str):
        return load_questions(recipe.path.parent / recipe.questions)
    return recipe.questions


def load_questions(path: Path) -> tuple[Question, ...]:
    """Read golden questions from a TSV file: question, tab, relevant pages separated by commas.

    Raises:
        RecipeError: The file cannot be read, is empty, or has a wrong line.
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
            raise RecipeError([f"{path}: larger than {_MAX / 1e6:g} MB; it is no recipe"])
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise RecipeError([f"{path}: not UTF-8 text (byte {error.start}); save it as UTF-8"]) from (
            error
        )
    except (OSError, ValueError) as error:  # ValueError: a null character in the path
        reason = getattr(error, "strerror", None) or str(error)
        shown = str(path).replace("\0", "\\0")
        raise RecipeError([f"{shown}: {reason}; name a file that can be read"]) from error


def _keys_in_clear(root: yaml.MappingNode) -> list[yaml.ScalarNode]:
    import yaml

    keys: list[yaml.ScalarNode] = []
    waiting: list[tuple[yaml.Node, bool]] = [(root, False)]
    while waiting:
        node, inside = waiting.pop()
        if isinstance(node, yaml.SequenceNode):
            waiting.extend((each, inside) for each in node.value)
        elif isinstance(node, yaml.MappingNode):
            for key, value in node.value:
                name = key.value if isinstance(key, yaml.ScalarNode) else ""
                secret = inside and isinstance(value, yaml.ScalarNode) and _KEY.search(name)
                if secret and value.value and not value.value.startswith("${"):
                    keys.append(key)
                waiting.append((value, inside or name in ("arguments", "options")))
    return keys


def _repeated_keys(root: yaml.Node) -> list[yaml.Node]:
    import yaml

    repeated: list[yaml.Node] = []
    waiting, done = [root], set[int]()
    while waiting:
        node = waiting.pop()
        if id(node) in done:  # an alias may refer to a node that contains it
            continue
        done.add(id(node))
        if isinstance(node, yaml.SequenceNode):
            waiting.extend(node.value)
        elif isinstance(node, yaml.MappingNode):
            seen: set[str] = set()
            for key, value in node.value:
                if isinstance(key, yaml.ScalarNode):
                    if key.value in seen:
                        repeated.append(key)
                    seen.add(key.value)
                waiting.append(value)
    return repeated


def _line(path: Path, root: yaml.Node, problem: RecipeProblem) -> str:
    import yaml

    node, line = root, root.start_mark.line + 1
    for part in problem.location:
        if isinstance(node, yaml.SequenceNode) and isinstance(part, int):
            node = node.value[part]
            line = node.start_mark.line + 1
        elif isinstance(node, yaml.MappingNode):
            for key, value in node.value:
                if key.value == part:
                    node, line = value, key.start_mark.line + 1
                    break
    return f"{path}:{line}: {problem.field or 'recipe'}: {problem.message}"


_MAGIC = re.compile(r"[*?\[{]")


def demands(recipe: Recipe) -> list[str]:
    """List what a recipe needs trust for, one line each.

    Paths outside its folder, private addresses, a folder to write to, variables of the environment,
    and code: imported packages, plugins and models. A recipe made in Python needs no trust.
    """
    if recipe.path == Path():
        return []
    return [*_path_demands(recipe), *_code_demands(recipe)]


def require_trust(recipe: Recipe) -> None:
    """Raise `TrustError` if a recipe needs more than the public web and its own folder."""
    if asked := demands(recipe):
        raise TrustError(recipe.path, asked)


def _path_demands(recipe: Recipe) -> Iterator[str]:
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
    parts = {key: getattr(recipe, key) for key in keys}
    for key, spec in parts.items():
        if isinstance(spec, LlamaIndexEmbedding):
            yield f"{key}: runs {spec.model}, which may send text elsewhere"
        if isinstance(spec, PluginEmbedding | PluginAnnotation):
            yield f"{key}: runs the plugin {spec.name}"
        if isinstance(spec, LlmAnnotation):
            yield f"{key}: runs {spec.llm}, which may send text elsewhere"
    named = {
        f"retrieval.postprocessors[{n}]": s for n, s in enumerate(recipe.retrieval.postprocessors)
    }
    for key, spec in (parts | named).items():
        for name in variables(getattr(spec, "arguments", {})):
            yield f"{key}: is given the variable {name} of the environment"
    if recipe.expand is not None:
        yield f"expand: runs {recipe.expand.llm}, which may send text elsewhere"
    for key, postprocessor in named.items():
        yield f"{key}: runs {postprocessor.path}"


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
