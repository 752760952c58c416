"""Check network addresses, and connect only to checked ones.

The HTTP library could resolve a name to another address than the checked one, so connections use
the checked address.
"""

import ipaddress
import socket
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from ssl import SSLContext
from typing import Any

import httpcore

from kbkit.errors import ForbiddenAddressError

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Private = bool | tuple[str, ...]  # whether private networks are allowed, or which addresses

LINK_LOCAL = "a link-local address"
METADATA = "a cloud metadata address"
TUNNEL = "an address of a tunnel, with another one inside"

_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")  # RFC 6052
# compatible and translated addresses, NAT64 of local networks, Teredo, 6to4
_TUNNELS = tuple(
    ipaddress.IPv6Network(network)
    for network in str.split("::/96 ::ffff:0:0:0/96 64:ff9b:1::/48 2001::/32 2002::/16")
)
_ISATAP = (0x00005EFE, 0x02005EFE)  # before the IPv4 address, under any prefix
# reserved, routing and documentation networks, which are global to some versions of Python
_SPECIAL = tuple(
    ipaddress.ip_network(network)
    for network in str.split("192.0.0.0/24 192.88.99.0/24 fec0::/10 3fff::/20 5f00::/16")
)
# cloud metadata services, which give keys to any client; others are link-local
_METADATA = frozenset(
    ipaddress.ip_address(address)
    for address in str.split("""
        168.63.129.16 100.100.100.200 192.0.0.192
        fd00:ec2::23 fd00:ec2::254 fd20:ce::254 fd00:42::42
    """)
)
_BROADCAST = ipaddress.IPv4Address(0xFFFFFFFF)

_SLICE = 0.5  # seconds between checks of `stop` while reading


def refusal(address: str, *, allow_private: Private) -> str:
    parsed = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(allow_private, bool):
        return _refusal(parsed, allow_private, frozenset())
    return _refusal(parsed, False, frozenset(map(ipaddress.ip_address, allow_private)))


def _refusal(address: Address, private: bool, permitted: frozenset[Address]) -> str:
    if address.is_unspecified:
        return "the unspecified address"
    if address.is_multicast or address == _BROADCAST:
        return "a multicast or broadcast address"
    if address in permitted:
        return ""
    if address in _METADATA:
        return METADATA
    if isinstance(address, ipaddress.IPv6Address):
        number = int(address)
        if address.ipv4_mapped or address in _NAT64:
            return _refusal(ipaddress.IPv4Address(number & 0xFFFFFFFF), private, permitted)
        tunnel = (number >> 32) & 0xFFFFFFFF in _ISATAP
        tunnel = tunnel or any(address in network for network in _TUNNELS)
        if tunnel and not address.is_loopback:
            return TUNNEL
    if address.is_link_local:
        return LINK_LOCAL
    if private:
        return ""
    if address.is_loopback:
        return "a loopback address"
    special = address.is_reserved or any(address in network for network in _SPECIAL)
    return "a private or reserved address" if special or not address.is_global else ""


def resolve(host: str, port: int, *, allow_private: Private) -> list[str]:
    infos = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    addresses = list(dict.fromkeys(str(item[4][0]) for item in infos))
    rejected = reason = ""
    permitted = []
    for address in addresses:
        reason = refusal(address, allow_private=allow_private)
        if reason:
            rejected = f"{address}, {reason}"
        else:
            permitted.append(address)
    if permitted:
        return permitted
    if reason in (LINK_LOCAL, METADATA, TUNNEL):
        hint = "; allow_private: [ADDRESS] of a source, as recipes have it, permits one by name"
    else:
        hint = "" if allow_private else "; allow_private permits private networks"
    is_literal = rejected.partition(",")[0] == host
    message = f"{host} is {reason}" if is_literal else f"{host} leads to {rejected}"
    raise ForbiddenAddressError(f"{message}, which is refused{hint}")


class Deadline(threading.local):
    """Time limit of this thread's request, by `time.monotonic`."""

    ends_at: float = float("inf")


@dataclass(frozen=True)
class GuardedBackend(httpcore.SyncBackend):
    """Connects to checked addresses only; ends reads at the deadline or on request."""

    allow_private: Private
    stop: Callable[[], bool]
    deadline: Deadline

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        """Resolve, check and connect; TLS and the Host header use the name."""
        try:
            addresses = resolve(host, port, allow_private=self.allow_private)
        except (OSError, UnicodeError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise httpcore.ConnectError(f"cannot resolve {host} ({reason})") from error
        failure: Exception | None = None
        for address in addresses:
            limit = _remaining(self.deadline, timeout)
            try:
                stream = super().connect_tcp(address, port, limit, local_address, socket_options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failure = error
            else:
                return _GuardedStream(stream, self.stop, self.deadline)
        assert failure is not None
        raise failure


@dataclass(frozen=True)
class _GuardedStream(httpcore.NetworkStream):
    inner: httpcore.NetworkStream
    stop: Callable[[], bool]
    deadline: Deadline

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        if time.monotonic() > self.deadline.ends_at:
            # a server that sends without pause never reaches the timeout below
            raise httpcore.ReadTimeout("the server is too slow")
        end = time.monotonic() + _remaining(self.deadline, timeout)
        while True:
            if self.stop():
                raise httpcore.ReadError("stopped")
            remaining = end - time.monotonic()
            if remaining <= 0:
                raise httpcore.ReadTimeout("the server is too slow")
            try:
                return self.inner.read(max_bytes, min(remaining, _SLICE))
            except httpcore.ReadTimeout:
                continue

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self.inner.write(buffer, _remaining(self.deadline, timeout))

    def close(self) -> None:
        self.inner.close()

    def start_tls(
        self,
        ssl_context: SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore.NetworkStream:
        limit = _remaining(self.deadline, timeout)
        secured = self.inner.start_tls(ssl_context, server_hostname, limit)
        return _GuardedStream(secured, self.stop, self.deadline)

    def get_extra_info(self, info: str) -> Any:
        return self.inner.get_extra_info(info)


def _remaining(deadline: Deadline, timeout: float | None) -> float:
    """Return the seconds left for an operation; at least 1 ms, so that errors name the cause."""
    seconds = deadline.ends_at - time.monotonic()
    return max(0.001, min(seconds, timeout if timeout is not None else 60.0))
