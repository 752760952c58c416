"""Other clients, and the configurations of the guide."""

import asyncio
import json
import re
import sys
import tomllib
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from llama_index.tools.mcp import BasicMCPClient, McpToolSpec

from tests.mcp.agents import agent_of, parameters

GUIDE = Path(__file__).parents[2] / "site/mcp.md"
BLOCK = re.compile(r"^\*\*([^*]+)\*\*.*?^```(json|toml)\n(.*?)```", re.DOTALL | re.MULTILINE)
READERS = {"json": json.loads, "toml": tomllib.loads}


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
def test_protocol_versions(folder, mode):
    with agent_of(folder, mode=mode) as agent:
        assert len(agent.tools()) == 4
        found = agent.values("search_knowledge_base", query="hollow loaf", kb_name="kitchen")
        assert ">Bread<" in found["results"][0]["title"]
        assert "nope" in agent.error("search_knowledge_base", query="x", kb_name="nope")


class OneServer(BasicMCPClient):
    """Uses one server; llama-index's own client starts one for each call."""

    @asynccontextmanager
    async def opened(self):
        async with super()._run_session() as self.session:
            yield

    @asynccontextmanager
    async def _run_session(self):
        yield self.session


@pytest.mark.slow
def test_llama_index_calls_each_tool_that_reads(folder):
    command, bread = parameters(folder), "https://kitchen.example/bread"
    calls = {
        "list_knowledge_bases": ({}, ["kitchen", "garden"]),
        "search_knowledge_base": ({"query": "hollow loaf"}, [f"source: {bread}#oven", "Bake the"]),
        "get_document": ({"document_name": bread, "kb_name": "kitchen"}, ["Mix flour", "Bake the"]),
        "get_context": ({"query": "hollow loaf"}, [f"source: {bread}#oven", "Bake the loaf"]),
    }

    async def ask():
        client = OneServer(sys.executable, command.args, command.env)
        async with client.opened():
            tools = await McpToolSpec(client).to_tool_list_async()
            return {
                tool.metadata.name: str(await tool.acall(**calls[tool.metadata.name][0]))
                for tool in tools
            }

    answers = asyncio.run(ask())
    assert answers.keys() == calls.keys()
    for name, (_, expected) in calls.items():
        assert [text for text in expected if text not in answers[name]] == [], name


def configurations() -> dict[str, dict]:
    return {
        name: READERS[kind](block)
        for names, kind, block in BLOCK.findall(GUIDE.read_text("utf-8"))
        for name in names.split(", ")
    }


def test_guide_names_the_usual_clients():
    names = (
        "Claude Code, Claude Desktop, Cursor, VS Code, Codex, Gemini CLI, JupyterLab (Jupyter AI)"
    )
    assert set(configurations()) == set(names.split(", "))


@pytest.mark.slow
def test_configurations_of_the_guide_start_a_server(folder):
    commands = set()
    for configuration in configurations().values():
        (servers,) = configuration.values()
        entry = servers[0] if isinstance(servers, list) else servers["kbkit"]
        commands.add((entry["command"], *entry["args"]))
    for command, *arguments in sorted(commands):
        assert [command, *arguments[:3]] == ["kbkit", "--workspace", "/home/me/kb", "mcp"]
        with agent_of(folder, *arguments[3:]) as agent:
            assert agent.values("list_knowledge_bases")["knowledge_bases"]
