"""What was wrong with a call, in words."""

from __future__ import annotations

from typing import Any

from mcp.server.mcpserver.exceptions import ToolError
from pydantic import ValidationError

from kbkit.errors import KbkitError


def reason(error: BaseException) -> str:
    """What is behind an error, as far as that may be told."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, KbkitError):
        cause = cause.__cause__
    return str(cause or error)


def explained(name: str, error: ToolError, declared: Any) -> str:
    """What is wrong with a call, in words."""
    cause = error.__cause__
    if isinstance(cause, ValidationError):
        properties = declared[name].tool.parameters
        return f"{name}: " + "; ".join(_fault(each, properties) for each in cause.errors(
            include_url=False, include_input=False, include_context=False
        ))  # fmt: skip
    return str(cause if isinstance(cause, KbkitError | ToolError) else error)


def _fault(fault: Any, schema: dict[str, Any]) -> str:
    place = [str(part) for part in fault["loc"]]
    if fault["type"] != "extra_forbidden":
        return f"{'.'.join(place)}: {fault['msg']}"
    known = schema["properties"]
    if place[:-1]:  # in a condition of its own
        known = schema["$defs"]["Conditions"]["properties"]
    return f"{'.'.join(place)[:80]}: is not known; there are {', '.join(known)}"
