"""Jobs over HTTP: listed, followed, ended; and requests that are sent again are not done again."""

import json
import threading

import pytest
from fastapi import APIRouter, Response

from kbkit.access import Tokens
from kbkit.errors import NotFoundError
from kbkit.models import Progress
from kbkit.server import app as rest_app
from kbkit.server.access import WRITE, JobsOf
from kbkit.server.middleware import Once
from kbkit.server.responses import answer
from kbkit.server.tasks import TASKS

router = APIRouter()
DONE = []


@router.post("/test/jobs/{kb}", dependencies=[WRITE])
def begin(kb: str, jobs: JobsOf) -> Response:
    job = jobs.start("count", {"kb": kb}, kbs=[kb])
    return answer(job, 202, headers={"Location": f"/api/jobs/{job.id}"})


@router.post("/test/once/{value}", dependencies=[WRITE])
def once(value: str, once: Once) -> Response:
    def make():
        if value == "missing":
            DONE.append(value)
            raise NotFoundError("no such thing")
        DONE.append(value)
        return answer({"number": len(DONE)}, 201, version="v1")

    return once({"value": value}, make)


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

    before = rest_app.ROUTERS
    TASKS["count"] = count
    rest_app.ROUTERS = (*before, router)
    try:
        with serve() as made:
            yield made
    finally:
        rest_app.ROUTERS = before
        del TASKS["count"]


def events(client, path):
    """The jobs that a stream of events tells, to its end."""
    with client.stream("GET", path) as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        name = ""
        for line in stream.iter_lines():
            if line.startswith("event: "):
                name = line.removeprefix("event: ")
            elif line.startswith("data: "):
                assert name == "job"
                yield json.loads(line.removeprefix("data: "))


def test_a_job_is_followed_to_its_end(client, go):
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


def test_jobs_are_listed_a_part_at_a_time_and_cancelled(client, go):
    places = [client.post(f"/test/jobs/{kb}").headers["location"] for kb in ("food", "food")]
    ids = []
    cursor = {}
    while True:
        part = client.get("/api/jobs", params={"limit": 1, **cursor}).json()
        ids += [job["id"] for job in part["data"]]
        if part["next_cursor"] is None:
            break
        cursor = {"cursor": part["next_cursor"]}
    assert {place.rpartition("/")[2] for place in places} <= set(ids)
    assert len(ids) == len(set(ids)) == len(client.get("/api/jobs").json()["data"])
    for place in places:
        assert client.delete(place).status_code == 200
        assert [job["state"] for job in events(client, f"{place}/events")][-1] == "cancelled"
    for path in ("/api/jobs/nothing", "/api/jobs/nothing/events", "/api/jobs?cursor=nothing"):
        assert client.get(path).json()["error"] == "NotFoundError"
    assert client.get("/api/jobs?limit=0").status_code == 422


def test_what_is_sent_again_with_its_key_is_answered_again(client):
    key = {"Idempotency-Key": "import-1"}
    first = client.post("/test/once/a", headers=key)
    again = client.post("/test/once/a", headers=key)
    assert (first.status_code, first.json()) == (again.status_code, again.json())
    assert first.headers["etag"] == again.headers["etag"]
    assert "idempotency-replayed" not in first.headers
    assert again.headers["idempotency-replayed"] == "true"
    assert DONE.count("a") == 1
    other = client.post("/test/once/b", headers=key)
    # of another address, it is another request
    assert other.status_code == 201
    assert client.post("/test/once/a").json() != first.json(), "without a key it is done again"
    for wrong in ("", "x" * 201):
        assert client.post("/test/once/a", headers={"Idempotency-Key": wrong}).status_code == 422


def test_an_error_is_not_kept(client):
    key = {"Idempotency-Key": "import-2"}
    for _ in range(2):
        answered = client.post("/test/once/missing", headers=key)
        assert answered.status_code == 404
    assert DONE.count("missing") == 2


def test_a_key_of_one_is_none_of_anothers(client, workspace, go):
    go.set()
    for kb in ("drinks", "food"):
        place = client.post(f"/test/jobs/{kb}").headers["location"]
        assert [job["state"] for job in events(client, f"{place}/events")][-1] == "done"
    go.clear()
    tokens = Tokens(workspace)
    given = [tokens.create(name, scope="write").token for name in ("ann", "bob")]
    try:
        numbers = [
            client.post(
                "/test/once/c", headers={"Idempotency-Key": "k", "Authorization": f"Bearer {token}"}
            ).json()["number"]
            for token in given
        ]
        assert numbers[0] != numbers[1]
        mine = {"Authorization": f"Bearer {tokens.create('cat', kbs=['food']).token}"}
        listed = client.get("/api/jobs", headers=mine).json()["data"]
        assert {kb for job in listed for kb in job["kbs"]} == {"food"}
        other = next(
            job
            for job in client.get(
                "/api/jobs", headers={"Authorization": f"Bearer {given[0]}"}
            ).json()["data"]
            if job["kbs"] == ["drinks"]
        )
        assert client.get(f"/api/jobs/{other['id']}", headers=mine).status_code == 404
    finally:
        for info in tokens.list():
            tokens.revoke(info.id)


def test_the_same_key_with_another_body_is_refused(workspace):
    from kbkit.access import ALL
    from kbkit.errors import ReusedKeyError
    from kbkit.server.middleware import IdempotentRequests

    once_only = IdempotentRequests(workspace, "/import", ALL, "k")
    first = once_only({"url": "a"}, lambda: answer({"id": 1}, 201))
    assert once_only({"url": "a"}, lambda: pytest.fail("again")).body == first.body
    with pytest.raises(ReusedKeyError, match="was used for another request"):
        once_only({"url": "b"}, lambda: pytest.fail("again"))


def test_what_fails_in_the_server_is_told_to_its_log_only(client, caplog):
    answered = client.get("/test/crash", headers={"Accept": "text/html"})
    assert answered.status_code == 500
    assert answered.headers["content-type"] == "application/problem+json"
    assert answered.json()["error"] == "ServerError"
    assert answered.json()["detail"] == "the server failed; its log says why"
    assert answered.headers["x-content-type-options"] == "nosniff"
    assert "/secret/path" in caplog.text
    assert client.get("/health").status_code == 200
