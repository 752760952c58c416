"""The web server of this machine's own pages."""

import http.client
from urllib.parse import urlsplit

import pytest

from kbkit.runtime.web_server import serve_folder


@pytest.mark.parametrize(("error", "told"), [(ConnectionResetError, False), (ValueError, True)])
def test_visitors_who_leave_early_are_no_news_and_faults_are(tmp_path, capfd, error, told):
    def leave(path):
        raise error("in the middle")

    with serve_folder(tmp_path, on_request=leave) as address:
        connection = http.client.HTTPConnection(urlsplit(address).netloc)
        connection.request("GET", "/")
        with pytest.raises(http.client.RemoteDisconnected):  # by then it has told all it will
            connection.getresponse()
    assert ("in the middle" in capfd.readouterr().err) is told


def ask(address, path, **headers):
    connection = http.client.HTTPConnection(urlsplit(address).netloc)
    connection.request("GET", path, headers=headers)
    answer = connection.getresponse()
    return answer.status, answer.read()


def test_a_page_whose_name_leads_here_reads_nothing(tmp_path):
    (tmp_path / "index.html").write_text("private")
    asked = []
    with serve_folder(tmp_path, on_request=asked.append) as address:
        port = urlsplit(address).port
        for host in (
            *("evil.example", f"evil.example:{port}", "127.0.0.1:1", "127.0.0.1.evil.example"),
            *("", "127.0.0.1:", "localhost@evil.example", "[::1].evil.example", "evil\t"),
        ):
            status, body = ask(address, "/", Host=host)
            assert status == 421, host
            assert b"private" not in body
        assert asked == []
        for host in (f"127.0.0.1:{port}", f"LocalHost:{port}", "localhost", f"[::1]:{port}"):
            assert ask(address, "/", Host=host) == (200, b"private"), host


@pytest.mark.parametrize(
    "path",
    [
        "/.kbkit-site",
        "/%2ekbkit-site",
        "/sub/.git/config",
        "/sub%2f.git/config",
        "/a\\.b",
        "/%00",
        "/a%00.html",
        "/..",
        "/%2e%2e/x",
        "/.kbkit-site?x#y",
    ],
)
def test_what_is_no_page_is_not_there(tmp_path, capfd, path):
    (tmp_path / ".kbkit-site").write_text("private")
    (tmp_path / "sub" / ".git").mkdir(parents=True)
    (tmp_path / "sub" / ".git" / "config").write_text("private")
    with serve_folder(tmp_path) as address:
        status, body = ask(address, path)
    assert status == 404
    assert b"private" not in body
    assert "Traceback" not in capfd.readouterr().err
