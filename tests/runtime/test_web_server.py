"""The local web server."""

import http.client
from urllib.parse import urlsplit

import pytest

from kbkit.runtime.web_server import serve_folder

NOT_FOUND = r"""
/.kbkit-site /%2ekbkit-site /sub/.git/config /sub%2f.git/config /a\.b /%00 /a%00.html /.. /%2e%2e/x
/.kbkit-site?x#y
"""


@pytest.mark.parametrize(("error", "logged"), [(ConnectionResetError, False), (ValueError, True)])
def test_closed_connections_are_not_logged_and_faults_are(tmp_path, capfd, error, logged):
    def leave(path):
        raise error("in the middle")

    with serve_folder(tmp_path, on_request=leave) as address:
        connection = http.client.HTTPConnection(urlsplit(address).netloc)
        connection.request("GET", "/")
        with pytest.raises(http.client.RemoteDisconnected):  # the server has logged by then
            connection.getresponse()
    assert ("in the middle" in capfd.readouterr().err) is logged


def ask(address, path, **headers):
    connection = http.client.HTTPConnection(urlsplit(address).netloc)
    connection.request("GET", path, headers=headers)
    answer = connection.getresponse()
    return answer.status, answer.read()


def test_foreign_host_names_are_refused(tmp_path):
    (tmp_path / "index.html").write_text("private")
    requests = []
    with serve_folder(tmp_path, on_request=requests.append) as address:
        port = urlsplit(address).port
        for host in (
            *("evil.example", f"evil.example:{port}", "127.0.0.1:1", "127.0.0.1.evil.example"),
            *("", "127.0.0.1:", "localhost@evil.example", "[::1].evil.example", "evil\t"),
        ):
            status, body = ask(address, "/", Host=host)
            assert status == 421, host
            assert b"private" not in body
        assert requests == []
        for host in (f"127.0.0.1:{port}", f"LocalHost:{port}", "localhost", f"[::1]:{port}"):
            assert ask(address, "/", Host=host) == (200, b"private"), host


@pytest.mark.parametrize("path", NOT_FOUND.split())
def test_hidden_and_invalid_paths_are_not_found(tmp_path, capfd, path):
    (tmp_path / ".kbkit-site").write_text("private")
    (tmp_path / "sub" / ".git").mkdir(parents=True)
    (tmp_path / "sub" / ".git" / "config").write_text("private")
    with serve_folder(tmp_path) as address:
        status, body = ask(address, path)
    assert status == 404
    assert b"private" not in body
    assert "Traceback" not in capfd.readouterr().err
