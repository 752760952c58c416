"""Put each fault of ``tests/mutants.toml`` in place by itself, and run its tests.

    python tests/mutants.py [--floor 0.85] [WORD ...]

Works in copies. Fails if tests fail without a fault, or if they notice fewer of the faults than the
floor. Prints the faults that no test notices. Words choose the faults that contain them.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue

ROOT = Path(__file__).parents[1]
_LEFT_OUT = {".git", ".venv", "node_modules", "build", ".hypothesis", ".mypy_cache"}
_KINDS = "not browser and not soak"
_LONGEST = 600
"""Seconds after which tests that a fault keeps from ending are stopped."""


def load() -> list[dict[str, str]]:
    """Read the faults; each ``before`` occurs once in its file."""
    faults = tomllib.loads((ROOT / "tests/mutants.toml").read_text("utf-8"))["mutant"]
    for each in faults:
        if (ROOT / each["file"]).read_text("utf-8").count(each["before"]) != 1:
            sys.exit(f"{each['fault']}: {each['file']} does not contain its `before` once")
    return faults


def passes(copy: Path, tests: list[str], seconds: float | None = _LONGEST) -> bool:
    """Run tests in a copy; those that do not end in time have failed."""
    options = ["-x", "-q", "--tb=no", "-p", "no:cacheprovider", "-m", _KINDS]
    environment = os.environ | {
        "PYTHONPATH": str(copy),
        "PYTHONDONTWRITEBYTECODE": "1",  # a fault may be as old and as long as its original
        "OMP_NUM_THREADS": "1",
    }
    try:
        run = subprocess.run(
            [sys.executable, "-m", "pytest", *options, *tests],
            cwd=copy,
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return False
    return run.returncode == 0


def main() -> None:
    """Try the faults, two at a time."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("words", nargs="*", metavar="WORD")
    parser.add_argument("--floor", type=float, default=0.0, help="share that has to be noticed")
    given = parser.parse_args()
    faults = [f for f in load() if all(word in f["fault"] for word in given.words)]
    if not faults:
        parser.error("no fault contains all of these words")
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(2) as pool:
        copies: SimpleQueue[Path] = SimpleQueue()
        for number in range(2):
            copies.put(Path(folder) / str(number) / "kbkit")

        def survives(fault: dict[str, str]) -> bool:
            copy = copies.get()
            shutil.rmtree(copy, ignore_errors=True)
            shutil.copytree(ROOT, copy, ignore=lambda _, names: _LEFT_OUT.intersection(names))
            place = copy / fault["file"]
            place.write_text(place.read_text("utf-8").replace(fault["before"], fault["after"]))
            survived = passes(copy, list(fault["tests"]))
            copies.put(copy)
            print("SURVIVES" if survived else "noticed ", fault["fault"], flush=True)
            return survived

        tests = sorted({test for fault in faults for test in fault["tests"]})
        if not passes(ROOT, tests, None):
            sys.exit(f"without a fault, these fail: python -m pytest {' '.join(tests)}")
        survivors = sum(pool.map(survives, faults))
    share = 1 - survivors / len(faults)
    print(f"{len(faults)} faults, {survivors} survive: {share:.0%} are noticed")
    if share < given.floor:
        sys.exit(f"fewer than {given.floor:.0%}")


if __name__ == "__main__":
    main()
