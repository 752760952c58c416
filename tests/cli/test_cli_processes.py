"""The command line as other programs see it: streams, signals, permissions."""

import contextlib
import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

import kbkit
from tests.waiting import until

PAGE = (
    "<!doctype html><html><head><title>Page {0}</title></head><body><main><h1>Page {0}</h1><p>Here "
    'is page {0}, and some words about a <a href="page{1}">page to come</a>.</p></main>'
    "</body></html>"
)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("made") / "kb"
    with kbkit.open(folder) as workspace:
        workspace.create("food").add("Bread", "# Bread\n\nBread is baked. ø 🍞\n")
    return folder


def start(*arguments, before=(), **options):
    command = [*before, sys.executable, "-m", "kbkit", *map(str, arguments)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(command, **{**pipes, **options})


def finished(process):
    out, err = process.communicate(timeout=60)
    assert "Traceback" not in err
    return process.returncode, out, err


@pytest.mark.slow
def test_results_go_to_standard_output_and_the_rest_does_not(made):
    code, out, err = finished(start("--workspace", made, "search", "bread", "--json"))
    assert (code, json.loads(out)[0]["title"], err) == (0, "Bread", "")
    code, out, err = finished(start("--workspace", made, "show", "none", "--json"))
    assert (code, out) == (1, "")
    assert err.startswith("kbkit: no knowledge base named 'none'")
    code, out, _ = finished(start("search"))
    assert (code, out) == (2, "")


def test_the_package_is_the_command():
    done = subprocess.run(
        [sys.executable, "-m", "kbkit", "--version"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout.strip().endswith(kbkit.__version__)) == (0, True)


@pytest.mark.slow
def test_any_text_can_be_printed_whatever_the_encoding(made):
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    arguments = ("--workspace", made, "search", "bread")
    found = json.loads(finished(start(*arguments, "--json", env=environment))[1])
    assert "ø 🍞" in found[0]["text"]
    code, out, _ = finished(start(*arguments, env=environment))
    assert code == 0
    assert "Bread" in out


@pytest.mark.slow
def test_a_reader_that_goes_away_is_no_error_to_talk_about(tmp_path):
    with kbkit.open(tmp_path) as workspace:
        kb = workspace.create("long")
        for number in range(3):
            kb.add(f"Long {number}", "word " * 40_000)
    process = start("--workspace", tmp_path, "documents", "long", "--jsonl")
    assert process.stdout.read(10).startswith('{"id"')
    process.stdout.close()
    assert process.wait(60) in (0, 1)
    assert process.stderr.read() == ""
    process.stderr.close()


@contextlib.contextmanager
def slow_site(seen):
    """A site whose pages take their time, and link to more of their kind."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            if not self.path.startswith("/page"):
                self.send_error(404)
                return
            seen.set()
            time.sleep(0.2)
            number = int(self.path.removeprefix("/page") or 0)
            text = PAGE.format(number, number + 1)
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            with contextlib.suppress(OSError):
                self.wfile.write(text.encode())

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/page0"
        server.shutdown()


def stored(folder):
    with sqlite3.connect(folder / "catalog.db") as connection:
        return connection.execute("SELECT count(*) FROM documents").fetchone()[0]


@pytest.mark.skipif(os.name == "nt", reason="sends an interrupt to one process")
def test_an_interrupt_is_130_and_keeps_what_was_read(tmp_path):
    seen = threading.Event()
    with slow_site(seen) as url:
        process = start("--workspace", tmp_path, "new", "slow", "--crawl", url, "--allow-private")
        assert seen.wait(120)
        until(lambda: stored(tmp_path))
        process.send_signal(signal.SIGINT)
        code, _, err = finished(process)
        assert code == 130
        assert "`kbkit refresh slow` continues it" in err
    with kbkit.open(tmp_path) as workspace:
        assert workspace["slow"].info().documents >= 1
        assert len(workspace.search("some words")) > 0


def on_a_terminal(*arguments, width=80, **variables):
    """What a command writes to a terminal."""
    controller, terminal = os.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": str(width), **variables}
    process = start(*arguments, stdout=terminal, stderr=subprocess.PIPE, env=environment)
    os.close(terminal)
    shown = b""
    with contextlib.suppress(OSError):  # what Linux says when nobody writes any more
        while part := os.read(controller, 65_536):
            shown += part
    os.close(controller)
    assert finished(process)[0] == 0
    return shown.decode()


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="needs a terminal of POSIX")
def test_on_a_terminal_titles_stand_out_and_no_color_has_no_codes(made):
    shown = {("search", "bread"): "\x1b[1mBread\x1b[0m", ("show", "food"): "\x1b"}
    for arguments, code in shown.items():
        assert code in on_a_terminal("--workspace", made, *arguments)
        assert "\x1b" not in on_a_terminal("--workspace", made, *arguments, NO_COLOR="1")


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="needs a terminal of POSIX")
def test_names_of_pages_keep_their_width_on_a_narrow_terminal(tmp_path):
    name = "a-rather-long-name-of-a-page.html"
    (tmp_path / name).write_text(PAGE.format(1, 2))
    narrow = on_a_terminal("fidelity", tmp_path).split()
    wide = on_a_terminal("fidelity", tmp_path, width=160)
    assert name in narrow
    assert re.search(rf"^{re.escape(name)} +\d", wide, re.MULTILINE)


@pytest.mark.skipif(os.name == "nt", reason="sends an interrupt to one process")
def test_a_site_is_served_until_interrupted(tmp_path):
    (tmp_path / "index.html").write_text("<p>hello</p>")
    process = start("serve-site", tmp_path, "--port", "0")
    url = next(word for word in process.stderr.readline().split() if word.startswith("http://"))
    with urllib.request.urlopen(url, timeout=10) as response:
        assert response.read() == b"<p>hello</p>"
    process.send_signal(signal.SIGINT)
    assert finished(process)[0] == 0


@pytest.fixture(scope="module")
def bound():
    """What to put before a command so that permissions bind it; they do not bind root."""
    if os.name == "nt":
        pytest.skip("needs POSIX permissions")
    if os.geteuid():
        return []
    if not shutil.which("setpriv"):
        pytest.skip("runs as root, and there is no setpriv to become somebody else")
    before = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    if subprocess.run([*before, sys.executable, "-c", "import kbkit.cli"], check=False).returncode:
        pytest.skip("runs as root, and others may not read this installation")
    return before


@pytest.fixture(scope="module")
def readonly():
    """A workspace that others may read and not write; pytest's own folders are root's alone."""
    folder = Path(tempfile.mkdtemp())
    with kbkit.open(folder / "kb") as workspace:
        workspace.create("notes").add("Tea", "Steep it.")
    folder.chmod(0o755)
    parts = [folder / "kb", *(folder / "kb").rglob("*")]
    for path in parts:
        path.chmod(0o555 if path.is_dir() else 0o444)
    yield folder / "kb"
    for path in parts:
        path.chmod(0o755)
    shutil.rmtree(folder)


@pytest.mark.parametrize(
    "command",
    [["list"], ["search", "tea"], ["new", "other"], ["delete", "notes", "--yes"]],
    ids=" ".join,
)
def test_a_workspace_that_cannot_be_written_is_explained(bound, readonly, command):
    code, out, err = finished(start("--workspace", readonly, *command, before=bound))
    assert (code, out) == (1, "")
    assert err.startswith("kbkit: ")
    assert str(readonly) in err
    assert "writ" in err


def test_a_workspace_that_may_not_be_entered_is_explained(bound, readonly):
    shut = readonly.with_name("shut")
    shut.mkdir(0o444)
    code, _, err = finished(start("--workspace", shut, "list", before=bound))
    assert code == 1
    assert err == f"kbkit: {shut}: Permission denied; name a folder that you may write to\n"


def test_a_workspace_that_cannot_be_made_is_explained(bound):
    code, _, err = finished(start("--workspace", "/proc/kb", "list", before=bound))
    assert code == 1
    assert "/proc/kb" in err
    assert "name a folder that you may write to" in err


@pytest.mark.slow
def test_watching_serves_the_site_and_ends_on_an_interrupt(tmp_path):
    (tmp_path / "a.md").write_text("# Apples\n\nThey are red.\n")
    (tmp_path / "recipe.yaml").write_text("name: fruit\nsources: [{type: files, path: '*.md'}]\n")
    process = start("watch", "recipe.yaml", "--port", "0", cwd=tmp_path)
    assert process.stderr is not None
    lines = iter(process.stderr.readline, "")
    address = next(line.split()[-1] for line in lines if line.startswith("serving it at"))
    with urllib.request.urlopen(f"{address}documents.json") as answer:
        assert [each["title"] for each in json.load(answer)["documents"]] == ["Apples"]
    (tmp_path / "b.md").write_text("# Bananas\n\nThey are yellow.\n")
    assert next(line for line in lines if line.startswith("wrote "))
    with urllib.request.urlopen(f"{address}llms.txt") as answer:
        assert b"Bananas" in answer.read()
    process.send_signal(signal.SIGINT)
    code, _, err = finished(process)
    assert (code, err) == (0, "")
