"""What `kbkit panel` refuses; that it serves is tested in a browser (tests/browser)."""

from __future__ import annotations

import socket

import pytest

from kbkit.cli.dashboard import check_options, serve_panel
from kbkit.errors import ConfigError

LONG = "a-token-that-is-long-enough"


@pytest.mark.parametrize(
    ("host", "token", "theme", "says"),
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
def test_what_is_not_safe_is_refused(host, token, theme, says):
    with pytest.raises(ConfigError, match=says):
        check_options(host, token, theme)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1"])
def test_this_machine_needs_no_token_of_its_own(host):
    check_options(host, "", "dark")
    check_options("0.0.0.0", LONG, "dark")


def test_a_port_that_is_taken_is_one_clear_error(tmp_path):
    said = []
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(ConfigError, match=f"127.0.0.1:{port}: cannot be used"):
            serve_panel(tmp_path, port=port, say=said.append)
    assert said == []
