"""A module of Python's as a program of its own."""

from __future__ import annotations

import os
import subprocess
import sys


def run_python(module: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a module with this interpreter, to its end; what it says is kept, as UTF-8.

    Args:
        module: As ``python -m`` calls it.
        arguments: What it is given.
    """
    # -P: a module in the working folder must not be taken for a library
    return subprocess.run(  # noqa: S603  # our own interpreter, no shell
        [sys.executable, "-P", "-m", module, *arguments],
        check=False,
        capture_output=True,
        text=True,
        encoding="utf-8",
        errors="replace",
        stdin=subprocess.DEVNULL,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "true", "PYTHONUTF8": "1"},
    )
