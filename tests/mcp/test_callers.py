"""Permissions of callers by scopes and knowledge bases."""

from types import SimpleNamespace

import pytest
from anyio.from_thread import start_blocking_portal
from mcp import Client
from mcp.shared.exceptions import MCPError

import kbkit
from kbkit.mcp.server import server
from kbkit.models.server import ALL, Caller, Scope
from tests.mcp.agents import Agent


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    with kbkit.open(tmp_path_factory.mktemp("callers") / "ws") as workspace:
        for name in ("open", "secret"):
            workspace.create(name).add(name, f"# {name}\n\nWhat is {name} is `{name}`.")
        workspace.files.write("plans/a.md", "# A plan")
        workspace.entries.create("Set the table", prompt="Forks go left.")
        yield workspace


@pytest.fixture(scope="module")
def caller():
    """Holds the caller that the server sees; tests change it."""
    return SimpleNamespace(now=ALL)


@pytest.fixture(scope="module")
def agent(workspace, caller):
    served = server(
        lambda: workspace, tools=("all",), allow_write=True, caller=lambda _: caller.now
    )
    client = Client(served)
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(client):
        yield Agent(portal, client)


@pytest.fixture
def limited(caller):
    """A caller of one knowledge base."""
    caller.now = Caller("ann", ALL.scopes, ("open",))
    yield
    caller.now = ALL


@pytest.mark.usefixtures("limited")
def test_caller_of_one_knowledge_base_sees_no_other(agent):
    uris = [str(resource.uri) for resource in agent.run("list_resources").resources]
    assert uris == ["kbkit://kb/open/llms.txt", "kbkit://kb/open/text:open"]
    for address in (
        "kbkit://kb/secret/llms.txt",
        "kbkit://kb/secret/text:secret",
        "kbkit://kb/files/plans/a.md",
        "skill://set-the-table/SKILL.md",
    ):
        with pytest.raises(MCPError, match="for open"):
            agent.run("read_resource", address)
    text = agent.run("get_prompt", "how_to_use").messages[0].content.text
    for word in ("secret", "plans", "graph_entities", "memory"):
        assert word not in text
    found = agent.values("search_kb", query="what is secret")["results"]
    assert {each["kb"] for each in found} == {"open"}


def test_caller_without_read_scope_reads_nothing(agent, caller):
    caller.now = Caller("ann", frozenset({Scope.WRITE}))
    try:
        for method, arguments in (
            ("list_resources", ()),
            ("read_resource", ("kbkit://kb/open/llms.txt",)),
            ("list_prompts", ()),
            ("get_prompt", ("how_to_use",)),
        ):
            with pytest.raises(MCPError, match="needs the scope 'read'"):
                agent.run(method, *arguments)
    finally:
        caller.now = ALL
