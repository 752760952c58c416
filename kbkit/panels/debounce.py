"""Debounce typing without blocking the kernel."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class Debouncer:
    """Runs an action once its caller has been quiet for a while; the latest call wins.

    Where an event loop runs (a Jupyter kernel), the action runs from a timer of that loop, in
    the kernel's own thread, so no lock is needed and no cell is interrupted. Where none runs (a
    script, a test) it runs at once.
    """

    def __init__(self, delay: float, action: Callable[[], None]) -> None:
        self.delay = delay
        self._action = action
        self._timer: asyncio.TimerHandle | None = None

    @property
    def waiting(self) -> bool:
        return self._timer is not None

    def later(self) -> None:
        """Run the action after the delay, counted from this call; without a delay, at once."""
        self.cancel()
        if self.delay <= 0:
            self._action()
            return
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            self._action()
        else:
            self._timer = loop.call_later(self.delay, self.now)

    def now(self) -> None:
        """Run the action at once, instead of later."""
        self.cancel()
        self._action()

    def cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
