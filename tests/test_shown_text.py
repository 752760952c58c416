"""Text of others in a terminal and in files for programs: it steers nothing."""

from __future__ import annotations

import json
import sys

import pytest

import kbkit
from kbkit import cli
from kbkit.errors import InvalidNameError
from kbkit.export.pages.paths import safe_name
from kbkit.models.values import escaped_controls, plain, without_controls
from kbkit.recipes import check_name

STEERING = "\x1b]0;owned\x07\x9b2J\x85\u202e\u2066\u200f\u061c\ufeff\U000e0041\x7f"


def steers(text: str) -> list[str]:
    return [each for each in text if each in set(STEERING) - set("]0;owned2J")]


def test_what_steers_a_terminal_is_left_out_and_lines_stay():
    text = f"one{STEERING}\r\n\ttwo\x1b[31m"
    assert without_controls(text) == "one]0;owned2J\n\ttwo[31m"
    assert not steers(plain(text))
    assert without_controls(text, colours=True).endswith("two\x1b[31m")
    assert not steers(without_controls(text, colours=True)[:-5])
    assert without_controls("family 👨‍👩‍👧 and कर्‍") == "family 👨‍👩‍👧 and कर्‍"


def test_json_says_the_same_by_numbers():
    values = {f"a{STEERING}": [STEERING, "e\u0301"]}
    told = escaped_controls(json.dumps(values, ensure_ascii=False))
    assert not steers(told)
    assert json.loads(told) == values
    assert "e\u0301" in told


def test_no_command_shows_what_steers(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with kbkit.open(tmp_path / "kb") as workspace:
        notes = workspace.create("notes")
        notes.add(f"Title {STEERING}", f"Quinces {STEERING} are yellow.", source=f"x:{STEERING}")
        made = notes.export(folder=tmp_path / "out", build=False)
    commands = [
        ("documents", "notes"),
        ("documents", "notes", "--json"),
        ("documents", "notes", "--jsonl"),
        ("search", "quinces"),
        ("search", "quinces", "--json"),
        ("search", "quinces", "--jsonl"),
        ("context", "quinces"),
        ("context", "quinces", "--json"),
        ("show", f"x{STEERING}"),
    ]
    for command in commands:
        monkeypatch.setattr(sys, "argv", ["kbkit", *command])
        with pytest.raises(SystemExit):
            cli.main()
        told = capsys.readouterr()
        assert told.out + told.err
        assert not steers(told.out + told.err), command
    assert not steers(next(made.folder.rglob("llms-full.txt")).read_text("utf-8"))


@pytest.mark.parametrize("name", ["COM¹", "com²", "LPT³", "lpt1", "CON", "nul.txt", "COM¹.md"])
def test_names_of_devices_are_no_names_of_files(name):
    assert safe_name(name).startswith("_")


def test_no_knowledge_base_is_called_like_a_device(tmp_path):
    with kbkit.open(tmp_path / "kb") as workspace:
        workspace.create("fine")
        for name in ("con", "nul", "prn", "aux", "com1", "lpt9"):
            with pytest.raises(ValueError, match="is reserved by Windows"):
                check_name(name)
            with pytest.raises(InvalidNameError, match="is reserved by Windows"):
                workspace.create(name)
            with pytest.raises(InvalidNameError, match="is reserved by Windows"):
                workspace.rename("fine", to=name)
    assert check_name("console") == "console"
