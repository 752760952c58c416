"""Responses: value objects as JSON, and errors as problem details (RFC 9457)."""

import logging
import re
import reprlib
from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from operator import attrgetter
from types import MappingProxyType, NoneType
from typing import Annotated, Any, Generic, NamedTuple, TypeVar, get_args, get_origin

from fastapi import Depends, FastAPI, Header, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field, StrictBool, WithJsonSchema
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import Scope

from kbkit import errors
from kbkit.client.declared import stamp
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
from kbkit.models.values import fault_reason, shape_of, to_json
from kbkit.recipes import KnowledgeBaseSpec
from kbkit.server.settings import ServerSettings

MEDIA_TYPE = "application/problem+json"


def quote_version(version: str) -> str:
    return f'"{version}"'


async def _unquote(
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


IfMatch = Annotated[str | None, Depends(_unquote)]
"""Version to change; ``None`` for any."""


T = TypeVar("T")

_NO_HEADERS: Mapping[str, str] = MappingProxyType({})
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


class Created(NamedTuple, Generic[T]):
    """A new resource, and its path."""

    value: T
    location: str


def answer(value: Any, status: int = 200, headers: Mapping[str, str] = _NO_HEADERS) -> Response:
    """Return a JSON response: a list as a page, and an ``ETag`` if the type has a version."""
    if version := _VERSIONS.get(type(value), lambda _: "")(value):
        headers = {**headers, "ETag": quote_version(version)}
    if isinstance(value, list | tuple):
        values, cursor = value if isinstance(value, Paged) else (value, None)
        value = {"data": list(values), "next_cursor": cursor}
    return JSONResponse(to_json(value), status, headers)


def json_answer(body: bytes) -> Response:
    return Response(body, media_type=JSONResponse.media_type)


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
        422: "Invalid request",
        429: "Too many requests; wait as `Retry-After` says",
        503: "Not available now",
    }
    schema = {"$ref": "#/components/schemas/ProblemDetails"}
    content = {MEDIA_TYPE: {"schema": schema}}
    return {status: {"description": described[status], "content": content} for status in statuses}


COMMON_RESPONSES = error_responses(400, 401, 403, 408, 409, 413, 429) | {
    431: {"description": "Address or headers too long; without a body"}
}
for _status, _header in ((401, "WWW-Authenticate"), (429, "Retry-After")):
    COMMON_RESPONSES[_status]["headers"] = {_header: {"schema": {"type": "string"}}}


def document_responses(
    result: Any, status: int, description: str = "Done"
) -> dict[int | str, dict[str, Any]]:
    """Document the responses of a route (its ``responses=``) by the type of its result."""
    kind, arguments = get_origin(result), get_args(result)
    if kind is Created:
        return document_responses(arguments[0], status)
    if NoneType in arguments:
        return document_responses(arguments[0], 200) | document_responses(NoneType, 204)
    many = kind in (list, tuple, Paged)
    item = arguments[0] if many else result
    response: dict[str, Any] = {"description": description}
    if item not in (NoneType, Response):
        shape: Any = shape_of(item) if hasattr(item, "to_dict") else item
        response["model"] = Page[shape] if many else shape
    if item in _VERSIONS and not many:
        response["headers"] = {
            "ETag": {"schema": {"type": "string"}, "description": "Its version."}
        }
    return {status: response}


Wait = Annotated[StrictBool, Field(description="Whether to wait some seconds for the result.")]


METADATA = "/.well-known/oauth-protected-resource"
MCP = "/mcp"


def base_url(scope: Scope, settings: ServerSettings) -> str:
    if settings.public_url:
        return settings.public_url.rstrip("/")
    host = Headers(scope=scope).get("host", "127.0.0.1")  # already checked
    return f"{scope.get('scheme', 'http')}://{host}"


def missing_token_header(scope: Scope, settings: ServerSettings) -> str:
    """Return ``WWW-Authenticate`` for a missing or invalid token (401)."""
    if takes_basic(scope):
        return 'Basic realm="kbkit: a token as the password", charset="UTF-8"'
    path = METADATA + (MCP if scope["path"].startswith(MCP) else "")
    error = ', error="invalid_token"' * ("authorization" in Headers(scope=scope))
    return f'Bearer realm="kbkit", resource_metadata="{base_url(scope, settings)}{path}"{error}'


def takes_basic(scope: Scope) -> bool:
    """Whether browsers may ask for a password: only for sites."""
    return scope["path"].startswith("/site/") and scope["method"] in ("GET", "HEAD")


log = logging.getLogger("kbkit.server")

_MAX_FAULTS = 10
_MAX_NAME_LENGTH = 80
_WITHOUT_VALUE = frozenset({"missing", "extra_forbidden", "json_invalid", "string_unicode"})
"""Types of faults without a value to show: the fields are wrong, or the body is."""

# The first class that matches decides.
_STATUSES = (
    (errors.VersionConflictError, 412),
    (errors.LimitError, 413),
    (errors.TokenError, 401),
    (errors.ConflictError | errors.MissingExtraError | errors.ReusedKeyError, 409),
    (errors.NotFoundError | errors.InvalidPathError, 404),
    (errors.EntryFormatError | errors.SecretsError, 422),
    (errors.ForbiddenError | errors.ForbiddenAddressError | errors.ReadOnlyPathError, 403),
    (errors.ConfigError | errors.InvalidNameError, 400),
    (errors.WorkspaceError, 503),
    # the request is valid, but something that it depends on failed
    (errors.FilesError | errors.SourceError | errors.ExportError, 409),
    (errors.EmbedderError | errors.PostprocessorError | errors.LanguageModelError, 409),
)


class ProblemDetails(BaseModel):
    """A problem of a request (RFC 9457)."""

    type: str = Field(description="Type of the problem: `urn:kbkit:problem:` and a name.")
    title: str = Field(description="The status in words.")
    status: int = Field(description="The status.")
    detail: str = Field(description="The problem, its place, and the remedy, as in Python.")
    error: str = Field(description="Class of `kbkit.errors` that Python raises.")
    attributes: dict[str, Any] = Field(
        default_factory=dict, description="Further data of this type of error."
    )


def problem(
    detail: str,
    status: int,
    error: type[errors.KbkitError],
    *,
    attributes: Mapping[str, Any] | None = None,
    headers: Mapping[str, str] = _NO_HEADERS,
) -> JSONResponse:
    name = re.sub(r"(?<=[a-z])(?=[A-Z])", "-", error.__name__.removesuffix("Error")).lower()
    details = ProblemDetails(
        type=f"urn:kbkit:problem:{name}",
        title=HTTPStatus(status).phrase,
        status=status,
        detail=detail,
        error=error.__name__,
        attributes=dict(attributes or {}),
    )
    content = details.model_dump()
    if not attributes:
        del content["attributes"]
    return JSONResponse(content, status, headers, MEDIA_TYPE)


def problem_of(error: errors.KbkitError) -> JSONResponse:
    status = next((status for kind, status in _STATUSES if isinstance(error, kind)), 500)
    headers = {}
    if status >= 500:
        log.error("%s: %s", type(error).__name__, error)
    if isinstance(error, errors.LimitError) and error.retry_after:
        status, headers["Retry-After"] = 429, str(error.retry_after)
    return problem(str(error), status, type(error), attributes=vars(error), headers=headers)


def _messages(error: RequestValidationError) -> str:
    faults = error.errors()
    messages = []
    for fault in faults[:_MAX_FAULTS]:
        parts = [str(part)[:_MAX_NAME_LENGTH] for part in fault["loc"]]
        location = ".".join(parts)
        if fault["type"] not in _WITHOUT_VALUE:
            location = f"{'.'.join(parts[1:] or parts)}={reprlib.repr(fault['input'])}"
        reason = fault_reason(fault)
        if isinstance(fault.get("input"), bytes):
            reason = "send JSON, with Content-Type: application/json"
        messages.append(f"{location}: {reason}")
    if len(faults) > _MAX_FAULTS:
        messages.append(f"and {len(faults) - _MAX_FAULTS:,} more")
    return "; ".join(messages)


def add_handlers(app: FastAPI) -> None:
    """Answer errors with problem details."""

    @app.exception_handler(errors.KbkitError)
    def of_kbkit(_: Request, error: errors.KbkitError) -> JSONResponse:
        return problem_of(error)

    @app.exception_handler(RequestValidationError)
    def of_validation(_: Request, error: RequestValidationError) -> JSONResponse:
        # faults beyond schemas: contradicting values, an invalid pattern
        kinds = {fault["type"] for fault in error.errors()}
        if "value_error" in kinds:  # other faults may belong to other members of a union
            return problem(_messages(error), 409, errors.ImpossibleError)
        kind = errors.ArgumentError if kinds <= _WITHOUT_VALUE else errors.ConfigError
        return problem(_messages(error), 422, kind)

    @app.exception_handler(HTTPException)
    def of_http(request: Request, error: HTTPException) -> JSONResponse:
        detail, headers = error.detail, dict(error.headers or {})
        kind = errors.NotFoundError if error.status_code == 404 else errors.ArgumentError
        if isinstance(error.__cause__, ValueError | RecursionError):
            detail = f"body: is not JSON ({error.__cause__})"
        elif error.status_code == 404:
            detail = f"{request.url.path}: no such address; /docs lists all"
        elif error.status_code == 405:
            detail = f"{request.url.path}: does not take {request.method}; see /docs"
            path = getattr(request.scope.get("route"), "path_format", "")
            if methods := request.app.openapi()["paths"].get(path):
                headers["Allow"] = ", ".join(sorted(map(str.upper, methods)))
        return problem(detail, error.status_code, kind, headers=headers)
