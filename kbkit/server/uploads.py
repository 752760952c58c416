"""Uploaded and downloaded files."""

from __future__ import annotations

import os
from base64 import b64decode
from collections.abc import Iterator
from contextlib import contextmanager
from mimetypes import MimeTypes
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, BinaryIO
from urllib.parse import quote

from fastapi import Response
from fastapi.responses import FileResponse
from pydantic import BaseModel, Field
from starlette.types import Receive, Scope, Send

from kbkit.errors import ArgumentError, EntryFormatError, InvalidPathError, KbkitError
from kbkit.files.paths import join_parts, parts_of
from kbkit.server.parameters import Body
from kbkit.server.responses import quote_version

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
    def store(self) -> Iterator[Path]:
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
                        f"{join_parts(parts)}: cannot be written ({error.strerror}); nothing was "
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
_SAFE_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "sandbox; default-src 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-cache",
}


def file_response(file: BinaryIO | bytes, name: str, version: str) -> Response:
    """Return a file that browsers download and never run."""
    headers = {
        **_SAFE_HEADERS,
        "ETag": quote_version(version),
        "Content-Disposition": f"attachment; filename*=UTF-8''{quote(name, safe='')}",
    }
    if isinstance(file, bytes):
        return Response(file, headers=headers, media_type=media_type(name))
    return _OpenFileResponse(file, headers, media_type(name))


class _OpenFileResponse(FileResponse):
    """Streams an open file, or the ranges of it that the request is for."""

    def __init__(self, file: BinaryIO, headers: dict[str, str], media_type: str) -> None:
        self._file = file
        about = os.fstat(file.fileno())
        super().__init__("", headers=headers, media_type=media_type, stat_result=about)

    @property
    def path(self) -> Any:
        """A descriptor, which `FileResponse` opens and closes."""
        return os.dup(self._file.fileno())

    @path.setter
    def path(self, value: object) -> None:
        """Ignore the value: the file is open."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._file:
            await super().__call__(scope, receive, send)


def media_type(name: str) -> str:
    kind, packed = _TYPES.guess_type(name.rpartition("/")[2])
    return "application/octet-stream" if kind is None or packed else kind


def file_responses(model: Any = None) -> dict[int | str, dict[str, Any]]:
    version = {"schema": {"type": "string"}, "description": "Version of its content."}
    binary = {"*/*": {"schema": {"type": "string", "format": "binary"}}}
    whole = {"description": "The file", "headers": {"ETag": version}, "content": binary}
    return {200: whole if model is None else {**whole, "model": model}}


class RevisionOf(BaseModel):
    """Revision that changes with the data."""

    revision: str
