"""The memory tool on the files of a workspace."""

from __future__ import annotations

from typing import Annotated, Literal

from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import CallToolResult
from pydantic import Field
from typing_extensions import TypedDict

from kbkit.mcp import listings
from kbkit.mcp.tools import Cursor, MaxTokens, Tools, result

_COMMANDS_WITH_CONTENT = ("view", "str_replace")


class MemoryReply(TypedDict):
    """Answer of the tool."""

    note: str
    text: str
    next_cursor: str


def add(tools: Tools) -> None:
    @tools.write(destructive=True, idempotent=False)
    def memory(
        *,
        command: Literal["view", "create", "str_replace", "insert", "delete", "rename"],
        path: Annotated[str, Field(description="Below /memories; not for rename.")] = "",
        view_range: Annotated[
            list[int] | None,
            Field(
                description="view: first and last line; -1 is the end.", min_length=2, max_length=2
            ),
        ] = None,
        file_text: Annotated[str | None, Field(description="create")] = None,
        old_str: Annotated[
            str | None, Field(description="str_replace: text that occurs once.")
        ] = None,
        new_str: Annotated[str | None, Field(description="str_replace")] = None,
        insert_line: Annotated[
            int | None, Field(description="insert: after this line; 0 is the top.")
        ] = None,
        insert_text: Annotated[str | None, Field(description="insert")] = None,
        old_path: Annotated[str | None, Field(description="rename")] = None,
        new_path: Annotated[str | None, Field(description="rename")] = None,
        max_tokens: MaxTokens = 0,
        cursor: Cursor = "",
    ) -> Annotated[CallToolResult, MemoryReply]:
        """Your notes, files below /memories that last: view, create, change, delete, rename."""
        budget = tools.budget(max_tokens, cursor)
        arguments = {
            "command": command,
            "path": path,
            "view_range": view_range,
            "file_text": file_text,
            "old_str": old_str,
            "new_str": new_str,
            "insert_line": insert_line,
            "insert_text": insert_text,
            "old_path": old_path,
            "new_path": new_path,
        }
        values = {name: value for name, value in arguments.items() if value is not None}
        answer = tools.workspace.files.memory_tool().handle(values)
        if answer.is_error:
            raise ToolError(str(answer))
        return result(
            listings.memory_reply(answer, quoted=command in _COMMANDS_WITH_CONTENT, budget=budget)
        )
