"""The client of the MCP SDK, and the server that it starts."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from anyio.from_thread import BlockingPortal, start_blocking_portal
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp_types import CallToolResult

from kbkit.embedding.static import count_tokens


class Agent:
    """Calls tools of a server."""

    def __init__(self, portal: BlockingPortal, client: Client) -> None:
        self.portal = portal
        self.client = client

    def run(self, method: str, *arguments: Any) -> Any:
        return self.portal.call(getattr(self.client, method), *arguments)

    def tools(self) -> dict[str, Any]:
        return {tool.name: tool for tool in self.run("list_tools").tools}

    def call(self, name: str, **arguments: Any) -> CallToolResult:
        return self.run("call_tool", name, arguments)

    def values(self, name: str, **arguments: Any) -> dict[str, Any]:
        """Return the values of a call that must succeed within its budget."""
        answer = self.call(name, **arguments)
        assert not answer.is_error, answer.content[0].text
        assert tokens(answer) <= (arguments.get("max_tokens") or 2500)
        return answer.structured_content

    def error(self, name: str, **arguments: Any) -> str:
        """Return the message of a call that must fail, without its marks."""
        answer = self.call(name, **arguments)
        assert answer.is_error
        assert tokens(answer) <= 2500
        (content,) = answer.content
        return unquoted_error(content.text)

    def pages(self, name: str, **arguments: Any) -> Iterator[dict[str, Any]]:
        """Yield the values of each page of an answer."""
        cursor = ""
        while True:
            page = self.values(name, **arguments, cursor=cursor)
            yield page
            if not (cursor := page["next_cursor"]):
                return


def unquoted_error(text: str) -> str:
    """Remove the marks of an error that has some."""
    found = re.fullmatch(r"This failed, as <(quote-\d{10})> says; .*?\n<\1>(.*)</\1>", text)
    return found[2] if found else text


def marks(text: str) -> set[str]:
    return set(re.findall(r"<(quote-\d{10})>", text))


def outside(text: str, mark: str = "") -> str:
    """Return the text outside of its first or the given mark."""
    if not mark:
        first = re.search(r"<(quote-\d{10})>", text)
        mark = first[1] if first else "quote"
    return re.sub(f"<{mark}>.*?</{mark}>", "", text, flags=re.DOTALL)


def unmarked(text: str) -> str:
    return re.sub(r"</?quote-\d{10}>", "", text)


def tokens(answer: CallToolResult) -> int:
    """Count the tokens of the text and the values of an answer."""
    values = answer.structured_content
    text = "" if values is None else json.dumps(values, ensure_ascii=False)
    return sum(count_tokens(part.text) for part in answer.content) + count_tokens(text)


def answers(server: Any, calls: list[tuple[str, Any]], **more: Any) -> list[CallToolResult]:
    """Call tools of a server in this process."""

    async def ask() -> list[CallToolResult]:
        async with Client(server) as client:
            return [await client.call_tool(name, values | more) for name, values in calls]

    return asyncio.run(ask())


def parameters(folder: Path, *options: str) -> StdioServerParameters:
    return StdioServerParameters(
        command=sys.executable,
        args=["-m", "kbkit", "--workspace", str(folder), "mcp", *options],
        env={**os.environ, "KBKIT_IMPROVE": "off"},
    )


@contextmanager
def agent_of(folder: Path, *options: str, mode: str = "auto") -> Iterator[Agent]:
    """An agent with a server of its own."""
    with start_blocking_portal() as portal:
        client = Client(stdio_client(parameters(folder, *options)), mode=mode)
        with portal.wrap_async_context_manager(client):
            yield Agent(portal, client)
