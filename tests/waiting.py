"""Waiting for another thread or process."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

Found = TypeVar("Found")


def until(condition: Callable[[], Found], seconds: float = 120, pause: float = 0.02) -> Found:
    """Wait until a condition is true, and return its value; fail after a long time."""
    ends = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < ends, f"waited {seconds:g} s in vain"
        time.sleep(pause)
    return found
