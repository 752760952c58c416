"""What a client asks first is answered before the SDK is loaded, as the server would answer."""

import json
import subprocess
import sys

import pytest

from kbkit.mcp.early import EarlyAnswers
from kbkit.mcp.manifest import ENVELOPE, answers
from kbkit.mcp.options import SET_NAMES
from kbkit.mcp.server import server
from tests.mcp.agents import parameters

HANDSHAKE = {"capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
LISTING = ("tools/list", None)
MODERN = {"_meta": ENVELOPE}


def handshake(version: str) -> tuple[str, dict]:
    return "initialize", {**HANDSHAKE, "protocolVersion": version}


def early_answers(sets, requests, *, allow_write):
    early = EarlyAnswers(sets, allow_write=allow_write)
    found = []
    for number, (method, params) in enumerate(requests):
        message = {"jsonrpc": "2.0", "id": number, "method": method}
        answer = early.of(json.dumps(message | ({} if params is None else {"params": params})))
        assert answer is not None
        found.append(json.loads(answer[1])["result"])
    return found


@pytest.mark.parametrize(
    ("sets", "allow_write"), [(["core"], False), (["core", "entries"], False), (["all"], True)]
)
@pytest.mark.parametrize(
    "requests",
    [
        [handshake("2024-11-05"), LISTING],
        [handshake("2025-03-26"), LISTING],
        [handshake("2025-11-25"), LISTING],
        [handshake("1999-01-01"), LISTING],
        [("server/discover", MODERN), ("tools/list", MODERN)],
        [("tools/list", MODERN)],
    ],
    ids=lambda requests: str(requests[0][1])[-30:],
)
def test_early_answers_are_those_of_the_server(sets, allow_write, requests):
    made = server(lambda: None, tools=sets, allow_write=allow_write)
    names = SET_NAMES if sets == ["all"] else sets
    early = early_answers(names, requests, allow_write=allow_write)
    assert early == answers(made, requests)


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"{",
        b"[]",
        b"1",
        b"null",
        b"\xff",
        b"[" * 100_000,
        b'{"jsonrpc":"2.0","id":true,"method":"initialize"}',
        b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}',
        b'{"jsonrpc":"2.0","id":1,"method":["tools/list"],"params":[]}',
        b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}',
        b'{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{}}}',
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"kb_list"}}',
        b'{"jsonrpc":"2.0","method":"notifications/initialized"}',
    ],
)
def test_what_is_unusual_is_left_to_the_server(line):
    assert EarlyAnswers(["core"], allow_write=False).of(line) is None


SLOW = """
import builtins, pathlib, time
original = builtins.__import__
def slow(name, *args, **kwargs):
    if name == "mcp" or name.startswith("mcp."):
        while not pathlib.Path(GATE).exists():
            time.sleep(0.01)
    return original(name, *args, **kwargs)
builtins.__import__ = slow
"""


def test_tools_are_listed_before_the_sdk_is_there_and_called_once_it_is(folder, tmp_path):
    gate = tmp_path / "gate"
    (tmp_path / "sitecustomize.py").write_text(f"GATE = {str(gate)!r}\n{SLOW}")
    command = parameters(folder)
    path = f"{tmp_path}:{command.env.get('PYTHONPATH', '.')}"
    process = subprocess.Popen(
        [sys.executable, *command.args],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**command.env, "PYTHONPATH": path},
    )

    def send(method, params=None, identity=None):
        message = {"jsonrpc": "2.0", "method": method}
        message |= {} if params is None else {"params": params}
        message |= {} if identity is None else {"id": identity}
        process.stdin.write(json.dumps(message) + "\n")
        process.stdin.flush()

    with process:
        send(*handshake("2025-06-18"), "a")
        assert json.loads(process.stdout.readline())["id"] == "a"
        send("notifications/initialized")
        send("tools/list", identity=2)
        assert len(json.loads(process.stdout.readline())["result"]["tools"]) == 4
        send("tools/call", {"name": "list_knowledge_bases", "arguments": {}}, 3)
        gate.touch()
        answer = json.loads(process.stdout.readline())
        assert answer["id"] == 3  # what was answered early is not answered again
        assert "kitchen" in answer["result"]["content"][0]["text"]
        send("tools/list", identity="a")
        assert json.loads(process.stdout.readline())["id"] == "a"
        process.stdin.close()
        assert process.stdout.read() == ""
        assert process.wait() == 0
