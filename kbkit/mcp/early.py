"""Answer a client's first requests while the SDK is being imported.

A client waits for `initialize` (or `server/discover`) and `tools/list`, which do not depend on the
workspace. Usual requests are answered from ``manifest.json``, which `kbkit.mcp.manifest` writes;
the server's own answers to them are dropped. All others wait for the server. This module imports
nothing heavy.
"""

from __future__ import annotations

import io
import json
import os
import queue
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from kbkit import __version__

MANIFEST = Path(__file__).with_name("manifest.json")
_META = "io.modelcontextprotocol/"


class EarlyAnswers:
    """Answers requests before the server is loaded."""

    def __init__(self, sets: Sequence[str], *, allow_write: bool) -> None:
        self._manifest: dict[str, Any] = json.loads(MANIFEST.read_text("utf-8"))
        self._tools = [
            tool
            for name in sets
            for tool in self._manifest["tools"][name]
            if allow_write or tool["annotations"]["readOnlyHint"]
        ]
        self._era = ""

    def of(self, line: bytes) -> tuple[str | int, bytes] | None:
        """The answer to a message, with its id; ``None`` leaves it to the server."""
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            return None
        if not isinstance(message, dict) or type(message.get("id")) not in (str, int):
            return None
        params = message.get("params") or {}
        if not isinstance(params, dict) or message.get("jsonrpc") != "2.0":
            return None
        result = self._result(message.get("method"), params)
        if result is None:
            return None
        answer = {"jsonrpc": "2.0", "id": message["id"], "result": result}
        return message["id"], json.dumps(answer, ensure_ascii=False).encode() + b"\n"

    def _result(self, method: Any, params: Mapping[str, Any]) -> dict[str, Any] | None:
        manifest = self._manifest
        if method == "initialize" and not self._era and _is_handshake(params):
            self._era = "handshake"
            asked = params["protocolVersion"]
            version = asked if asked in manifest["versions"] else manifest["versions"][-1]
            return _with_version({**manifest["initialize"], "protocolVersion": version})
        if self._era != "handshake" and self._is_modern(params):
            self._era = "modern"
            if method == "server/discover" and params.keys() == {"_meta"}:
                return _with_version(manifest["discover"])
            if method == "tools/list" and params.keys() == {"_meta"}:
                return _with_version({**manifest["list"], "tools": self._tools})
        elif self._era == "handshake" and method == "tools/list" and not params:
            return {"tools": self._tools}
        return None

    def _is_modern(self, params: Mapping[str, Any]) -> bool:
        meta = params.get("_meta")
        return (
            isinstance(meta, dict)
            and meta.get(f"{_META}protocolVersion") in self._manifest["modern"]
            and isinstance(meta.get(f"{_META}clientCapabilities"), dict)
            and _is_implementation(meta.get(f"{_META}clientInfo"))
        )


def _is_handshake(params: Mapping[str, Any]) -> bool:
    return (
        isinstance(params.get("protocolVersion"), str)
        and isinstance(params.get("capabilities"), dict)
        and _is_implementation(params.get("clientInfo"))
    )


def _is_implementation(info: Any) -> bool:
    return (
        isinstance(info, dict)
        and isinstance(info.get("name"), str)
        and isinstance(info.get("version"), str)
    )


def _with_version(result: dict[str, Any]) -> dict[str, Any]:
    for owner, name in ((result, "serverInfo"), (result.get("_meta"), f"{_META}serverInfo")):
        if owner is not None and name in owner:
            owner[name]["version"] = __version__
    return result


class EarlyStdio:
    """Standard input and output, shared by early answers and the server.

    Both are taken at once: what else reads or prints finds nothing, and the log.
    """

    def __init__(self, early: EarlyAnswers) -> None:
        self._early: EarlyAnswers | None = early
        self._answered: set[str | int] = set()
        self._lock = threading.Lock()
        self._lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._input, self._output = os.dup(0), os.dup(1)
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)
        sys.stdout.flush()
        os.dup2(2, 1)
        self.stdin, self.stdout = text_of(self._lines), text_to(self.write)
        threading.Thread(target=self._read, name="stdin", daemon=True).start()

    def hand_over(self) -> None:
        """From now on the server answers all that comes."""
        with self._lock:
            self._early = None

    def write(self, line: bytes) -> None:
        """Write an answer of the server, unless it was given before."""
        with self._lock:
            if self._answered and (identity := _identity(line)) in self._answered:
                self._answered.discard(identity)
            else:
                self._send(line)

    def _send(self, line: bytes) -> None:
        with suppress(BrokenPipeError):  # nobody reads it any more: the input ends, too
            while line:
                line = line[os.write(self._output, line) :]

    def _read(self) -> None:
        try:
            with os.fdopen(self._input, "rb") as stream:
                for line in stream:
                    with self._lock:
                        if self._early is not None and (reply := self._early.of(line)) is not None:
                            self._answered.add(reply[0])
                            self._send(reply[1])
                    self._lines.put(line)
        finally:
            self._lines.put(b"")


def _identity(line: bytes) -> str | int | None:
    message = json.loads(line)
    return message.get("id") if "method" not in message else None


class LineReader(io.RawIOBase):
    """Reads the lines that a queue gives; an empty one ends it."""

    def __init__(self, lines: queue.SimpleQueue[bytes]) -> None:
        self._lines = lines
        self._rest = b""
        self._ended = False

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Wait for a line, and read as much of it as there is room for."""
        if not self._rest and not self._ended:
            self._rest = self._lines.get()
            self._ended = not self._rest
        part = self._rest[: len(buffer)]
        buffer[: len(part)] = part
        self._rest = self._rest[len(part) :]
        return len(part)


class LineWriter(io.RawIOBase):
    """Writes whole lines only."""

    def __init__(self, hand_on: Callable[[bytes], object]) -> None:
        self._hand_on = hand_on
        self._rest = b""

    def writable(self) -> bool:
        """It is."""
        return True

    def write(self, data: Any) -> int:
        """Take data, and pass on complete lines."""
        self._rest += bytes(data)
        *lines, self._rest = self._rest.split(b"\n")
        for line in lines:
            self._hand_on(line + b"\n")
        return len(data)


def text_of(lines: queue.SimpleQueue[bytes]) -> io.TextIOWrapper:
    """Return lines as a text stream to read."""
    return io.TextIOWrapper(io.BufferedReader(LineReader(lines)), "utf-8", "replace")


def text_to(hand_on: Callable[[bytes], object]) -> io.TextIOWrapper:
    """Return a text stream to write that passes on lines."""
    return io.TextIOWrapper(io.BufferedWriter(LineWriter(hand_on)), "utf-8")
