"""The web server of this machine's own pages."""

import http.client
from urllib.parse import urlsplit

import pytest

from kbkit.web_server import serve_folder


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
