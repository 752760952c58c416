"""MCP over HTTP: the SDK's own client asks, of today's protocol and of those with sessions."""

import json
import socket
import sys
import threading
from contextlib import contextmanager

import anyio
import httpx2
import pytest
from anyio.from_thread import start_blocking_portal
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

from kbkit.access import Tokens
from tests.waiting import until

HEADERS = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}


@contextmanager
def agent(url, *, token=None, mode="auto"):
    """Calls a method of an agent's client and waits for it."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    with start_blocking_portal() as portal:
        http = httpx2.AsyncClient(headers=headers, timeout=20)
        made = Client(streamable_http_client(f"{url}/mcp", http_client=http), mode=mode)
        with portal.wrap_async_context_manager(http), portal.wrap_async_context_manager(made):

            def run(method, *arguments):
                if method == "version":
                    return made.protocol_version
                if callable(method):
                    return portal.call(method, made)
                return portal.call(getattr(made, method), *arguments)

            yield run


@pytest.fixture(scope="module")
def client(serve):
    with serve(tools=("all",), allow_write=True, body_seconds=0.5) as made:
        yield made


@pytest.fixture
def tokens(workspace):
    made = Tokens(workspace)
    yield made
    for info in made.list():
        made.revoke(info.id)


@pytest.mark.parametrize(("mode", "protocol"), [("auto", "2026-07-28"), ("legacy", "2025-11-25")])
def test_an_agent_finds_and_writes(client, mode, protocol):
    with agent(str(client.base_url), mode=mode) as run:
        assert run("version") == protocol
        names = {tool.name for tool in run("list_tools").tools}
        assert {"search_knowledge_base", "kb_write"} <= names
        answer = run("call_tool", "search_knowledge_base", {"query": "how long to steep tea"})
        assert not answer.is_error
        assert "two minutes" in answer.content[0].text
        answer = run("call_tool", "kb_write", {"path": f"{mode}.md", "content": "# Note\n\nx"})
        assert not answer.is_error, answer.content[0].text


def test_nobody_gets_in_without_a_token_where_one_is_wanted(serve, tokens):
    token, _ = tokens.create("ann")
    with serve() as client:
        answer = client.post("/mcp", json=INITIALIZE, headers=HEADERS)
        assert answer.status_code == 401
        assert "/.well-known/oauth-protected-resource/mcp" in answer.headers["www-authenticate"]
        with agent(str(client.base_url), token=token) as run:
            assert run("list_tools").tools
        wrong = {"Host": "evil.example"}, {"Origin": "https://evil.example"}
        for header in wrong:
            for with_token in ({}, {"Authorization": f"Bearer {token}"}):
                answer = client.post(
                    "/mcp", json=INITIALIZE, headers={**HEADERS, **header, **with_token}
                )
                assert answer.status_code == 403


def test_a_token_does_what_its_scope_and_its_knowledge_bases_allow(client, tokens):
    reads, _ = tokens.create("reads")
    writes, _ = tokens.create("writes", scope="write")
    food, _ = tokens.create("food", kbs=["food"])
    url = str(client.base_url)
    with agent(url, token=reads) as run:
        names = {tool.name for tool in run("list_tools").tools}
        assert "kb_read" in names
        assert "kb_write" not in names
        with pytest.raises(
            MCPError, match="kb_write: needs the scope 'write'; this token has read"
        ):
            run("call_tool", "kb_write", {"path": "a.md", "content": "x"})
    with agent(url, token=writes) as run:
        assert "kb_write" in {tool.name for tool in run("list_tools").tools}
    with agent(url, token=food) as run:
        answer = run("call_tool", "search_knowledge_base", {"query": "tea"})
        assert "two minutes" not in answer.content[0].text
        answer = run("call_tool", "search_knowledge_base", {"query": "tea", "kb_name": "drinks"})
        assert answer.is_error


class Watched:
    """Everything that anybody could see of a workspace while something else goes on."""

    def __init__(self, workspace):
        self._workspace = workspace
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self.seen = set()

    def _look(self):
        found = [
            (info.name, info.documents, info.chunks, str(info.updated_at))
            for info in self._workspace.list()
        ]
        self.seen.add(tuple(found))

    def _watch(self):
        while not self._ended.wait(0.005):
            self._look()

    def __enter__(self):
        self._look()
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._ended.set()
        self._thread.join()
        self._look()


HENS = [
    {"title": f"Hen {n}", "content": f"# Hen {n}\n\n" + f"It lays egg {n} today.\n\n" * 400}
    for n in range(25)
]
LONG = [
    ("add_kb_documents", {"collection_name": "food", "documents": HENS}),
    ("create_kb_collection", {"collection_name": "hens", "documents": HENS}),
]


@pytest.mark.parametrize("mode", ["auto", "legacy"])
@pytest.mark.parametrize(("tool", "arguments"), LONG)
def test_long_work_that_is_cancelled_is_seen_by_nobody(client, workspace, mode, tool, arguments):
    """By the real client over HTTP: it hears how far the work is, and takes its word back."""
    heard = []
    with agent(str(client.base_url), mode=mode) as run, Watched(workspace) as watched:

        async def cancel(session):
            with anyio.CancelScope() as scope:

                async def hear(progress, total, message):
                    heard.append((progress, total, message))
                    if progress >= 10:
                        scope.cancel()

                await session.call_tool(tool, arguments, progress_callback=hear)
            return scope.cancelled_caught

        assert run(cancel)
        # what is asked for behind it has its turn when the work has ended
        assert not run("call_tool", "list_knowledge_bases", {}).is_error
        until(lambda: not any(is_at_work(thread) for thread in threading.enumerate()))
    # nothing, or, where the word came when all was kept, all of it: a part is never seen
    known = {name: documents for name, documents, *_ in min(watched.seen, key=str)}
    after = {name: documents for name, documents, *_ in max(watched.seen, key=str)}
    assert len(watched.seen) <= 2, watched.seen
    assert sum(after.values()) - sum(known.values()) in (0, 25), watched.seen
    assert {total for _, total, _ in heard} == {26}
    assert [done for done, _, _ in heard] == sorted(done for done, _, _ in heard)
    assert heard[0][2].startswith("text:Hen")
    if "hens" in workspace:  # the word came late
        workspace.delete("hens", forever=True)


def test_long_work_is_seen_in_one_moment(client, workspace):
    tool, arguments = LONG[1]
    with agent(str(client.base_url)) as run, Watched(workspace) as watched:
        answer = run("call_tool", tool, arguments)
        assert not answer.is_error, answer.content[0].text
        assert answer.structured_content["new"] == 25
    found = {documents for rows in watched.seen for name, documents, *_ in rows if name == "hens"}
    assert found == {25}
    assert watched.seen - {rows for rows in watched.seen if "hens" in str(rows)}
    workspace.delete("hens", forever=True)


def is_at_work(thread):
    """Whether a thread of the server runs a tool."""
    frame = sys._current_frames().get(thread.ident)
    while frame is not None:
        if frame.f_code.co_filename.endswith("kbkit/mcp/submissions.py"):
            return True
        frame = frame.f_back
    return False


def test_who_lacks_a_scope_is_told_which_as_oauth_has_it(client, tokens):
    """RFC 6750: 403, `insufficient_scope`; a client may ask for such a token."""
    reads = tokens.create("reads").token
    headers = {**HEADERS, "Authorization": f"Bearer {reads}"}
    call = {"jsonrpc": "2.0", "id": 7, "method": "tools/call"}
    answer = client.post("/mcp", json=call | {"params": {"name": "kb_write"}}, headers=headers)
    assert answer.status_code == 403
    wanted = answer.headers["www-authenticate"]
    assert 'error="insufficient_scope", scope="write"' in wanted
    assert f'resource_metadata="{client.base_url}/.well-known/' in wanted.replace("/mcp", "")
    assert (answer.json()["id"], answer.json()["error"]["code"]) == (7, -32600)
    for params in (None, {}, {"name": ["kb_write"]}, {"name": "nope"}, {"name": "kb_read"}):
        answer = client.post("/mcp", json=call | {"params": params}, headers=headers)
        assert answer.status_code != 403, answer.text


def test_a_session_answers_to_who_began_it_only(serve, tokens):
    ann, bob = tokens.create("ann").token, tokens.create("bob").token
    with serve() as client:
        mine = {**HEADERS, "Authorization": f"Bearer {ann}"}
        begun = client.post("/mcp", json=INITIALIZE, headers=mine)
        assert begun.status_code == 200
        session = {"Mcp-Session-Id": begun.headers["mcp-session-id"]}
        listing = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
        theirs = {**HEADERS, **session, "Authorization": f"Bearer {bob}"}
        assert client.post("/mcp", json=listing, headers=theirs).status_code == 404
        assert client.post("/mcp", json=listing, headers={**mine, **session}).status_code == 200


def test_a_body_that_does_not_come_is_not_waited_for(serve):
    head = (
        b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        b"Accept: application/json, text/event-stream\r\n"
    )
    parts = (b"Content-Length: 1000\r\n\r\n{", b"Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n")
    with serve(body_seconds=0.2) as client:
        for part in parts:
            address = client.base_url.host, client.base_url.port
            with socket.create_connection(address, 20) as peer:
                peer.sendall(head + part)
                answer = b""
                while received := peer.recv(65536):  # until the server closes
                    answer += received
            head_, _, body = answer.decode().partition("\r\n\r\n")
            assert head_.startswith("HTTP/1.1 408 ")
            assert "\nconnection: close" in head_
            assert json.loads(body)["detail"].startswith("the request did not arrive within 0.2 s")


def test_a_body_without_a_length_is_refused_when_it_is_too_long(serve):
    with serve(max_body=3000) as client:
        parts = (b"x" * 1000 for _ in range(5))
        answer = client.post("/mcp", content=parts, headers=HEADERS)
        assert answer.status_code == 413, answer.text
        assert "longer than 0.003 MB" in answer.json()["detail"]


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"jsonrpc": "2.0"}', b"\xff\xfe", b"null"])
def test_what_is_no_message_is_refused_and_breaks_nothing(serve, body):
    with serve() as client:
        answer = client.post("/mcp", content=body, headers=HEADERS)
        assert 400 <= answer.status_code < 500
        assert json.loads(answer.text)
        assert client.get("/health").status_code == 200


@pytest.mark.slow
def test_an_open_stream_does_not_keep_a_server_from_ending(serve):
    with serve() as client:
        begun = client.post("/mcp", json=INITIALIZE, headers=HEADERS)
        session = {"Mcp-Session-Id": begun.headers["mcp-session-id"]}
        stream = client.stream("GET", "/mcp", headers={**HEADERS, **session})
        opened = stream.__enter__()
        assert opened.status_code == 200
    # the server has ended, with the stream open
    opened.close()


def test_the_address_may_end_in_a_slash(client):
    assert client.post("/mcp/", json=INITIALIZE, headers=HEADERS).status_code == 200
