"""The base of all parts of a recipe."""

from __future__ import annotations

import ast
import difflib
import inspect
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from ipaddress import ip_address
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias, get_args

import pydantic
from pydantic import AfterValidator, BaseModel, Field, ValidationError

from kbkit.errors import ConfigError
from kbkit.models import EntityType, License
from kbkit.models.licenses import NAME_LENGTH
from kbkit.models.values import did_you_mean, fault_reason
from kbkit.paths import compile_glob

if TYPE_CHECKING:
    from pydantic.json_schema import JsonSchemaValue
    from pydantic_core import CoreSchema


_REDUNDANT = ("too_short", "string_type")  # errors of a value, dropped if a part of it has one
_MAX = 100  # problems listed, and keys compared for suggestions
_MAX_LENGTH = 80  # characters shown of a key or value
_QUOTED = re.compile(r"'([^']*)'")


@dataclass(frozen=True, slots=True)
class RecipeProblem:
    """A problem in a recipe.

    Attributes:
        field: Path of the field, as in ``sources[0].url``; ``""`` for the recipe.
        meant: Likely intended key, if this one is misspelt.
    """

    location: tuple[int | str, ...]
    field: str
    message: str
    meant: str = ""

    def __str__(self) -> str:
        return f"{self.field}: {self.message}" if self.field else self.message


def find_problems(error: ValidationError, kind: Any) -> list[RecipeProblem]:
    """Convert pydantic's errors to problems, each once."""
    items = error.errors()
    excess, items = len(items) - _MAX, items[:_MAX]
    problems = [_problem(item, kind) for item in items]
    misspelt = {(problem.location[:-1], problem.meant) for problem in problems if problem.meant}
    relevant = [
        problem
        for problem, item in zip(problems, items, strict=True)
        if not (item["type"] in _REDUNDANT and any(_is_inside(p, problem) for p in problems))
        and not (item["type"] == "missing" and (item["loc"][:-1], item["loc"][-1]) in misspelt)
    ]
    more = f"has {excess:,} more problems; fix those above first"
    return relevant if excess <= 0 else [*relevant, RecipeProblem((), "", more)]


def _is_inside(inner: RecipeProblem, outer: RecipeProblem) -> bool:
    return inner.field.startswith((f"{outer.field}.", f"{outer.field}["))


def _problem(item: Any, kind: Any) -> RecipeProblem:
    location, error_type, data = item["loc"], item["type"], item["input"]
    if error_type.startswith("union_tag"):
        location = (*location, "type")
    field, models = _field(kind, location, error_type == "extra_forbidden")
    message = fault_reason(item)
    message = message[:1].lower() + message[1:]
    meant = ""
    if error_type == "extra_forbidden":
        keys = [name for model in models for name in model.model_fields]
        message = f"unknown key; {did_you_mean(str(location[-1]).lower(), keys)}"
        meant = _likeliest(str(location[-1]), keys)
    elif error_type == "union_tag_not_found":
        tags = [str(model.model_fields["type"].default) for model in models]
        message = f"is missing; give one of {', '.join(tags)}"
        keys = [key for model in models for key in model.model_fields]
        unknown = [key for key in data if key not in keys] if isinstance(data, dict) else []
        if wrong := next((key for key in unknown[:_MAX] if _likeliest(str(key), ["type"])), ""):
            message += f"; {wrong!r} is an unknown key"
    elif error_type in ("union_tag_invalid", "literal_error", "enum"):
        context = item["ctx"]
        value = str(context.get("tag", data))[:_MAX_LENGTH]
        choices = _QUOTED.findall(context.get("expected_tags") or context["expected"])
        message = f"{value!r} is unknown; {did_you_mean(value.lower(), choices)}"
    elif error_type in ("too_short", "string_too_short") and not data:
        message = f"is empty; give at least {item['ctx']['min_length']}"
    elif error_type in ("model_type", "model_attributes_type"):
        message = f"{data!r:.{_MAX_LENGTH}} {message}"
    elif error_type == "string_pattern_mismatch" and "https?" not in item["ctx"]["pattern"]:
        message = f"{data!r:.{_MAX_LENGTH}} has characters that are not allowed here"
    return RecipeProblem(location, field, message, meant)


def _likeliest(word: str, choices: list[str]) -> str:
    return next(iter(difflib.get_close_matches(word[:_MAX_LENGTH].lower(), choices, n=1)), "")


def _field(
    kind: Any, location: tuple[int | str, ...], unknown: bool
) -> tuple[str, list[type[BaseModel]]]:
    field, models = "", _models(kind)
    for number, part in enumerate(location, 1):
        is_last = number == len(location)
        holders = [model for model in models if part in model.model_fields]
        if isinstance(part, int):
            field += f"[{part}]"
        elif len(models) > 1 and part in map(_tag, models):
            models = [model for model in models if _tag(model) == part]
        elif holders or (is_last and unknown):  # other parts name a branch of a union
            field += f".{str(part)[:_MAX_LENGTH]}"
            if not is_last:
                inner = [model.model_fields[str(part)].annotation for model in holders]
                models = [model for annotation in inner for model in _models(annotation)]
    return field.lstrip("."), models


def _models(kind: Any) -> list[type[BaseModel]]:
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return [kind]
    return [model for part in get_args(kind) for model in _models(part)]


def _tag(model: type[BaseModel]) -> str:
    field = model.model_fields.get("type")
    return "" if field is None else str(field.default)


HttpUrl = Annotated[str, Field(pattern=r"^https?://[^\s\x85\ufeff/?#@]+(?:[/?#]|$)")]
"""A web address without user name and password, which would be public."""


def _check_glob(pattern: str) -> str:
    try:
        compile_glob(pattern)
    except ConfigError as error:
        raise ValueError(str(error)) from None
    return pattern


def _check_ip_address(text: str) -> str:
    try:
        return str(ip_address(text))
    except ValueError:
        raise ValueError(f"{text[:80]!r} is not an IP address, such as 10.0.0.7") from None


IpAddress = Annotated[str, AfterValidator(_check_ip_address)]
"""An IP address in its shortest form."""

Glob = Annotated[str, AfterValidator(_check_glob)]
"""A pattern of `kbkit.paths`."""


SLUG = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")


def _slug_of(name: str) -> str:
    plain_letters = unicodedata.normalize("NFKD", str(name)).encode("ascii", "ignore").decode()
    return re.sub(r"[^a-z0-9]+", "-", plain_letters.lower())[:63].strip("-") or "my-notes"


def check_name(name: str) -> str:
    """Return a knowledge base name; raises `ValueError` if it is not a slug."""
    if not SLUG.fullmatch(name):
        raise ValueError(
            f"{name!r} cannot name a knowledge base; use up to 63 lower-case letters, digits and "
            f"hyphens, such as {_slug_of(name)!r}"
        )
    if re.fullmatch(r"con|prn|aux|nul|(?:com|lpt)[0-9]", name):
        raise ValueError(f"{name!r} is reserved by Windows; choose another name")
    return name


KnowledgeBaseName = Annotated[str, AfterValidator(check_name)]


class Spec(BaseModel):
    """Base of all parts of a recipe: unknown keys are errors, values do not change."""

    # without `use_attribute_docstrings`: parsing the docstrings takes longer than building all
    # models, so `meanings` parses them on demand
    model_config = pydantic.ConfigDict(extra="forbid", frozen=True, defer_build=True)

    def __init__(self, /, **values: Any) -> None:
        try:
            super().__init__(**values)
        except ValidationError as error:
            kind = type(self)
            lines = [f"{kind.__name__}: {problem}" for problem in find_problems(error, kind)]
            raise ConfigError("\n".join(lines)) from None

    @pydantic.model_validator(mode="before")
    @classmethod
    def _check_numbers(cls, values: Any) -> Any:
        for name, value in values.items() if isinstance(values, dict) else ():
            if isinstance(value, bool) and name in cls.model_fields:
                annotation = cls.model_fields[name].annotation
                kinds = {annotation, *get_args(annotation)}
                if kinds & {int, float} and bool not in kinds:
                    raise ValueError(f"{name}: expected a number, not {str(value).lower()}")
        return values

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core_schema: CoreSchema, handler: pydantic.GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        schema = handler(core_schema)
        help_texts = meanings(cls)
        for name, key in handler.resolve_ref_schema(schema).get("properties", {}).items():
            if name in help_texts:
                key.setdefault("description", help_texts[name])
        return schema

    # pydantic then skips this method for nested parts and collects their problems itself
    __init__.__pydantic_base_init__ = True  # type: ignore[attr-defined]


@cache
def meanings(kind: type[Spec]) -> Mapping[str, str]:
    """Return the docstrings of a spec's fields, read from its source code."""
    help_texts: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        if not issubclass(base, Spec) or base is Spec:
            continue
        (definition,) = ast.parse(inspect.getsource(base)).body
        assert isinstance(definition, ast.ClassDef)
        for statement, following in pairwise(definition.body):
            match statement, following:
                case (
                    ast.AnnAssign(target=ast.Name(id=name)),
                    ast.Expr(value=ast.Constant(value=str(docstring))),
                ):
                    help_texts[name] = inspect.cleandoc(docstring)
    return help_texts


def check_license(stated: str) -> str:
    if stated and not License.stated(stated):
        raise ValueError(f"{stated[:80]!r} is neither the name of a license nor a web address")
    if len(stated) > NAME_LENGTH:
        raise ValueError(f"longer than {NAME_LENGTH} characters; give its name or its address")
    return stated


LicenseName = Annotated[str, AfterValidator(check_license)]
"""Name or address of a license."""


class LanguageModelSpec(Spec):
    """A llama-index language model. Its package must be installed; it may send text elsewhere."""

    llm: str
    """A short form (`openai:gpt-4o-mini`) or the import path of a llama-index LLM
    (`llama_index.llms.ollama:Ollama`)."""
    arguments: dict[str, Any] = Field(default_factory=dict)
    """Arguments of its constructor. A key is a reference to the environment: `api_key:
    ${OPENAI_API_KEY}`."""


class PostprocessorSpec(Spec):
    """A llama-index node postprocessor. Its package must be installed; it may use the network."""

    path: str = Field(pattern=r"^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*[:.][A-Za-z_]\w*$")
    """Its import path (`llama_index.core.postprocessor:SentenceTransformerRerank`)."""
    arguments: dict[str, Any] = Field(default_factory=dict)
    """Arguments of its constructor. A key is a reference to the environment: `api_key:
    ${OPENAI_API_KEY}`."""
    hits: int = Field(default=30, ge=1, le=1000)
    """Number of best hits that it receives; more only if more are requested."""


class ExpandSpec(LanguageModelSpec):
    """A language model that writes a summary and questions for each document, for search.

    Measure whether it improves search. Its package must be installed; it may send the documents'
    text over the network.
    """

    questions: int = Field(default=5, ge=0, le=10)
    """Questions for each document."""
    limit: int = Field(default=100, ge=0)
    """Documents that a build describes without `--yes`."""


_NAME_LENGTH = 200
_Text = Annotated[str, Field(min_length=1, max_length=_NAME_LENGTH, pattern=r"\S")]


class NameSpec(Spec):
    """A name to recognize, in addition to those that documents define."""

    name: _Text
    """Spelling."""
    type: EntityType = EntityType.NAME
    """Type of the named thing."""
    aliases: tuple[_Text, ...] = ()
    """Other names for it."""


def _or_text(schema: dict[str, Any]) -> None:
    schema["items"] = {"anyOf": [schema["items"], pydantic.TypeAdapter(_Text).json_schema()]}


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

    Its package must be installed; it may send the chunks' text over the network.
    """

    type: Literal["llm"] = "llm"
    batch_size: int = Field(default=8, ge=1, le=64)
    """Chunks in one request."""
    timeout: float = Field(default=120, gt=0, le=3600)
    """Maximum seconds for an answer."""
    limit: int = Field(default=500, ge=0)
    """Chunks that an ingest annotates without confirmation."""


class PluginAnnotation(_Annotation):
    """An annotator of another installed package (entry point group `kbkit.annotators`)."""

    type: Literal["plugin"] = "plugin"
    name: str = Field(min_length=1)
    """Name of the entry point."""
    options: dict[str, Any] = Field(default_factory=dict)
    """Keyword arguments of the annotator."""


def _expand(value: Any) -> Any:
    if isinstance(value, str):
        return {"type": value}
    if not isinstance(value, dict):
        return value
    expanded = {"type": "rules", **value}
    if isinstance(names := expanded.get("names"), list | tuple):
        expanded["names"] = [{"name": n} if isinstance(n, str) else n for n in names]
    return expanded


AnyAnnotation: TypeAlias = Annotated[
    RulesAnnotation | NoAnnotation | LlmAnnotation | PluginAnnotation,
    Field(discriminator="type"),
    pydantic.BeforeValidator(_expand),
]
"""An annotator by ``type``; ``rules`` and ``none`` are short forms."""
