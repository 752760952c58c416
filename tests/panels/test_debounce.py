import asyncio

from kbkit.panels.debounce import Debouncer


def test_runs_at_once_without_an_event_loop():
    ran = []
    Debouncer(60, lambda: ran.append(1)).later()
    assert ran == [1]


def test_the_latest_call_wins():
    ran = []

    async def type_quickly():
        debouncer = Debouncer(0.03, lambda: ran.append(asyncio.get_running_loop().time()))
        for _ in range(5):
            debouncer.later()
            await asyncio.sleep(0.005)
            assert ran == []
            assert debouncer.waiting
        await asyncio.sleep(0.08)
        assert not debouncer.waiting

    asyncio.run(type_quickly())
    assert len(ran) == 1


def test_now_does_not_run_again_later():
    ran = []

    async def press_enter():
        debouncer = Debouncer(0.01, lambda: ran.append(1))
        debouncer.later()
        debouncer.now()
        assert ran == [1]
        await asyncio.sleep(0.04)

    asyncio.run(press_enter())
    assert ran == [1]


def test_cancelled_work_does_not_run():
    ran = []

    async def leave():
        debouncer = Debouncer(0.01, lambda: ran.append(1))
        debouncer.later()
        debouncer.cancel()
        await asyncio.sleep(0.04)

    asyncio.run(leave())
    assert ran == []
