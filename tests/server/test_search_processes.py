"""Searches of a server in processes of their own: the same answers, whatever becomes of those."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from concurrent.futures import ThreadPoolExecutor
from traceback import walk_stack

import httpx
import psutil
import pytest
from mcp import Client

import kbkit
from kbkit.errors import NotFoundError
from kbkit.files.store import FileStore
from kbkit.mcp import server as mcp
from kbkit.server import ServerSettings, running
from kbkit.server.app import application
from kbkit.workspace import stores_of
from kbkit.workspace.processes import SearchProcesses
from tests.server.test_mcp import agent
from tests.waiting import until


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    with kbkit.open(tmp_path_factory.mktemp("searches") / "kb") as opened:
        kb = opened.create("drinks")
        for name in ("Tea", "Coffee", "Mate"):
            kb.add(name, f"# {name}\n\nHow to brew {name.lower()} for guests.\n", source=name)
        yield opened


@pytest.fixture(scope="module")
def searches(workspace):
    made = SearchProcesses(workspace, 1)
    made.start()
    assert not made.is_ready
    json.loads(made.answer("search", "brew tea"))  # waits for the processes, or is made here
    until(lambda: made.is_ready)
    yield made
    made.close()


def children() -> list[psutil.Process]:
    """Its processes that run; one that ended and was not waited for yet has no command line."""
    running = [
        each for each in psutil.Process().children() if each.status() != psutil.STATUS_ZOMBIE
    ]
    return [each for each in running if "kbkit.workspace" in each.cmdline()]


def of_process(searches) -> float:
    """Seconds that its process has computed."""
    return sum(sum(each.cpu_times()[:2]) for each in children())


@pytest.mark.slow
def test_another_process_answers_the_same(workspace, searches):
    here = SearchProcesses(workspace, 0)
    for number in range(5):  # behind the first questions the model embeds them, here as there
        here.answer("search", f"first {number}")
        searches.answer("search", f"first {number}")
    before = of_process(searches)
    for number in range(20):
        query = f"brew tea for {number}"
        there = json.loads(searches.answer("search", query, kbs=["drinks"], limit=3))
        assert there["hits"] == json.loads(here.answer("search", query, limit=3))["hits"]
    assert of_process(searches) > before
    context = json.loads(searches.answer("context", "brew coffee", max_tokens=500))
    assert "coffee" in context["text"]


def test_what_was_committed_is_found_by_the_next_search(workspace, searches):
    kb = workspace["drinks"]
    for number in range(5):
        kb.add(f"Punch {number}", f"# Punch\n\nA zanzibar{number} of rum.\n")
        hits = json.loads(searches.answer("search", f"zanzibar{number}", limit=1))["hits"]
        assert f"zanzibar{number}" in hits[0]["text"]


def test_errors_are_those_of_python(workspace, searches):
    with pytest.raises(NotFoundError) as there:
        searches.answer("search", "tea", kbs=["drink"])
    with pytest.raises(NotFoundError) as here:
        workspace.search("tea", kbs=["drink"])
    assert str(there.value) == str(here.value)


@pytest.mark.slow
def test_a_process_that_is_killed_costs_nothing(searches):
    for _ in range(3):
        (process,) = children()
        process.kill()
        found = json.loads(searches.answer("search", "brew tea", limit=1))
        assert found["hits"]
        assert json.loads(searches.answer("search", "brew mate", limit=1))["hits"]


SEARCHES = [
    ("search_knowledge_base", {"query": "brew tea for guests", "limit": 2}),
    ("search_knowledge_base", {"query": "mate", "filters": {"source": "M"}, "cursor": "next-0"}),
    ("search_kb", {"query": "coffee", "collection_name": "drinks"}),
    ("get_context", {"query": "how to brew mate", "max_tokens": 900}),
    ("search_knowledge_base", {"query": "tea", "filters": {"version": "9"}}),
    ("search_kb", {"query": "tea", "collection_name": "drink"}),
]


@pytest.mark.soak
def test_agents_are_answered_by_the_same_processes(workspace):
    def told(answers):
        """Answers without the marks, which are new in each."""
        told = [[each.is_error, each.content[0].text, each.structured_content] for each in answers]
        return re.sub(r"quote-[0-9]{10}", "mark", json.dumps(told))

    async def ask():
        async with Client(mcp.server(lambda: workspace, tools=tools)) as client:
            return [await client.call_tool(*each) for each in SEARCHES]

    tools = ("core", "collections")
    known = {each.pid for each in children()}
    with running(workspace, ServerSettings(port=0, rate=0, tools=tools, search_processes=1)) as url:
        (process,) = [each for each in children() if each.pid not in known]
        until(lambda: httpx.get(f"{url}/ready", timeout=60).status_code == 200)
        before = sum(process.cpu_times()[:2])
        with agent(url) as run:
            there = [run("call_tool", *each) for each in SEARCHES]
        assert sum(process.cpu_times()[:2]) > before
    assert [each.is_error for each in there] == [False] * 4 + [True] * 2
    assert told(there) == told(asyncio.run(ask()))


@pytest.mark.slow
def test_a_server_searches_in_processes_that_end_with_it(workspace):
    known = {each.pid for each in children()}
    with running(workspace, ServerSettings(port=0, rate=0, search_processes=1)) as url:
        (process,) = [each for each in children() if each.pid not in known]
        answered = httpx.get(f"{url}/ready", timeout=60)
        assert answered.status_code in (200, 503)  # 503: "being started"
        until(lambda: httpx.get(f"{url}/ready", timeout=60).status_code == 200)
        body = {"query": "brew tea", "limit": 2}
        found = httpx.post(f"{url}/api/knowledge/search", json=body, timeout=60).json()
        assert found["hits"][0]["title"] == "Tea"
        refused = httpx.post(
            f"{url}/api/knowledge/search", json={**body, "kb": "drink"}, timeout=60
        )
        assert refused.status_code == 404
    psutil.wait_procs([process], timeout=20)
    assert not process.is_running()


@pytest.mark.slow
def test_searches_are_answered_while_all_threads_wait_to_write(workspace):
    def make(url, number):
        return httpx.post(f"{url}/api/files/mkdir", json={"path": f"notes/{number}"}, timeout=120)

    locks = stores_of(workspace).locks
    with (
        running(workspace, ServerSettings(port=0, rate=0, search_processes=1)) as url,
        ThreadPoolExecutor(45) as clients,
    ):
        until(lambda: httpx.get(f"{url}/ready", timeout=60).status_code == 200)
        with locks.hold(FileStore.LOCK, wait=0):
            writing = [clients.submit(make, url, number) for number in range(45)]
            until(lambda: making() >= 40)  # all that there are for routes
            body = {"query": "brew tea", "limit": 1}
            found = httpx.post(f"{url}/api/knowledge/search", json=body, timeout=60).json()
            assert found["hits"]
            assert not any(each.done() for each in writing)
        assert {each.result().status_code for each in writing} == {200}


def making() -> int:
    """How many threads are at making a folder."""
    stacks = [walk_stack(frame) for frame in sys._current_frames().values()]
    return sum(any(each.f_code.co_name == "make_folder" for each, _ in stack) for stack in stacks)


def test_not_being_ready_is_no_line_of_the_log(workspace, caplog):
    app = application(workspace)
    app.state.closing.set()

    async def ask():
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8765") as peer:
            return await peer.get("/ready")

    answer = asyncio.run(ask())
    assert (answer.status_code, answer.json()["error"]) == (503, "WorkspaceError")
    assert not [record for record in caplog.records if record.levelname == "ERROR"]
