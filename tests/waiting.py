"""Waiting for another thread or process."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

Found = TypeVar("Found")


def until(condition: Callable[[], Found], seconds: float = 120, pause: float = 0.02) -> Found:
    """Wait until a condition is true, and return its value; fail after a long time."""
    ends = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < ends, f"waited {seconds:g} s in vain"
        time.sleep(pause)
    return found


def start(code: str, *arguments: object) -> subprocess.Popen[str]:
    """Start Python code that waits for `begin` where it has ``WAIT``."""
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[1],
    )


WAIT = """
print("ready", flush=True)
sys.stdin.readline()
"""


def begin(*processes: Any) -> None:
    """Let processes go on at once, when all are ready."""
    for process in processes:
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        process.stdin.write("go\n")
        process.stdin.flush()
