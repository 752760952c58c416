"""MCP over streamable HTTP, at ``/mcp``."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.transport_security import TransportSecuritySettings
from mcp_types import INVALID_REQUEST
from starlette.responses import JSONResponse
from starlette.routing import Route
from starlette.types import Message, Receive, Scope, Send

from kbkit.access import Caller
from kbkit.mcp.server import WorkspaceServer, server
from kbkit.models import Context, Hits
from kbkit.models.values import from_dict
from kbkit.rest.app import Part
from kbkit.rest.problems import too_little
from kbkit.rest.settings import ServerSettings
from kbkit.search_processes import SearchProcesses
from kbkit.workspace import Workspace

PATH = "/mcp"


@dataclass(frozen=True, slots=True)
class _Searches:
    """Searches and contexts for tools, run where those of REST are.

    Attributes:
        made: Makes them.
    """

    made: SearchProcesses

    def search(self, query: str, **arguments: Any) -> Hits:
        return from_dict(Hits, json.loads(self.made.answer("search", query, **arguments)))

    def context(self, query: str, **arguments: Any) -> Context:
        return from_dict(Context, json.loads(self.made.answer("context", query, **arguments)))


def mcp_part(workspace: Workspace, settings: ServerSettings, searches: SearchProcesses) -> Part:
    """Return the MCP application, for protocol 2026-07-28 and older ones with sessions."""
    made = server(
        lambda: workspace,
        tools=settings.tools,
        allow_write=settings.allow_write,
        max_tokens=settings.max_tokens,
        caller=lambda context: caller_of(context.request),
        searches=_Searches(searches),
    )
    # the gate has looked at Host and Origin
    checked = TransportSecuritySettings(enable_dns_rebinding_protection=False)
    made.streamable_http_app(
        streamable_http_path=PATH,
        transport_security=checked,
        max_request_body_size=settings.max_body,
    )
    manager = made.session_manager
    endpoint = _Endpoint(manager.handle_request, made, settings)
    return Part([Route(PATH, endpoint)], manager.run)


def caller_of(request: Any) -> Caller:
    caller: Caller = request.state.caller
    return caller


class _Endpoint:
    """Tells the SDK who asks: a session answers only to who began it."""

    def __init__(self, handle: Any, made: WorkspaceServer, settings: ServerSettings) -> None:
        self._handle = handle
        self._server = made
        self._settings = settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        caller: Caller = scope["state"]["caller"]
        if caller.name:
            scopes = sorted(each.value for each in caller.scopes)
            shown = AccessToken(token="-", client_id=caller.name, scopes=scopes)  # noqa: S106
            scope["user"] = AuthenticatedUser(shown)
            if scope["method"] == "POST":
                received = await _all_of(receive)
                if refusal := self._refusal(scope, _body_of(received), caller):
                    await refusal(scope, receive, send)
                    return
                receive = _again(received, receive)
        await self._handle(scope, receive, send)

    def _refusal(self, scope: Scope, body: bytes, caller: Caller) -> JSONResponse | None:
        """The answer to a call of a tool that needs more than the token has (403), as MCP wants it.

        Anything else the SDK answers, what is no message, too.
        """
        try:
            message = json.loads(body)
            wanted = message["method"] == "tools/call" and message["params"]["name"]
        except (ValueError, RecursionError, TypeError, KeyError):
            return None
        needed, said = self._server.missing_scope(wanted, caller)
        if not needed:
            return None
        error = {"code": INVALID_REQUEST, "message": said}
        return JSONResponse(
            {"jsonrpc": "2.0", "id": message.get("id"), "error": error},
            403,
            {"WWW-Authenticate": too_little(scope, self._settings, needed)},
        )


async def _all_of(receive: Receive) -> list[Message]:
    """Receive a request up to the end of its body, or until the client is gone."""
    received = []
    while True:
        message = await receive()
        received.append(message)
        if message["type"] != "http.request" or not message.get("more_body", False):
            return received


def _body_of(received: list[Message]) -> bytes:
    return b"".join(message.get("body", b"") for message in received)


def _again(received: list[Message], receive: Receive) -> Receive:
    waiting = iter(received)

    async def next_message() -> Message:
        message = next(waiting, None)
        return await receive() if message is None else message

    return next_message
