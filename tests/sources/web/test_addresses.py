"""Forms of addresses that must not be fetched."""

import socket
from collections.abc import Callable
from contextlib import closing

import pytest

from kbkit.errors import ConfigError, ForbiddenAddressError
from kbkit.recipes import PageSource
from kbkit.sources import Outcome
from kbkit.sources.web import Fetcher
from kbkit.sources.web.addresses import refusal, resolve
from tests.sources.web.crawls import redirect

HOSTS = """
127.0.0.1 127.1 127.0.1 2130706433 0x7f000001 0x7f.0.0.1 0177.0.0.1 017700000001 127.255.255.254
0.0.0.0 0 localhost localhost. LOCALHOST 10.0.0.1 172.16.0.1 192.168.1.1 100.64.0.1 2852039166
168.63.129.16 100.100.100.200 192.0.0.192 198.18.0.1 224.0.0.1 240.0.0.1 255.255.255.255
[::1] [::] [0:0:0:0:0:0:0:1] [::ffff:127.0.0.1] [::ffff:7f00:1] [::ffff:169.254.169.254]
[::127.0.0.1] [64:ff9b::7f00:1] [64:ff9b::169.254.169.254] [64:ff9b:1::10.0.0.1] [2002:7f00:1::]
[2002:a9fe:a9fe::1] [2001:0:7f00:1::] [fe80::1] [fc00::1] [fd00:ec2::254] [fec0::1] [ff02::1]
[2001:db8::1] [fe80::5efe:127.0.0.1] user@127.0.0.1 example.com@127.0.0.1 127.0.0.1:22 127.0.0.1:0
user:secret@example.com 127.0.0.1:99999
"""
FORMS = [
    *(f"http://{host}/" for host in HOSTS.split()),
    "http://169.254.169.254/latest/meta-data/",
    "https://127.0.0.1/",
    "file:///etc/passwd",
    "ftp://127.0.0.1/",
    "gopher://127.0.0.1:6379/_INFO",
    "dict://127.0.0.1:11211/stat",
    "data:text/html,hello",
    "javascript:alert(1)",
    "http:///etc/passwd",
    "//127.0.0.1/",
    "http://127.0.0.1\\@example.com/",
]


@pytest.mark.parametrize("url", FORMS)
def test_addresses_are_refused_without_a_connection(url: str) -> None:
    with closing(Fetcher(user_agent="kbkit", timeout=2)) as fetcher:
        response = fetcher.get(url)
    assert response.outcome in (Outcome.SKIPPED, Outcome.FAILED)
    assert response.status == 0
    assert response.reason
    assert "\n" not in response.reason
    assert "cannot connect" not in response.reason or "resolve" in response.reason


@pytest.mark.parametrize(
    "address",
    [
        "8.8.8.8",
        "1.1.1.1",
        "93.184.216.34",
        "2606:4700:4700::1111",
        "::ffff:8.8.8.8",
        "64:ff9b::808:808",
    ],
)
def test_public_addresses_pass(address: str) -> None:
    assert refusal(address, allow_private=False) == ""


def test_allow_private_allows_private_networks_only() -> None:
    assert refusal("127.0.0.1", allow_private=True) == ""
    assert refusal("::ffff:10.0.0.1", allow_private=True) == ""
    assert refusal("fd00::1%eth0", allow_private=True) == ""
    for never in ("0.0.0.0", "::", "224.0.0.1", "255.255.255.255", "::ffff:0.0.0.0"):
        assert refusal(never, allow_private=True), never


METADATA = """
169.254.169.254 169.254.1.1 fd00:ec2::254 fd20:ce::254 fe80::a9fe:a9fe fe80::1%eth0
fe80::5efe:169.254.169.254 ::ffff:169.254.169.254 ::169.254.169.254 64:ff9b::a9fe:a9fe
64:ff9b:1::a9fe:a9fe 2002:a9fe:a9fe::1 168.63.129.16 100.100.100.200 192.0.0.192
::ffff:100.100.100.200 fd00:42::42 fd00:ec2::23 ::ffff:0:169.254.169.254
2002:808:808::5efe:a9fe:a9fe 64:ff9b:1:a9fe:a9:fe00:: 64:ff9b:1:a9:fe:a9fe::
64:ff9b:1:0:a9:fea9:fe00:0 fe80::5efe:808:808
"""


@pytest.mark.parametrize("address", METADATA.split())
def test_metadata_addresses_are_refused_unless_named(address: str) -> None:
    assert refusal(address, allow_private=False)
    assert refusal(address, allow_private=True)
    assert refusal(address, allow_private=("169.254.9.9", "fd00::1", "10.0.0.1"))
    assert not refusal(address, allow_private=(address.partition("%")[0],))


EMBEDDED = """
fd00::5efe:808:808 fd00::200:5efe:808:808 fec0::5efe:808:808 2001:db8::5efe:808:808
2001:0:808:808::f7f7:f7f7 ::ffff:0:808:808 64:ff9b:1::808:808 64:ff9b:1:808:8:800::
2002:808:808::1 ::808:808 fe80::5efe:808:808 fe80::200:5efe:808:808
"""


@pytest.mark.parametrize("address", EMBEDDED.split())
def test_tunnels_to_public_addresses_are_refused_unless_named(address: str) -> None:
    assert refusal(address, allow_private=False)
    assert refusal(address, allow_private=True)
    assert not refusal(address, allow_private=(address,))


def test_named_address_allows_no_other() -> None:
    named = ("169.254.1.1",)
    assert not refusal("::ffff:169.254.1.1", allow_private=named)
    for other in ("169.254.1.2", "127.0.0.1", "10.0.0.1", "0.0.0.0"):
        assert refusal(other, allow_private=named), other
    assert refusal("224.0.0.1", allow_private=("224.0.0.1",))
    spec = PageSource(url="http://x.test/", allow_private=["0::ffff:1"])
    assert spec.allow_private == ("::ffff:1",)
    with pytest.raises(ConfigError, match=r"allow_private.*'printer' is not an IP address"):
        PageSource(url="http://x.test/", allow_private=["printer"])


@pytest.mark.parametrize("address", ["3fff::1", "3fff:fff:ffff::1", "5f00::1"])
def test_documentation_and_routing_networks_are_not_public(address: str) -> None:
    assert refusal(address, allow_private=False)


def test_names_of_private_addresses_are_refused() -> None:
    with pytest.raises(ForbiddenAddressError, match="loopback"):
        resolve("localhost", 80, allow_private=False)
    assert "127.0.0.1" in resolve("localhost", 80, allow_private=True)


def test_connection_uses_the_checked_address(site, monkeypatch) -> None:
    """A name that changes its address between check and connection gains nothing."""
    addresses = iter(["127.0.0.1"])
    resolved = _resolve(monkeypatch, "rebind.test", lambda: [next(addresses)])
    site.pages["/"] = "<p>inside</p>"
    port = site.server.server_port
    with closing(Fetcher(user_agent="kbkit", allow_private=True)) as fetcher:
        response = fetcher.get(f"http://rebind.test:{port}/")
    assert response.body == b"<p>inside</p>"
    assert resolved == ["rebind.test"]
    assert site.requests[0][1]["Host"] == f"rebind.test:{port}"


def _resolve(monkeypatch, name: str, addresses: Callable[[], list[str]]) -> list[str]:
    """Resolve a name to these addresses; return a list of the times that it was resolved."""
    real, resolved = socket.getaddrinfo, []

    def getaddrinfo(host, port, *args, **options):
        if host != name:
            return real(host, port, *args, **options)
        resolved.append(host)
        stream = (socket.AF_INET, socket.SOCK_STREAM, 6, "")
        return [(*stream, (address, port)) for address in addresses()]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    return resolved


def test_redirect_to_a_private_address_is_refused(site, monkeypatch) -> None:
    """The first host counts as public here; the second does not."""
    monkeypatch.setattr(
        "kbkit.sources.web.addresses.refusal",
        lambda address, **options: "" if address == "127.0.0.1" else refusal(address, **options),
    )
    site.pages["/"] = redirect("http://169.254.169.254/latest/meta-data/")
    with closing(Fetcher(user_agent="kbkit", timeout=2)) as fetcher:
        response = fetcher.get(site.url + "/")
    assert response.outcome is Outcome.SKIPPED
    assert "169.254.169.254 is a link-local address" in response.reason


def test_private_addresses_of_a_mixed_name_are_left_out(monkeypatch) -> None:
    """0.0.0.0 would lead to this machine."""
    addresses = ["10.0.0.1", "8.8.8.8", "127.0.0.1", "0.0.0.0"]
    _resolve(monkeypatch, "mixed.test", lambda: addresses)
    assert resolve("mixed.test", 80, allow_private=False) == ["8.8.8.8"]
    assert "0.0.0.0" not in resolve("mixed.test", 80, allow_private=True)
