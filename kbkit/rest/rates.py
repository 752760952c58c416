"""How often somebody may ask: a bucket of tokens each."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from kbkit.errors import LimitError

_MOST = 10_000
"""Callers that are remembered; those who have been quiet for longest are forgotten."""


class Rates:
    """Counts requests of callers.

    Args:
        rate: Requests a second, in the long run; 0 for any number.
        burst: Requests at once.
        clock: Gives seconds that never go back.
    """

    def __init__(
        self, rate: float, burst: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._clock = clock
        self._rate = rate
        self._burst = float(max(burst, 1))
        self._left: dict[str, tuple[float, float]] = {}

    def take(self, caller: str) -> None:
        """Count a request.

        Raises:
            LimitError: It is one too many; says when to ask again.
        """
        if not self._rate:
            return
        now = self._clock()
        left, then = self._left.pop(caller, (self._burst, now))
        left = min(self._burst, left + (now - then) * self._rate)
        if len(self._left) >= _MOST:
            del self._left[next(iter(self._left))]
        self._left[caller] = max(left - 1, 0.0) if left >= 1 else left, now
        if left < 1:
            wait = max(1, math.ceil((1 - left) / self._rate))
            raise LimitError(
                f"more than {self._rate:g} requests a second; ask again in {wait} s", wait
            )
