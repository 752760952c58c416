"""What was wrong with a call, in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from mcp.server.mcpserver.exceptions import ToolError
from pydantic import ValidationError

from kbkit import replies
from kbkit.errors import KbkitError

if TYPE_CHECKING:
    from kbkit.mcp.tools import Declared

MOST_TOKENS = 400
"""Of an error: more would only repeat what was given."""


def reason(error: BaseException) -> str:
    """What is behind an error, as far as that may be told."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, KbkitError):
        cause = cause.__cause__
    return replies.problem_text(cause or error, MOST_TOKENS)


def explained(name: str, error: ToolError, declared: Mapping[str, Declared], most: int) -> str:
    """What is wrong with a call, in so many tokens.

    Args:
        name: Of the tool.
        error: What it raised.
        declared: The tools there are.
        most: Most tokens.
    """
    cause = error.__cause__
    if isinstance(cause, ValidationError):
        properties = declared[name].tool.parameters
        said = f"{name}: " + "; ".join(_fault(each, properties) for each in cause.errors(
            include_url=False, include_input=False, include_context=False
        ))  # fmt: skip
        return replies.shortened(said, most)
    return replies.problem_text(cause if isinstance(cause, KbkitError) else error, most)


def _fault(fault: Any, schema: dict[str, Any]) -> str:
    place = [str(part) for part in fault["loc"]]
    if fault["type"] != "extra_forbidden":
        return f"{'.'.join(place)}: {fault['msg']}"
    known = schema["properties"]
    if place[:-1]:  # in a condition of its own
        known = schema["$defs"]["Conditions"]["properties"]
    return f"{'.'.join(place)[:80]}: is not known; there are {', '.join(known)}"
