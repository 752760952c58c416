"""Run parts of the gate one after the other, say how long each took and which need a package.

    python tests/gate.py [--second-chance] PART ...

A part is a target of the Makefile. All parts run, even when one fails. With `--second-chance`, up
to five failed tests run once more, alone and one after the other. Those that pass then are flaky:
they are printed, kept in build/flaky.txt, and do not fail the run.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BUILD = ROOT / "build" / "gate"
FLAKY = ROOT / "build" / "flaky.txt"
MAX_FLAKY = 5
CHROMIUMS = (
    "chromium",
    "chromium-browser",
    "google-chrome",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    # Playwright's own, on Linux and macOS
    *map(str, Path.home().glob(".cache/ms-playwright/chromium-*/*/chrome")),
    *map(str, Path.home().glob("Library/Caches/ms-playwright/chromium-*/*/*/Contents/MacOS/*")),
)
# programs of which one must be there, and the tests and Debian packages that they stand for
PROGRAMS = {CHROMIUMS: ("browser tests", "chromium"), ("npm",): ("JavaScript", "nodejs npm")}


def main() -> int:
    """Run the parts that the command line names; return 1 if one fails."""
    parts = [name for name in sys.argv[1:] if name != "--second-chance"]
    shutil.rmtree(BUILD, ignore_errors=True)
    times: dict[str, float] = {}
    failed = {name: failures(name) for name in parts if not run(name, times)}
    flaky = []
    if "--second-chance" in sys.argv and sum(map(len, failed.values())) <= MAX_FLAKY:
        for name, tests in list(failed.items()):
            if tests and run(name, times, again=True):
                flaky += failed.pop(name)
    BUILD.mkdir(parents=True, exist_ok=True)
    FLAKY.write_text("".join(f"{test}\n" for test in flaky), encoding="utf-8")
    print()
    for name, seconds in times.items():
        print(f"{name:16} {seconds:5.0f} s  {'FAILED' if name in failed else 'done'}")
    print(f"{'all':16} {sum(times.values()):5.0f} s")
    for test in flaky:
        print(f"FLAKY {test}")
    missing = [wanted for names, wanted in PROGRAMS.items() if not any(map(shutil.which, names))]
    if missing:
        print(f"Skipped: {', '.join(tests for tests, _ in missing)}. To run them on Debian:")
        print(f"  apt-get install {' '.join(packages for _, packages in missing)}")
    return int(bool(failed))


def run(name: str, times: dict[str, float], *, again: bool = False) -> bool:
    """Run a part, or only its failed tests again; return whether it passed."""
    command = ["make", "--no-print-directory", name, f"CACHE=build/gate/{name}"]
    if again:
        command += ["WORKERS=0", "AGAIN=--last-failed"]
    shown = f"{name} again" if again else name
    print(f"\n== {shown}", flush=True)
    start = time.monotonic()
    done = subprocess.run(command, cwd=ROOT, check=False)
    times[shown] = time.monotonic() - start
    return done.returncode == 0


def failures(name: str) -> list[str]:
    """Return the tests of a part that failed; none where the part ended for another reason."""
    noted = BUILD / name / "v"
    try:
        if json.loads((noted / "gate" / "exit").read_text("utf-8")) != 1:
            return []
        return sorted(json.loads((noted / "cache" / "lastfailed").read_text("utf-8")))
    except OSError:
        return []


if __name__ == "__main__":
    sys.exit(main())
