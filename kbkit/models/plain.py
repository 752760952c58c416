"""Text of others: on one line, where nothing in it steers what shows it, and quoted for models.

Also how many of something there are, in words.
"""

from __future__ import annotations

import re
import secrets

_TURNING = re.compile(r"[\u202a-\u202e\u2066-\u2069\u200b\ufeff]")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def plain(text: str) -> str:
    """One line without control characters, nor any that turn the text around or are not seen."""
    return " ".join(_CONTROL.sub(" ", _TURNING.sub("", text)).split())


def pluralize(number: int, noun: str = "document") -> str:
    """How many of something, such as ``1 page`` or ``1,200 pages``; its plural has an s."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def plain_lines(text: str, most: int = 8) -> list[str]:
    """The first lines of a text, each as `plain` has it, with its indentation."""
    lines = [line.rstrip() for line in text.split("\n")]
    shown = [" " * (len(line) - len(line.lstrip(" "))) + plain(line) for line in lines if line]
    return shown if len(shown) <= most else [*shown[: most - 1], f"{shown[most - 1]} …"]


def quotation_mark() -> str:
    """A mark that no document can have foreseen, so that none can end its quotation.

    What stands between ``<mark>`` and ``</mark>`` is quoted. This is the delimiting that Hines et
    al. recommend in "Defending Against Indirect Prompt Injection Attacks With Spotlighting" (2024);
    it lowers the risk, and does not end it. It is of digits, since all marks take as many tokens
    then: whether a text fits into a budget is no matter of chance.
    """
    return f"quote-{secrets.randbelow(10**16):016}"
