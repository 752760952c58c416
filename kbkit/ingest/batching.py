"""Small work that waits for more of its kind, since a transaction for each would cost more."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self

_SECONDS = 0.5
"""Longest that anything waits."""


class Batch(ABC):
    """Work that is written together; used as a ``with`` block, at whose end all is written.

    Args:
        limit: Size, in any unit, at which it is written.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._size = 0
        self._since = 0.0

    def flush(self) -> None:
        """Write all that waits."""
        if self._size:
            self._size = 0
            self._write()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.flush()

    def _grow(self, size: int) -> None:
        """Take note of new work, and write when it is time."""
        now = time.monotonic()
        self._since = self._since if self._size else now
        self._size += max(1, size)
        if self._size >= self._limit or now - self._since >= _SECONDS:
            self.flush()

    @abstractmethod
    def _write(self) -> None:
        """Write all that waits, in one transaction."""
