"""Errors as problem details (RFC 9457), with Python's messages."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Iterator, Mapping
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.routing import BaseRoute, Match, Route
from starlette.types import Scope

from kbkit import errors
from kbkit.server.settings import ServerSettings

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
    shown = Headers(scope=scope).get("authorization") is not None
    return _bearer(scope, settings, error="invalid_token" if shown else "")


def missing_scope_header(scope: Scope, settings: ServerSettings, needed: str) -> str:
    """Return ``WWW-Authenticate`` for a token without the needed scope (403)."""
    return _bearer(scope, settings, error="insufficient_scope", scope=needed)


def takes_basic(scope: Scope) -> bool:
    """Whether browsers may ask for a password: only for sites."""
    return scope["path"].startswith("/site/") and scope["method"] in ("GET", "HEAD")


def _bearer(request: Scope, settings: ServerSettings, **parameters: str) -> str:
    path = MCP if request["path"].startswith(MCP) else ""
    texts = {
        "realm": "kbkit",
        "resource_metadata": base_url(request, settings) + METADATA + path,
        **parameters,
    }
    return "Bearer " + ", ".join(f'{name}="{text}"' for name, text in texts.items() if text)


log = logging.getLogger("kbkit.server")

MEDIA_TYPE = "application/problem+json"
_MAX_FAULTS = 10
_MAX_NAME_LENGTH = 80

# The first class that matches decides.
_STATUS: tuple[tuple[type[errors.KbkitError], int], ...] = (
    (errors.VersionConflictError, 412),
    (errors.ConflictError, 409),
    (errors.NotFoundError, 404),
    (errors.TokenError, 401),
    (errors.ForbiddenError, 403),
    (errors.LimitError, 413),
    (errors.ReusedKeyError, 409),
    (errors.ForbiddenAddressError, 403),
    (errors.ReadOnlyPathError, 403),
    (errors.InvalidPathError, 404),
    (errors.EntryFormatError, 422),
    (errors.SecretsError, 422),
    (errors.FilesError, 409),
    (errors.MissingExtraError, 409),
    (errors.ConfigError, 400),
    (errors.InvalidNameError, 400),
    # the request is valid, but something that it depends on failed
    (errors.SourceError, 409),
    (errors.BundleError, 409),
    (errors.ExportError, 409),
    (errors.EmbedderError, 409),
    (errors.PostprocessorError, 409),
    (errors.LanguageModelError, 409),
    (errors.WorkspaceError, 503),
)

_CLASS_OF_STATUS = {
    401: errors.TokenError,
    403: errors.ForbiddenError,
    404: errors.NotFoundError,
    408: errors.LimitError,
    409: errors.ConflictError,
    412: errors.VersionConflictError,
    413: errors.LimitError,
    429: errors.LimitError,
}


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


def status_of(error: errors.KbkitError) -> int:
    return next((status for kind, status in _STATUS if isinstance(error, kind)), 500)


def problem(
    detail: str,
    status: int,
    error: type[errors.KbkitError] | None = None,
    *,
    attributes: Mapping[str, Any] | None = None,
    headers: Mapping[str, str] | None = None,
) -> JSONResponse:
    kind = error or _CLASS_OF_STATUS.get(status) or errors.ArgumentError
    if status >= 500 and error is None:
        kind = errors.ServerError
    name = re.sub(r"(?<=[a-z])(?=[A-Z])", "-", kind.__name__.removesuffix("Error")).lower()
    details = ProblemDetails(
        type=f"urn:kbkit:problem:{name}",
        title=HTTPStatus(status).phrase,
        status=status,
        detail=detail,
        error=kind.__name__,
        attributes=dict(attributes or {}),
    )
    content = details.model_dump()
    if not attributes:
        del content["attributes"]
    return JSONResponse(content, status, headers, MEDIA_TYPE)


def problem_of(error: errors.KbkitError, *, challenge: str = "") -> JSONResponse:
    status = status_of(error)
    headers = {"WWW-Authenticate": challenge} if challenge else {}
    if status >= 500:
        log.error("%s: %s", type(error).__name__, error)
    if isinstance(error, errors.LimitError) and error.retry_after:
        headers["Retry-After"] = str(error.retry_after)
    return problem(str(error), status, type(error), attributes=vars(error), headers=headers)


def _messages(error: RequestValidationError) -> str:
    faults = error.errors()
    messages = []
    for each in faults[:_MAX_FAULTS]:
        place = ".".join(str(part)[:_MAX_NAME_LENGTH] for part in each["loc"])
        messages.append(f"{place}: {each['msg']}")
    if len(faults) > _MAX_FAULTS:
        messages.append(f"and {len(faults) - _MAX_FAULTS:,} more")
    return "; ".join(messages)


def _methods(routes: Iterable[BaseRoute], scope: Scope) -> set[str]:
    matching = [route for route in _flat(routes) if route.matches(scope)[0] is not Match.NONE]
    return {
        method
        for route in matching
        if route.path == matching[0].path
        for method in route.methods or ()
    }


def _flat(routes: Iterable[BaseRoute]) -> Iterator[Route]:
    for route in routes:
        inner = getattr(route, "original_router", None)
        if inner is not None:
            yield from _flat(inner.routes)
        elif isinstance(route, Route):
            yield route


def add_handlers(app: FastAPI) -> None:
    """Answer errors with problem details."""

    @app.exception_handler(errors.KbkitError)
    def of_kbkit(request: Request, error: errors.KbkitError) -> JSONResponse:
        needed = error.scope if isinstance(error, errors.ForbiddenError) else ""
        if not needed:
            return problem_of(error)
        settings = request.app.state.settings
        return problem_of(error, challenge=missing_scope_header(request.scope, settings, needed))

    @app.exception_handler(RequestValidationError)
    def of_validation(_: Request, error: RequestValidationError) -> JSONResponse:
        # faults beyond schemas: contradicting values, an invalid pattern
        kinds = {fault["type"] for fault in error.errors()}
        if "value_error" in kinds:  # other faults may belong to other members of a union
            return problem(_messages(error), 409, errors.ImpossibleError)
        return problem(_messages(error), 422, errors.ArgumentError)

    @app.exception_handler(HTTPException)
    def of_http(request: Request, error: HTTPException) -> JSONResponse:
        detail, headers = error.detail, dict(error.headers or {})
        if error.status_code == 404:
            detail = f"{request.url.path}: no such address; /docs lists all"
        elif error.status_code == 405:
            detail = f"{request.url.path}: does not take {request.method}; see /docs"
            if taken := _methods(request.app.routes, request.scope):
                headers["Allow"] = ", ".join(sorted(taken))
        return problem(detail, error.status_code, headers=headers)
