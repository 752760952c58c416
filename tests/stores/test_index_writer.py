"""A child process fills Chroma; if it is killed, nothing is missing."""

import json
from contextlib import suppress

import psutil
import pytest

import kbkit

DOCUMENTS, SECTIONS = 30, 110


pytestmark = pytest.mark.local


@pytest.fixture(scope="module")
def lines(tmp_path_factory):
    """Enough chunks to start a child process."""
    path = tmp_path_factory.mktemp("lines") / "many.jsonl"
    with path.open("w") as out:
        for n in range(DOCUMENTS):
            text = "\n\n".join(
                f"## Part {n}-{i}\n\nThis is nr{n}x{i}. {'More words. ' * 20}"
                for i in range(SECTIONS)
            )
            out.write(json.dumps({"uri": f"d:{n}", "title": f"Number {n}", "text": text}) + "\n")
    return kbkit.JsonlSource(path=str(path))


def children():
    """Running index writers; other tests may leave other children."""
    running = []
    for child in psutil.Process().children():
        with suppress(psutil.Error):
            if "kbkit.stores.stores" in " ".join(child.cmdline()):
                running.append(child)
    return running


@pytest.mark.slow
def test_child_process_fills_the_index(lines, workspace):
    kb = workspace.create("many")
    seen = set()
    report = kb.ingest(lines, on_progress=lambda _: seen.update(child.pid for child in children()))
    assert report.chunks_added == DOCUMENTS * SECTIONS
    assert len(seen) == 1
    assert children() == []
    assert kb.info().pending == 0
    assert not workspace._stores.vectors._store._collections
    assert kb.search("nr7x77", mode="dense", limit=1)[0].title == "Number 7"


@pytest.mark.soak
def test_killed_child_loses_nothing(lines, workspace):
    kb = workspace.create("many")
    killed = []

    def kill(_):
        if not killed:
            for child in children():
                child.kill()
                killed.append(child.pid)

    kb.ingest(lines, on_progress=kill)
    assert killed
    assert kb.info().pending == 0
    assert kb.info().chunks == DOCUMENTS * SECTIONS
    store = workspace._stores.vectors._store
    assert store.count(kb.info().collection) == DOCUMENTS * SECTIONS


def test_few_chunks_start_no_child(workspace):
    kb = workspace.create("few")
    kb.add("One", "One sentence.")
    assert children() == []
    assert kb.info().pending == 0
