"""In step: panels of one workspace in one process hear of what another one changed."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from pathlib import Path

_listening: dict[Path, list[weakref.WeakMethod[Callable[[str], None]]]] = {}


def listen(place: Path, heard: Callable[[str], None]) -> None:
    """Call a bound method whenever a panel says that something in a workspace changed.

    Args:
        place: The workspace's folder.
        heard: A method of a panel, called with what changed: ``ratings``, ``documents`` or
            ``knowledge_bases``. It is forgotten together with its panel, and must not raise.
    """
    _listening.setdefault(place, []).append(weakref.WeakMethod(heard))


def tell(place: Path, what: str, *, but: object = None) -> None:
    """Say that something in a workspace changed.

    Args:
        place: The workspace's folder.
        what: ``ratings``, ``documents`` or ``knowledge_bases``.
        but: The panel that did it, which knows already.
    """
    alive = []
    for reference in _listening.get(place, []):
        method = reference()
        if method is not None:
            alive.append(reference)
            if getattr(method, "__self__", None) is not but:
                method(what)
    _listening[place] = alive
