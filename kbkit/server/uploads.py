"""Uploaded and downloaded files."""

from __future__ import annotations

import os
import re
from base64 import b64decode
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from mimetypes import MimeTypes
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, BinaryIO
from urllib.parse import quote

from fastapi import Depends, Header, Response
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, Field

from kbkit.errors import ArgumentError, EntryFormatError, InvalidPathError, KbkitError
from kbkit.files.paths import joined, parts_of
from kbkit.server.parameters import Body
from kbkit.server.responses import error_responses, problem, quoted

MAX_FILES = 5_000


class Base64(Body):
    """Content of a binary file."""

    base64: Annotated[
        str, Field(pattern="^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$")
    ]
    """Its bytes in Base64."""


Content = str | Base64
"""A file as JSON: text or bytes."""


def bytes_of(path: str, content: Content) -> bytes:
    try:
        return content.encode() if isinstance(content, str) else b64decode(content.base64)
    except ValueError as error:
        raise ArgumentError(f"files: {path[:200]!r}: {error}") from None


class Folder(Body):
    """A folder of files."""

    files: Annotated[
        dict[Annotated[str, Field(min_length=1)], Content],
        Field(min_length=1, max_length=MAX_FILES),
    ]
    """Contents of its files by path: text, or `base64`."""
    task_id: Annotated[str, Field(max_length=500)] = ""
    """Name of the task."""

    @contextmanager
    def stored(self) -> Iterator[Path]:
        """Provide a folder with the files; errors of the block name the caller's paths."""
        with TemporaryDirectory(prefix="kbkit-") as temporary:
            root = Path(temporary).resolve() / ".knowledge"
            root.mkdir()
            for path, content in self.files.items():
                parts = parts_of(path)
                if not parts:
                    raise InvalidPathError("an uploaded file has no name")
                place = root.joinpath(*parts)
                try:
                    place.parent.mkdir(parents=True, exist_ok=True)
                    with place.open("xb") as file:
                        file.write(bytes_of(path, content))
                except OSError as error:
                    raise EntryFormatError(
                        f"{joined(parts)}: cannot be written ({error.strerror}); nothing was "
                        "imported"
                    ) from None
            try:
                yield root
            except KbkitError as error:
                error.args = (str(error).replace(str(root), root.name), *error.args[1:])
                raise


_TYPES = MimeTypes()  # without the types of this machine
for _type, _ending in (
    ("text/markdown", ".md"),
    ("application/yaml", ".yaml"),
    ("application/yaml", ".yml"),
):
    _TYPES.add_type(_type, _ending)
_PIECE_BYTES = 1 << 16
_RANGE = re.compile("bytes=([0-9]*)-([0-9]*)", re.IGNORECASE)
_SAFE_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "sandbox; default-src 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Accept-Ranges": "bytes",
    "Cache-Control": "no-cache",
}


@dataclass(frozen=True)
class FileConditions:
    """The part of a file that a request is for."""

    bytes_range: Annotated[
        str | None,
        Header(
            alias="Range",
            description="Bytes to return: `bytes=0-99`, `bytes=100-` or `bytes=-100`. "
            "Several ranges return the whole file.",
            max_length=100,
        ),
    ] = None
    if_range: Annotated[
        str | None,
        Header(description="An `ETag`: another version is returned as a whole.", max_length=200),
    ] = None

    def range_of(self, size: int, etag: str) -> tuple[int, int] | None:
        """Return start and end of the requested bytes; ``None`` for all. Raises `ValueError`."""
        match = _RANGE.fullmatch((self.bytes_range or "").replace(" ", ""))
        first, last = match.groups() if match else ("", "")
        if not (first or last) or (self.if_range or etag).strip() != etag:
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


ConditionsOf = Annotated[FileConditions, Depends(FileConditions)]


def file_response(
    file: BinaryIO | bytes, name: str, version: str, conditions: FileConditions
) -> Response:
    content = BytesIO(file) if isinstance(file, bytes) else file
    size = len(file) if isinstance(file, bytes) else os.fstat(content.fileno()).st_size
    etag = quoted(version)
    headers = {
        **_SAFE_HEADERS,
        "ETag": etag,
        "Content-Disposition": f"attachment; filename*=UTF-8''{quote(name, safe='')}",
    }
    try:
        span = conditions.range_of(size, etag)
    except ValueError:
        content.close()
        range_headers = {"Content-Range": f"bytes */{size}"}
        return problem(
            f"{name}: has {size:,} bytes, none of them in this range",
            416,
            ArgumentError,
            headers=range_headers,
        )
    start, end = span or (0, size)
    if span is not None:
        headers["Content-Range"] = f"bytes {start}-{end - 1}/{size}"
    headers["Content-Length"] = str(end - start)
    return StreamingResponse(
        _pieces(content, start, end),
        status_code=200 if span is None else 206,
        headers=headers,
        media_type=media_type(name),
    )


def media_type(name: str) -> str:
    kind, packed = _TYPES.guess_type(name.rpartition("/")[2])
    return "application/octet-stream" if kind is None or packed else kind


def _pieces(file: BinaryIO, start: int, end: int) -> Iterator[bytes]:
    with file:
        file.seek(start)
        while start < end and (piece := file.read(min(_PIECE_BYTES, end - start))):
            start += len(piece)
            yield piece


def file_responses(model: Any = None) -> dict[int | str, dict[str, Any]]:
    version = {"schema": {"type": "string"}, "description": "Version of its content."}
    binary = {"*/*": {"schema": {"type": "string", "format": "binary"}}}
    whole = {"description": "The file", "headers": {"ETag": version}, "content": binary}
    return {
        200: whole if model is None else {**whole, "model": model},
        206: {
            "description": "The range",
            "headers": {
                "ETag": version,
                "Content-Range": {
                    "schema": {"type": "string"},
                    "description": "The bytes, and the size of the file.",
                },
            },
            "content": binary,
        },
        **error_responses(416),
    }


class RevisionOf(BaseModel):
    """Revision that changes with the data."""

    revision: str
