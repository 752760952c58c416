"""Work that takes long: a client hears how far it is, and may cancel it."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from anyio import from_thread
from mcp.server.mcpserver import Context

_TELL_SECONDS = 0.1
"""Between two times that a client is told: more often only keeps both busy."""


class LongWork:
    """What a tool does that takes long; it runs on a thread of the server's.

    Args:
        context: Of the request.

    Attributes:
        total: Steps in all, as far as known.
    """

    def __init__(self, context: Context[Any, Any]) -> None:
        self._context = context
        self._done = 0
        self._told_at = float("-inf")
        self.total: int | None = None

    @property
    def done(self) -> int:
        """Steps so far."""
        return self._done

    def cancelled(self) -> bool:
        """Whether the client does not want it any more, or has gone."""
        try:
            from_thread.check_cancelled()
        except asyncio.CancelledError:
            return True
        return False

    def step(self, message: str = "") -> None:
        """One step is done.

        Args:
            message: What it was about.
        """
        self._done += 1
        now = time.monotonic()
        if now - self._told_at < _TELL_SECONDS and self._done != self.total:
            return
        self._told_at = now
        if self.cancelled():
            return
        try:
            from_thread.run(
                self._context.report_progress, float(self._done), self.total, message[:200]
            )
        except asyncio.CancelledError:  # `cancelled` says so from now on
            return
