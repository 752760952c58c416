"""Searches of a server in processes of their own: the same answers, whatever becomes of those."""

from __future__ import annotations

import json

import httpx
import psutil
import pytest

import kbkit
from kbkit.errors import NotFoundError
from kbkit.search_processes import SearchProcesses
from kbkit.server import ServerSettings, running


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
    assert made._ready.wait(120)
    yield made
    made.close()


def children() -> list[psutil.Process]:
    return [each for each in psutil.Process().children() if "kbkit.workspace" in each.cmdline()]


def of_process(searches) -> float:
    """Seconds that its process has computed."""
    return sum(sum(each.cpu_times()[:2]) for each in children())


def test_another_process_answers_the_same(workspace, searches):
    here = SearchProcesses(workspace, 0)
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


def test_a_process_that_is_killed_costs_nothing(searches):
    for _ in range(3):
        (process,) = children()
        process.kill()
        found = json.loads(searches.answer("search", "brew tea", limit=1))
        assert found["hits"]
        assert json.loads(searches.answer("search", "brew mate", limit=1))["hits"]


def test_a_server_searches_in_processes_that_end_with_it(workspace):
    known = {each.pid for each in children()}
    with running(workspace, ServerSettings(port=0, rate=0, search_processes=1)) as url:
        (process,) = [each for each in children() if each.pid not in known]
        body = {"query": "brew tea", "limit": 2}
        found = httpx.post(f"{url}/api/knowledge/search", json=body, timeout=60).json()
        assert found["hits"][0]["title"] == "Tea"
        refused = httpx.post(
            f"{url}/api/knowledge/search", json={**body, "kb": "drink"}, timeout=60
        )
        assert refused.status_code == 404
    psutil.wait_procs([process], timeout=20)
    assert not process.is_running()
