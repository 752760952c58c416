"""Files as answers: bit by bit, in ranges, and never anything that a browser would run."""

from __future__ import annotations

import os
from collections.abc import Iterator
from io import BytesIO
from mimetypes import MimeTypes
from typing import Annotated, Any, BinaryIO
from urllib.parse import quote

from fastapi import Depends, Header, Response
from fastapi.responses import StreamingResponse
from pydantic import BaseModel

from kbkit.errors import ArgumentError
from kbkit.rest.etags import quoted
from kbkit.rest.problems import problem
from kbkit.rest.responses import answer, documented, refused

_TYPES = MimeTypes()  # those that Python knows: the same on every machine
for _type, _ending in (("text/markdown", ".md"), ("application/yaml", ".yaml"),
                       ("application/yaml", ".yml")):  # fmt: skip
    _TYPES.add_type(_type, _ending)
_PIECE = 1 << 16
_SAFE = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "sandbox; default-src 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Accept-Ranges": "bytes",
    "Cache-Control": "no-cache",
}


class Conditions:
    """What a request wants of a file: a range, or only what it has not got yet."""

    def __init__(
        self,
        bytes_range: Annotated[
            str | None,
            Header(
                alias="Range",
                description="Which bytes: `bytes=0-99`, `bytes=100-` or `bytes=-100`. All are "
                "given where it asks for several ranges.",
                max_length=100,
            ),
        ] = None,
        if_range: Annotated[
            str | None,
            Header(
                description="An `ETag`: the range is only given of that version, else all.",
                max_length=200,
            ),
        ] = None,
        if_none_match: Annotated[
            str | None,
            Header(
                description="An `ETag`: of that version nothing is given (304).", max_length=1_000
            ),
        ] = None,
    ) -> None:
        self._range = bytes_range
        self._if_range = if_range
        self._if_none_match = if_none_match

    def has(self, etag: str) -> bool:
        """Whether who asks has that version already."""
        known = (each.strip().removeprefix("W/") for each in (self._if_none_match or "").split(","))
        return any(each in ("*", etag) for each in known)

    def range_of(self, size: int, etag: str) -> tuple[int, int] | None:
        """The bytes that are wanted: the first, and the one behind the last; ``None`` for all.

        Raises:
            ValueError: There are none such.
        """
        unit, _, wanted = (self._range or "").partition("=")
        first, dash, last = (each.strip() for each in wanted.partition("-"))
        if unit.strip().lower() != "bytes" or not dash or "," in wanted:
            return None
        if self._if_range is not None and self._if_range.strip() != etag:
            return None
        if not all(each == "" or (each.isascii() and each.isdigit()) for each in (first, last)):
            return None
        if first == last == "":
            return None
        if first == "":
            start, end = max(0, size - int(last)), size
        else:
            start, end = int(first), min(size, int(last) + 1) if last else size
            if last and int(last) < int(first):
                return None
        if start >= end:
            raise ValueError
        return start, end


ConditionsOf = Annotated[Conditions, Depends(Conditions)]
"""Parameter of a handler: what a request wants of a file."""


def sent(
    file: BinaryIO | bytes,
    name: str,
    version: str,
    wanted: Conditions,
) -> Response:
    """A file, or a range of it, as an answer.

    Args:
        file: Open, and closed when it was sent; or all of it.
        name: What it is called: its ending says its type.
        version: Identifies what it holds, as its ``ETag``.
        wanted: What the request wants of it.
    """
    opened = BytesIO(file) if isinstance(file, bytes) else file
    size = len(file) if isinstance(file, bytes) else os.fstat(opened.fileno()).st_size
    etag = quoted(version)
    headers = {
        **_SAFE,
        "ETag": etag,
        "Content-Disposition": f"attachment; filename*=UTF-8''{quote(name, safe='')}",
    }
    if wanted.has(etag):
        opened.close()
        return Response(status_code=304, headers=headers)
    try:
        found = wanted.range_of(size, etag)
    except ValueError:
        opened.close()
        told = {"Content-Range": f"bytes */{size}"}
        return problem(f"{name}: has {size:,} bytes, and none of those", 416, ArgumentError,
                       headers=told)  # fmt: skip
    start, end = found or (0, size)
    if found is not None:
        headers["Content-Range"] = f"bytes {start}-{end - 1}/{size}"
    headers["Content-Length"] = str(end - start)
    return StreamingResponse(
        _pieces(opened, start, end),
        status_code=200 if found is None else 206,
        headers=headers,
        media_type=media_type(name),
    )


def media_type(name: str) -> str:
    """The type of a file by its name."""
    found, packed = _TYPES.guess_type(name.rpartition("/")[2])
    return "application/octet-stream" if found is None or packed else found


def _pieces(file: BinaryIO, start: int, end: int) -> Iterator[bytes]:
    with file:
        file.seek(start)
        while start < end and (piece := file.read(min(_PIECE, end - start))):
            start += len(piece)
            yield piece


def contents(*statuses: int, model: Any = None) -> dict[int | str, dict[str, Any]]:
    """What a route answers that sends a file, for the OpenAPI document.

    Args:
        statuses: Of problems that are its own.
        model: What it may answer instead of a file, as JSON.
    """
    version = {"schema": {"type": "string"}, "description": "Identifies what it holds."}
    binary = {"*/*": {"schema": {"type": "string", "format": "binary"}}}
    whole = {"description": "The file", "headers": {"ETag": version}, "content": binary}
    return {
        200: whole if model is None else {**whole, "model": model},
        206: {"description": "The range", "headers": {"ETag": version, "Content-Range": {
            "schema": {"type": "string"}, "description": "Which bytes, of how many."}},
            "content": binary},
        304: {"description": "Not changed"},
        **refused(*statuses, 416),
    }  # fmt: skip


class RevisionOf(BaseModel):
    """What is another text when something changed."""

    revision: str


REVISION = documented(RevisionOf, refusals=(404, 422)) | {304: {"description": "Not changed"}}
"""What a route answers that tells whether something changed."""


def told_revision(revision: str, wanted: Conditions) -> Response:
    """A revision as an answer; without a body for who has it already.

    Args:
        revision: It.
        wanted: What the request has.
    """
    if wanted.has(quoted(revision)):
        return Response(status_code=304, headers={"ETag": quoted(revision)})
    return answer({"revision": revision}, version=revision)
