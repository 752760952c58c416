"""Refuses JSON with halves of characters (lone surrogates), which are no Unicode."""

from __future__ import annotations

import json
import re

from fastapi import Depends, Request
from fastapi.exceptions import RequestValidationError

_HALF = re.compile(rb"\\u[dD][89a-fA-F]")  # as ASCII writes one


def _is_plain(body: bytes) -> bool:
    """Whether there is no need to look at each text: it is UTF-8 without such an escape."""
    if b"\0" in body or _HALF.search(body):  # NUL: JSON in UTF-16
        return False
    try:
        body.decode()
    except UnicodeDecodeError:
        return False
    return True


async def _check(request: Request) -> None:
    if "json" not in request.headers.get("content-type", "").lower():
        return
    if _is_plain(await request.body()):
        return
    try:
        values = await request.json()
    except (ValueError, RecursionError):
        return  # no JSON, as who reads it says
    try:
        json.dumps(values, ensure_ascii=False).encode()
    except (UnicodeEncodeError, RecursionError):
        said = "a text holds half of a character (a lone surrogate); leave it out"
        fault = {"type": "string_unicode", "loc": ("body",), "msg": said}
        raise RequestValidationError([fault]) from None


WHOLE_TEXTS = Depends(_check)
"""Dependency of an application whose bodies hold Unicode only."""
