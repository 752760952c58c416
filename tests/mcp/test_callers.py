"""What callers may see and change, by their scopes and knowledge bases."""

from dataclasses import dataclass

import pytest
from anyio.from_thread import start_blocking_portal
from mcp import Client
from mcp.shared.exceptions import MCPError

import kbkit
from kbkit.mcp.server import server
from tests.mcp.agents import Agent


@dataclass
class Caller:
    """Who calls, as a token says it."""

    scopes: tuple[str, ...] = ("read", "write", "admin")
    kbs: tuple[str, ...] = ()


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
    """Whom the server takes for who calls; tests change it."""
    return Caller()


@pytest.fixture(scope="module")
def agent(workspace, caller):
    made = server(
        lambda: workspace, tools=("all",), allow_write=True, caller=lambda context: caller
    )
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(client := Client(made)),
    ):
        yield Agent(portal, client)


@pytest.fixture
def limited(caller):
    """Somebody who may see one knowledge base."""
    caller.kbs = ("open",)
    yield
    caller.kbs = ()


@pytest.fixture
def reading(caller):
    """Somebody who may only read."""
    caller.scopes = ("read",)
    yield
    caller.scopes = ("read", "write", "admin")


@pytest.mark.usefixtures("limited")
def test_a_caller_of_one_knowledge_base_sees_nothing_of_others(agent):
    uris = [str(resource.uri) for resource in agent.run("list_resources").resources]
    assert uris == ["kbkit://kb/open/llms.txt", "kbkit://kb/open/text:open"]
    for address in (
        "kbkit://kb/secret/llms.txt",
        "kbkit://kb/secret/text:secret",
        "kbkit://kb/files/plans/a.md",
        "skill://set-the-table/SKILL.md",
    ):
        with pytest.raises(MCPError, match="alone"):
            agent.run("read_resource", address)
    text = agent.run("get_prompt", "how_to_use").messages[0].content.text
    for word in ("secret", "plans", "graph_entities", "memory"):
        assert word not in text
    assert "alone" in agent.error("search_kb", query="x", collection_name="secret")
    for tool in ("describe_kb_collection", "drop_kb_collection", "create_kb_collection"):
        assert "alone" in agent.error(tool, collection_name="secret")
    assert "alone" in agent.error("create_kb_collection", collection_name="another")
    assert "alone" in agent.error("delete_kb_documents", collection_name="secret", ids=["x"])
    assert "alone" in agent.error("add_kb_documents", collection_name="secret", documents="x y")
    assert "alone" in agent.error("about", query="secret", kb_name="secret")
    assert "alone" in agent.error("memory", command="view", path="/memories")
    found = agent.values("search_kb", query="what is secret")["results"]
    assert {each["kb"] for each in found} == {"open"}


ADMIN = {"create_kb_collection", "drop_kb_collection"}


@pytest.mark.usefixtures("reading")
def test_a_caller_who_may_only_read_changes_nothing(agent, workspace):
    writing = {
        "create_kb_collection": {"collection_name": "new"},
        "add_kb_documents": {"collection_name": "open", "documents": "x y"},
        "drop_kb_collection": {"collection_name": "open"},
        "delete_kb_documents": {"collection_name": "open", "ids": ["text:open"]},
        "graph_relate": {"source": "open", "relation": "is", "target": "secret"},
        "memory": {"command": "delete", "path": "/memories/plans"},
    }
    assert not writing.keys() & agent.tools().keys()
    for tool, arguments in writing.items():
        scope = "admin" if tool in ADMIN else "write"
        assert f"needs the scope {scope!r}" in agent.error(tool, **arguments)
    assert set(workspace) >= {"open", "secret"}
    assert workspace.files.read("plans/a.md") == "# A plan"


def test_a_caller_who_may_not_read_reads_nothing(agent, caller):
    caller.scopes = ("write",)
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
        caller.scopes = ("read", "write", "admin")


def test_a_caller_who_may_do_all_sees_all(agent):
    uris = [str(resource.uri) for resource in agent.run("list_resources").resources]
    assert "skill://set-the-table/SKILL.md" in uris
    assert "kbkit://kb/secret/text:secret" in uris
