"""Waiting for what another thread or process does."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

Found = TypeVar("Found")


def until(condition: Callable[[], Found], seconds: float = 120, pause: float = 0.02) -> Found:
    """Wait for a condition to hold, and give what it gave; late is wrong on any machine.

    Raises:
        AssertionError: It does not hold in that time.
    """
    ends = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < ends, f"waited {seconds:g} s in vain"
        time.sleep(pause)
    return found
