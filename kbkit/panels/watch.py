"""Poll for changes in the kernel's own thread."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Callable


class Watch:
    """Calls a method of a panel again and again while the panel lives and cells leave it time.

    Where no event loop runs (a script, a test) nobody looks: call the method there.
    """

    def __init__(self, look: Callable[[], None], interval: float = 1.0) -> None:
        self._look = weakref.WeakMethod(look)
        self._interval = interval
        self._timer: asyncio.TimerHandle | None = None
        self._next()

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _next(self) -> None:
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return
        self._timer = loop.call_later(self._interval, self._run)

    def _run(self) -> None:
        if (look := self._look()) is not None:
            look()
            self._next()
