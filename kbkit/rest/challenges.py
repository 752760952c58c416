"""What tells a client which token is wanted (RFC 6750, RFC 9728)."""

from __future__ import annotations

from starlette.datastructures import Headers
from starlette.types import Scope

from kbkit.rest.settings import ServerSettings

METADATA = "/.well-known/oauth-protected-resource"
"""Where a client reads who gives tokens, and which scopes there are."""
MCP = "/mcp"
"""Where MCP is."""


def base_url(scope: Scope, settings: ServerSettings) -> str:
    """The address that a client knows this server by."""
    if settings.public_url:
        return settings.public_url.rstrip("/")
    host = Headers(scope=scope).get("host", "127.0.0.1")  # checked by then
    return f"{scope.get('scheme', 'http')}://{host}"


def no_token(scope: Scope, settings: ServerSettings) -> str:
    """``WWW-Authenticate`` of a 401: there is no token, or no good one."""
    if takes_basic(scope):
        return 'Basic realm="kbkit: a token as the password", charset="UTF-8"'
    shown = Headers(scope=scope).get("authorization") is not None
    return _bearer(scope, settings, error="invalid_token" if shown else "")


def too_little(scope: Scope, settings: ServerSettings, needed: str) -> str:
    """``WWW-Authenticate`` of a 403: the token is good, and has not the scope that is needed."""
    return _bearer(scope, settings, error="insufficient_scope", scope=needed)


def takes_basic(scope: Scope) -> bool:
    """Whether a browser may be asked: to look at a site, and for nothing else."""
    return scope["path"].startswith("/site/") and scope["method"] in ("GET", "HEAD")


def _bearer(request: Scope, settings: ServerSettings, **said: str) -> str:
    told_of = MCP if request["path"].startswith(MCP) else ""
    told = {
        "realm": "kbkit",
        "resource_metadata": base_url(request, settings) + METADATA + told_of,
        **said,
    }
    return "Bearer " + ", ".join(f'{name}="{text}"' for name, text in told.items() if text)
