"""Jobs: kept before they are promised, done once, ended cleanly, taken up after a restart."""

import os
import signal
import subprocess
import sys
import threading
from datetime import timedelta

import pytest

import kbkit
from kbkit.errors import ConfigError, NotFoundError
from kbkit.models import JobState, Progress, from_dict
from kbkit.models.jobs import Job
from kbkit.server.jobs import Jobs
from kbkit.server.tasks import TASKS, JobRun, store_uploads, uploaded
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
    made = []

    def make(**tasks):
        made.append(Jobs(workspace, tasks=tasks))
        return made[-1]

    yield make
    for each in made:
        each.close()


def until_stopped(begun):
    def task(run):
        run.on_progress(Progress("store", 1, 3, "a.md"))
        begun.set()
        while not run.stop():
            begun.wait(0.001)
        return {"documents": 1}

    return task


def test_a_job_comes_to_its_end_and_says_what_came_of_it(jobs):
    def task(run):
        run.on_progress(Progress("store", 2, 3, "b.md"))
        return {"url": run.arguments["url"], "workspace": type(run.workspace).__name__}

    made = jobs(read=task)
    asked = made.start("read", {"url": "a"}, owner="ann", kbs=["drinks"])
    assert asked.state is JobState.QUEUED
    job = made.wait(asked.id, SOON)
    assert (job.state, job.result) == (JobState.DONE, {"url": "a", "workspace": "Workspace"})
    assert (job.owner, job.kbs, job.attempts) == ("ann", ("drinks",), 1)
    assert job.progress.to_dict() == {
        "stage": "store",
        "done": 2,
        "total": 3,
        "message": "b.md",
        "so_far": None,
    }
    assert job.started_at <= job.ended_at
    assert made.list()[0] == job
    assert from_dict(Job, job.to_dict()) == job


def test_a_job_that_fails_says_why_and_nothing_of_the_servers_own(jobs, caplog):
    def refuse(run):
        raise NotFoundError("no knowledge base 'a'")

    def crash(run):
        raise RuntimeError("/secret/path")

    made = jobs(refuse=refuse, crash=crash)
    job = made.wait(made.start("refuse", {}).id, SOON)
    assert job.state is JobState.FAILED
    assert job.problem.to_dict() == {"error": "NotFoundError", "detail": "no knowledge base 'a'"}
    job = made.wait(made.start("crash", {}).id, SOON)
    assert job.problem.to_dict() == {
        "error": "ServerError",
        "detail": "the server failed; its log says why",
    }
    assert "/secret/path" in caplog.text


def test_a_job_is_cancelled_whether_it_is_at_work_or_waits(jobs):
    made = jobs(read=until_stopped(threading.Event()))
    first, second, third = (made.start("read", {}) for _ in range(3))  # two are at work
    until(lambda: made.get(first.id).progress and made.get(second.id).progress)
    assert made.cancel(third.id).state is JobState.CANCELLED
    for asked in (first, second):
        made.cancel(asked.id)
        assert made.wait(asked.id, SOON).state is JobState.CANCELLED
    assert made.get(first.id).result == {"documents": 1}, "what it did is told"
    assert made.cancel(first.id).state is JobState.CANCELLED, "again changes nothing"


def test_what_is_at_work_when_the_server_ends_is_taken_up_by_the_next(jobs):
    begun = threading.Event()
    first = jobs(read=until_stopped(begun))
    asked = first.start("read", {"url": "a"})
    assert begun.wait(SOON)
    first.close()
    assert first.get(asked.id).state is JobState.INTERRUPTED
    second = jobs(read=lambda run: dict(run.arguments))
    second.resume()
    job = second.wait(asked.id, SOON)
    assert (job.state, job.result, job.attempts) == (JobState.DONE, {"url": "a"}, 2)


def test_files_that_came_with_a_request_stay_until_its_job_has_ended(jobs, workspace):
    def fails(run):
        raise ConfigError("no")

    def sent(kind):
        name = store_uploads(workspace, [("a.md", b"# A")])
        asked = made.start(kind, {"uploads": name})
        return asked.id, uploaded(workspace, name) / "a.md"

    begun = threading.Event()
    made = jobs(read=until_stopped(begun), fail=fails)
    failed, of_failed = sent("fail")
    assert made.wait(failed, SOON).state is JobState.FAILED
    cancelled, of_cancelled = sent("read")
    interrupted, of_interrupted = sent("read")
    waiting, of_waiting = sent("read")
    assert begun.wait(SOON)
    assert of_cancelled.is_file()
    for each in (waiting, cancelled):
        made.cancel(each)
        assert made.wait(each, SOON).state is JobState.CANCELLED
    made.close()
    assert made.get(interrupted).state is JobState.INTERRUPTED
    assert of_interrupted.is_file()
    second = jobs(read=lambda _: {})
    second.resume()
    assert second.wait(interrupted, SOON).state is JobState.DONE
    for file in (of_failed, of_cancelled, of_waiting, of_interrupted):
        assert not file.parent.exists()


def test_an_import_of_files_that_was_stopped_is_taken_up_where_it_was(workspace):
    kb = workspace.create("sent")
    pages = [(f"{number:03}.md", b"# Tea\n\nNumber %d." % number) for number in range(60)]
    arguments = {
        "kb": "sent",
        "strict": True,
        "sources": [{"type": "files", "path": "**"}],
        "uploads": store_uploads(workspace, pages),
    }
    told = []
    first = TASKS["import"](JobRun(workspace, arguments, told.append, lambda: bool(told)))
    assert first.report.interrupted
    assert 0 < len(kb.documents) < len(pages)
    second = TASKS["import"](JobRun(workspace, arguments, told.append))
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
def test_a_job_whose_server_is_killed_is_taken_up_but_not_for_ever(tmp_path):
    for again in ([], ["again"], ["again"]):
        run = subprocess.run(
            [sys.executable, "-c", KILLED, str(tmp_path / "kb"), *again],
            capture_output=True,
            text=True,
            check=False,
        )
        assert (run.returncode, run.stdout) == (-signal.SIGKILL, "x\n"), run.stderr
    with kbkit.open(tmp_path / "kb") as workspace:
        made = Jobs(workspace, tasks={"die": lambda *_: os._exit(1)})
        (job,) = made.list()
        assert (job.state, job.attempts) == (JobState.RUNNING, 3), "as it was when it was killed"
        made.resume()
        job = made.wait(job.id, SOON)
        assert job.state is JobState.FAILED
        assert "its server ended 3 times" in job.problem.detail
        made.close()


def test_two_servers_of_one_workspace_do_a_job_once(jobs):
    begun, done = threading.Event(), []
    first = jobs(read=until_stopped(begun))
    asked = first.start("read", {})
    assert begun.wait(SOON)
    second = jobs(read=lambda *_: done.append(1) or {})
    second.resume()
    second.close()  # waits for what it has begun
    assert not done
    assert first.get(asked.id).state is JobState.RUNNING
    # and it is cancelled by either
    other = jobs(read=until_stopped(begun))
    other.cancel(asked.id)
    assert first.wait(asked.id, SOON).state is JobState.CANCELLED


def test_jobs_of_long_ago_are_forgotten(jobs, workspace):
    made = jobs(read=lambda *_: {})
    job = made.wait(made.start("read", {}).id, SOON)
    with stores_of(workspace).database.write() as transaction:
        assert job.id not in job_table.forget(transaction, timedelta(days=1))
        assert job.id in job_table.forget(transaction, timedelta(0))
    with pytest.raises(NotFoundError, match="it never existed, or ended some days ago"):
        made.get(job.id)


def test_a_kind_that_nobody_knows_is_refused(jobs):
    with pytest.raises(ConfigError, match="no job is of the kind 'dance'; there are read"):
        jobs(read=lambda *_: {}).start("dance", {})
