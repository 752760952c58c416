"""Which network addresses may be fetched, and connections that go to a checked address only.

Checking a host name and then letting the HTTP library resolve it again would leave a gap in
which the name can change its address. Here one resolution serves both: the connection is made
to the very address that was checked.
"""

from __future__ import annotations

import ipaddress
import socket
import threading
import time
from collections.abc import Callable, Iterable
from ssl import SSLContext
from typing import Any

import httpcore

from kbkit.errors import ForbiddenAddressError

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_NAT64 = (ipaddress.IPv6Network("64:ff9b::/96"), ipaddress.IPv6Network("64:ff9b:1::/48"))
_COMPATIBLE = ipaddress.IPv6Network("::/96")
_SITE_LOCAL = ipaddress.IPv6Network("fec0::/10")
# special purpose networks that Python's is_private does not cover in every version
_SPECIAL_V4 = tuple(
    ipaddress.IPv4Network(network)
    for network in (
        "0.0.0.0/8",
        "100.64.0.0/10",
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.88.99.0/24",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "240.0.0.0/4",
    )
)
# cloud metadata services on addresses that look public
_METADATA = frozenset(
    ipaddress.ip_address(address) for address in ("168.63.129.16", "100.100.100.200")
)
_BROADCAST = ipaddress.IPv4Address(0xFFFFFFFF)

_SLICE = 0.5  # seconds a read waits before it asks whether to stop


def refusal(address: str, *, allow_private: bool) -> str:
    """Say why an IP address may not be connected to.

    Args:
        address: An IPv4 or IPv6 address in text form, as a resolver gives it.
        allow_private: Permit loopback, private and link-local addresses.

    Returns:
        What kind of address it is, or ``""`` when it may be used.
    """
    parsed = ipaddress.ip_address(address.partition("%")[0])
    return _refusal(parsed, allow_private)


def _refusal(address: Address, allow_private: bool) -> str:
    if address.is_unspecified:
        return "the unspecified address"
    if address.is_multicast or address == _BROADCAST:
        return "a multicast or broadcast address"
    if isinstance(address, ipaddress.IPv6Address):
        embedded = _embedded(address)
        if embedded:
            reasons = (_refusal(inner, allow_private) for inner in embedded)
            return next((reason for reason in reasons if reason), "")
    return "" if allow_private else _private(address)


def _private(address: Address) -> str:
    if address.is_loopback:
        return "a loopback address"
    if address.is_link_local:
        return "a link-local address"
    if address in _METADATA:
        return "a cloud metadata address"
    if isinstance(address, ipaddress.IPv4Address):
        special = any(address in network for network in _SPECIAL_V4)
    else:
        special = address.is_reserved or address in _SITE_LOCAL
    if address.is_private or special or not address.is_global:
        return "a private or reserved address"
    return ""


def _embedded(address: ipaddress.IPv6Address) -> list[ipaddress.IPv4Address]:
    """IPv4 addresses that an IPv6 address of a transition mechanism leads to."""
    if address.ipv4_mapped:
        return [address.ipv4_mapped]
    if address.sixtofour:
        return [address.sixtofour]
    if address.teredo:
        return list(address.teredo)
    low = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    if any(address in network for network in _NAT64):
        return [low]
    if address in _COMPATIBLE and int(address) > 1:
        return [low]
    # ISATAP: ...:0:5efe:a.b.c.d under any prefix
    if (int(address) >> 32) & 0xFFFFFFFF in (0x00005EFE, 0x02005EFE):
        return [low]
    return []


def resolve(host: str, port: int, *, allow_private: bool) -> list[str]:
    """Resolve a host name to the addresses that may be connected to.

    Raises:
        ForbiddenAddressError: The name leads to refused addresses only.
        OSError: The name cannot be resolved.
    """
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    addresses = list(dict.fromkeys(str(item[4][0]) for item in found))
    refused = ""
    permitted = []
    for address in addresses:
        reason = refusal(address, allow_private=allow_private)
        if reason:
            refused = f"{address}, {reason}"
        else:
            permitted.append(address)
    if permitted:
        return permitted
    hint = "" if allow_private else "; allow_private permits private networks"
    raise ForbiddenAddressError(f"{host} leads to {refused}, which is refused{hint}")


class Deadline(threading.local):
    """When the request that runs in this thread has to be over, by `time.monotonic`."""

    at: float = float("inf")


class GuardedBackend(httpcore.NetworkBackend):
    """Connects to checked addresses only, and ends reads at the deadline or on request."""

    def __init__(
        self, *, allow_private: bool, stop: Callable[[], bool], deadline: Deadline
    ) -> None:
        self._allow_private = allow_private
        self._stop = stop
        self._deadline = deadline
        self._inner = httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        """Resolve, check and connect; the caller's TLS and Host header keep the name."""
        try:
            addresses = resolve(host, port, allow_private=self._allow_private)
        except (OSError, UnicodeError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise httpcore.ConnectError(f"cannot resolve {host} ({reason})") from error
        failure: Exception | None = None
        for address in addresses:
            limit = _remaining(self._deadline, timeout)
            try:
                stream = self._inner.connect_tcp(
                    address, port, limit, local_address, socket_options
                )
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failure = error
            else:
                return _GuardedStream(stream, self._stop, self._deadline)
        assert failure is not None
        raise failure

    def connect_unix_socket(
        self, path: str, timeout: float | None = None, socket_options: Iterable[Any] | None = None
    ) -> httpcore.NetworkStream:
        """Refused: no URL leads here."""
        raise ForbiddenAddressError(f"unix socket {path}: refused")

    def sleep(self, seconds: float) -> None:
        """Wait (part of the backend's protocol)."""
        time.sleep(seconds)


class _GuardedStream(httpcore.NetworkStream):
    """A stream whose reads obey the request's deadline and a request to stop."""

    def __init__(
        self, inner: httpcore.NetworkStream, stop: Callable[[], bool], deadline: Deadline
    ) -> None:
        self._inner = inner
        self._stop = stop
        self._deadline = deadline

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        if time.monotonic() > self._deadline.at:
            # a server that sends without end is never caught waiting
            raise httpcore.ReadTimeout("the server is too slow")
        end = time.monotonic() + _remaining(self._deadline, timeout)
        while True:
            if self._stop():
                raise httpcore.ReadError("stopped")
            left = end - time.monotonic()
            if left <= 0:
                raise httpcore.ReadTimeout("the server is too slow")
            try:
                return self._inner.read(max_bytes, min(left, _SLICE))
            except httpcore.ReadTimeout:
                continue

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._inner.write(buffer, _remaining(self._deadline, timeout))

    def close(self) -> None:
        self._inner.close()

    def start_tls(
        self,
        ssl_context: SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore.NetworkStream:
        limit = _remaining(self._deadline, timeout)
        secured = self._inner.start_tls(ssl_context, server_hostname, limit)
        return _GuardedStream(secured, self._stop, self._deadline)

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)


def _remaining(deadline: Deadline, timeout: float | None) -> float:
    """Seconds that an operation may take: at least a moment, so that errors name the cause."""
    left = deadline.at - time.monotonic()
    return max(0.001, min(left, timeout if timeout is not None else 60.0))
