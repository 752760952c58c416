"""What requests go through: connections to checked addresses, bodies unpacked in small steps."""

from __future__ import annotations

import zlib
from collections.abc import Iterator

import httpcore
import httpx

from kbkit.sources.web.addresses import GuardedBackend

LOCATION = "kbkit-location"
"""Name under which a response has its ``Location``, so that httpx makes no request of it."""


class GuardedTransport(httpx.BaseTransport):
    """An httpx transport on a connection pool whose backend checks addresses.

    Args:
        backend: Opens connections.
        connections: Most at once.
    """

    def __init__(self, backend: GuardedBackend, connections: int) -> None:
        self._pool = httpcore.ConnectionPool(
            ssl_context=httpx.create_ssl_context(trust_env=False),
            max_connections=connections,
            max_keepalive_connections=connections,
            keepalive_expiry=15.0,
            network_backend=backend,
        )

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Ask, and give the answer before its body is read."""
        inner = httpcore.Request(
            method=request.method,
            url=httpcore.URL(
                scheme=request.url.raw_scheme,
                host=request.url.raw_host,
                port=request.url.port,
                target=request.url.raw_path,
            ),
            headers=request.headers.raw,
            extensions=request.extensions,
        )
        response = self._pool.handle_request(inner)
        return httpx.Response(
            status_code=response.status,
            headers=[
                # httpx would already fail on a redirect that it cannot make a request of
                (LOCATION.encode() if name.lower() == b"location" else name, value)
                for name, value in response.headers
            ],
            stream=_Body(response),
            extensions={"network_stream": response.extensions.get("network_stream")},
        )

    def close(self) -> None:
        """Close all connections."""
        self._pool.close()


class _Body(httpx.SyncByteStream):
    def __init__(self, response: httpcore.Response) -> None:
        self._response = response

    def __iter__(self) -> Iterator[bytes]:
        yield from self._response.iter_stream()

    def close(self) -> None:
        self._response.close()


def decompressed(parts: Iterator[bytes], encoding: str, limit: int) -> Iterator[bytes]:
    """Undo gzip or deflate, at most ``limit`` bytes at a time and in all.

    Raises:
        httpx.DecodingError: The encoding is another one.
        zlib.error: The data is damaged.
    """
    if encoding in ("", "identity"):
        yield from parts
        return
    if encoding not in ("gzip", "x-gzip", "deflate"):
        raise httpx.DecodingError(f"encoding {encoding!r} is not known")
    gzip = encoding != "deflate"
    machine = zlib.decompressobj(31 if gzip else 15)
    first = True
    for part in parts:
        data = part
        while data:
            try:
                out = machine.decompress(data, limit)
            except zlib.error:
                if gzip or not first:
                    raise
                # some servers send deflate without the zlib wrapper
                machine = zlib.decompressobj(-15)
                out = machine.decompress(data, limit)
            first = False
            yield out
            limit -= len(out)
            if limit <= 0:
                return
            if machine.eof and machine.unused_data and gzip:
                data = machine.unused_data
                machine = zlib.decompressobj(31)
            else:
                data = machine.unconsumed_tail
    if not machine.eof and not first:
        raise zlib.error("it ends in the middle")
