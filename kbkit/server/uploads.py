"""Uploaded and downloaded files."""

import os
from base64 import b64decode
from mimetypes import MimeTypes
from typing import Annotated, Any, BinaryIO
from urllib.parse import quote

from fastapi import Response
from fastapi.responses import FileResponse
from pydantic import BaseModel, Field, GetCoreSchemaHandler, GetPydanticSchema
from pydantic_core import CoreSchema, core_schema
from starlette.types import Receive, Scope, Send

from kbkit.server.parameters import Body
from kbkit.server.responses import quote_version


class Base64(Body):
    """Content of a binary file."""

    base64: Annotated[
        str, Field(pattern="^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$")
    ]
    """Its bytes in Base64."""


def _decode(content: str | Base64) -> bytes:
    return content.encode() if isinstance(content, str) else b64decode(content.base64)


def _schema(_bytes: object, handler: GetCoreSchemaHandler) -> CoreSchema:
    schema = handler.generate_schema(str | Base64)
    return core_schema.no_info_after_validator_function(_decode, schema)


Content = Annotated[bytes, GetPydanticSchema(_schema)]
"""A file as JSON: text, or other bytes in Base64."""


_TYPES = MimeTypes()  # without the types of this machine
_TYPES.add_type("text/markdown", ".md")
_TYPES.add_type("application/yaml", ".yaml")
_TYPES.add_type("application/yaml", ".yml")
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
    """Streams an open file, or the requested ranges of it."""

    def __init__(self, file: BinaryIO, headers: dict[str, str], media_type: str) -> None:
        self._file = file
        status = os.fstat(file.fileno())
        super().__init__("", headers=headers, media_type=media_type, stat_result=status)

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
    response = {"description": "The file", "headers": {"ETag": version}, "content": binary}
    return {200: response if model is None else {**response, "model": model}}


class RevisionOf(BaseModel):
    """Revision that changes with the data."""

    revision: str
