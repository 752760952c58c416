"""Validate arguments."""

import inspect
import json
import operator
from collections.abc import Callable, Mapping
from enum import StrEnum
from functools import wraps
from math import inf
from typing import Any, ParamSpec, TypeVar

from kbkit.errors import ArgumentError, ConfigError
from kbkit.models.values import brief, did_you_mean

P = ParamSpec("P")
R = TypeVar("R")
C = TypeVar("C", bound=type)
E = TypeVar("E", bound=StrEnum)


def is_integer(value: Any, low: int, high: float = inf) -> bool:
    if isinstance(value, bool):
        return False
    try:
        number = operator.index(value)
    except TypeError:
        return False
    return low <= number <= high


def check_integer(name: str, value: Any, low: int, high: float = inf) -> int:
    if not is_integer(value, low, high):
        ends = f", {low} or more" if high == inf else f" from {low} to {high}"
        raise ConfigError(f"{name}={brief(value)}: give a whole number{ends}")
    return int(value)


def check_limit(limit: Any) -> None:
    if limit is not None:
        check_integer("limit", limit, 1)


def check_member(name: str, value: Any, kind: type[E]) -> E:
    try:
        return kind(value)
    except ValueError:
        raise ConfigError(f"{name}={value!r}: choose from {', '.join(kind)}") from None


def check_text(name: str, value: Any) -> str:
    """Return a text without lone surrogates, which cannot be stored."""
    if not isinstance(value, str):
        raise ConfigError(f"{name}={brief(value)}: give a text")
    return value.encode("utf-8", "replace").decode()


def check_json(name: str, value: Any) -> Any:
    try:
        text = json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise ConfigError(f"{name}: is not JSON ({error}); give texts, numbers, lists") from None
    return json.loads(text)


def check_properties(value: Any) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise ConfigError(f"properties={value!r}: give a mapping of names to JSON values")
    return check_json("properties", dict(value))


def is_share(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= 1


def explain_calls(kind: C) -> C:
    for name, method in vars(kind).copy().items():
        if not name.startswith("_") and inspect.isfunction(method):
            setattr(kind, name, explain_method(method))
    return kind


def explain_method(method: Callable[P, R]) -> Callable[P, R]:
    signature = inspect.signature(method)

    @wraps(method)
    def called(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return method(*args, **kwargs)
        except TypeError:
            try:
                signature.bind(*args, **kwargs)
            except TypeError:
                problem = _problem(method.__name__, signature, args[1:], kwargs)
                raise ArgumentError(problem) from None
            raise  # the method itself raised it

    return called


def _problem(
    name: str, signature: inspect.Signature, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> str:
    """Explain a wrong call and how to write it; ``args`` exclude ``self``."""
    parameters = [p for p in signature.parameters.values() if p.name != "self"]
    by_position = [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
    by_name = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY]
    surplus = args[len(by_position) :]
    if surplus and len(surplus) <= len(by_name):
        keywords = [f"{key}={value!r}" for key, value in zip(by_name, surplus, strict=False)]
        return f"write {name}({', '.join([*by_position, *keywords])}): {_rule(by_position)}"
    if surplus:
        return f"{name}(): has {len(args)} values; {_rule(by_position)}"
    names = [*by_position, *by_name]
    for key in kwargs:
        if key not in names:
            return f"{name}(): has no argument {key!r}; {did_you_mean(key, names)}"
        if key in by_position[: len(args)]:
            return f"{name}(): {key} is given twice, by position and by name; leave one out"
    missing = [p.name for p in parameters if p.default is p.empty and p.name not in kwargs]
    missing = [key for key in missing if key not in by_position[: len(args)]]
    return f"{name}(): give {' and '.join(missing)}"


def _rule(by_position: list[str]) -> str:
    if not by_position:
        return "give every argument by name"
    return f"only {' and '.join(by_position)} may be given without a name"
