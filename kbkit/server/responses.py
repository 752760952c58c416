"""Responses: value objects as JSON, and their documentation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from operator import attrgetter
from typing import Annotated, Any, Generic, NamedTuple, TypeVar

from fastapi import Depends, Header, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field, StrictBool, WithJsonSchema

from kbkit.errors import ArgumentError
from kbkit.models import (
    DocumentInfo,
    DocumentPart,
    Entity,
    Entry,
    FileInfo,
    KnowledgeBaseInfo,
    Relation,
    SourceInfo,
)
from kbkit.models.values import shape_of, to_json
from kbkit.recipes import KnowledgeBaseSpec
from kbkit.server.problems import MEDIA_TYPE


def quoted(version: str) -> str:
    return f'"{version}"'


async def _unquoted(
    if_match: Annotated[
        str | None,
        Header(description="The `ETag` of the resource: only this version is changed."),
        WithJsonSchema({"type": "string"}),
    ] = None,
) -> str | None:
    if if_match is None or if_match.strip() == "*":
        return None
    text = if_match.strip().removeprefix("W/")
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] == '"' else text


IfMatch = Annotated[str | None, Depends(_unquoted)]
"""Version to change; ``None`` for any."""


async def _expected(
    if_match: IfMatch,
    if_none_match: Annotated[
        str | None,
        Header(description="`*`: only if it does not exist yet.", max_length=200),
        WithJsonSchema({"type": "string", "enum": ["*"]}),
    ] = None,
) -> str | None:
    if if_none_match is None:
        return if_match
    if if_none_match.strip() != "*":
        raise ArgumentError("If-None-Match: give *, for a resource that must not exist yet")
    return ""


Expected = Annotated[str | None, Depends(_expected)]
"""Version to replace; ``""`` for a new resource, ``None`` for any."""


T = TypeVar("T")


def stamp(changed: datetime | None) -> str:
    return "unchanged" if changed is None else changed.isoformat()


_VERSIONS: dict[Any, Callable[[Any], str]] = {
    DocumentInfo: attrgetter("content_hash"),
    DocumentPart: attrgetter("document.content_hash"),
    Entity: lambda entity: stamp(entity.updated_at),
    Relation: lambda relation: stamp(relation.seen_at),
    **dict.fromkeys(
        (Entry, FileInfo, KnowledgeBaseInfo, KnowledgeBaseSpec, SourceInfo), attrgetter("version")
    ),
}
"""Types with an ``ETag``, and how to read it."""


class Page(BaseModel, Generic[T]):
    """A part of a list."""

    data: list[T] = Field(description="Items of this page.")
    next_cursor: str | None = Field(description="The `cursor` of the next page; null at the end.")


class Paged(NamedTuple, Generic[T]):
    """A part of a list, and the cursor of the next part."""

    values: Sequence[T]
    cursor: str | None


def answer(
    value: Any, status: int = 200, *, version: str = "", headers: Mapping[str, str] | None = None
) -> Response:
    """Return a JSON response, with an ``ETag`` if the type has a version."""
    if type(value) in _VERSIONS:
        version = _VERSIONS[type(value)](value)
    sent = {**(headers or {}), **({"ETag": quoted(version)} if version else {})}
    body = value.model_dump(mode="json") if isinstance(value, BaseModel) else to_json(value)
    return JSONResponse(body, status, sent)


def json_answer(body: bytes) -> Response:
    return Response(body, media_type=JSONResponse.media_type)


def page(values: Sequence[Any], cursor: str | None = None, status: int = 200) -> Response:
    return answer({"data": [to_json(value) for value in values], "next_cursor": cursor}, status)


def error_responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    described = {
        400: "Invalid value",
        401: "No valid token",
        403: "Not permitted",
        404: "Not found",
        408: "The request arrived too slowly",
        409: "Not possible in the current state",
        412: "Changed meanwhile, or does not match `If-Match`",
        413: "Too large",
        416: "No such range",
        422: "Invalid request",
        429: "Too many requests; wait as `Retry-After` says",
        503: "Not available now",
    }
    schema = {"$ref": "#/components/schemas/ProblemDetails"}
    content = {MEDIA_TYPE: {"schema": schema}}
    responses: dict[int | str, dict[str, Any]] = {
        status: {"description": described[status], "content": content} for status in statuses
    }
    headers = {401: "WWW-Authenticate", 403: "WWW-Authenticate", 429: "Retry-After"}
    for status, header in headers.items():
        if status in responses:
            responses[status]["headers"] = {header: {"schema": {"type": "string"}}}
    return responses


COMMON_RESPONSES = error_responses(400, 401, 403, 408, 409, 413, 429) | {
    431: {"description": "Address or headers too long; without a body"}
}


def documented(
    kind: Any = None,
    status: int = 200,
    *,
    many: bool = False,
    refusals: Sequence[int] = (),
    description: str = "",
) -> dict[int | str, dict[str, Any]]:
    """Document the responses of a route (its ``responses=``)."""
    response: dict[str, Any] = {"description": description or "Done"}
    if kind is not None:
        shape: Any = shape_of(kind) if hasattr(kind, "to_dict") else kind
        response["model"] = Page[shape] if many else shape
    if kind in _VERSIONS and not many:
        response["headers"] = {
            "ETag": {"schema": {"type": "string"}, "description": "Its version."}
        }
    return {status: response, **error_responses(*refusals)}


Wait = Annotated[StrictBool, Field(description="Whether to wait some seconds for the result.")]
