"""References to variables of the environment, which stand in recipes where a key would."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


def variable(value: object) -> str:
    """The variable that a value refers to (``${NAME}``); ``""`` where it is a value itself."""
    match = _REFERENCE.fullmatch(value) if isinstance(value, str) else None
    return match[1] if match else ""


def variables(arguments: Mapping[str, Any]) -> list[str]:
    """The variables that arguments refer to, sorted."""
    return sorted({name for value in arguments.values() if (name := variable(value))})
