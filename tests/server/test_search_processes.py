"""Searches of a server in separate processes."""

import asyncio
import json
import re
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
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
from tests.server.requests import agent
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
    processes = SearchProcesses(workspace, 1)
    processes.start()
    assert not processes.is_ready
    json.loads(processes.answer("search", "brew tea"))  # answered here until they are ready
    until(lambda: processes.is_ready)
    yield processes
    processes.close()


def children() -> list[psutil.Process]:
    """List running search processes; a zombie has no command line."""
    running = [
        each for each in psutil.Process().children() if each.status() != psutil.STATUS_ZOMBIE
    ]
    return [each for each in running if "kbkit.workspace" in each.cmdline()]


def computed(process) -> float:
    """Seconds that a process has computed."""
    return sum(process.cpu_times()[:2])


@contextmanager
def serving(workspace, **settings):
    """Yield the address of a server and its one search process."""
    known = {each.pid for each in children()}
    with running(workspace, ServerSettings(port=0, rate=0, search_processes=1, **settings)) as url:
        (process,) = [each for each in children() if each.pid not in known]
        assert httpx.get(f"{url}/ready", timeout=60).status_code in (200, 503)  # 503: it starts
        until(lambda: httpx.get(f"{url}/ready", timeout=60).status_code == 200)
        yield url, process


def search(url, **body):
    return httpx.post(f"{url}/api/knowledge/search", json=body, timeout=60)


@pytest.mark.slow
def test_search_process_answers_as_this_process(workspace, searches):
    here = SearchProcesses(workspace, 0)
    (process,) = children()
    for number in range(5):  # the model embeds the first queries in the background
        here.answer("search", f"first {number}")
        searches.answer("search", f"first {number}")
    before = computed(process)
    for number in range(20):
        query = f"brew tea for {number}"
        there = json.loads(searches.answer("search", query, kbs=["drinks"], limit=3))
        assert there["hits"] == json.loads(here.answer("search", query, limit=3))["hits"]
    assert computed(process) > before
    context = json.loads(searches.answer("context", "brew coffee", max_tokens=500))
    assert "coffee" in context["text"]


def test_search_process_finds_committed_documents(workspace, searches):
    kb = workspace["drinks"]
    for number in range(5):
        kb.add(f"Punch {number}", f"# Punch\n\nA zanzibar{number} of rum.\n")
        hits = json.loads(searches.answer("search", f"zanzibar{number}", limit=1))["hits"]
        assert f"zanzibar{number}" in hits[0]["text"]


def test_search_process_raises_the_same_errors(workspace, searches):
    with pytest.raises(NotFoundError) as there:
        searches.answer("search", "tea", kbs=["drink"])
    with pytest.raises(NotFoundError) as here:
        workspace.search("tea", kbs=["drink"])
    assert str(there.value) == str(here.value)


@pytest.mark.slow
def test_killed_search_process_is_replaced(searches):
    for _ in range(3):
        (process,) = children()
        process.kill()
        for query in ("brew tea", "brew mate"):
            assert json.loads(searches.answer("search", query, limit=1))["hits"]


SEARCHES = [
    ("search_knowledge_base", {"query": "brew tea for guests", "limit": 2}),
    ("search_knowledge_base", {"query": "mate", "filters": {"source": "M"}, "cursor": "next-0"}),
    ("search_kb", {"query": "coffee", "collection_name": "drinks"}),
    ("get_context", {"query": "how to brew mate", "max_tokens": 900}),
    ("search_knowledge_base", {"query": "tea", "filters": {"version": "9"}}),
    ("search_kb", {"query": "tea", "collection_name": "drink"}),
]


@pytest.mark.soak
def test_agents_are_answered_by_search_processes(workspace):
    def comparable(answers):
        """Answers without the marks, which are new in each."""
        rows = [[each.is_error, each.content[0].text, each.structured_content] for each in answers]
        return re.sub(r"quote-[0-9]{10}", "mark", json.dumps(rows))

    async def ask():
        async with Client(mcp.server(lambda: workspace, tools=tools)) as client:
            return [await client.call_tool(*each) for each in SEARCHES]

    tools = ("core", "collections")
    with serving(workspace, tools=tools) as (url, process):
        before = computed(process)
        with agent(url) as run:
            answers = [run("call_tool", *each) for each in SEARCHES]
        assert computed(process) > before
    assert [each.is_error for each in answers] == [False] * 4 + [True] * 2
    assert comparable(answers) == comparable(asyncio.run(ask()))


@pytest.mark.slow
def test_search_processes_end_with_their_server(workspace):
    with serving(workspace) as (url, process):
        assert search(url, query="brew tea", limit=2).json()["hits"][0]["title"] == "Tea"
        assert search(url, query="brew tea", limit=2, kb="drink").status_code == 404
    psutil.wait_procs([process], timeout=20)
    assert not process.is_running()


@pytest.mark.slow
def test_searches_are_answered_while_all_threads_wait_to_write(workspace):
    def make(url, number):
        return httpx.post(f"{url}/api/files/mkdir", json={"path": f"notes/{number}"}, timeout=120)

    with serving(workspace) as (url, _), ThreadPoolExecutor(45) as clients:
        with stores_of(workspace).locks.hold(FileStore.LOCK, wait=0):
            writing = [clients.submit(make, url, number) for number in range(45)]
            until(lambda: making() >= 40)  # all threads of routes
            assert search(url, query="brew tea", limit=1).json()["hits"]
            assert not any(each.done() for each in writing)
        assert {each.result().status_code for each in writing} == {200}


def making() -> int:
    """Count the threads that make a folder."""
    stacks = [walk_stack(frame) for frame in sys._current_frames().values()]
    return sum(any(each.f_code.co_name == "make_folder" for each, _ in stack) for stack in stacks)


def test_readiness_checks_log_no_errors(workspace, caplog):
    app = application(workspace)
    app.state.closing.set()

    async def ask():
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8765") as peer:
            return await peer.get("/ready")

    answer = asyncio.run(ask())
    assert (answer.status_code, answer.json()["error"]) == (503, "WorkspaceError")
    assert not [record for record in caplog.records if record.levelname == "ERROR"]
