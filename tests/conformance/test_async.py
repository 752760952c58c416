"""Asynchronous calls answer as blocking ones do."""

from __future__ import annotations

import asyncio

import pytest

from kbkit import errors
from kbkit.client import AsyncWorkspace


def test_files_entries_and_graph_can_be_awaited(workspace, url):
    async def main() -> None:
        async with AsyncWorkspace(url) as later:
            paths = [f"async/{number}.md" for number in range(20)]
            await asyncio.gather(*(later.files.write(path, path) for path in paths))
            found = await asyncio.gather(*(later.files.read(path) for path in paths))
            assert found == paths
            assert await later.files.roots() == workspace.files.roots()
            entry = await later.entries.create("Awaited", tags=["a"])
            assert await later.entries.list(limit=None) == workspace.entries.list(limit=None)
            assert (await later.entries.rate(entry.slug, 4)).rating.count == 1
            entity = await later.graph.create("Awaited thing")
            assert (await later.graph.update("Awaited thing", description="x")).id == entity.id
            assert await later.subjects() == workspace.subjects()
            tool = later.files.memory_tool(folder="async")
            assert tool.schema["type"] == "object"
            call = {"command": "create", "path": "/memories/note.md", "file_text": "Remember."}
            assert "note.md" in str(await tool.handle(call))
            assert workspace.files.read("async/note.md").strip() == "Remember."
            assert await later.files.revision() == workspace.files.revision()
            with pytest.raises(errors.MissingPathError):
                await later.files.read("none")
            with pytest.raises(errors.NotFoundError):
                await later.graph.delete("none")

    asyncio.run(main())
