"""Turns: of many who search at once, two compute, and the others come after them.

Python computes in one thread at a time. Where all who search take turns, each is done when nearly
all are; come first served first, each is done sooner on average.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

_MOST_SECONDS = 0.25
_places = threading.BoundedSemaphore(2)
"""Two, since products of numpy and models run beside another's Python."""


@contextmanager
def computing() -> Iterator[None]:
    """Have one of the places while the block runs.

    Who waits for long goes on without one: others may wait for an embedder that is a service.
    """
    has_place = _places.acquire(timeout=_MOST_SECONDS)
    try:
        yield
    finally:
        if has_place:
            _places.release()
