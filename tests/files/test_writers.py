"""Concurrent writers, and writers that are killed."""

import random
import signal
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

import kbkit
from tests.files.conftest import paths
from tests.waiting import WAIT, begin, start

WRITER = """
import sys
from pathlib import Path
from tests.files.plain import plain_files
files = plain_files(Path(sys.argv[1]) / "ws")
me = sys.argv[2]
"""
STORE = """
import sys
from pathlib import Path
from kbkit.files.store import FileStore
from kbkit.stores.backend import FolderLocks
folder = Path(sys.argv[1]) / "ws"
store = FileStore(folder / "files", FolderLocks(folder / "locks"), frozenset({"kb"}))
"""
"""Starts sooner, since it imports less."""
APPENDS = 50


@pytest.mark.soak
def test_writing_threads_wait_for_the_improvement_lock(tmp_path, monkeypatch):
    monkeypatch.setenv("KBKIT_IMPROVE", "wait")
    with kbkit.open(tmp_path / "kb") as ws, ThreadPoolExecutor(20) as threads:
        paths = [f"a/{number}.md" for number in range(40)]
        list(threads.map(lambda path: ws.files.write(path, path), paths))
        assert [ws.files.read(path) for path in paths] == paths
        assert ws["files"].info().summaries_waiting == 0


@pytest.mark.slow
def test_concurrent_appends_lose_nothing(tmp_path, files):
    code = f"""
for number in range({APPENDS}):
    files.append("log.md", f"{{me}} {{number}}")
"""
    processes = [start(WRITER + WAIT + code, tmp_path, name) for name in "abcd"]
    begin(*processes)
    assert [process.wait(120) for process in processes] == [0] * 4
    lines = files.read("log.md").splitlines()
    assert sorted(lines) == sorted(f"{me} {n}" for me in "abcd" for n in range(APPENDS))
    for me in "abcd":
        own = [int(line.split()[1]) for line in lines if line.startswith(me)]
        assert own == list(range(APPENDS))


@pytest.mark.slow
def test_concurrent_writes_never_mix(tmp_path, files):
    code = """
text = me * 300_000
for number in range(60):
    files.write("same.md", text)
"""
    files.write("same.md", "a" * 300_000)
    processes = [start(WRITER + WAIT + code, tmp_path, name) for name in "ab"]
    begin(*processes)
    seen = set()
    while any(process.poll() is None for process in processes):
        text = files.read("same.md")
        seen.add((len(text), text[0], *set(text)))
    assert [process.wait(120) for process in processes] == [0, 0]
    assert seen <= {(300_000, "a", "a"), (300_000, "b", "b")}
    assert [each.name for each in files.path.iterdir()] == ["same.md"]


@pytest.mark.slow
def test_one_of_concurrent_writes_with_the_same_version_wins(tmp_path, files):
    files.write("count.md", "0")
    code = """
from kbkit.errors import VersionConflictError
done = 0
while done < 25:
    seen = files.info("count.md")
    number = int(files.read("count.md"))
    try:
        files.write("count.md", str(number + 1), if_match=seen.version)
        done += 1
    except VersionConflictError:
        pass
"""
    processes = [start(WRITER + WAIT + code, tmp_path, name) for name in "abc"]
    begin(*processes)
    assert [process.wait(120) for process in processes] == [0] * 3
    assert files.read("count.md") == "75"


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
def test_kills_during_writes_leave_whole_files(tmp_path, files):
    """Reported writes are there; others are there as a whole or not at all."""
    code = """
first = int(sys.argv[3])
for number in range(first, min(first + 30, 200)):
    text = f"{number}\\n" + f"line {number}\\n" * 20_000
    store.write(f"notes/{number % 7}.md", text.encode())
    print(number, flush=True)
    if number % 5 == 0:
        store.delete(f"notes/{number % 7}.md", lambda path: {})
        store.undelete(f"notes/{number % 7}.md")
sys.stdin.readline()  # a fast machine is killed as often as a slow one
"""
    rng = random.Random(17)
    done, kills = -1, 0
    while done < 199:
        process = start(STORE + WAIT + code, tmp_path, "a", done + 1)
        begin(process)
        time.sleep(rng.uniform(0.0, 0.25))  # at any instant
        process.send_signal(signal.SIGKILL)
        reported = process.stdout.read().split()
        process.wait()
        kills += 1
        done = max([done, *map(int, reported)])
        for info in files.list("notes") if (files.path / "notes").exists() else ():
            number, *rest = files.read(info.path).splitlines()
            assert rest == [f"line {number}"] * 20_000
            assert int(number) <= done + 1
        for number in range(max(0, done - 6), done + 1):
            path = f"notes/{number % 7}.md"
            if path not in paths(files.list("notes")):  # killed between delete and undelete
                assert files.undelete(path).path == path
            assert int(files.read(path).partition("\n")[0]) >= number
    assert kills > 5
    files._store.sweep()  # removes remains of killed writes
    left = {each.name for each in (files.path / "notes").iterdir()}
    assert left == {f"{number}.md" for number in range(7)}


WORKSPACE = """
import os, sys
os.environ["KBKIT_IMPROVE"] = "off"
import kbkit
workspace = kbkit.open(sys.argv[1] + "/ws")
files = workspace.files
me = sys.argv[2]
"""


@pytest.mark.soak
def test_documents_equal_files_after_a_killed_writer(tmp_path):
    code = """
for number in range(int(sys.argv[3])):
    files.append("log.md", f"{me} wrote word{me}{number}")
    files.write(f"of-{me}.md", f"# Of {me}\\n\\nnumber{me}{number}\\n")
    print(number, flush=True)
"""
    with kbkit.open(tmp_path / "ws") as workspace:
        workspace.files.write("log.md", "begun")  # creates the knowledge base
    processes = [
        start(WORKSPACE + WAIT + code, tmp_path, me, count)
        for me, count in (("a", 6), ("b", 6), ("killed", 1_000))
    ]
    begin(*processes)
    last = processes[-1]
    assert last.stdout.readline() == "0\n"
    time.sleep(random.Random(5).uniform(0.0, 0.5))  # at any instant
    last.send_signal(signal.SIGKILL)
    last.wait()
    assert [process.wait(240) for process in processes[:2]] == [0, 0]
    with kbkit.open(tmp_path / "ws") as workspace:
        kb, files = workspace["files"], workspace.files
        assert not files.sync()
        lines = files.read("log.md").splitlines()
        for me in "ab":
            own = [line for line in lines if line.startswith(f"{me} ")]
            assert own == [f"{me} wrote word{me}{number}" for number in range(6)]
        assert "killed wrote wordkilled0" in lines
        assert {document.uri: document.content.rstrip() for document in kb.documents} == {
            info.path: files.read(info.path).rstrip() for info in files.list()
        }
        for word, path in (("wordb5", "log.md"), ("numbera5", "of-a.md")):
            assert [hit.uri for hit in kb.search(word, mode="lexical")] == [path]
        assert not kb.search("numbera4", mode="lexical").hits
