"""Jobs are stored, run once, cancelled, and resumed after a restart."""

import os
import signal
import subprocess
import sys
import threading
from datetime import timedelta

import pytest

import kbkit
from kbkit.errors import ConfigError, NotFoundError
from kbkit.models import Job, JobState, Progress, from_dict
from kbkit.server.jobs import Jobs
from kbkit.server.tasks import TASKS, JobRun, store_uploads, upload_path
from kbkit.stores.catalog import jobs as job_table
from kbkit.workspace import stores_of
from tests.waiting import until

SOON = 120


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    with kbkit.open(tmp_path_factory.mktemp("jobs") / "kb") as opened:
        yield opened


@pytest.fixture
def jobs(workspace):
    created = []

    def create(**tasks):
        created.append(Jobs(workspace, tasks=tasks))
        return created[-1]

    yield create
    for each in created:
        each.close()


def until_stopped(begun):
    def task(run):
        run.on_progress(Progress("store", 1, 3, "a.md"))
        begun.set()
        while not run.stop():
            begun.wait(0.001)
        return {"documents": 1}

    return task


def test_job_runs_and_keeps_its_result(jobs):
    def task(run):
        run.on_progress(Progress("store", 2, 3, "b.md"))
        return {"url": run.arguments["url"], "workspace": type(run.workspace).__name__}

    queue = jobs(read=task)
    started = queue.start("read", {"url": "a"}, owner="ann", kbs=["drinks"])
    assert started.state is JobState.QUEUED
    job = queue.wait(started.id, SOON)
    assert (job.state, job.result) == (JobState.DONE, {"url": "a", "workspace": "Workspace"})
    assert (job.owner, job.kbs, job.attempts) == ("ann", ("drinks",), 1)
    assert job.progress == Progress("store", 2, 3, "b.md")
    assert job.started_at <= job.ended_at
    assert queue.list()[0] == job
    assert from_dict(Job, job.to_dict()) == job


def test_failed_job_keeps_its_problem_without_internals(jobs, caplog):
    def refuse(run):
        raise NotFoundError("no knowledge base 'a'")

    def crash(run):
        raise RuntimeError("/secret/path")

    queue = jobs(refuse=refuse, crash=crash)
    job = queue.wait(queue.start("refuse", {}).id, SOON)
    assert job.state is JobState.FAILED
    assert job.problem.to_dict() == {"error": "NotFoundError", "detail": "no knowledge base 'a'"}
    job = queue.wait(queue.start("crash", {}).id, SOON)
    detail = "the server failed; its log says why"
    assert job.problem.to_dict() == {"error": "ServerError", "detail": detail}
    assert "/secret/path" in caplog.text


def test_running_and_queued_jobs_are_cancelled(jobs):
    queue = jobs(read=until_stopped(threading.Event()))
    first, second, third = (queue.start("read", {}) for _ in range(3))  # two are at work
    until(lambda: queue.get(first.id).progress and queue.get(second.id).progress)
    assert queue.cancel(third.id).state is JobState.CANCELLED
    for started in (first, second):
        queue.cancel(started.id)
        assert queue.wait(started.id, SOON).state is JobState.CANCELLED
    assert queue.get(first.id).result == {"documents": 1}
    assert queue.cancel(first.id).state is JobState.CANCELLED


def test_interrupted_job_is_resumed_by_the_next_server(jobs):
    begun = threading.Event()
    first = jobs(read=until_stopped(begun))
    started = first.start("read", {"url": "a"})
    assert begun.wait(SOON)
    first.close()
    assert first.get(started.id).state is JobState.INTERRUPTED
    second = jobs(read=lambda run: dict(run.arguments))
    second.resume()
    job = second.wait(started.id, SOON)
    assert (job.state, job.result, job.attempts) == (JobState.DONE, {"url": "a"}, 2)


def test_uploads_are_kept_until_their_job_ends(jobs, workspace):
    def fails(run):
        raise ConfigError("no")

    def start(kind):
        name = store_uploads(workspace, [("a.md", b"# A")])
        started = queue.start(kind, {"uploads": name})
        return started.id, upload_path(workspace, name) / "a.md"

    begun = threading.Event()
    queue = jobs(read=until_stopped(begun), fail=fails)
    failed, of_failed = start("fail")
    assert queue.wait(failed, SOON).state is JobState.FAILED
    cancelled, of_cancelled = start("read")
    interrupted, of_interrupted = start("read")
    waiting, of_waiting = start("read")
    assert begun.wait(SOON)
    assert of_cancelled.is_file()
    for each in (waiting, cancelled):
        queue.cancel(each)
        assert queue.wait(each, SOON).state is JobState.CANCELLED
    queue.close()
    assert queue.get(interrupted).state is JobState.INTERRUPTED
    assert of_interrupted.is_file()
    second = jobs(read=lambda _: {})
    second.resume()
    assert second.wait(interrupted, SOON).state is JobState.DONE
    for file in (of_failed, of_cancelled, of_waiting, of_interrupted):
        assert not file.parent.exists()


def test_stopped_import_of_files_is_continued(workspace):
    kb = workspace.create("sent")
    pages = [(f"{number:03}.md", b"# Tea\n\nNumber %d." % number) for number in range(60)]
    arguments = {
        "kb": "sent",
        "strict": True,
        "sources": [{"type": "files", "path": "**"}],
        "uploads": store_uploads(workspace, pages),
    }
    reports = []
    first = TASKS["import"](JobRun(workspace, arguments, reports.append, lambda: bool(reports)))
    assert first.report.interrupted
    assert 0 < len(kb.documents) < len(pages)
    second = TASKS["import"](JobRun(workspace, arguments, reports.append))
    assert not second.report.interrupted
    assert len(kb.documents) == len(pages)


KILLED = """
import os, signal, sys, kbkit
from kbkit.server.jobs import Jobs
def task(run):
    print(run.arguments["id"], flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
workspace = kbkit.open(sys.argv[1])
jobs = Jobs(workspace, tasks={"die": task})
jobs.resume() if len(sys.argv) > 2 else jobs.start("die", {"id": "x"})
jobs.wait(jobs.list()[0].id, 60)
"""


@pytest.mark.slow
def test_job_of_a_killed_server_is_retried_a_few_times(tmp_path):
    for again in ([], ["again"], ["again"]):
        command = [sys.executable, "-c", KILLED, str(tmp_path / "kb"), *again]
        run = subprocess.run(command, capture_output=True, text=True, check=False)
        assert (run.returncode, run.stdout) == (-signal.SIGKILL, "x\n"), run.stderr
    with kbkit.open(tmp_path / "kb") as workspace:
        queue = Jobs(workspace, tasks={"die": lambda *_: os._exit(1)})
        (job,) = queue.list()
        assert (job.state, job.attempts) == (JobState.RUNNING, 3), "as it was when it was killed"
        queue.resume()
        job = queue.wait(job.id, SOON)
        assert job.state is JobState.FAILED
        assert "its server ended 3 times" in job.problem.detail
        queue.close()


def test_two_servers_run_a_job_once(jobs):
    begun, done = threading.Event(), []
    first = jobs(read=until_stopped(begun))
    started = first.start("read", {})
    assert begun.wait(SOON)
    second = jobs(read=lambda *_: done.append(1) or {})
    second.resume()
    second.close()  # waits for what it has begun
    assert not done
    assert first.get(started.id).state is JobState.RUNNING
    jobs(read=until_stopped(begun)).cancel(started.id)
    assert first.wait(started.id, SOON).state is JobState.CANCELLED


def test_old_jobs_are_forgotten(jobs, workspace):
    queue = jobs(read=lambda *_: {})
    job = queue.wait(queue.start("read", {}).id, SOON)
    with stores_of(workspace).database.write() as transaction:
        assert job.id not in job_table.forget(transaction, timedelta(days=1))
        assert job.id in job_table.forget(transaction, timedelta(0))
    with pytest.raises(NotFoundError, match="it never existed, or ended some days ago"):
        queue.get(job.id)
