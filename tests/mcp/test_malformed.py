"""Malformed messages are answered with errors."""

import json
import os
import threading

import anyio
import pytest
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from kbkit.mcp.server import server

META = "io.modelcontextprotocol/"
ENVELOPE = {
    f"{META}protocolVersion": MODERN_PROTOCOL_VERSIONS[-1],
    f"{META}clientInfo": {"name": "kbkit", "version": "1"},
    f"{META}clientCapabilities": {},
}
"""Metadata of requests without a handshake."""


def answered(*lines):
    """Return the answers of a server to lines on its standard input."""
    (stdin, sent), (answers, stdout) = os.pipe(), os.pipe()
    streams = os.fdopen(stdin, encoding="utf-8"), os.fdopen(stdout, "w", encoding="utf-8")
    thread = threading.Thread(target=anyio.run, args=(server(lambda: None).run_on, *streams))
    thread.start()
    messages = []
    with os.fdopen(answers, encoding="utf-8") as reader, os.fdopen(sent, "w") as writer:
        for line in lines:
            writer.write(f"{line}\n")
            writer.flush()
            messages.append(json.loads(reader.readline()))
        writer.close()
        thread.join()
    return messages


def request(method, **params):
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {"_meta": ENVELOPE} | params}
    return json.dumps(message)


def test_invalid_message_is_answered_without_an_id():
    wrong = {"{nojson": -32700, '"x"': -32600, "[]": -32600, '{"jsonrpc":"2.0","id":7}': -32600}
    *first, listed, last = answered(*wrong, request("tools/list"), "{nojson")
    assert [each["error"]["code"] for each in first] == list(wrong.values())
    assert [each["id"] for each in [*first, last]] == [None] * 5
    assert listed["result"]["tools"]
    assert last["error"]["code"] == -32700


@pytest.mark.parametrize("name", ["tools", "prompts", "resources", "resources/templates"])
def test_cursor_of_a_whole_list_is_refused(name):
    (answer,) = answered(request(f"{name}/list", cursor="junk"))
    assert answer["error"]["code"] == -32602
    assert "leave it out" in answer["error"]["message"]


@pytest.mark.parametrize("identity", ["null", "{}", "1.5", "true"])
def test_id_of_another_type_is_an_error(identity):
    (answer,) = answered(f'{{"jsonrpc":"2.0","id":{identity},"method":"tools/list"}}')
    assert answer["error"]["code"] == -32600


def test_lone_surrogate_is_replaced():
    half = request("tools/list").replace('"id": 1', '"id": "a\\ud800\\ud83d\\ude00"')
    (answer,) = answered(half)
    assert answer["id"] == "a?\U0001f600"
    assert answer["result"]["tools"]
