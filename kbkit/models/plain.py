"""Sanitize untrusted text for one line or a model, and count nouns.

Also how many of something there are, in words.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Iterable, Mapping
from typing import Any

_MAX_NAME_LENGTH = 200
"""Characters of an unknown name that are compared."""
_MAX_NAMES = 20
"""Names that an error lists."""
_TURNED = r"\u061c\u200b\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff\U000e0000-\U000e007f"
_TURNING = re.compile(f"[{_TURNED}]")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_STEERING = re.compile(rf"[\x00-\x08\x0b-\x1f\x7f-\x9f{_TURNED}]")
_COLOURED = re.compile(rf"(\x1b\[[0-9;]*m)|{_STEERING.pattern}")


def plain(text: str) -> str:
    """Return one line without control, bidirectional or invisible characters."""
    return " ".join(_CONTROL.sub(" ", _TURNING.sub("", text)).split())


def without_controls(text: str, *, colours: bool = False) -> str:
    if colours:
        return _COLOURED.sub(lambda match: match[1] or "", text)
    return _STEERING.sub("", text.replace("\r\n", "\n"))


def escaped_controls(text: str) -> str:
    """Escape such characters in JSON by their numbers."""
    return _STEERING.sub(lambda match: json.dumps(match[0])[1:-1], text)


def did_you_mean(name: object, known: Iterable[str], otherwise: str = "") -> str:
    from difflib import get_close_matches

    names = list(known)
    if near := get_close_matches(str(name)[:_MAX_NAME_LENGTH], names, 1):
        return f"did you mean {near[0]!r}?"
    if otherwise:
        return otherwise
    more = f" and {len(names) - _MAX_NAMES:,} more" if len(names) > _MAX_NAMES else ""
    return f"choose from {', '.join(names[:_MAX_NAMES]) or 'none'}{more}"


def pluralize(number: int, noun: str = "document") -> str:
    """Count a noun, such as ``1 page`` or ``1,200 pages``; the plural adds an s."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def valid(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text


def valid_values(value: Any) -> Any:
    if isinstance(value, str):
        return valid(value)
    if isinstance(value, list):
        return [valid_values(each) for each in value]
    if isinstance(value, Mapping):
        return {valid_values(name): valid_values(each) for name, each in value.items()}
    return value


def plain_lines(text: str, most: int = 8) -> list[str]:
    """Return the first lines of a text as `plain` lines, with their indentation."""
    lines = [line.rstrip() for line in text.split("\n")]
    shown = [" " * (len(line) - len(line.lstrip(" "))) + plain(line) for line in lines if line]
    return shown if len(shown) <= most else [*shown[: most - 1], f"{shown[most - 1]} …"]


def quotation_mark() -> str:
    """A mark that no document can have foreseen, so that none can end its quotation.

    What stands between ``<mark>`` and ``</mark>`` is quoted. This is the delimiting that Hines et
    al. recommend in "Defending Against Indirect Prompt Injection Attacks With Spotlighting" (2024);
    it lowers the risk, and does not end it. It is of digits, since all marks take as many tokens
    then: whether a text fits into a budget is no matter of chance. Each digit is a token at both
    ends of each quote; ten of them leave a text that is full of guesses a chance of 1 in 10
    million, each time it is quoted.
    """
    return f"quote-{secrets.randbelow(10**10):010}"
