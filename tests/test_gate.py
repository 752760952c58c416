"""The script that runs the gate."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

MAKEFILE = f"""\
good wrong flaky ending:
	"{sys.executable}" -m pytest -q -o cache_dir=$(CACHE) $(AGAIN) test_$@.py
lint:
	exit 1
"""
TESTS = {
    "good": "def test_sum(): assert 1 + 1 == 2",
    "wrong": "def test_sum(): assert 1 + 1 == 3",
    # passes in its second run
    "flaky": "import os\ndef test_once():\n    first = not os.path.exists('ran')\n"
    "    open('ran', 'w').close()\n    assert not first",
    # ends before all tests have run
    "ending": "import pytest\ndef test_one(): assert 0\ndef test_two(): pytest.exit('no disk')",
}


def gate(folder: Path, *arguments: str) -> tuple[int, list[str]]:
    """Run the gate in a folder; return its exit code and the lines of its table."""
    for name, text in TESTS.items():
        (folder / f"test_{name}.py").write_text(text, encoding="utf-8")
    (folder / "Makefile").write_text(MAKEFILE, encoding="utf-8")
    (folder / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")  # ends the search for one
    (folder / "tests").mkdir()
    for name in ("gate.py", "conftest.py"):
        shutil.copy(Path(__file__).with_name(name), folder / ("tests" if name == "gate.py" else ""))
    command = [sys.executable, "tests/gate.py", *arguments]
    alone = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # plugins take a second to load
    done = subprocess.run(
        command, cwd=folder, env=alone, capture_output=True, text=True, check=False
    )
    table = [" ".join(line.split()) for line in done.stdout.rpartition("\n\n")[2].splitlines()]
    return done.returncode, table


def outcomes(lines: list[str]) -> list[tuple[str, str]]:
    words = [line.split() for line in lines]
    return [(" ".join(found[:-3]), found[-1]) for found in words if found[-1] in ("done", "FAILED")]


def test_all_parts_run_and_a_failure_fails_the_gate(tmp_path):
    code, lines = gate(tmp_path, "wrong", "lint", "good")
    assert code == 1
    assert outcomes(lines) == [("wrong", "FAILED"), ("lint", "FAILED"), ("good", "done")]


@pytest.mark.slow
def test_passing_second_run_is_flaky(tmp_path):
    code, lines = gate(tmp_path, "--second-chance", "flaky", "good")
    assert code == 0
    assert outcomes(lines) == [("flaky", "done"), ("good", "done"), ("flaky again", "done")]
    assert "FLAKY test_flaky.py::test_once" in lines
    assert (tmp_path / "build/flaky.txt").read_text("utf-8") == "test_flaky.py::test_once\n"


def test_failing_second_run_fails_the_gate(tmp_path):
    code, lines = gate(tmp_path, "--second-chance", "wrong", "flaky")
    assert code == 1
    assert ("wrong", "FAILED") in outcomes(lines)
    assert "FLAKY test_flaky.py::test_once" in lines


def test_aborted_run_gets_no_second_chance(tmp_path):
    code, lines = gate(tmp_path, "--second-chance", "ending")
    assert code == 1
    assert outcomes(lines) == [("ending", "FAILED")]
