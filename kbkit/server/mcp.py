"""MCP over streamable HTTP, at ``/mcp``."""

import asyncio
import json
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.transport_security import TransportSecuritySettings
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.auto import AutoHTTPProtocol

from kbkit.errors import ArgumentError
from kbkit.mcp.server import server
from kbkit.models import Context, Hits
from kbkit.models.server import Caller
from kbkit.models.values import from_dict
from kbkit.server.app import MountedApp
from kbkit.server.responses import MCP, MEDIA_TYPE, problem
from kbkit.server.settings import ServerSettings
from kbkit.workspace import Workspace
from kbkit.workspace.processes import SearchProcesses


@dataclass(frozen=True, slots=True)
class _ProcessSearches:
    processes: SearchProcesses

    def search(self, query: str, **arguments: Any) -> Hits:
        return from_dict(Hits, json.loads(self.processes.answer("search", query, **arguments)))

    def context(self, query: str, **arguments: Any) -> Context:
        return from_dict(Context, json.loads(self.processes.answer("context", query, **arguments)))


def mcp_part(
    workspace: Workspace, settings: ServerSettings, searches: SearchProcesses
) -> MountedApp:
    """Return the MCP application, for protocol 2026-07-28 and older ones with sessions."""
    mcp_server = server(
        lambda: workspace,
        tools=settings.tools,
        allow_write=settings.allow_write,
        max_tokens=settings.max_tokens,
        caller=attrgetter("request.state.caller"),
        searches=_ProcessSearches(searches),
    )
    # the middleware has checked Host and Origin
    unchecked = TransportSecuritySettings(enable_dns_rebinding_protection=False)
    mcp_server.streamable_http_app(
        streamable_http_path=MCP,
        transport_security=unchecked,
        max_request_body_size=settings.max_body,
    )
    manager = mcp_server.session_manager
    endpoint = _Endpoint(manager.handle_request)
    return MountedApp([Route(path, endpoint) for path in (MCP, f"{MCP}/")], manager.run)


@dataclass(frozen=True, slots=True)
class _Endpoint:
    """Passes the caller to the SDK, which binds sessions to callers."""

    handle: ASGIApp

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        caller: Caller = scope["state"]["caller"]
        if caller.name:
            scopes = sorted(each.value for each in caller.scopes)
            token = AccessToken(token="-", client_id=caller.name, scopes=scopes)  # noqa: S106
            scope["user"] = AuthenticatedUser(token)
        await self.handle(scope, receive, send)


HEADER_SECONDS = 20.0
HEADER_BYTES = 65_536
_TOO_LARGE = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\n"
    b"Content-Length: 0\r\nConnection: close\r\n\r\n"
)


def http_protocol() -> type[asyncio.Protocol]:
    """Return uvicorn's faster installed protocol, with a time limit for headers."""
    base: Any = AutoHTTPProtocol

    class Protocol(base):  # type: ignore[misc]
        """Closes connections that do not complete their headers in time."""

        _timer: asyncio.TimerHandle | None = None
        _bytes = 0

        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            super().connection_made(transport)
            self._wait()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            self._bytes += len(data)
            if self.cycle is not None and not self.cycle.response_complete:
                self._stop()
            elif self._bytes > HEADER_BYTES and not self.transport.is_closing():
                self.transport.write(_TOO_LARGE)
                self.transport.close()
            elif self._timer is None:
                self._wait()

        def connection_lost(self, exc: Exception | None) -> None:
            self._stop()
            super().connection_lost(exc)

        def send_400_response(self, msg: str) -> None:
            answer = problem("this is not valid HTTP", 400, ArgumentError)
            head = f"HTTP/1.1 400 Bad Request\r\nContent-Type: {MEDIA_TYPE}\r\n"
            head += f"Content-Length: {len(answer.body)}\r\nConnection: close\r\n\r\n"
            self.transport.write(head.encode() + bytes(answer.body))
            self.transport.close()

        def _wait(self) -> None:
            self._timer = self.loop.call_later(HEADER_SECONDS, self.transport.close)

        def _stop(self) -> None:
            self._bytes = 0
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None

    return Protocol
