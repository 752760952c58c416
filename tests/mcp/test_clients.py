"""Clients other than the SDK's newest, and the configurations that the guide gives for some."""

import asyncio
import json
import re
import sys
from pathlib import Path

import pytest
from llama_index.tools.mcp import BasicMCPClient, McpToolSpec

from tests.mcp.agents import agent_of, parameters

GUIDE = Path(__file__).parents[2] / "site/mcp.md"
BLOCK = re.compile(r'^=== "([^"]+)"\n(.*?)(?=^===|^\S)', re.DOTALL | re.MULTILINE)
JSON = re.compile(r"```json\n(.*?)```", re.DOTALL)


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
def test_a_client_of_an_older_or_of_the_newest_protocol_calls_a_tool(folder, mode):
    with agent_of(folder, mode=mode) as agent:
        assert len(agent.tools()) == 4
        found = agent.values("search_knowledge_base", query="hollow loaf", kb_name="kitchen")
        assert found["results"][0]["title"] == "Bread"
        assert "nope" in agent.error("search_knowledge_base", query="x", kb_name="nope")


def test_llama_index_calls_a_tool(folder):
    command = parameters(folder)
    client = BasicMCPClient(sys.executable, command.args, command.env)

    async def ask():
        tools = {
            each.metadata.name: each for each in await McpToolSpec(client).to_tool_list_async()
        }
        return await tools["search_knowledge_base"].acall(query="hollow loaf")

    assert "Bake the loaf" in str(asyncio.run(ask()))


def configurations() -> dict[str, dict]:
    found = BLOCK.findall(GUIDE.read_text("utf-8") + "\n## End")
    return {name: json.loads(block) for name, text in found for block in JSON.findall(text)}


def test_the_guide_names_the_usual_clients():
    assert set(configurations()) == {
        "Claude Code", "Claude Desktop", "Cursor", "VS Code", "JupyterLab (Jupyter AI)",
    }  # fmt: skip


def test_each_configuration_of_the_guide_starts_a_server(folder):
    commands = set()
    for given in configurations().values():
        (servers,) = given.values()
        entry = servers[0] if isinstance(servers, list) else servers["kbkit"]
        commands.add((entry["command"], *entry["args"]))
    for command, *arguments in sorted(commands):
        assert [command, *arguments[:3]] == ["kbkit", "--workspace", "/home/me/kb", "mcp"]
        with agent_of(folder, *arguments[3:]) as agent:
            assert agent.values("list_knowledge_bases")["knowledge_bases"]
