"""What is no message, or asks for no list there is, is answered."""

import json
import queue
import threading

import anyio
import pytest

from kbkit.mcp.early import text_of, text_to
from kbkit.mcp.manifest import ENVELOPE
from kbkit.mcp.server import server


def answered(*lines):
    """What a server answers to lines on its standard input."""
    sent, told = queue.SimpleQueue(), queue.SimpleQueue()
    made = server(lambda: None)
    thread = threading.Thread(
        target=anyio.run, args=(made.run_on, text_of(sent), text_to(told.put))
    )
    thread.start()
    found = []
    for line in lines:
        sent.put(line.encode() + b"\n")
        found.append(json.loads(told.get(timeout=60)))
    sent.put(b"")
    thread.join()
    return found


def request(method, **params):
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {"_meta": ENVELOPE} | params}
    return json.dumps(message)


def test_what_is_no_message_is_answered_without_an_id():
    wrong = {"{nojson": -32700, '"x"': -32600, "[]": -32600, '{"jsonrpc":"2.0","id":7}': -32600}
    *first, listed, last = answered(*wrong, request("tools/list"), "{nojson")
    assert [each["error"]["code"] for each in first] == list(wrong.values())
    assert [each["id"] for each in [*first, last]] == [None] * 5
    assert listed["result"]["tools"]
    assert last["error"]["code"] == -32700


@pytest.mark.parametrize(
    ("method", "params", "message"),
    [
        ("tools/list", {"cursor": "junk"}, "cursor"),
        ("prompts/list", {"cursor": "junk"}, "cursor"),
        ("resources/templates/list", {"cursor": "junk"}, "cursor"),
        ("skills/get", {"name": "x"}, "uri: is missing; give that of a skill, skill://"),
    ],
)
def test_what_cannot_be_asked_is_an_error_that_says_why(method, params, message):
    (answer,) = answered(request(method, **params))
    assert answer["error"]["code"] == -32602
    assert message in answer["error"]["message"]
