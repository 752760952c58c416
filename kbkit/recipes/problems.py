"""What is wrong with a part of a recipe, in words that say how to mend it."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

_OF_THE_WHOLE = ("too_short", "string_type")
"""What pydantic says, too, of a list with something wrong in it, or where a text might stand."""
_MOST = 100
"""Problems that are told, and keys that are looked at for what they may have been meant to be."""
_LONGEST = 80
"""Characters of a key or a value that are shown."""
_QUOTED = re.compile(r"'([^']*)'")


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong.

    Attributes:
        location: Where, as pydantic has it.
        field: Where, as a person writes it: ``sources[0].url``; ``""`` for the whole.
        message: What is wrong, and what may stand there.
        value: What stands there, where that is a short text.
        meant: The key that a misspelt one was likely meant to be.
    """

    location: tuple[int | str, ...]
    field: str
    message: str
    value: str = ""
    meant: str = ""

    def __str__(self) -> str:
        given = f" (given: {self.value})" if self.value else ""
        return f"{self.field}: {self.message}{given}" if self.field else f"{self.message}{given}"


def find_problems(error: ValidationError, kind: Any) -> list[Problem]:
    """What pydantic found, each problem once.

    Args:
        error: What it raised.
        kind: What it was asked for: a part of a recipe, or a union of several.
    """
    items = error.errors()
    left, items = len(items) - _MOST, items[:_MOST]
    found = [_problem(item, kind) for item in items]
    misspelt = {(problem.location[:-1], problem.meant) for problem in found if problem.meant}
    told = [
        problem
        for problem, item in zip(found, items, strict=True)
        if not (item["type"] in _OF_THE_WHOLE and any(_is_inside(p, problem) for p in found))
        and not (item["type"] == "missing" and (item["loc"][:-1], item["loc"][-1]) in misspelt)
    ]
    more = f"has {left:,} more problems; mend those above first"
    return told if left <= 0 else [*told, Problem((), "", more)]


def _is_inside(one: Problem, other: Problem) -> bool:
    return one.field.startswith((f"{other.field}.", f"{other.field}["))


def _problem(item: Any, kind: Any) -> Problem:
    location, what, given = item["loc"], item["type"], item["input"]
    if what.startswith("union_tag"):
        location = (*location, "type")
    field, models = _field(kind, location, what == "extra_forbidden")
    message = item["msg"].removeprefix("Value error, ")
    message = message[:1].lower() + message[1:]
    value = given if isinstance(given, str) and len(given) <= _LONGEST else ""
    meant = ""
    if what == "extra_forbidden":
        keys = [name for model in models for name in model.model_fields]
        message, value = "unknown key" + _nearest(str(location[-1]), keys), ""
        meant = _likeliest(str(location[-1]), keys)
    elif what == "union_tag_not_found":
        tags = [str(model.model_fields["type"].default) for model in models]
        message, value = f"is missing; give one of {', '.join(tags)}", ""
        keys = [key for model in models for key in model.model_fields]
        unknown = [key for key in given if key not in keys] if isinstance(given, dict) else []
        if wrong := next((key for key in unknown[:_MOST] if _likeliest(str(key), ["type"])), ""):
            message += f"; {wrong!r} is an unknown key"
    elif what in ("union_tag_invalid", "literal_error", "enum"):
        context = item["ctx"]
        value = str(context.get("tag", given))[:_LONGEST]
        choices = _QUOTED.findall(context.get("expected_tags") or context["expected"])
        message, value = f"{value!r} is unknown{_nearest(value, choices)}", ""
    elif what == "missing":
        message, value = "is missing", ""
    elif what in ("too_short", "string_too_short") and not given:
        message, value = f"is empty; give at least {item['ctx']['min_length']}", ""
    elif what in ("model_type", "model_attributes_type"):
        message, value = f"{given!r:.{_LONGEST}} is no mapping; give keys and their values", ""
    elif what == "string_pattern_mismatch" and "https?" in item["ctx"]["pattern"]:
        message = "not a web address; begin it with http:// or https://"
        if "@" in str(given).partition("://")[2].partition("/")[0]:
            message, value = "holds a user name or password; leave it out", ""
    elif what == "string_pattern_mismatch":
        message, value = f"{given!r:.{_LONGEST}} has characters that cannot stand here", ""
    return Problem(location, field, message, "" if repr(value) in message else value, meant)


def _likeliest(word: str, known: list[str]) -> str:
    return next(iter(difflib.get_close_matches(word[:_LONGEST].lower(), known, n=1)), "")


def _nearest(word: str, known: list[str]) -> str:
    """Which words may stand where an unknown one stood: the likeliest, or all."""
    if close := _likeliest(word, known):
        return f"; did you mean {close!r}?"
    return f"; there are {', '.join(known)}" if known else ""


def _field(
    kind: Any, location: tuple[int | str, ...], unknown: bool
) -> tuple[str, list[type[BaseModel]]]:
    """What pydantic's location is called, and the parts that its last key, known or not, is of."""
    field, models = "", _models(kind)
    for number, part in enumerate(location, 1):
        is_last = number == len(location)
        known = [model for model in models if part in model.model_fields]
        if isinstance(part, int):
            field += f"[{part}]"
        elif len(models) > 1 and part in map(_tag, models):
            models = [model for model in models if _tag(model) == part]
        elif known or (is_last and unknown):  # what else pydantic names is a branch of a union
            field += f".{str(part)[:_LONGEST]}"
            if not is_last:
                inner = [model.model_fields[str(part)].annotation for model in known]
                models = [model for annotation in inner for model in _models(annotation)]
    return field.lstrip("."), models


def _models(kind: Any) -> list[type[BaseModel]]:
    """The parts that an annotation speaks of."""
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return [kind]
    return [model for part in get_args(kind) for model in _models(part)]


def _tag(model: type[BaseModel]) -> str:
    field = model.model_fields.get("type")
    return "" if field is None else str(field.default)
