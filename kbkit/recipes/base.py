"""What all parts of a recipe have in common."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Mapping
from functools import cache
from ipaddress import ip_address
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any, Self, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    ValidationError,
    model_validator,
)

from kbkit.errors import ConfigError
from kbkit.globs import compile_glob
from kbkit.models import License
from kbkit.models.licenses import NAME_LENGTH
from kbkit.recipes.problems import find_problems

if TYPE_CHECKING:
    from pydantic.json_schema import JsonSchemaValue
    from pydantic_core import CoreSchema

HttpUrl = Annotated[str, Field(pattern=r"^https?://[^\s\x85\ufeff/?#@]+(?:[/?#]|$)")]
"""A web address without a user name or password, which who reads the recipe would read too."""


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
        raise ValueError(f"{text[:80]!r} is no IP address, such as 10.0.0.7") from None


IpAddress = Annotated[str, AfterValidator(_check_ip_address)]
"""An address of the network in numbers, in its shortest form."""

Glob = Annotated[str, AfterValidator(_check_glob)]
"""A pattern as `kbkit.globs` reads it."""


class Spec(BaseModel):
    """Base of all parts of a recipe: unknown keys are errors, values do not change."""

    # what is told of the keys is read where somebody asks, by `meanings`: to read all takes longer
    # than to make all models
    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    def __init__(self, /, **values: Any) -> None:
        """Make a part of a recipe.

        Raises:
            ConfigError: A key is unknown, or a value cannot be; the message says what may be.
        """
        try:
            super().__init__(**values)
        except ValidationError as error:
            kind = type(self)
            lines = [f"{kind.__name__}: {problem}" for problem in find_problems(error, kind)]
            raise ConfigError("\n".join(lines)) from None

    @classmethod
    def untold(cls) -> Self:
        """All of it by default, without building the model that reads what somebody tells."""
        return cls.model_construct()

    @model_validator(mode="before")
    @classmethod
    def _check_numbers(cls, values: Any) -> Any:
        """Refuse yes and no where a number belongs, which Python would take for 1 and 0."""
        for name, value in values.items() if isinstance(values, dict) else ():
            if isinstance(value, bool) and name in cls.model_fields:
                wanted = cls.model_fields[name].annotation
                kinds = {wanted, *get_args(wanted)}
                if kinds & {int, float} and bool not in kinds:
                    raise ValueError(f"{name}: a number belongs here, not {str(value).lower()}")
        return values

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """Say in a JSON schema what each key means."""
        schema = handler(core_schema)
        told = meanings(cls)
        for name, key in handler.resolve_ref_schema(schema).get("properties", {}).items():
            if name in told:
                key.setdefault("description", told[name])
        return schema

    # pydantic need not call it for the parts of a part, whose problems it collects
    __init__.__pydantic_base_init__ = True  # type: ignore[attr-defined]


@cache
def meanings(kind: type[Spec]) -> Mapping[str, str]:
    """What each key of a part of a recipe means: the text below it in the source."""
    told: dict[str, str] = {}
    for each in reversed(kind.__mro__):
        if not issubclass(each, Spec) or each is Spec:
            continue
        (made,) = ast.parse(inspect.getsource(each)).body
        assert isinstance(made, ast.ClassDef)
        for key, text in pairwise(made.body):
            match key, text:
                case (
                    ast.AnnAssign(target=ast.Name(id=name)),
                    ast.Expr(value=ast.Constant(value=str(said))),
                ):
                    told[name] = inspect.cleandoc(said)
    return told


def check_license(stated: str) -> str:
    """Return a license as a recipe states it, if it can be shown as it is.

    Raises:
        ValueError: It is no name of one line and no web address.
    """
    if stated and not License.stated(stated):
        raise ValueError(f"{stated[:80]!r} is neither the name of a license nor a web address")
    if len(stated) > NAME_LENGTH:
        raise ValueError(f"longer than {NAME_LENGTH} characters; give its name or its address")
    return stated
