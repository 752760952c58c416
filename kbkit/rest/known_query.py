"""Refuse unknown query parameters."""

from __future__ import annotations

from typing import Any

from fastapi import Depends, Request
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute

from kbkit.errors import ArgumentError
from kbkit.models.values import did_you_mean


async def _check(request: Request) -> None:
    route: Any = request.scope.get("route")
    if not isinstance(route, APIRoute):
        return
    if route.unique_id not in _KNOWN:
        _KNOWN[route.unique_id] = _names(route)
    known = _KNOWN[route.unique_id]
    for name in request.query_params:
        if name not in known:
            meant = did_you_mean(name, known)
            raise ArgumentError(f"{request.url.path}: has no parameter {name[:80]!r}; {meant}")


_KNOWN: dict[str, tuple[str, ...]] = {}
"""Parameters of each route, cached."""


def _names(route: APIRoute) -> tuple[str, ...]:
    found: list[str] = []
    waiting: list[Dependant] = [route.dependant]
    while waiting:
        dependant = waiting.pop()
        found += (parameter.alias for parameter in dependant.query_params)
        waiting += dependant.dependencies
    return tuple(dict.fromkeys(found))


KNOWN_QUERY = Depends(_check)
"""Dependency of a router whose routes refuse parameters that they do not take."""
