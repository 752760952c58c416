"""Refusals of `kbkit panel`; tests/browser tests that it serves."""

from __future__ import annotations

import socket

import pytest

from kbkit.cli.dashboard import check_options, serve_panel
from kbkit.errors import ConfigError


@pytest.mark.parametrize(
    ("host", "token", "theme", "message"),
    [
        ("0.0.0.0", "", "light", "require a token"),
        ("192.0.2.1", "", "light", "require a token"),
        ("wiki.example", "", "light", "require a token"),
        ("::", "", "light", "require a token"),
        ("0.0.0.0", "short", "light", "shorter than 16"),
        ("127.0.0.1", "short", "light", "shorter than 16"),
        ("127.0.0.1", "", "blue", "light or dark"),
    ],
)
def test_unsafe_options_are_refused(host, token, theme, message):
    with pytest.raises(ConfigError, match=message):
        check_options(host, token, theme)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1"])
def test_loopback_needs_no_token(host):
    check_options(host, "", "dark")
    check_options("0.0.0.0", "a-token-that-is-long-enough", "dark")


def test_port_in_use_is_an_error(tmp_path):
    messages = []
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(ConfigError, match=f"127.0.0.1:{port}: cannot be used"):
            serve_panel(tmp_path, port=port, say=messages.append)
    assert messages == []
