"""Events between the panels of a workspace in one process."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Literal

from kbkit.panels.homes import Home

Topic = Literal["ratings", "documents", "knowledge_bases", "graph"]
"""Topics of changes."""

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
