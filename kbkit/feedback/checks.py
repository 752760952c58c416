"""Looks at what somebody hands in, before it goes any further."""

from __future__ import annotations

import operator
from typing import Any

from kbkit.errors import ConfigError


def is_whole(value: Any, low: int, high: int) -> bool:
    """Whether a value is a whole number in a range, of Python's or numpy's kind."""
    if isinstance(value, bool):
        return False
    try:
        number = operator.index(value)
    except TypeError:
        return False
    return low <= number <= high


def whole(name: str, value: Any, low: int, high: int) -> int:
    """A whole number in a range.

    Raises:
        ConfigError: It is not one.
    """
    if not is_whole(value, low, high):
        raise ConfigError(f"{name}={value!r}: give a whole number from {low} to {high}")
    return int(value)


def text(name: str, value: Any) -> str:
    """A text, without lone surrogates, which cannot be stored.

    Raises:
        ConfigError: It is not one.
    """
    if not isinstance(value, str):
        raise ConfigError(f"{name}={value!r}: give a text")
    return value.encode("utf-8", "replace").decode()
