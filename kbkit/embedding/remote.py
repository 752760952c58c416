"""Models that are asked over a network: what may pass, and asking again."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from typing import TypeVar

_T = TypeVar("_T")

_TRIES = 3
_STATUSES = frozenset({408, 429, *range(500, 600)})
_STATUS_NAMES = ("status_code", "status", "http_status", "code")


def is_unreachable(error: BaseException) -> bool:
    """Whether an error says that a model could not be reached, rather than that it refused.

    That are failed connections, timeouts, and HTTP statuses 408, 429 and 5xx, also as the cause
    of an error of the client's own.
    """
    import httpx

    kinds = (ConnectionError, TimeoutError, socket.gaierror, httpx.TransportError)
    return any(
        isinstance(one, kinds) or _statuses(one) & _STATUSES != set() for one in _chain(error)
    )


def retry(ask: Callable[[], _T], wait: float) -> _T:
    """Ask up to three times while the model cannot be reached.

    Args:
        ask: Asks once.
        wait: Seconds before the second try; twice that before the third, each a little more.

    Returns:
        What it gave.
    """
    import tenacity

    retrying = tenacity.Retrying(
        stop=tenacity.stop_after_attempt(_TRIES),
        wait=tenacity.wait_exponential(multiplier=wait) + tenacity.wait_random(0, wait / 2),
        retry=tenacity.retry_if_exception(is_unreachable),
        reraise=True,
    )
    return retrying(ask)


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    one: BaseException | None = error
    while one is not None and id(one) not in seen:
        seen.add(id(one))
        yield one
        one = one.__cause__ or one.__context__


def _statuses(error: BaseException) -> set[int]:
    """HTTP statuses that an error or its response carries, under the names that clients use."""
    holders = (error, getattr(error, "response", None))
    found = (getattr(holder, name, None) for holder in holders for name in _STATUS_NAMES)
    return {value for value in found if isinstance(value, int)}
