"""Work that can wait a moment, and is then done once for all who wanted it."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable

from kbkit.errors import KbkitError

_SECONDS = 1.0


class Later:
    """Does work at once, or, where a server gathers it, within about a second in a thread.

    What waits when the process is killed has to be found again by who needs it.
    """

    def __init__(self) -> None:
        self._waiting: dict[str, Callable[[], None]] = {}
        self._mutex = threading.Lock()
        self._at_work = threading.Lock()
        self._timer: threading.Timer | None = None
        self._gathers = False

    def gather(self, *, more: bool = True) -> None:
        """Let work wait from now on; or no more, and do what waits."""
        self._gathers = more
        if not more:
            self.finish()

    def do(self, key: str, work: Callable[[], None]) -> None:
        """Do it, or let it wait.

        Args:
            key: Whoever asks by the same one meanwhile is served by the last work handed over.
            work: An error of kbkit reaches nobody where the work has waited.
        """
        if not self._gathers:
            work()
            return
        with self._mutex:
            self._waiting[key] = work
            if self._timer is None:
                self._timer = threading.Timer(_SECONDS, self.finish)
                self._timer.daemon = True
                self._timer.start()

    def finish(self) -> None:
        """Do what waits, and wait for what is being done."""
        with self._at_work:
            with self._mutex:
                waiting, self._waiting, self._timer = self._waiting, {}, None
            for work in waiting.values():
                with contextlib.suppress(KbkitError):  # deleted meanwhile, or its model is away
                    work()
