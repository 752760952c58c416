"""Terminal controls in untrusted text, and device names."""

import json
import sys

import pytest

import kbkit
from kbkit import cli
from kbkit.errors import InvalidNameError
from kbkit.export.pages.paths import safe_name
from kbkit.models.values import escape_controls, plain, without_controls
from kbkit.recipes import check_name

STEERING = "\x1b]0;owned\x07\x9b2J\x85\u202e\u2066\u200f\u061c\ufeff\U000e0041\x7f"


def steers(text: str) -> list[str]:
    return [each for each in text if each in set(STEERING) - set("]0;owned2J")]


def test_terminal_controls_are_removed():
    text = f"one{STEERING}\r\n\ttwo\x1b[31m"
    assert without_controls(text) == "one]0;owned2J\n\ttwo[31m"
    assert not steers(plain(text))
    assert without_controls(text, colours=True).endswith("two\x1b[31m")
    assert not steers(without_controls(text, colours=True)[:-5])
    assert without_controls("family 👨‍👩‍👧 and कर्‍") == "family 👨‍👩‍👧 and कर्‍"


def test_json_escapes_terminal_controls():
    values = {f"a{STEERING}": [STEERING, "e\u0301"]}
    text = escape_controls(json.dumps(values, ensure_ascii=False))
    assert not steers(text)
    assert json.loads(text) == values
    assert "e\u0301" in text


def test_commands_print_no_terminal_controls(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with kbkit.open(tmp_path / "kb") as workspace:
        notes = workspace.create("notes")
        notes.add(f"Title {STEERING}", f"Quinces {STEERING} are yellow.", source=f"x:{STEERING}")
        export = notes.export(folder=tmp_path / "out", build=False)
    formats = ([], ["--json"], ["--jsonl"])
    commands = [
        *(("documents", "notes", *form) for form in formats),
        *(("search", "quinces", *form) for form in formats),
        *(("context", "quinces", *form) for form in formats[:2]),
        ("show", f"x{STEERING}"),
    ]
    for command in commands:
        monkeypatch.setattr(sys, "argv", ["kbkit", *command])
        with pytest.raises(SystemExit):
            cli.main()
        output = "".join(capsys.readouterr())
        assert output
        assert not steers(output), command
    assert not steers(next(export.folder.rglob("llms-full.txt")).read_text("utf-8"))


@pytest.mark.parametrize("name", ["COM¹", "com²", "LPT³", "lpt1", "CON", "nul.txt", "COM¹.md"])
def test_device_names_are_changed_in_file_names(name):
    assert safe_name(name).startswith("_")


def test_device_names_are_refused_for_knowledge_bases(tmp_path):
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
