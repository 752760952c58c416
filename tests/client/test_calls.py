"""Calls of a client, before they are sent and after they are answered."""

from __future__ import annotations

import inspect
from dataclasses import replace
from datetime import UTC, datetime

import pytest

import kbkit
from kbkit.client import AsyncWorkspace
from kbkit.client.calls import Request
from kbkit.client.declared import ResultPage, first_page, json_body, list_all, url
from kbkit.client.files import RemoteFiles
from kbkit.client.work import run_job
from kbkit.errors import ArgumentError, ConfigError
from kbkit.models import FileInfo, FileKind, FileTree, Job, JobState, Progress, from_dict

INFO = FileInfo("a b.md", FileKind.FILE, 3, datetime(2026, 1, 2, tzinfo=UTC), datetime.now(UTC))
NOWHERE = "http://127.0.0.1:9"


def test_wrong_calls_are_refused_before_they_are_sent() -> None:
    with pytest.raises(ConfigError, match=r"^content=7: give a text"):
        kbkit.connect(NOWHERE).files.append("a.md", 7)
    with pytest.raises(ArgumentError, match=r"write rename\(name, to="):
        kbkit.connect(NOWHERE).rename("a", "b")
    with pytest.raises(ArgumentError, match="did you mean 'forever"):
        AsyncWorkspace(NOWHERE).delete("a", forver=True)


def test_call_keeps_signature_and_docstring() -> None:
    assert list(inspect.signature(RemoteFiles.append).parameters)[:3] == ["self", "path", "content"]
    assert RemoteFiles.append.__doc__


def test_names_in_addresses_are_quoted() -> None:
    assert url("/e/{}/rate", "a/b c%ä") == "/e/a%2Fb%20c%25%C3%A4/rate"
    assert url("/e/{}", "..") == "/e/%2E%2E"
    assert url("/f/{:path}", "a b/ü%2F.md") == "/f/a%20b/%C3%BC%252F.md"
    assert url("/f/{:path}", "../x/./y") == "/f/%2E%2E/x/%2E/y"


def test_parameters_and_bodies_leave_out_none() -> None:
    request = Request("GET", "/", repr, {"a": None, "b": [1, "x"], "c": True, "d": FileKind.FILE})
    assert str(request.parameters) == "b=1&b=x&c=true&d=file"
    assert json_body(a=None, at=INFO.created_at, n=0) == {"at": "2026-01-02T00:00:00+00:00", "n": 0}


def test_lists_go_on_after_a_full_page() -> None:
    steps = list_all(first_page(FileInfo, "/files", None))
    first = next(steps)
    following = steps.send(ResultPage([INFO] * first.query["limit"], "more"))
    assert following.query == {**first.query, "cursor": "more"}


def test_values_are_read_back_from_newer_json() -> None:
    tree = FileTree(INFO, (FileTree(INFO),))
    assert from_dict(FileTree, {**tree.to_dict(), "new": "a newer server says more"}) == tree


JOB = Job("7", "refresh", (), "", JobState.RUNNING, datetime.now(UTC), Progress("store", 1))


def test_progress_of_a_job_is_reported_once() -> None:
    shown: list[Progress] = []
    steps = run_job(repr, Request("POST", "/", repr), on_progress=shown.append)
    later = replace(JOB, progress=Progress("store", 2))
    sent = [next(steps), *map(steps.send, (JOB, JOB, JOB, later))]
    assert [request.method for request in sent] == ["POST"] + ["GET"] * 4
    with pytest.raises(StopIteration, match="'x': 1"):
        steps.send(replace(later, state=JobState.DONE, result={"x": 1}))
    assert shown == [JOB.progress, later.progress]


def test_job_is_cancelled_on_request_or_if_a_callback_fails() -> None:
    steps = run_job(repr, Request("POST", "/", repr), stop=lambda: True)
    sent = [next(steps), steps.send(JOB), steps.send(None)]
    assert [request.method for request in sent] == ["POST", "DELETE", "GET"]
    with pytest.raises(StopIteration, match="None"):
        steps.send(replace(JOB, state=JobState.CANCELLED))

    def fail(_: Progress) -> None:
        raise KeyError

    failing = run_job(repr, Request("POST", "/", repr), on_progress=fail)
    sent = [next(failing), failing.send(JOB), failing.send(JOB)]
    assert [request.method for request in sent] == ["POST", "GET", "DELETE"]
    with pytest.raises(KeyError):
        failing.send(None)
