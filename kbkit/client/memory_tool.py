"""The memory tool on files of a server that are awaited."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from kbkit.files.memory_tool import MemoryAnswer, MemoryTool


class AsyncMemoryTool:
    """Handles commands of the memory tool, and is awaited; see `MemoryTool` of `kbkit.files`.

    Attributes:
        name: What the tool is called.
        description: What it does, for tools that are declared by a schema.
        definition: How the Anthropic API names it.
        schema: The JSON schema of its arguments.
    """

    def __init__(self, files: Any, folder: str = "") -> None:
        """Make it.

        Args:
            files: Whose calls are awaited.
            folder: What ``/memories`` stands for among them.
        """
        self._files = files
        self._folder = folder
        tool = MemoryTool(files, folder)
        self.name, self.description = tool.name, tool.description
        self.definition, self.schema = tool.definition, tool.schema

    async def handle(self, command: Mapping[str, Any] | str | Any) -> MemoryAnswer:
        """What a command is answered with; the loop goes on meanwhile.

        Args:
            command: As `MemoryTool.handle` takes it.
        """
        files = _Waiting(self._files, asyncio.get_running_loop())
        tool = MemoryTool(files, self._folder)
        return await asyncio.to_thread(tool.handle, command)


class _Waiting:
    """Calls of another thread that wait for what a loop awaits."""

    def __init__(self, files: Any, loop: asyncio.AbstractEventLoop) -> None:
        self._files = files
        self._loop = loop

    def __getattr__(self, name: str) -> Callable[..., Any]:
        call = getattr(self._files, name)

        def wait(*args: Any, **kwargs: Any) -> Any:
            asked = asyncio.run_coroutine_threadsafe(call(*args, **kwargs), self._loop)
            return asked.result()

        return wait
