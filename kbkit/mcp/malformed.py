"""Answers to what is no message: the SDK passes over it, and who sent it would wait in vain."""

from __future__ import annotations

from typing import Any

from mcp.shared.message import SessionMessage
from mcp_types import INVALID_REQUEST, PARSE_ERROR, ErrorData, JSONRPCError
from pydantic import ValidationError


class Messages:
    """The messages of a client; what is none is answered, without an id since it has none.

    Args:
        read: Gives messages, and an exception for what is none.
        write: Where answers go.
    """

    def __init__(self, read: Any, write: Any) -> None:
        self._read = read
        self._write = write

    def __getattr__(self, name: str) -> Any:
        return getattr(self._read, name)

    async def __aenter__(self) -> Messages:
        await self._read.__aenter__()
        return self

    async def __aexit__(self, *raised: Any) -> bool | None:
        closed: bool | None = await self._read.__aexit__(*raised)
        return closed

    def __aiter__(self) -> Messages:
        return self

    async def __anext__(self) -> SessionMessage:
        while isinstance(item := await self._read.__anext__(), Exception):
            answer = JSONRPCError(jsonrpc="2.0", id=None, error=_fault(item))
            await self._write.send(SessionMessage(answer))
        message: SessionMessage = item
        return message


def _fault(error: Exception) -> ErrorData:
    kinds = (
        {fault["type"] for fault in error.errors(include_url=False, include_context=False)}
        if isinstance(error, ValidationError)
        else set()
    )
    if "json_invalid" in kinds:
        return ErrorData(code=PARSE_ERROR, message="the line is not JSON; send one message a line")
    said = 'the line is no message of JSON-RPC 2.0: {"jsonrpc": "2.0", "id": ..., "method": ...}'
    return ErrorData(code=INVALID_REQUEST, message=said)
