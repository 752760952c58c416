"""Versions in headers: ``ETag`` says one, ``If-Match`` wants one (RFC 9110)."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Header
from pydantic import WithJsonSchema

from kbkit.errors import ArgumentError


def quoted(version: str) -> str:
    """A version as ``ETag`` has it."""
    return f'"{version}"'


async def _unquoted(
    if_match: Annotated[
        str | None,
        Header(
            description="The `ETag` of what is to be changed: it is only done to that version.",
        ),
        WithJsonSchema({"type": "string"}),
    ] = None,
) -> str | None:
    """The version that is wanted; what is none is that of nothing, so nothing is done."""
    if if_match is None or if_match.strip() == "*":
        return None
    text = if_match.strip().removeprefix("W/")
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] == '"' else text


IfMatch = Annotated[str | None, Depends(_unquoted)]
"""The version that a caller wants to change; ``None`` for any."""


async def _expected(
    if_match: IfMatch,
    if_none_match: Annotated[
        str | None,
        Header(
            description="`*`: only where nothing is there yet.",
            max_length=200,
        ),
        WithJsonSchema({"type": "string", "enum": ["*"]}),
    ] = None,
) -> str | None:
    if if_none_match is None:
        return if_match
    if if_none_match.strip() != "*":
        raise ArgumentError("If-None-Match: give *, for what must not be there yet")
    return ""


Expected = Annotated[str | None, Depends(_expected)]
"""The version that is to be replaced; ``""`` for nothing, ``None`` for any."""
