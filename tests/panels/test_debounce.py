import asyncio

from kbkit.panels.updates import Debouncer
from tests.panels.event_loop import LoopClock


def test_runs_at_once_without_an_event_loop():
    ran = []
    Debouncer(60, lambda: ran.append(1)).later()
    assert ran == [1]


def test_the_latest_call_wins():
    ran = []

    async def type_quickly():
        clock, debouncer = LoopClock(), Debouncer(0.3, lambda: ran.append(1))
        for _ in range(5):
            debouncer.later()
            await clock.go_on(0.2)
            assert ran == []
            assert debouncer.waiting
        await clock.go_on(0.2)
        assert not debouncer.waiting
        await clock.go_on(9)

    asyncio.run(type_quickly())
    assert len(ran) == 1


def test_now_does_not_run_again_later():
    ran = []

    async def press_enter():
        clock, debouncer = LoopClock(), Debouncer(0.3, lambda: ran.append(1))
        debouncer.later()
        debouncer.now()
        assert ran == [1]
        await clock.go_on(9)

    asyncio.run(press_enter())
    assert ran == [1]


def test_cancelled_work_does_not_run():
    ran = []

    async def leave():
        clock, debouncer = LoopClock(), Debouncer(0.3, lambda: ran.append(1))
        debouncer.later()
        debouncer.cancel()
        await clock.go_on(9)

    asyncio.run(leave())
    assert ran == []
