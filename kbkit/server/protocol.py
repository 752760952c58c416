"""uvicorn's HTTP protocol with a time limit for headers."""

from __future__ import annotations

import asyncio
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from kbkit.rest.problems import MEDIA_TYPE, problem

HEADER_SECONDS = 20.0
"""Seconds for the headers of a request."""
HEADER_BYTES = 65_536
"""Maximum bytes of headers."""
_TOO_LARGE = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\n"
    b"Content-Length: 0\r\nConnection: close\r\n\r\n"
)


def http_protocol() -> type[asyncio.Protocol]:
    """Return uvicorn's protocol, the faster one if installed, with a time limit."""
    base: Any
    if find_spec("httptools") is not None:
        base = import_module("uvicorn.protocols.http.httptools_impl").HttpToolsProtocol
    else:
        base = import_module("uvicorn.protocols.http.h11_impl").H11Protocol

    class Protocol(base):  # type: ignore[misc]
        """Closes a connection that has begun a request and does not get to its end."""

        _timer: asyncio.TimerHandle | None = None
        _bytes = 0

        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            super().connection_made(transport)
            self._wait()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            if self._busy():
                self._stop()
                return
            self._bytes += len(data)
            if self._bytes > HEADER_BYTES and not self.transport.is_closing():
                self.transport.write(_TOO_LARGE)
                self.transport.close()
            elif self._timer is None:
                self._wait()

        def connection_lost(self, exc: Exception | None) -> None:
            self._stop()
            super().connection_lost(exc)

        def send_400_response(self, msg: str) -> None:
            """Answer malformed HTTP with problem details."""
            told = problem("this is no HTTP request that can be read", 400)
            head = f"HTTP/1.1 400 Bad Request\r\nContent-Type: {MEDIA_TYPE}\r\n"
            head += f"Content-Length: {len(told.body)}\r\nConnection: close\r\n\r\n"
            self.transport.write(head.encode() + bytes(told.body))
            self.transport.close()

        def _busy(self) -> bool:
            return self.cycle is not None and not self.cycle.response_complete

        def _wait(self) -> None:
            self._timer = self.loop.call_later(HEADER_SECONDS, self._expired)

        def _stop(self) -> None:
            self._bytes = 0
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None

        def _expired(self) -> None:
            self._timer = None
            if not self._busy() and not self.transport.is_closing():
                self.transport.close()

    return Protocol
