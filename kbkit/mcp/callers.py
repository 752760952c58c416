"""Who calls a tool, and what they may do."""

from __future__ import annotations

from collections.abc import Collection
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Literal, Protocol

Scope = Literal["read", "write", "admin"]


class Caller(Protocol):
    """Who calls."""

    @property
    def scopes(self) -> Collection[str]:
        """What they may do: ``read``, ``write``, ``admin``."""

    @property
    def kbs(self) -> Collection[str] | None:
        """Knowledge bases that they are limited to; none: to nothing, files and entries neither."""


@dataclass(frozen=True, slots=True)
class LocalCaller:
    """Who started the server, on the same machine: may do what it has tools for."""

    scopes: Collection[str] = ("read", "write", "admin")
    kbs: Collection[str] | None = None


LOCAL = LocalCaller()
current_caller: ContextVar[Caller] = ContextVar("current_caller", default=LOCAL)
"""Who sent the message that is being answered."""
