"""An event loop whose clock goes on only when a test says so."""

import asyncio


class LoopClock:
    """The clock of the running event loop, which stands still from now on."""

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self._now = loop.time()
        loop.time = lambda: self._now  # type: ignore[method-assign]

    async def go_on(self, seconds: float) -> None:
        """Let some time pass, and what is due by then run."""
        self._now += seconds
        for _ in range(3):  # it is due, it runs, and what it called runs
            await asyncio.sleep(0)
