"""Every way we know to write an address that must not be fetched."""

from __future__ import annotations

import socket

import pytest

from kbkit.errors import ConfigError, ForbiddenAddressError
from kbkit.recipes import PageSource
from kbkit.sources.base import Outcome
from kbkit.sources.web import Fetcher
from kbkit.sources.web.addresses import refusal, resolve

FORMS = [
    "http://127.0.0.1/",
    "http://127.1/",
    "http://127.0.1/",
    "http://2130706433/",
    "http://0x7f000001/",
    "http://0x7f.0.0.1/",
    "http://0177.0.0.1/",
    "http://017700000001/",
    "http://127.255.255.254/",
    "http://0.0.0.0/",
    "http://0/",
    "http://localhost/",
    "http://localhost./",
    "http://LOCALHOST/",
    "http://10.0.0.1/",
    "http://172.16.0.1/",
    "http://192.168.1.1/",
    "http://100.64.0.1/",
    "http://169.254.169.254/latest/meta-data/",
    "http://2852039166/",
    "http://168.63.129.16/",
    "http://100.100.100.200/",
    "http://192.0.0.192/",
    "http://198.18.0.1/",
    "http://224.0.0.1/",
    "http://240.0.0.1/",
    "http://255.255.255.255/",
    "http://[::1]/",
    "http://[::]/",
    "http://[0:0:0:0:0:0:0:1]/",
    "http://[::ffff:127.0.0.1]/",
    "http://[::ffff:7f00:1]/",
    "http://[::ffff:169.254.169.254]/",
    "http://[::127.0.0.1]/",
    "http://[64:ff9b::7f00:1]/",
    "http://[64:ff9b::169.254.169.254]/",
    "http://[64:ff9b:1::10.0.0.1]/",
    "http://[2002:7f00:1::]/",
    "http://[2002:a9fe:a9fe::1]/",
    "http://[2001:0:7f00:1::]/",
    "http://[fe80::1]/",
    "http://[fc00::1]/",
    "http://[fd00:ec2::254]/",
    "http://[fec0::1]/",
    "http://[ff02::1]/",
    "http://[2001:db8::1]/",
    "http://[fe80::5efe:127.0.0.1]/",
    "http://user@127.0.0.1/",
    "http://example.com@127.0.0.1/",
    "http://user:secret@example.com/",
    "http://127.0.0.1:22/",
    "https://127.0.0.1/",
    "file:///etc/passwd",
    "ftp://127.0.0.1/",
    "gopher://127.0.0.1:6379/_INFO",
    "dict://127.0.0.1:11211/stat",
    "data:text/html,hello",
    "javascript:alert(1)",
    "http:///etc/passwd",
    "http://127.0.0.1:0/",
    "http://127.0.0.1:99999/",
    "//127.0.0.1/",
    "http://127.0.0.1\\@example.com/",
]


@pytest.mark.parametrize("url", FORMS)
def test_refused_without_a_connection(url: str) -> None:
    with Fetcher(user_agent="kbkit", timeout=2) as fetcher:
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
        "2002:808:808::1",
    ],
)
def test_public_addresses_pass(address: str) -> None:
    assert refusal(address, allow_private=False) == ""


def test_allow_private_opens_private_networks_and_no_more() -> None:
    assert refusal("127.0.0.1", allow_private=True) == ""
    assert refusal("::ffff:10.0.0.1", allow_private=True) == ""
    assert refusal("fd00::1%eth0", allow_private=True) == ""
    for never in ("0.0.0.0", "::", "224.0.0.1", "255.255.255.255", "::ffff:0.0.0.0"):
        assert refusal(never, allow_private=True), never


METADATA = [
    "169.254.169.254",
    "169.254.1.1",
    "fd00:ec2::254",
    "fd20:ce::254",
    "fe80::a9fe:a9fe",
    "fe80::1%eth0",
    "fe80::5efe:169.254.169.254",
    "::ffff:169.254.169.254",
    "::169.254.169.254",
    "64:ff9b::a9fe:a9fe",
    "64:ff9b:1::a9fe:a9fe",
    "2002:a9fe:a9fe::1",
    "168.63.129.16",
    "100.100.100.200",
    "192.0.0.192",
    "::ffff:100.100.100.200",
    "fd00:42::42",
    "fd00:ec2::23",
    "::ffff:0:169.254.169.254",
    "2002:808:808::5efe:a9fe:a9fe",
    "64:ff9b:1:a9fe:a9:fe00::",
    "64:ff9b:1:a9:fe:a9fe::",
    "64:ff9b:1:0:a9:fea9:fe00:0",
    "fe80::5efe:808:808",
]


@pytest.mark.parametrize("address", METADATA)
def test_what_gives_keys_stays_shut_unless_it_is_named(address: str) -> None:
    assert refusal(address, allow_private=False)
    assert refusal(address, allow_private=True)
    assert refusal(address, allow_private=("169.254.9.9", "fd00::1", "10.0.0.1"))
    assert not refusal(address, allow_private=(address.partition("%")[0],))


@pytest.mark.parametrize(
    "address",
    [
        "fd00::5efe:808:808",
        "fd00::200:5efe:808:808",
        "fec0::5efe:808:808",
        "2001:db8::5efe:808:808",
        "2001:0:808:808::f7f7:f7f7",
        "::ffff:0:808:808",
        "64:ff9b:1::808:808",
        "64:ff9b:1:808:8:800::",
    ],
)
def test_a_public_address_inside_opens_no_private_one(address: str) -> None:
    assert refusal(address, allow_private=False)
    assert not refusal(address, allow_private=True)


@pytest.mark.parametrize(
    "address", ["fe80::5efe:808:808", "fe80::200:5efe:808:808", "64:ff9b:1:a9fe:a9:fe00:808:808"]
)
def test_a_public_address_inside_opens_no_link_local_one(address: str) -> None:
    assert refusal(address, allow_private=False)
    assert refusal(address, allow_private=True)


def test_a_named_address_opens_no_other() -> None:
    named = ("169.254.1.1",)
    assert not refusal("::ffff:169.254.1.1", allow_private=named)
    for other in ("169.254.1.2", "127.0.0.1", "10.0.0.1", "0.0.0.0"):
        assert refusal(other, allow_private=named), other
    assert refusal("224.0.0.1", allow_private=("224.0.0.1",))
    spec = PageSource(url="http://x.test/", allow_private=["0::ffff:1"])
    assert spec.allow_private == ("::ffff:1",)
    with pytest.raises(ConfigError, match=r"allow_private.*'printer' is no IP address"):
        PageSource(url="http://x.test/", allow_private=["printer"])


@pytest.mark.parametrize("address", ["3fff::1", "3fff:fff:ffff::1", "5f00::1"])
def test_networks_of_documentation_and_routing_are_not_public(address: str) -> None:
    assert refusal(address, allow_private=False)


def test_names_that_lead_to_private_addresses_are_refused() -> None:
    with pytest.raises(ForbiddenAddressError, match="loopback"):
        resolve("localhost", 80, allow_private=False)
    assert "127.0.0.1" in resolve("localhost", 80, allow_private=True)


def test_the_checked_address_is_the_one_connected_to(site, monkeypatch) -> None:
    """A name that changes its address between check and connection gains nothing."""
    answers = iter(["127.0.0.1"])
    asked = []

    def resolver(host: str, port: int, **_: object) -> list[tuple]:
        asked.append(host)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (next(answers), port))]

    monkeypatch.setattr(socket, "getaddrinfo", _only_for("rebind.test", resolver))
    site.pages["/"] = "<p>inside</p>"
    port = site.server.server_port
    with Fetcher(user_agent="kbkit", allow_private=True) as fetcher:
        response = fetcher.get(f"http://rebind.test:{port}/")
    assert response.body == b"<p>inside</p>"
    assert asked == ["rebind.test"]
    assert site.requests[0][1]["Host"] == f"rebind.test:{port}"


def _only_for(name: str, resolver):
    real = socket.getaddrinfo

    def resolve_it(host, port, *args, **options):
        return resolver(host, port) if host == name else real(host, port, *args, **options)

    return resolve_it


def test_a_redirect_to_a_private_address_is_refused(site, monkeypatch) -> None:
    """The first host counts as public here; the second does not."""
    import kbkit.sources.web.addresses as addresses

    real = addresses.refusal
    monkeypatch.setattr(
        addresses,
        "refusal",
        lambda address, **options: "" if address == "127.0.0.1" else real(address, **options),
    )

    def redirect(handler) -> None:
        handler.send_response(302)
        handler.send_header("Location", "http://169.254.169.254/latest/meta-data/")
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    site.pages["/"] = redirect
    with Fetcher(user_agent="kbkit", timeout=2) as fetcher:
        response = fetcher.get(site.url + "/")
    assert response.outcome is Outcome.SKIPPED
    assert "169.254.169.254 is a link-local address" in response.reason


def test_of_a_name_with_several_addresses_only_those_that_may_be_are_connected_to(
    site, monkeypatch
) -> None:
    """An answer that mixes public and private addresses; 0.0.0.0 would lead to this machine."""

    def resolver(host: str, port: int, **_: object) -> list[tuple]:
        known = ("10.0.0.1", "8.8.8.8", "127.0.0.1", "0.0.0.0")
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (each, port)) for each in known]

    monkeypatch.setattr(socket, "getaddrinfo", _only_for("mixed.test", resolver))
    assert resolve("mixed.test", 80, allow_private=False) == ["8.8.8.8"]
    assert "0.0.0.0" not in resolve("mixed.test", 80, allow_private=True)
