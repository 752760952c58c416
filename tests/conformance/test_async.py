"""What is awaited says the same as what is waited for."""

from __future__ import annotations

import asyncio

import pytest

from kbkit import errors
from kbkit.client import AsyncWorkspace


def test_one_program_awaits_many_answers_at_once(workspace):
    if not hasattr(workspace, "url"):
        pytest.skip("a folder is not awaited")

    async def main() -> None:
        async with AsyncWorkspace(workspace.url) as later:
            paths = [f"async/{number}.md" for number in range(20)]
            await asyncio.gather(*(later.files.write(path, path) for path in paths))
            found = await asyncio.gather(*(later.files.read(path) for path in paths))
            assert found == paths
            assert await later.files.roots() == workspace.files.roots()
            made = await later.entries.create("Awaited", tags=["a"])
            assert await later.entries.list(limit=None) == workspace.entries.list(limit=None)
            assert (await later.entries.rate(made.slug, 4)).rating.count == 1
            entity = await later.graph.create("Awaited thing")
            assert (await later.graph.update("Awaited thing", description="x")).id == entity.id
            assert await later.subjects() == workspace.subjects()
            tool = later.files.memory_tool(folder="async")
            assert tool.schema["type"] == "object"
            made = {"command": "create", "path": "/memories/note.md", "file_text": "Remember."}
            assert "note.md" in str(await tool.handle(made))
            assert workspace.files.read("async/note.md").strip() == "Remember."
            assert await later.files.revision() == workspace.files.revision()
            with pytest.raises(errors.MissingPathError):
                await later.files.read("none")
            with pytest.raises(errors.NotFoundError):
                await later.graph.delete("none")

    asyncio.run(main())
