"""One definition of a call is blocking or asynchronous."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated, TypeVar

import httpx
import pytest

from kbkit.client.calls import Awaited, Blocking, Request, Steps, steps
from kbkit.client.declared import call, json_body, reads, url
from kbkit.errors import ArgumentError, ConfigError
from kbkit.models import FileInfo, FileKind, FileTree, Target, TargetKind, from_dict

T = TypeVar("T")

INFO = FileInfo("a b.md", FileKind.FILE, 3, datetime(2026, 1, 2, tzinfo=UTC), datetime.now(UTC))


def _answer(request: Request[T]) -> T:
    """Answer as a server that has one file."""
    sent = httpx.Request(request.method, "http://h" + request.path, params=request.parameters)
    tree = FileTree(INFO, (FileTree(INFO),))
    body = tree if request.path == "/tree" else INFO
    return request.read(httpx.Response(200, json=body.to_dict(), request=sent))


class BlockingTransport:
    def send(self, request: Request[T]) -> T:
        return _answer(request)


class AsyncTransport:
    async def send(self, request: Request[T]) -> T:
        await asyncio.sleep(0)
        return _answer(request)


def _scores(scores: tuple[int, int]) -> dict[str, int]:
    return {"least": scores[0], "most": scores[1]}


class Calls:
    @call("GET /info/{path}")
    def info(self, path: str, *, deep: bool = False) -> FileInfo:
        """What is there."""

    @call("POST /edit/{path:path}?form=raw", names={"by": "author"}, body={"op": "edit"})
    def edit(
        self,
        path: str,
        new: str,
        *,
        tags: str | Sequence[str] = (),
        by: str = "",
        if_match: str | None = None,
    ) -> FileInfo:
        """Change it."""

    @call("GET /linked")
    def linked(self, target: Target, scores: Annotated[tuple[int, int], _scores]) -> FileInfo:
        """What it links to."""

    @steps
    def both(self) -> Steps[tuple[FileInfo, FileTree]]:
        """Both."""
        info = yield from Calls.info(self, "x")
        tree = yield Request("GET", "/tree", reads(FileTree))
        return info, tree


class Remote(Calls, Blocking):
    """Blocking."""


class AsyncRemote(Calls, Awaited):
    """Awaited."""


def test_call_is_blocking_or_asynchronous() -> None:
    now = Remote(BlockingTransport())
    later = AsyncRemote(AsyncTransport())

    async def main() -> None:
        assert await later.info("x") == INFO
        assert await later.both() == now.both()

    assert now.info("x", deep=True) == INFO
    assert now.both() == (INFO, FileTree(INFO, (FileTree(INFO),)))
    asyncio.run(main())


def _sent(steps: Steps[T]) -> Request[T]:
    request: Request[T] = next(steps)
    return request


def test_arguments_fill_path_query_and_body() -> None:
    remote = Remote(BlockingTransport())
    edit = _sent(Calls.edit(remote, "a b/..", "x", tags="t", by="ann", if_match="7"))
    assert (edit.method, edit.path) == ("POST", "/edit/a%20b/%2E%2E")
    assert edit.parameters == (("form", "raw"),)
    assert edit.json == {"op": "edit", "new": "x", "tags": ["t"], "author": "ann"}
    assert edit.headers == {"If-Match": '"7"'}
    linked = _sent(Calls.linked(remote, Target(TargetKind.FILE, "a.md"), (1, 5)))
    expected = (("target", "file:a.md"), ("least", "1"), ("most", "5"))
    assert (linked.parameters, linked.json) == (expected, None)


def test_a_value_that_is_no_text_is_refused_before_it_is_sent() -> None:
    with pytest.raises(ConfigError, match=r"^new=7: give a text"):
        Remote(BlockingTransport()).edit("a", 7)  # type: ignore[arg-type]
    assert _sent(Calls.edit(None, "a", "\ud800")).json["new"] == "?"  # half of a character


def test_wrong_call_names_the_right_one() -> None:
    with pytest.raises(ArgumentError, match=r"write info\(path, deep=True\)"):
        Remote(BlockingTransport()).info("x", True)  # type: ignore[call-arg]
    with pytest.raises(ArgumentError, match="did you mean 'deep"):
        AsyncRemote(AsyncTransport()).info("x", dep=True)  # type: ignore[call-arg]


def test_call_keeps_signature_and_docstring() -> None:
    assert list(inspect.signature(Remote.info).parameters) == ["self", "path", "deep"]
    assert Remote(BlockingTransport()).info.__doc__ == "What is there."


def test_names_in_addresses_are_quoted() -> None:
    assert url("/e/{}/rate", "a/b c%ä") == "/e/a%2Fb%20c%25%C3%A4/rate"
    assert url("/e/{}", "..") == "/e/%2E%2E"
    assert url("/f/{:path}", "a b/ü%2F.md") == "/f/a%20b/%C3%BC%252F.md"
    assert url("/f/{:path}", "../x/./y") == "/f/%2E%2E/x/%2E/y"


def test_parameters_and_bodies_leave_out_none() -> None:
    request = Request("GET", "/", repr, {"a": None, "b": [1, "x"], "c": True, "d": FileKind.FILE})
    assert request.parameters == (("b", "1"), ("b", "x"), ("c", "true"), ("d", "file"))
    assert json_body(a=None, at=INFO.created_at, n=0) == {"at": "2026-01-02T00:00:00+00:00", "n": 0}


def test_values_are_read_back_from_newer_json() -> None:
    tree = FileTree(INFO, (FileTree(INFO),))
    assert from_dict(FileTree, {**tree.to_dict(), "new": "a newer server says more"}) == tree
