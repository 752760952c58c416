"""Events: panels of one workspace in one process hear of what another one changed."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Literal

from kbkit.panels.homes import Home

Topic = Literal["ratings", "documents", "knowledge_bases", "graph"]
"""What can change."""

_subscribers: dict[Home, list[weakref.WeakMethod[Callable[[Topic], None]]]] = {}


def subscribe(home: Home, callback: Callable[[Topic], None]) -> None:
    """Call a bound method whenever a panel publishes that something in a workspace changed.

    Args:
        home: Where the workspace is.
        callback: A method of a panel, called with what changed. It is forgotten together with its
            panel, and must not raise.
    """
    _subscribers.setdefault(home, []).append(weakref.WeakMethod(callback))


def publish(home: Home, topic: Topic, *, sender: object = None) -> None:
    """Say that something in a workspace changed.

    Args:
        home: Where the workspace is.
        topic: What changed.
        sender: The panel that did it, which knows already.
    """
    alive = []
    for reference in _subscribers.get(home, []):
        callback = reference()
        if callback is not None:
            alive.append(reference)
            if getattr(callback, "__self__", None) is not sender:
                callback(topic)
    _subscribers[home] = alive
