"""Commands of entries, with and without JSON."""

import json
import os
import pty
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from kbkit.cli import app
from tests.entries.conftest import write_files


@pytest.fixture
def run(tmp_path):
    runner = CliRunner()

    def call(*arguments, code=0, stdin=None):
        command = ["--workspace", str(tmp_path / "ws"), "entries", *arguments]
        result = runner.invoke(app, command, input=stdin)
        assert result.exit_code == code, (result.output, result.exception)
        return json.loads(result.stdout) if "--json" in arguments else result.output

    return call


def test_entry_commands(run, tmp_path):
    script = tmp_path / "run.py"
    script.write_text("print(1)\n")
    options = "--tag logs --tag nginx --prompt-file - --json --code"
    fields = ("--description", "Counts requests", *options.split(), str(script))
    entry = run("add", "Parse logs", *fields, stdin="One line each\n")
    assert (entry["slug"], entry["tags"]) == ("parse-logs", ["logs", "nginx"])
    assert entry["prompt"] == "One line each\n"
    assert "parse-logs" in run("list")
    assert run("list", "--tag", "none", "--json") == []
    assert "One line each" in run("show", "parse-logs")
    assert run("show", "parse-logs", "--file", "code/run.py") == "print(1)\n"
    assert "5 of 1 vote\n" in run("rate", "parse-logs", "5", "--rater", "anna")
    assert run("rate", "parse-logs", "4", "--json")["rating"]["average"] == 4.5
    changed = run("edit", "parse-logs", "--title", "Count", "--remove", "code/run.py", "--json")
    assert (changed["title"], changed["files"]) == ("Count", [])
    assert run("edit", "parse-logs", "--to", "count", "--json")["slug"] == "count"
    assert "1. Count (count)" in run("context", "count the requests")
    assert "wrote 1 skill:" in run("export", str(tmp_path / "skills"))
    assert run("export", str(tmp_path / "skills"), "--json") == [str(tmp_path / "skills/count")]
    run("rm", "count")
    assert [each["path"] for each in run("undelete", "--json")] == ["count"]
    assert "restored count" in run("undelete", "count")
    run("rm", "count", "--json")
    assert "imported count" in run("import", str(tmp_path / "skills"))
    assert run("import", str(tmp_path / "skills"), "--json")[0]["slug"] == "count"
    assert run("sync", "--json")["synced"] == 1


def test_learn_command(run, tmp_path):
    assert "skill.yaml" in run("learn")
    files = {"skill.yaml": "title: Learned\n", "prompt.md": "Do it\n"}
    write_files(tmp_path / "task/.knowledge", files)
    assert "learned learned" in run("learn", str(tmp_path / "task"), "--task-id", "t-1")
    assert run("show", "learned", "--json")["origin_task_id"] == "t-1"


def test_errors_have_hints(run):
    assert "give a title" in run("add", code=2)
    assert "--prompt" in run("add", "x", "--prompt", "a", "--prompt-file", "b", code=2)
    run("show", "nothing", code=1)
    run("rate", "nothing", "5", code=1)
    run("add", "One")
    assert "give a change" in run("edit", "one", code=2)
    run("rate", "one", "6", code=1)


def test_broken_file_is_reported(run, tmp_path):
    run("add", "One")
    path = tmp_path / "ws/entries/one/skill.yaml"
    path.write_text("title: [\n")
    assert "line 2, column 1" in run("sync")
    assert "line 2, column 1" in run("list")
    assert path.read_text() == "title: [\n"


@pytest.mark.slow
def test_add_asks_at_a_terminal(tmp_path):
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "kbkit", "--workspace", tmp_path / "ws", "entries", "add"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    process = subprocess.Popen([*command, "--json"], stdin=theirs, **pipes)
    os.close(theirs)
    os.write(ours, b"Parse logs\nCounts requests\nlogs, nginx\ndata\nOne line each\nwrong\ndraft\n")
    out, err = process.communicate(timeout=240)
    os.close(ours)
    assert process.returncode == 0, err
    entry = json.loads(out)
    assert (entry["title"], entry["description"]) == ("Parse logs", "Counts requests")
    assert (entry["tags"], entry["category"]) == (["logs", "nginx"], "data")
    assert (entry["prompt"], entry["status"]) == ("One line each", "draft")
    assert "Title" in err
