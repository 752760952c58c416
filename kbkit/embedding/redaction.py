"""What the code of third parties says when it fails, without keys."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any

SECRET_NAME = re.compile(r"key|token|secret|password|credential|auth", re.IGNORECASE)
"""Names of arguments and variables whose values are secret."""

_SECRET_VALUE = re.compile(r"\b(?:sk|pk|hf|gsk|pa)[-_][\w*-]{4,}|(?i:bearer)\s+\S+")
_LEAST_SECRET = 6  # shorter values would blot out ordinary words


def safe_message(error: Exception, arguments: Mapping[str, Any]) -> str:
    """One line about an error, without keys.

    Args:
        error: What a third party raised.
        arguments: What it was opened with, which may be keys.
    """
    text = " ".join(f"{type(error).__name__}: {error}".split())
    for secret in _secrets(arguments):
        text = text.replace(secret, "***")
    return _SECRET_VALUE.sub("***", text)[:300]


def _secrets(arguments: Mapping[str, Any]) -> list[str]:
    """Values that must not show in messages: from the arguments and from the environment."""
    values = {str(value) for name, value in arguments.items() if SECRET_NAME.search(name)}
    values |= {value for name, value in os.environ.items() if SECRET_NAME.search(name)}
    return sorted((value for value in values if len(value) >= _LEAST_SECRET), key=len, reverse=True)
