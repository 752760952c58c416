"""Logs are off by default and contain no keys."""

from __future__ import annotations

import json
import logging
import signal
import subprocess
import sys

import pytest

import kbkit
from kbkit.runtime import logs


@pytest.fixture
def configured():
    """Configures logs, and restores them afterwards."""
    root, ours = logging.getLogger(), logging.getLogger("kbkit")
    levels = root.level, ours.level
    yield logs.configure
    root.removeHandler(logs._handler)
    root.setLevel(levels[0])
    ours.setLevel(levels[1])


def logged(capsys) -> list[str]:
    return capsys.readouterr().err.splitlines()


def test_library_logs_nothing_by_default():
    code = "from kbkit.stores import vector_index; vector_index._log.error('loud')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("", "")


def test_log_levels_of_a_program(configured, capsys):
    log = logging.getLogger("kbkit.sources")
    for level, lines in (
        (-1, ["kbkit: e"]),
        (0, ["kbkit: w", "kbkit: e"]),
        (1, ["kbkit: d", "kbkit: w", "kbkit: e"]),
    ):
        configured(level)
        log.debug("d")
        log.warning("w")
        log.error("e")
        logging.getLogger("other").info("not ours")
        assert logged(capsys) == lines


def test_json_logs_have_no_keys_or_control_characters(configured, capsys, monkeypatch):
    monkeypatch.setenv("THEIR_API_KEY", "geheimnis-1")
    configured(as_json=True)
    try:
        raise ValueError("refused: geheimnis-1")
    except ValueError:
        logging.getLogger("kbkit.x").exception("failed with %s\n\x1b[2J", "sk-live-123456")
    logging.getLogger("kbkit.x").info(
        "GET https://me:pass@h/a?page=2&access_token=abcdef&x=1, Authorization: Bearer abc.def"
    )
    lines = logged(capsys)
    first, second = map(json.loads, lines)
    assert first.keys() == {"time", "level", "logger", "message", "exception"}
    assert (first["level"], first["logger"]) == ("error", "kbkit.x")
    assert "ValueError: refused: ***" in first["exception"]
    assert second["message"].startswith("GET https://***h/a?page=2&***&x=1, Authorization: ***")
    for secret in ("geheimnis", "sk-live", "me:pass", "abcdef", "abc.def", "\x1b"):
        assert not any(secret in line for line in lines), secret


def test_plain_log_message_is_one_line(configured, capsys):
    configured()
    logging.getLogger("kbkit.x").warning("one\ntwo\x1b[31m\u202e three")
    assert logged(capsys) == ["kbkit: one two [31m three"]


@pytest.mark.local
@pytest.mark.parametrize(
    ("command", "code", "message"),
    [
        (["search", "tea", "--kb", "no-such"], 1, "no-such"),
        pytest.param(["search", "tea", "--limit", "many"], 2, "--limit", marks=pytest.mark.slow),
        pytest.param(["no-such-command"], 2, "no-such-command", marks=pytest.mark.slow),
        (["search", "tea"], 0, "searched notes (hybrid): 1 hits in "),
        pytest.param(["add", "notes", "--files", "tea.md"], 0, "", marks=pytest.mark.slow),
    ],
)
def test_json_logs_of_commands(tmp_path, command, code, message):
    with kbkit.open(tmp_path) as workspace:
        workspace.create("notes").add("Tea", "Green tea.")
    (tmp_path / "tea.md").write_text("# Oolong\n\nOolong tea.\n")
    run = [sys.executable, "-m", "kbkit", "--workspace", str(tmp_path), "--log-json", *command]
    done = subprocess.run(run, capture_output=True, text=True, check=False, cwd=tmp_path)
    lines = [json.loads(line) for line in done.stderr.splitlines()]
    assert done.returncode == code
    assert message in " ".join(line["message"] for line in lines)
    assert all(line["level"] == "error" for line in lines if code and message in line["message"])


WITH_COMMAND = """
import signal, sys, threading
from kbkit.cli import app, main

def fail():
    raise ZeroDivisionError("of sk-live-123456")

def fail_in_a_thread():
    thread = threading.Thread(target=fail)
    thread.start()
    thread.join()

class Odd:
    def __del__(self):
        fail()

what = sys.argv.pop()
commands = {"error": fail, "thread": fail_in_a_thread, "finalizer": lambda: (Odd(), None)[1],
            "interrupt": lambda: None}
app.command(name="now")(commands[what])
try:
    main()
finally:
    if what == "interrupt":
        signal.raise_signal(signal.SIGINT)
"""


def ended(what):
    """Return the log of a process and its exit status."""
    run = [sys.executable, "-c", WITH_COMMAND, "--log-json", "now", what]
    done = subprocess.run(run, capture_output=True, text=True, check=False)
    return [json.loads(line) for line in done.stderr.splitlines()], done.returncode


@pytest.mark.local
@pytest.mark.parametrize(("what", "code"), [("error", 1), ("thread", 0), ("finalizer", 0)])
def test_uncaught_exception_is_logged_as_json(what, code):
    (line,), status = ended(what)
    assert (line["level"], line["message"]) == ("critical", "unexpected ZeroDivisionError")
    assert "in fail\n" in line["exception"]
    assert "sk-live" not in line["exception"]
    assert status == code


@pytest.mark.local
def test_interrupt_is_logged_as_json():
    (line,), status = ended("interrupt")
    assert (line["message"], status) == ("interrupted", -signal.SIGINT)
