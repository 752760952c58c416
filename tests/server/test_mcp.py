"""MCP over HTTP, with and without sessions, called by the SDK's client."""

import json
import socket
import sys
import threading

import anyio
import pytest

from tests.server.requests import agent, bearer
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


@pytest.fixture(scope="module")
def client(serve):
    with serve(tools=("all",), allow_write=True, body_seconds=0.5) as client:
        yield client


@pytest.mark.parametrize(("mode", "protocol"), [("auto", "2026-07-28"), ("legacy", "2025-11-25")])
def test_agent_searches_and_writes(client, mode, protocol):
    with agent(str(client.base_url), mode=mode) as run:
        assert run("version") == protocol
        names = {tool.name for tool in run("list_tools").tools}
        assert {"search_knowledge_base", "kb_write"} <= names
        answer = run("call_tool", "search_knowledge_base", {"query": "how long to steep tea"})
        assert not answer.is_error
        assert "two minutes" in answer.content[0].text
        answer = run("call_tool", "kb_write", {"path": f"{mode}.md", "content": "# Note\n\nx"})
        assert not answer.is_error, answer.content[0].text


def test_requests_without_a_required_token_are_refused(serve, tokens):
    token, _ = tokens.create("ann")
    with serve() as client:
        answer = client.post("/mcp", json=INITIALIZE, headers=HEADERS)
        assert answer.status_code == 401
        assert "/.well-known/oauth-protected-resource/mcp" in answer.headers["www-authenticate"]
        with agent(str(client.base_url), token=token) as run:
            assert run("list_tools").tools
        for wrong in ({"Host": "evil.example"}, {"Origin": "https://evil.example"}):
            for authorization in ({}, bearer(token)):
                headers = {**HEADERS, **wrong, **authorization}
                assert client.post("/mcp", json=INITIALIZE, headers=headers).status_code == 403


HENS = [
    {"title": f"Hen {n}", "content": f"# Hen {n}\n\n" + f"It lays egg {n} today.\n\n" * 400}
    for n in range(80)
]


@pytest.mark.parametrize("mode", ["auto", "legacy"])
@pytest.mark.parametrize("tool", ["add_kb_documents", "create_kb_collection"])
def test_cancelled_call_stops_and_a_new_collection_is_not_kept(client, workspace, mode, tool):
    reports = []
    name = "food" if tool == "add_kb_documents" else "hens"
    arguments = {"collection_name": name, "documents": HENS}
    before = {info.name: info.documents for info in workspace.list()}
    with agent(str(client.base_url), mode=mode) as run:

        async def cancel(session):
            with anyio.CancelScope() as scope:

                async def report(progress, total, message):
                    reports.append((progress, total, message))
                    if progress >= 10:
                        scope.cancel()

                await session.call_tool(tool, arguments, progress_callback=report)
            return scope.cancelled_caught

        assert run(cancel)
        # The next call waits until the work has ended
        assert not run("call_tool", "list_knowledge_bases", {}).is_error
        until(lambda: not any(runs_a_tool(thread) for thread in threading.enumerate()))
    after = {info.name: info.documents for info in workspace.list()}
    assert after.keys() == before.keys()
    assert after["food"] < before["food"] + len(HENS)
    assert {total for _, total, _ in reports} == {81}
    assert [done for done, _, _ in reports] == sorted(done for done, _, _ in reports)
    assert reports[0][2].startswith("text:Hen")


def runs_a_tool(thread):
    """Whether a thread of the server runs a tool."""
    frame = sys._current_frames().get(thread.ident)
    while frame is not None:
        if frame.f_code.co_filename.endswith("kbkit/mcp/collections.py"):
            return True
        frame = frame.f_back
    return False


def test_session_answers_only_its_own_token(serve, tokens):
    ann, bob = tokens.create("ann").token, tokens.create("bob").token
    with serve() as client:
        mine = {**HEADERS, **bearer(ann)}
        begun = client.post("/mcp", json=INITIALIZE, headers=mine)
        assert begun.status_code == 200
        session = {"Mcp-Session-Id": begun.headers["mcp-session-id"]}
        listing = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
        theirs = {**HEADERS, **session, **bearer(bob)}
        assert client.post("/mcp", json=listing, headers=theirs).status_code == 404
        assert client.post("/mcp", json=listing, headers={**mine, **session}).status_code == 200


def test_incomplete_body_times_out(serve):
    head = (
        b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        b"Accept: application/json, text/event-stream\r\n"
    )
    parts = (b"Content-Length: 1000\r\n\r\n{", b"Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n")
    with serve(body_seconds=0.2) as client:
        for part in parts:
            with socket.create_connection((client.base_url.host, client.base_url.port), 20) as peer:
                peer.sendall(head + part)
                answer = b""
                while received := peer.recv(65536):  # until the server closes
                    answer += received
            headers, _, body = answer.decode().partition("\r\n\r\n")
            assert headers.startswith("HTTP/1.1 408 ")
            assert "\nconnection: close" in headers
            assert json.loads(body)["detail"].startswith("the request did not arrive within 0.2 s")


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"jsonrpc": "2.0"}', b"\xff\xfe", b"null"])
def test_invalid_message_is_refused(serve, body):
    with serve() as client:
        answer = client.post("/mcp", content=body, headers=HEADERS)
        assert 400 <= answer.status_code < 500
        assert json.loads(answer.text)
        assert client.get("/health").status_code == 200


@pytest.mark.slow
def test_open_stream_does_not_delay_shutdown(serve):
    with serve() as client:
        begun = client.post("/mcp", json=INITIALIZE, headers=HEADERS)
        session = {"Mcp-Session-Id": begun.headers["mcp-session-id"]}
        stream = client.stream("GET", "/mcp", headers={**HEADERS, **session}).__enter__()
        assert stream.status_code == 200
    # The server has ended by now
    stream.close()


def test_mcp_address_may_end_in_a_slash(client):
    assert client.post("/mcp/", json=INITIALIZE, headers=HEADERS).status_code == 200
