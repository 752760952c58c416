"""Worker processes survive tasks that crash, hang or take too much memory."""

from __future__ import annotations

import importlib
import os
import signal
import subprocess
import sys
import textwrap
from contextlib import closing
from pathlib import Path

import psutil
import pytest

import kbkit
from kbkit.runtime.processes import Workers, ending_signals
from kbkit.sources.html.site_extractor import ExtractTask
from tests.waiting import until

TASKS = """
import os, sys, time
from dataclasses import dataclass
from typing import Any

@dataclass
class Call:
    what: str
    value: Any = None
    seconds: float = 60.0

    def perform(self):
        return getattr(self, self.what)()

    def broken(self, reason):
        return ("broken", reason)

    def double(self):
        return self.value * 2

    def pid(self):
        return os.getpid()

    def crash(self):
        os._exit(3)

    def fault(self):
        raise KeyError("a fault")

    def hang(self):
        time.sleep(3600)

    def fill(self):
        return len(bytearray(self.value))

    def chatter(self):
        print("to stdout")
        os.write(1, b"and below Python")
        return "quiet"

    def unpicklable(self):
        return lambda: None

    def path(self):
        return sys.path
"""


@pytest.fixture
def call(tmp_path, monkeypatch):
    """The class of tasks, in a module that workers can import."""
    (tmp_path / "worker_tasks.py").write_text(TASKS)
    monkeypatch.syspath_prepend(str(tmp_path))
    known = os.environ.get("PYTHONPATH", "")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [str(tmp_path), known])))
    yield importlib.import_module("worker_tasks").Call
    sys.modules.pop("worker_tasks")


@pytest.fixture
def workers(call):
    with closing(Workers(1)) as workers:
        yield workers


def do(workers: Workers, task: object) -> object:
    return workers.submit(task).result(timeout=120)


def test_tasks_run_in_other_processes(call):
    with closing(Workers(2)) as workers:
        results = [workers.submit(call("double", n)) for n in range(50)]
        assert [each.result(timeout=120) for each in results] == [2 * n for n in range(50)]
        assert do(workers, call("pid")) != os.getpid()
        assert workers.count == 2


@pytest.mark.parametrize("what", ["crash", "fault", "unpicklable"])
def test_task_that_ends_its_worker_is_the_only_one_lost(workers, call, what):
    before = do(workers, call("pid"))
    assert do(workers, call(what)) == ("broken", "the process that did it ended")
    assert do(workers, call("pid")) != before
    assert do(workers, call("double", 4)) == 8


def test_unpicklable_task_is_the_only_one_lost(workers, call):
    kind, _ = do(workers, call("double", lambda: None))
    assert kind == "broken"
    assert do(workers, call("double", 4)) == 8


def test_task_timeout(workers, call):
    before = do(workers, call("pid"))
    assert do(workers, call("hang", seconds=0.5)) == ("broken", "took longer than 0.5 s")
    assert not psutil.pid_exists(before)
    assert do(workers, call("double", 4)) == 8


def test_killed_worker_loses_one_task(workers, call):
    for _ in range(2):
        process = psutil.Process(do(workers, call("pid")))
        process.kill()
        psutil.wait_procs([process], timeout=120)
        assert do(workers, call("double", 1)) == ("broken", "the process that did it ended")
        assert do(workers, call("double", 4)) == 8


@pytest.mark.skipif(sys.platform != "linux", reason="other systems know no such limit")
def test_memory_is_bounded(call):
    with closing(Workers(1, memory=600_000_000)) as workers:
        assert do(workers, call("fill", 50_000_000)) == 50_000_000
        assert do(workers, call("fill", 900_000_000)) == ("broken", "the process that did it ended")
        assert do(workers, call("double", 4)) == 8


def test_output_of_a_task_is_not_its_result(workers, call):
    assert do(workers, call("chatter")) == "quiet"
    assert do(workers, call("double", "ab")) == "abab"


def test_nothing_is_imported_from_the_working_directory(call, tmp_path, monkeypatch):
    here = tmp_path / "here"
    here.mkdir()
    (here / "struct.py").write_text("raise SystemExit('imported')")
    monkeypatch.chdir(here)
    with closing(Workers(1)) as workers:
        path = do(workers, call("path"))
    assert "" not in path
    assert str(here) not in path
    assert str(Path(kbkit.__file__).parents[1]) in path


def test_close_ends_processes_and_cancels_queued_tasks(call):
    others = psutil.Process().children()  # multiprocessing's resource tracker, say
    workers = Workers(2)
    children = [psutil.Process(do(workers, call("pid")))]
    results = [workers.submit(call("hang", n)) for n in range(20)]
    until(lambda: sum(each.running() for each in results) == 2)
    known = [*others, *children]
    children += [child for child in psutil.Process().children() if child not in known]
    workers.close()
    _, alive = psutil.wait_procs(children, timeout=120)
    assert alive == []
    workers._threads.shutdown(wait=True)
    assert all(each.done() for each in results)
    assert [each.cancelled() for each in results] == [False] * 2 + [True] * 18


def test_cancelled_task_is_skipped(workers, call):
    first = workers.submit(call("hang"))
    until(first.running)
    second, third = workers.submit(call("pid")), workers.submit(call("pid"))
    assert second.cancel()
    for process in list(workers._processes):
        process.kill()
    assert third.result(120)
    assert second.cancelled()


def test_workers_end_when_their_parent_is_killed(call, tmp_path):
    script = tmp_path / "parent.py"
    script.write_text(
        textwrap.dedent("""
        import threading
        from kbkit.runtime.processes import Workers
        from worker_tasks import Call
        idle, busy = Workers(1), Workers(1)
        for workers in (idle, busy):
            print(workers.submit(Call("pid")).result(), flush=True)
        busy.submit(Call("hang"))
        threading.Event().wait()
        """)
    )
    run = subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True)
    assert run.stdout is not None
    children = [psutil.Process(int(run.stdout.readline())) for _ in range(2)]
    assert [child.ppid() for child in children] == [run.pid] * 2
    run.kill()
    run.wait(120)
    run.stdout.close()
    _, alive = psutil.wait_procs(children, timeout=120)
    assert alive == []


def test_module_of_workers_imports_no_tasks():
    code = (
        "import sys, kbkit.runtime.processes; "
        "print([name for name in sys.modules if name.startswith('kbkit.')])"
    )
    known = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert known.stdout.strip() == ("['kbkit.extras', 'kbkit.runtime', 'kbkit.runtime.processes']")


def test_worker_that_dies_costs_one_page(workers):
    results = []
    for _ in range(2):
        (process,) = workers._processes
        os.kill(process.pid, signal.SIGKILL)
        process.wait(120)
        task = ExtractTask("https://x/", b"<h1>T</h1><p>Text.</p>", "", ())
        results += [do(workers, task) for _ in range(2)]
    assert [bool(page.content) for page in results] == [False, True, False, True]
    assert results[0].failed
    assert "process" in results[0].reason


def test_script_without_a_main_guard_runs_once(tmp_path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        textwrap.dedent("""
        from kbkit.sources.html.site_extractor import SiteExtractor
        print("once")
        reader = SiteExtractor(processes=2)
        page = b"<h1>T</h1><p>Some text here.</p>"
        done = 0
        for _ in reader.read((n, f"https://x/{n}", page, "") for n in range(40)):
            assert reader._workers is not None
            done += 1
        print(done)
        """)
    )
    command = [sys.executable, str(script)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert run.stdout.split() == ["once", "40"], run.stderr


def test_ending_signals_leave_out_an_ignored_hangup():
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    try:
        assert ending_signals() == [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]
        signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as nohup has it
        assert ending_signals() == [signal.SIGINT, signal.SIGTERM]
    finally:
        signal.signal(signal.SIGHUP, before)
