"""An event loop with a clock that tests advance."""

import asyncio


class LoopClock:
    """Stops the clock of the running event loop."""

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self._now = loop.time()
        loop.time = lambda: self._now  # type: ignore[method-assign]

    async def go_on(self, seconds: float) -> None:
        """Advance the clock, and run what is due."""
        self._now += seconds
        for _ in range(3):  # for the timer, its callback and what that scheduled
            await asyncio.sleep(0)
