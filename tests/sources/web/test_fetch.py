"""Servers that misbehave, and the outcomes of their responses."""

from __future__ import annotations

import gzip
import threading
import time
import zlib
from contextlib import closing

import pytest

from kbkit.sources import Outcome
from kbkit.sources.decode import decode
from kbkit.sources.web import Fetcher, Response
from tests.sources.web.crawls import answer, in_turn, redirect


@pytest.fixture
def fetcher():
    with closing(Fetcher(user_agent="kbkit/test", timeout=5, allow_private=True)) as fetcher:
        yield fetcher


def get(url: str, **options) -> Response:
    with closing(Fetcher(user_agent="kbkit", allow_private=True, **options)) as fetcher:
        return fetcher.get(url)


def test_response_has_the_values_of_its_headers(site, fetcher) -> None:
    site.pages["/"] = "<p>hello</p>"
    site.headers["/"] = {"ETag": '"1"', "Last-Modified": "Mon, 01 Jan 2024 00:00:00 GMT"}
    response = fetcher.get(site.url + "/")
    assert (response.outcome, response.body) == (Outcome.FETCHED, b"<p>hello</p>")
    assert (response.media_type, response.charset) == ("text/html", "utf-8")
    assert response.etag == '"1"'
    assert response.last_modified.startswith("Mon")
    assert site.requests[0][1]["User-Agent"] == "kbkit/test"


def test_unchanged_page_is_not_sent_again(site, fetcher) -> None:
    site.pages["/"] = "<p>hello</p>"
    site.headers["/"] = {"ETag": '"1"'}
    response = fetcher.get(site.url + "/", headers={"If-None-Match": '"1"'})
    assert (response.outcome, response.status) == (Outcome.UNCHANGED, 304)


@pytest.mark.parametrize(
    ("status", "outcome"),
    [(404, Outcome.GONE), (410, Outcome.GONE), (500, Outcome.FAILED), (403, Outcome.FAILED)],
)
def test_errors_of_the_server_are_outcomes(site, fetcher, status, outcome) -> None:
    site.pages["/"] = answer(status, b"oh")
    response = fetcher.get(site.url + "/")
    assert response.outcome is outcome
    assert f"HTTP {status}" in response.reason
    assert site.count("/") == 1


def test_unreachable_host_is_named() -> None:
    closed = get("http://127.0.0.1:9/", timeout=2)
    unknown = get("http://nowhere.invalid/", timeout=2)
    assert closed.outcome is unknown.outcome is Outcome.FAILED
    assert "127.0.0.1:9" in closed.reason
    assert "cannot resolve nowhere.invalid" in unknown.reason


def test_silent_server_times_out(site, silence) -> None:
    site.pages["/"] = silence
    response = get(site.url + "/", timeout=0.5)
    assert response.outcome is Outcome.FAILED
    assert "within 0.5 s" in response.reason


def test_slow_server_times_out(site, silence) -> None:
    def drip(handler) -> None:
        handler.send_response(200)
        handler.end_headers()
        while not silence.over.wait(0.1):
            handler.wfile.write(b"x")
            handler.wfile.flush()

    site.pages["/"] = drip
    assert get(site.url + "/", timeout=0.7).outcome is Outcome.FAILED


@pytest.mark.parametrize("wait", ["1", "50"])
def test_time_for_redirects_and_retries_is_bounded(site, wait) -> None:
    busy = answer(503, Retry_After=wait)
    for step in range(10):
        site.pages[f"/{step}"] = in_turn(busy, *[redirect(f"/{step + 1}")] * 9)
    site.pages["/10"] = "<p>the end</p>"
    response = get(site.url + "/0", timeout=1, page_seconds=1.5)
    assert response.outcome is Outcome.FAILED
    assert "took longer than the 1.5 s allowed for a page" in response.reason
    assert len(site.paths) <= 4


def test_request_to_stop_ends_a_slow_read(site, silence) -> None:
    stop = threading.Event()

    def wait(handler) -> None:
        stop.set()
        silence(handler)

    site.pages["/"] = wait
    assert get(site.url + "/", timeout=250, stop=stop.is_set).outcome is Outcome.FAILED


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirects_are_followed(site, fetcher, status) -> None:
    site.pages["/a"] = redirect("b/c?x=1#part", status)
    site.pages["/b/c?x=1"] = "<p>here</p>"
    response = fetcher.get(site.url + "/a")
    assert response.body == b"<p>here</p>"
    assert response.url == site.url + "/b/c?x=1"


@pytest.mark.parametrize(
    ("pages", "reason"),
    [
        ({"/": redirect("/b"), "/b": redirect("/")}, "redirects in a circle"),
        ({"/": redirect("/0")} | {f"/{n}": redirect(f"/{n + 1}") for n in range(30)}, "10 redir"),
        ({"/": redirect("file:///etc/passwd")}, "only http and https"),
        ({"/": redirect("ftp://127.0.0.1/")}, "only http and https"),
        ({"/": redirect("javascript:1")}, "only http and https"),
        ({"/": answer(302)}, "without a Location"),
        ({"/": answer(304)}, "HTTP 304 to a request without a condition"),
        ({"/": answer(429, Retry_After="7200")}, "it asks to wait 7200 s"),
        ({"/": answer(200, b"hello", Content_Encoding="br")}, "compressed as br"),
        ({"/": lambda handler: handler.wfile.write(b"SSH-2.0-x\r\n")}, "not proper HTTP"),
    ],
)
def test_response_without_a_page_has_a_reason(site, fetcher, pages, reason) -> None:
    site.pages |= pages
    response = fetcher.get(site.url + "/")
    assert response.outcome in (Outcome.SKIPPED, Outcome.FAILED)
    assert reason in response.reason
    assert len(site.paths) <= 11


@pytest.mark.parametrize("announced", [True, False])
def test_too_large_page_is_not_read(site, announced) -> None:
    sent = []

    def flood(handler) -> None:
        handler.send_response(200)
        if announced:
            handler.send_header("Content-Length", str(50_000_000))
        handler.end_headers()
        for _ in range(50):
            handler.wfile.write(b"x" * 1_000_000)
            sent.append(1)

    site.pages["/"] = flood
    response = get(site.url + "/", max_bytes=1_000_000)
    assert (response.outcome, response.reason) == (Outcome.SKIPPED, "larger than 1 MB")
    assert len(sent) < 40


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
def test_compressed_pages_are_read_and_bombs_are_not(site, encoding) -> None:
    pack = gzip.compress if encoding == "gzip" else zlib.compress
    site.pages["/page"] = answer(200, pack(b"<p>hello</p>"), Content_Encoding=encoding)
    site.pages["/bomb"] = answer(200, pack(b"\0" * 60_000_000), Content_Encoding=encoding)
    site.pages["/torn"] = answer(200, pack(b"hello" * 1000)[:-8], Content_Encoding=encoding)
    site.pages["/odd"] = answer(200, b"hello", Content_Encoding=encoding)
    with closing(Fetcher(user_agent="kbkit", allow_private=True, max_bytes=1_000_000)) as fetcher:
        assert fetcher.get(site.url + "/page").body == b"<p>hello</p>"
        assert fetcher.get(site.url + "/bomb").reason == "larger than 1 MB"
        assert "damaged" in fetcher.get(site.url + "/torn").reason
        assert "damaged" in fetcher.get(site.url + "/odd").reason


@pytest.mark.slow
def test_busy_server_is_retried_after_its_time(site, fetcher) -> None:
    retries = (answer(503, Retry_After="1"), answer(429, Retry_After="1"))
    site.pages["/"] = in_turn(*retries, answer(200, b"at last"))
    started = time.monotonic()
    assert fetcher.get(site.url + "/").body == b"at last"
    assert time.monotonic() - started >= 2


def test_waiting_for_a_retry_can_be_stopped(site) -> None:
    stop = threading.Event()

    def busy(handler) -> None:
        answer(503, Retry_After="50")(handler)
        stop.set()

    site.pages["/"] = busy
    assert get(site.url + "/", stop=stop.is_set).outcome is Outcome.FAILED
    assert site.count("/") == 1


def test_proxies_of_the_environment_are_not_used(site, monkeypatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    site.pages["/"] = "<p>direct</p>"
    assert get(site.url + "/").body == b"<p>direct</p>"


@pytest.mark.parametrize(
    ("body", "charset", "text"),
    [
        ("Grüße".encode(), "iso-8859-1", "Grüße"),
        ("Grüße".encode("utf-16"), "utf-8", "Grüße"),
        (b"\xef\xbb\xbfhello", "latin-1", "hello"),
        ("Grüße".encode(), "no-such-charset", "Grüße"),
        ("Grüße".encode(), "hex", "Grüße"),
    ],
)
def test_text_is_decoded_by_its_charset_or_content(body, charset, text) -> None:
    assert text in decode(body, charset)


def raw(*parts: bytes, forever: bytes = b""):
    """A reply of these bytes, then some without end."""

    def reply(handler) -> None:
        for part in parts:
            handler.wfile.write(part)
        while forever:
            handler.wfile.write(forever)

    return reply


def test_endless_interim_responses_time_out(site) -> None:
    site.pages["/"] = raw(forever=b"HTTP/1.1 100 Continue\r\n\r\n" * 100)
    assert get(site.url + "/", timeout=0.5).outcome is Outcome.FAILED


@pytest.mark.parametrize(
    "head",
    [
        b"X: " + b"a" * 300_000 + b"\r\n\r\nhello",
        b"X: a\r\n" * 100_000 + b"\r\nhello",
        b"Content-Length: -5\r\n\r\nhello",
        b"Content-Length: 5\r\nContent-Length: 7\r\n\r\nhello",
        b"Transfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFFFFFFFFFFF\r\nx",
        b"Content-Length: 500\r\n\r\nhello",
    ],
)
def test_wrong_or_endless_headers_are_failures(site, fetcher, head, monkeypatch) -> None:
    monkeypatch.setattr("kbkit.sources.web.RETRIES", 0)
    site.pages["/"] = raw(b"HTTP/1.1 200 OK\r\n", head)
    assert fetcher.get(site.url + "/").outcome is Outcome.FAILED


def test_no_more_is_read_than_announced(site, fetcher) -> None:
    site.pages["/"] = raw(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello, and more")
    assert fetcher.get(site.url + "/").body == b"hello"


@pytest.mark.parametrize(
    "value", ["Mon, 01 Jan 99999999 00:00:00 GMT", "Mon, 01 Jan 0001 00:00:00 +2359", "²", "soon"]
)
def test_invalid_retry_after_is_ignored(site, fetcher, value, monkeypatch) -> None:
    monkeypatch.setattr("kbkit.sources.web.RETRIES", 0)
    head = "HTTP/1.1 503 Busy\r\nContent-Length: 0\r\nRetry-After: "
    site.pages["/"] = raw(f"{head}{value}\r\n\r\n".encode("latin-1"))
    assert fetcher.get(site.url + "/").reason.startswith("HTTP 503")


def test_cookies_are_not_kept(site, fetcher) -> None:
    cookies = b"".join(b"Set-Cookie: c%d=%s\r\n" % (n, b"x" * 100) for n in range(80))
    site.pages["/"] = raw(b"HTTP/1.1 200 OK\r\n" + cookies + b"Content-Length: 2\r\n\r\nok")
    site.pages["/next"] = "ok"
    fetcher.get(site.url + "/")
    fetcher.get(site.url + "/next")
    assert "Cookie" not in dict(site.requests)["/next"]


@pytest.mark.parametrize("name", ["ann@", "ann:secret@", ":@"])
def test_addresses_with_user_names_are_refused(site, fetcher, name) -> None:
    response = fetcher.get(site.url.replace("//", f"//{name}") + "/")
    reason = "the address contains a user name or password"
    assert (response.outcome, response.reason) == (Outcome.SKIPPED, reason)
    assert site.paths == []
