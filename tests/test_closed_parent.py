"""Servers end with their parent on request only; a pipe that they inherit closes when they end."""

import json
import os
import re
import select
import signal
import subprocess
import sys
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx
import pytest

import kbkit
from kbkit.access import Tokens

pytestmark = pytest.mark.skipif(os.name == "nt", reason="kills a process, and inherits a pipe")
MAX_LENGTH = 60
"""Seconds that a server may take to end."""

PARENT = """
import subprocess, sys
inherited, stdin, *command = sys.argv[1:]
server = subprocess.Popen(
    command, stdin=subprocess.PIPE if stdin == "pipe" else subprocess.DEVNULL,
    stdout=subprocess.PIPE, stderr=subprocess.STDOUT, pass_fds=[int(inherited)],
)
for line in sys.stdin.buffer:
    if line == b"\\n":
        break
    server.stdin.write(line)
    server.stdin.flush()
print(server.pid, flush=True)
for line in server.stdout:
    sys.stdout.buffer.write(line)
    sys.stdout.flush()
"""
"""Starts a server, passes lines to it and its output on, and lives until it is killed."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("parent") / "kb"
    with kbkit.open(folder) as workspace:
        workspace.create("drinks").add("Tea", "Steep tea for two minutes.")
    (folder.parent / "site").mkdir()
    (folder.parent / "site/index.html").write_text("<p>hello</p>")
    return folder


class Started:
    """A server that another process, its parent, has started."""

    def __init__(self, folder, *command, stdin="pipe", lines=b""):
        self._closed, inherited = os.pipe()
        os.set_inheritable(inherited, True)
        kbkit_command = [sys.executable, "-m", "kbkit", "--workspace", str(folder), *command]
        self.parent = subprocess.Popen(
            [sys.executable, "-c", PARENT, str(inherited), stdin, *kbkit_command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            pass_fds=[inherited],
            env={**os.environ, "KBKIT_IMPROVE": "off"},
        )
        os.close(inherited)
        self.parent.stdin.write(lines + b"\n")
        self.parent.stdin.flush()
        self.pid = int(self.parent.stdout.readline())

    def printed(self, pattern):
        """Return the match in the next line of the server that has one."""
        for line in self.parent.stdout:
            if found := re.search(pattern, line.decode()):
                return found
        raise AssertionError(f"the server printed no {pattern}")

    def kill_parent(self):
        self.parent.kill()
        self.parent.communicate()

    def ends(self):
        return bool(select.select([self._closed], [], [], MAX_LENGTH)[0])

    def end(self):
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        self.kill_parent()
        os.close(self._closed)


@contextmanager
def started(*arguments, **options):
    server = Started(*arguments, **options)
    try:
        yield server
    finally:
        server.end()


COMMANDS = {
    "serve": ("serve", "--port", "0", "--search-processes", "1"),
    "serve-site": ("serve-site", "SITE", "--port", "0"),
    "panel": ("panel", "--port", "0"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_server_ends_with_its_parent_on_request(folder, name):
    site = str(folder.parent / "site")
    command = [site if part == "SITE" else part for part in COMMANDS[name]]
    with started(folder, *command, "--until-stdin-closes") as server:
        assert server.printed(r"serving .* at (http://\S+)")
        server.kill_parent()
        assert server.ends()


@pytest.mark.slow
def test_server_finishes_a_request_after_its_parent_ends(folder):
    with kbkit.open(folder) as workspace:
        token = Tokens(workspace).create("once", scope="write").token
    headers = {"Authorization": f"Bearer {token}"}
    with started(folder, "serve", "--port", "0", "--until-stdin-closes") as server:
        url = server.printed(r"at (http://\S+)")[1]

        def body():
            yield b"# Late\n"
            # by now the server has the request
            httpx.get(f"{url}/health", timeout=MAX_LENGTH).raise_for_status()
            server.kill_parent()
            with suppress(httpx.HTTPError):  # until it refuses new requests
                while True:
                    httpx.get(f"{url}/health")
            yield b"written while the server ends"

        late = f"{url}/api/files/late.md"
        put = httpx.put(late, content=body(), headers=headers, timeout=MAX_LENGTH)
        assert put.is_success
        assert server.ends()
    with kbkit.open(folder) as workspace:
        assert workspace.files.read("late.md").endswith("while the server ends")
        Tokens(workspace).revoke("once")


@pytest.mark.parametrize("stdin", ["null", "pipe"])
@pytest.mark.soak
def test_server_without_the_option_outlives_its_parent(folder, stdin):
    with started(folder, "serve", "--port", "0", stdin=stdin) as server:
        url = server.printed(r"at (http://\S+)")[1]
        server.kill_parent()
        assert httpx.get(f"{url}/health", timeout=MAX_LENGTH).is_success
        os.kill(server.pid, signal.SIGTERM)
        assert server.ends()


@pytest.mark.slow
def test_mcp_server_ends_with_its_client(folder):
    client = {"name": "test", "version": "1"}
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client}
    messages = [
        {"id": 1, "method": "initialize", "params": hello},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/call", "params": {"name": "list_knowledge_bases"}},
    ]
    lines = "".join(json.dumps({"jsonrpc": "2.0", **each}) + "\n" for each in messages).encode()
    with started(folder, "mcp", lines=lines) as server:  # while it works
        server.kill_parent()
        assert server.ends()
    with started(folder, "mcp", lines=lines) as server:
        assert server.printed("drinks")
        server.kill_parent()
        assert server.ends()


@pytest.mark.slow
def test_serve_site_ends_on_signals(folder):
    site = str(folder.parent / "site")
    command = [sys.executable, "-m", "kbkit", "serve-site", site, "--port", "0"]
    # as a shell starts what runs in its background
    shell = ["sh", "-c", "trap '' INT; exec \"$@\"", "sh", *command]
    for number in (signal.SIGTERM, signal.SIGINT):
        with subprocess.Popen(shell, stderr=subprocess.PIPE, text=True) as process:
            assert "serving" in process.stderr.readline()
            process.send_signal(number)
            assert process.wait(MAX_LENGTH) == 0


@pytest.mark.slow
def test_terminal_as_stdin_is_refused(folder):
    pty = pytest.importorskip("pty")
    master, terminal = pty.openpty()
    command = [sys.executable, "-m", "kbkit", "--workspace", str(folder), "serve"]
    try:
        done = subprocess.run(
            [*command, "--until-stdin-closes"],
            stdin=terminal,
            capture_output=True,
            text=True,
            check=False,
            timeout=MAX_LENGTH,
        )
    finally:
        os.close(master)
        os.close(terminal)
    assert done.returncode == 1
    assert "standard input is a terminal" in done.stderr
    assert "Traceback" not in done.stderr
    assert Path(folder).is_dir()
