"""Text of others on one line: nothing in it steers a terminal or turns what stands around it."""

from __future__ import annotations

import re

_TURNING = re.compile(r"[\u202a-\u202e\u2066-\u2069\u200b\ufeff]")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def plain(text: str) -> str:
    """One line without control characters, nor any that turn the text around or are not seen."""
    return " ".join(_CONTROL.sub(" ", _TURNING.sub("", text)).split())
