"""Streams, signals and permissions of the command line."""

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
import urllib.request
from pathlib import Path

import pytest

import kbkit
from tests.waiting import until

PAGE = "<html><head><title>Page</title></head><body><main><h1>Page</h1><p>It has words.</p></main>"


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    folder = tmp_path_factory.mktemp("filled") / "kb"
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
def test_only_results_go_to_standard_output(filled):
    code, out, err = finished(start("--workspace", filled, "search", "bread", "--json"))
    assert (code, json.loads(out)[0]["title"], err) == (0, "Bread", "")
    code, out, err = finished(start("--workspace", filled, "show", "none", "--json"))
    assert (code, out) == (1, "")
    assert err.startswith("kbkit: no knowledge base named 'none'")
    code, out, _ = finished(start("search"))
    assert (code, out) == (2, "")


def test_package_runs_as_a_command():
    code, out, _ = finished(start("--version"))
    assert (code, out.strip().endswith(kbkit.__version__)) == (0, True)


@pytest.mark.slow
def test_text_is_printed_in_any_encoding(filled):
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    arguments = ("--workspace", filled, "search", "bread")
    found = json.loads(finished(start(*arguments, "--json", env=environment))[1])
    assert "ø 🍞" in found[0]["text"]
    code, out, _ = finished(start(*arguments, env=environment))
    assert code == 0
    assert "Bread" in out


@pytest.mark.slow
def test_closed_pipe_is_no_error(tmp_path):
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


def stored(folder):
    address = f"file:{folder}/catalog.db?mode=ro"
    with (
        contextlib.suppress(sqlite3.OperationalError),  # until the catalog exists
        contextlib.closing(sqlite3.connect(address, uri=True)) as connection,
    ):
        return connection.execute("SELECT count(*) FROM documents").fetchone()[0]
    return 0


@pytest.mark.skipif(os.name == "nt", reason="sends an interrupt to one process")
def test_interrupt_exits_with_130_and_keeps_documents(tmp_path, slow_site):
    crawl = ("--crawl", slow_site, "--allow-private")
    process = start("--workspace", tmp_path, "new", "slow", *crawl)
    until(lambda: stored(tmp_path))
    process.send_signal(signal.SIGINT)
    code, _, err = finished(process)
    assert code == 130
    assert "`kbkit refresh slow` continues it" in err
    with kbkit.open(tmp_path) as workspace:
        assert workspace["slow"].info().documents >= 1
        assert len(workspace.search("gardens")) > 0


def on_a_terminal(*arguments, width=80, **variables):
    """Return the output of a command on a terminal."""
    controller, terminal = os.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": str(width), **variables}
    process = start(*arguments, stdout=terminal, stderr=subprocess.PIPE, env=environment)
    os.close(terminal)
    shown = b""
    with contextlib.suppress(OSError):  # on Linux, the end of the output
        while part := os.read(controller, 65_536):
            shown += part
    os.close(controller)
    assert finished(process)[0] == 0
    return shown.decode()


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="needs a terminal of POSIX")
def test_titles_are_bold_on_a_terminal_without_no_color(filled):
    shown = {("search", "bread"): "\x1b[1mBread\x1b[0m", ("show", "food"): "\x1b"}
    for arguments, code in shown.items():
        assert code in on_a_terminal("--workspace", filled, *arguments)
        assert "\x1b" not in on_a_terminal("--workspace", filled, *arguments, NO_COLOR="1")


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="needs a terminal of POSIX")
def test_page_names_are_not_cut_on_a_narrow_terminal(tmp_path):
    name = "a-rather-long-name-of-a-page.html"
    (tmp_path / name).write_text(PAGE)
    narrow = on_a_terminal("fidelity", tmp_path).split()
    wide = on_a_terminal("fidelity", tmp_path, width=160)
    assert name in narrow
    assert re.search(rf"^{re.escape(name)} +\d", wide, re.MULTILINE)


@pytest.mark.skipif(os.name == "nt", reason="sends an interrupt to one process")
def test_site_is_served_until_interrupted(tmp_path):
    (tmp_path / "index.html").write_text("<p>hello</p>")
    process = start("serve-site", tmp_path, "--port", "0")
    url = next(word for word in process.stderr.readline().split() if word.startswith("http://"))
    with urllib.request.urlopen(url, timeout=10) as response:
        assert response.read() == b"<p>hello</p>"
    process.send_signal(signal.SIGINT)
    assert finished(process)[0] == 0


@pytest.fixture(scope="module")
def bound():
    """A prefix of commands that gives up the permissions of root."""
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
    """A workspace without write permission, outside of pytest's private folders."""
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
def test_readonly_workspace_is_an_error(bound, readonly, command):
    code, out, err = finished(start("--workspace", readonly, *command, before=bound))
    assert (code, out) == (1, "")
    assert err.startswith("kbkit: ")
    assert str(readonly) in err
    assert "writ" in err


def test_closed_folder_is_an_error(bound, readonly):
    closed = readonly.with_name("closed")
    closed.mkdir(0o444)
    code, _, err = finished(start("--workspace", closed, "list", before=bound))
    assert code == 1
    assert err == f"kbkit: {closed}: Permission denied; name a folder that you may write to\n"


def test_workspace_that_cannot_be_created_is_an_error(bound):
    code, _, err = finished(start("--workspace", "/proc/kb", "list", before=bound))
    assert code == 1
    assert "/proc/kb" in err
    assert "name a folder that you may write to" in err


@pytest.mark.slow
def test_watch_serves_the_site_until_interrupted(tmp_path):
    (tmp_path / "a.md").write_text("# Apples\n\nThey are red.\n")
    (tmp_path / "recipe.yaml").write_text("name: fruit\nsources: [{type: files, path: '*.md'}]\n")
    process = start("watch", "recipe.yaml", "--port", "0", cwd=tmp_path)
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
