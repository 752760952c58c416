"""Changes of a panel's workspace: publishing, polling and debouncing."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from kbkit.client.knowledge_base import RemoteKnowledgeBase
    from kbkit.client.workspace import RemoteWorkspace
    from kbkit.knowledge_base import KnowledgeBase
    from kbkit.workspace import Workspace

Home: TypeAlias = Path | str
"""Folder of a workspace, or address of its server."""

AnyWorkspace: TypeAlias = "Workspace | RemoteWorkspace"
AnyBase: TypeAlias = "KnowledgeBase | RemoteKnowledgeBase"
AnyTarget: TypeAlias = "Workspace | RemoteWorkspace | KnowledgeBase | RemoteKnowledgeBase"


def home_of(target: AnyTarget) -> Home:
    home: Home = target.path if is_local(target) else target.url  # type: ignore[union-attr]
    return home


def is_local(target: object) -> bool:
    return hasattr(type(target), "path")


Topic = Literal["ratings", "documents", "knowledge_bases", "graph"]

_subscribers: dict[Home, list[weakref.WeakMethod[Callable[[Topic], None]]]] = {}


def subscribe(home: Home, callback: Callable[[Topic], None]) -> None:
    _subscribers.setdefault(home, []).append(weakref.WeakMethod(callback))


def publish(home: Home, topic: Topic, *, sender: object = None) -> None:
    alive = []
    for reference in _subscribers.get(home, []):
        callback = reference()
        if callback is not None:
            alive.append(reference)
            if getattr(callback, "__self__", None) is not sender:
                callback(topic)
    _subscribers[home] = alive


def running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


class Watch:
    """Calls a method of a panel periodically while the panel lives; needs an event loop."""

    def __init__(self, look: Callable[[], None], interval: float = 1.0) -> None:
        self._look = weakref.WeakMethod(look)
        self._interval = interval
        self._timer: asyncio.TimerHandle | None = None
        self._next()

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _next(self) -> None:
        if (loop := running_loop()) is not None:
            self._timer = loop.call_later(self._interval, self._run)

    def _run(self) -> None:
        if (look := self._look()) is not None:
            look()
            self._next()


class Debouncer:
    """Runs an action after a pause in its calls, from a timer of the event loop.

    Without an event loop (a script, a test) it runs at once.
    """

    def __init__(self, delay: float, action: Callable[[], None]) -> None:
        self.delay = delay
        self._action = action
        self._timer: asyncio.TimerHandle | None = None

    @property
    def waiting(self) -> bool:
        return self._timer is not None

    def later(self) -> None:
        """Run the action after the delay, in place of an earlier call."""
        self.cancel()
        loop = running_loop() if self.delay > 0 else None
        if loop is None:
            self._action()
        else:
            self._timer = loop.call_later(self.delay, self.now)

    def now(self) -> None:
        self.cancel()
        self._action()

    def cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
