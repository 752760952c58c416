"""Answers: value objects as JSON, and what the OpenAPI document says of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Generic, TypeVar

from fastapi import Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field

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
from kbkit.rest.etags import quoted
from kbkit.rest.problems import MEDIA_TYPE, ProblemDetails

T = TypeVar("T")


_VERSIONED = frozenset({
    DocumentInfo, DocumentPart, Entity, Entry, FileInfo, KnowledgeBaseInfo, KnowledgeBaseSpec,
    Relation, SourceInfo,
})  # fmt: skip
"""What an answer says the version of (``ETag``), if it is one of these alone."""


class Page(BaseModel, Generic[T]):
    """A part of a list."""

    data: list[T] = Field(description="This part of it.")
    next_cursor: str | None = Field(
        description="What asks for the part behind this one, as `cursor`; null at the end."
    )


def answer(
    value: Any,
    status: int = 200,
    *,
    version: str = "",
    headers: Mapping[str, str] | None = None,
) -> Response:
    """A value object, or JSON values, as an answer.

    Args:
        value: What is answered.
        status: The status.
        version: Of what is answered, which becomes its ``ETag``.
        headers: Further headers.
    """
    told = {**(headers or {}), **({"ETag": quoted(version)} if version else {})}
    return JSONResponse(to_json(value), status, told)


def json_answer(body: bytes) -> Response:
    """What is JSON already, as an answer."""
    return Response(body, media_type=JSONResponse.media_type)


def no_content(*, version: str = "") -> Response:
    """An answer that says only that it was done."""
    return Response(status_code=204, headers={"ETag": quoted(version)} if version else None)


def page(values: Sequence[Any], cursor: str | None = None) -> Response:
    """A part of a list as an answer.

    Args:
        values: This part.
        cursor: What asks for the next; ``None`` at the end.
    """
    return answer({"data": [to_json(value) for value in values], "next_cursor": cursor})


def refused(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Problems that a route may answer with, for the OpenAPI document."""
    described = {
        400: "A value that cannot be", 401: "No token, or no good one",
        403: "Not permitted to this token, from this address, or at all", 404: "Not there",
        408: "It took too long to send", 409: "It cannot be done as things are",
        412: "It was changed meanwhile, or is not as `If-Match` says", 413: "Too large",
        416: "No such range", 422: "Not as it has to be",
        429: "Too many requests; `Retry-After` says when to go on",
        501: "Something that this server has not installed", 503: "Not now",
    }  # fmt: skip
    schema = {"$ref": "#/components/schemas/ProblemDetails"}
    content = {MEDIA_TYPE: {"schema": schema}}
    told: dict[int | str, dict[str, Any]] = {
        status: {"description": described[status], "content": content} for status in statuses
    }
    headers = {401: "WWW-Authenticate", 403: "WWW-Authenticate", 429: "Retry-After"}
    for status, header in headers.items():
        if status in told:
            told[status]["headers"] = {header: {"schema": {"type": "string"}}}
    return told


EVERYWHERE = refused(400, 401, 403, 408, 409, 413, 429) | {
    431: {"description": "An address or headers too long to be read; it has no body"}
}
"""What any request may be answered with instead; every route says so by itself."""


def documented(
    kind: Any = None,
    status: int = 200,
    *,
    many: bool = False,
    refusals: Sequence[int] = (),
    description: str = "",
) -> dict[int | str, dict[str, Any]]:
    """What a route answers, for the OpenAPI document (``responses=`` of a route).

    Args:
        kind: Class of the value object (or model) that it answers; ``None`` for nothing.
        status: With which status.
        many: Whether it answers a part of a list (`page`).
        refusals: Statuses of problems that are its own (404, 409, 412, 422, 501, 503).
        description: What the answer is, in some words.
    """
    told: dict[str, Any] = {"description": description or "Done"}
    if kind is not None:
        shape: Any = shape_of(kind) if hasattr(kind, "to_dict") else kind
        told["model"] = Page[shape] if many else shape
    if kind in _VERSIONED and not many:
        told["headers"] = {"ETag": {"schema": {"type": "string"}, "description": "Its version."}}
    return {status: told, **refused(*refusals)}


__all__ = [
    "EVERYWHERE",
    "Page",
    "ProblemDetails",
    "answer",
    "documented",
    "no_content",
    "page",
    "refused",
]
