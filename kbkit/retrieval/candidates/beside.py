"""Run a retriever in a thread, beside others."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TypeVar

Found = TypeVar("Found")
_MAX = 8
"""Threads: two legs of each of the few searches that compute at once."""


def beside(find: Callable[[], Found], *, worth: bool) -> Callable[[], Found]:
    """Start a search in a thread; the returned function waits for it, and raises its error."""
    return _threads().submit(find).result if worth else find


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_MAX, thread_name_prefix="kbkit-legs")
