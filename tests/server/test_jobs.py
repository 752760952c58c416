"""Jobs and idempotent requests over HTTP."""

import json
import threading

import pytest
from fastapi import APIRouter, Response

import kbkit
from kbkit.errors import NotFoundError
from kbkit.models import ImportReport, IngestReport, Progress
from kbkit.server import app as rest_app
from kbkit.server.access import WRITE, JobsOf
from kbkit.server.jobs import Jobs
from kbkit.server.responses import answer
from kbkit.server.routing import Work
from kbkit.server.tasks import TASKS
from tests.server.requests import bearer, pages, problem

router = APIRouter()
DONE = []


@router.post("/test/jobs/{kb}", dependencies=[WRITE])
def begin(kb: str, jobs: JobsOf) -> Response:
    job = jobs.start("count", {"kb": kb}, kbs=[kb])
    return answer(job, 202, headers={"Location": f"/api/jobs/{job.id}"})


@router.post("/test/once/{value}", dependencies=[WRITE])
def once(value: str, work: Work) -> Response:
    return work.start("note", {"value": value}, wait=True)


@router.get("/test/crash")
def crash() -> Response:
    raise RuntimeError("/secret/path")


@pytest.fixture(scope="module")
def go():
    return threading.Event()


@pytest.fixture(scope="module")
def client(serve, go):
    def count(run):
        run.on_progress(Progress("store", 1, 2, "a.md"))
        while not run.stop() and not go.wait(0.01):
            pass
        return {"counted": run.arguments["kb"]}

    def note(run):
        DONE.append(run.arguments["value"])
        if DONE[-1] == "missing":
            raise NotFoundError("no such thing")
        return {"number": len(DONE)}

    before = rest_app.ROUTERS
    TASKS.update(count=count, note=note)
    rest_app.ROUTERS = (*before, router)
    try:
        with serve() as client:
            yield client
    finally:
        rest_app.ROUTERS = before
        del TASKS["count"], TASKS["note"]


def events(client, path):
    """Yield the jobs of a stream of events, to its end."""
    with client.stream("GET", path) as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        name = ""
        for line in stream.iter_lines():
            if line.startswith("event: "):
                name = line.removeprefix("event: ")
            elif line.startswith("data: "):
                assert name == "job"
                yield json.loads(line.removeprefix("data: "))


def test_job_events_end_with_the_job(client, go):
    begun = client.post("/test/jobs/drinks")
    assert begun.status_code == 202
    place = begun.headers["location"]
    seen = []
    for job in events(client, f"{place}/events"):
        seen.append(job["state"])
        progress = {"stage": "store", "done": 1, "total": 2, "message": "a.md", "so_far": None}
        if job["progress"] == progress:
            go.set()
    assert seen[-1] == "done"
    assert "running" in seen
    job = client.get(place).json()
    assert job["result"] == {"counted": "drinks"}
    assert list(events(client, f"{place}/events")) == [job], "one that has ended is told once"
    go.clear()


def test_jobs_are_listed_by_pages_and_cancelled(client, go):
    places = [client.post(f"/test/jobs/{kb}").headers["location"] for kb in ("food", "food")]
    ids = [job["id"] for page in pages(client, "/api/jobs", limit=1) for job in page]
    assert {place.rpartition("/")[2] for place in places} <= set(ids)
    assert len(ids) == len(set(ids)) == len(client.get("/api/jobs").json()["data"])
    for place in places:
        assert client.delete(place).status_code == 200
        assert [job["state"] for job in events(client, f"{place}/events")][-1] == "cancelled"
    for path in ("/api/jobs/nothing", "/api/jobs/nothing/events", "/api/jobs?cursor=nothing"):
        assert client.get(path).json()["error"] == "NotFoundError"
    assert client.get("/api/jobs?limit=0").status_code == 422


@pytest.mark.parametrize("kind", ["import", "refresh"])
def test_stop_is_asked_while_the_job_runs(client, monkeypatch, tmp_path, kind):
    running, asked = threading.Event(), threading.Event()

    def task(_):
        running.set()
        assert asked.wait(10), "the first response came only with the result"
        return ImportReport((), 0, IngestReport(interrupted=True))

    def stop():
        if running.is_set():
            asked.set()
        return asked.is_set()

    monkeypatch.setitem(TASKS, kind, task)
    (tmp_path / "a.md").write_text("Tea", "utf-8")
    files = {"type": "files", "path": "a.md"}
    with kbkit.connect(str(client.base_url)) as remote:
        kb = remote["drinks"]
        imported = kind == "import"
        report = kb.ingest(files, base=tmp_path, stop=stop) if imported else kb.refresh(stop=stop)
    assert report.interrupted


def test_repeated_idempotency_key_starts_no_job(client):
    key = {"Idempotency-Key": "import-1"}
    first = client.post("/test/once/a", headers=key)
    again = client.post("/test/once/a", headers=key)
    assert (first.status_code, first.json()) == (again.status_code, again.json())
    assert "idempotency-replayed" not in first.headers
    assert again.headers["idempotency-replayed"] == "true"
    assert DONE.count("a") == 1
    # The same key at another address is another request
    assert client.post("/test/once/b", headers=key).json() != first.json()
    assert client.post("/test/once/a").json() != first.json(), "without a key it is done again"
    for wrong in ("", "x" * 201):
        assert client.post("/test/once/a", headers={"Idempotency-Key": wrong}).status_code == 422


def test_failed_job_starts_again_with_its_idempotency_key(client):
    for _ in range(2):
        answered = client.post("/test/once/missing", headers={"Idempotency-Key": "import-2"})
        assert answered.status_code == 404
    assert DONE.count("missing") == 2


def test_requests_of_one_moment_with_one_key_start_one_job(client, monkeypatch):
    monkeypatch.setattr(Jobs, "find_repeated", lambda *_: None)  # both looked before either began
    first, second = (
        client.post("/test/once/moment", headers={"Idempotency-Key": "k"}) for _ in range(2)
    )
    assert (first.status_code, second.status_code) == (200, 409)
    assert DONE.count("moment") == 1


def test_keys_and_jobs_of_other_callers_are_separate(client, tokens, go):
    go.set()
    for kb in ("drinks", "food"):
        place = client.post(f"/test/jobs/{kb}").headers["location"]
        assert [job["state"] for job in events(client, f"{place}/events")][-1] == "done"
    go.clear()
    callers = [bearer(tokens.create(name, scope="write").token) for name in ("ann", "bob")]
    first, second = (
        client.post("/test/once/c", headers={"Idempotency-Key": "k", **caller}).json()["number"]
        for caller in callers
    )
    assert first != second
    limited = bearer(tokens.create("cat", kbs=["food"]).token)
    jobs = client.get("/api/jobs", headers=limited).json()["data"]
    assert {kb for job in jobs for kb in job["kbs"]} == {"food"}
    jobs = client.get("/api/jobs", headers=callers[0]).json()["data"]
    other = next(job["id"] for job in jobs if job["kbs"] == ["drinks"])
    hidden, missing = (
        client.get(f"/api/jobs/{name}", headers=limited).json() for name in (other, "x")
    )
    assert hidden["detail"].replace(other, "x") == missing["detail"]


def test_crash_is_described_only_in_the_log(client, caplog):
    answered = client.get("/test/crash", headers={"Accept": "text/html"})
    detail = problem(answered, 500, "ServerError")
    assert detail == "the server failed; its log says why"
    assert answered.headers["x-content-type-options"] == "nosniff"
    assert "/secret/path" in caplog.text
    assert client.get("/health").status_code == 200
