"""What all parts of a recipe have in common."""

from __future__ import annotations

from typing import Annotated, Any, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    model_validator,
)

from kbkit.errors import ConfigError
from kbkit.globs import compile_glob
from kbkit.models import License
from kbkit.models.licenses import NAME_LENGTH
from kbkit.recipes.problems import find_problems

HttpUrl = Annotated[str, Field(pattern=r"^https?://[^\s/?#@]+(?:[/?#]|$)")]
"""A web address without a user name or password, which who reads the recipe would read too."""


def _check_glob(pattern: str) -> str:
    try:
        compile_glob(pattern)
    except ConfigError as error:
        raise ValueError(str(error)) from None
    return pattern


Glob = Annotated[str, AfterValidator(_check_glob)]
"""A pattern as `kbkit.globs` reads it."""


class Spec(BaseModel):
    """Base of all parts of a recipe: unknown keys are errors, values do not change."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

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

    # pydantic need not call it for the parts of a part, whose problems it collects
    __init__.__pydantic_base_init__ = True  # type: ignore[attr-defined]


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
