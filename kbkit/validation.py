"""Checks of what somebody hands in, before it goes any further."""

from __future__ import annotations

import json
import operator
from math import inf
from typing import Any

from kbkit.errors import ConfigError


def is_integer(value: Any, low: int, high: float = inf) -> bool:
    """Whether a value is a whole number in a range, of Python's or numpy's kind."""
    if isinstance(value, bool):
        return False
    try:
        number = operator.index(value)
    except TypeError:
        return False
    return low <= number <= high


def check_integer(name: str, value: Any, low: int, high: float = inf) -> int:
    """A whole number in a range.

    Raises:
        ConfigError: It is not one.
    """
    if not is_integer(value, low, high):
        ends = f", {low} or more" if high == inf else f" from {low} to {high}"
        raise ConfigError(f"{name}={value!r}: give a whole number{ends}")
    return int(value)


def check_text(name: str, value: Any) -> str:
    """A text, without lone surrogates, which cannot be stored.

    Raises:
        ConfigError: It is not one.
    """
    if not isinstance(value, str):
        raise ConfigError(f"{name}={value!r}: give a text")
    return value.encode("utf-8", "replace").decode()


def check_json(name: str, value: Any) -> Any:
    """A value that JSON can hold, as it comes out of that.

    Raises:
        ConfigError: It cannot: an object of some class, a number that is none, keys that are no
            texts, or values nested too deeply.
    """
    try:
        text = json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise ConfigError(f"{name}: is not JSON ({error}); give texts, numbers, lists") from None
    return json.loads(text)


def is_share(value: Any) -> bool:
    """Whether a value is a number above 0, at most 1."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= 1
