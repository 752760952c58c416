"""Write the manifest for `kbkit.mcp.early`."""

from __future__ import annotations

import json
import queue
import threading
from collections.abc import Sequence
from typing import Any

import anyio
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS

from kbkit.mcp.early import text_of, text_to
from kbkit.mcp.options import SET_NAMES
from kbkit.mcp.server import WorkspaceServer, server
from kbkit.workspace import Workspace

_CLIENT = {"name": "kbkit", "version": "1"}
_META = "io.modelcontextprotocol/"
ENVELOPE = {
    f"{_META}protocolVersion": MODERN_PROTOCOL_VERSIONS[-1],
    f"{_META}clientInfo": _CLIENT,
    f"{_META}clientCapabilities": {},
}
"""Metadata of requests without a handshake."""


def manifest() -> str:
    """Return the text of ``manifest.json``: the server's first answers to a client.

    The version of kbkit is left out, and the version of the protocol that a client asks for.
    """
    handshake = {
        "protocolVersion": HANDSHAKE_PROTOCOL_VERSIONS[-1],
        "capabilities": {},
        "clientInfo": _CLIENT,
    }
    tools = {
        name: answers(_server([name]), [("initialize", handshake), ("tools/list", None)])[1][
            "tools"
        ]
        for name in SET_NAMES
    }
    modern = [("server/discover", {"_meta": ENVELOPE}), ("tools/list", {"_meta": ENVELOPE})]
    discovered, listed = answers(_server(["core"]), modern)
    (initialized,) = answers(_server(["core"]), [("initialize", handshake)])
    initialized["protocolVersion"] = ""
    listed["tools"] = []
    initialized["serverInfo"]["version"] = ""
    for answer in (discovered, listed):
        answer["_meta"][f"{_META}serverInfo"]["version"] = ""
    values = {
        "versions": list(HANDSHAKE_PROTOCOL_VERSIONS),
        "modern": list(MODERN_PROTOCOL_VERSIONS),
        "initialize": initialized,
        "discover": discovered,
        "list": listed,
        "tools": tools,
    }
    return json.dumps(values, indent=1, ensure_ascii=False) + "\n"


def answers(
    made: WorkspaceServer, requests: Sequence[tuple[str, dict[str, Any] | None]]
) -> list[dict[str, Any]]:
    """Return a server's answers to requests, in order."""
    lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    answered: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    thread = threading.Thread(
        target=anyio.run, args=(made.run_on, text_of(lines), text_to(answered.put))
    )
    thread.start()
    results = []
    for number, (method, params) in enumerate(requests):
        message: dict[str, Any] = {"jsonrpc": "2.0", "id": number, "method": method}
        lines.put(
            json.dumps(message | ({} if params is None else {"params": params})).encode() + b"\n"
        )
        results.append(json.loads(answered.get())["result"])
    lines.put(b"")
    thread.join()
    return results


def _server(sets: list[str]) -> WorkspaceServer:
    return server(Workspace, tools=sets, allow_write=True)
