"""What the other side may do wrong, and what becomes of it."""

from __future__ import annotations

import gzip
import threading
import time
import zlib

import pytest

from kbkit.sources.base import Outcome
from kbkit.sources.decode import binary_kind, decode
from kbkit.sources.web import Fetcher


@pytest.fixture
def fetcher():
    with Fetcher(user_agent="kbkit/test", timeout=5, allow_private=True) as made:
        yield made


def answer(status=200, body=b"", **headers):
    def reply(handler) -> None:
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    return reply


def test_a_page_comes_with_what_the_headers_say(site, fetcher) -> None:
    site.pages["/"] = "<p>hello</p>"
    site.headers["/"] = {"ETag": '"1"', "Last-Modified": "Mon, 01 Jan 2024 00:00:00 GMT"}
    response = fetcher.get(site.url + "/")
    assert (response.outcome, response.body) == (Outcome.FETCHED, b"<p>hello</p>")
    assert (response.media_type, response.charset) == ("text/html", "utf-8")
    assert response.etag == '"1"'
    assert response.last_modified.startswith("Mon")
    assert site.requests[0][1]["User-Agent"] == "kbkit/test"


def test_an_unchanged_page_is_not_sent_again(site, fetcher) -> None:
    site.pages["/"] = "<p>hello</p>"
    site.headers["/"] = {"ETag": '"1"'}
    response = fetcher.get(site.url + "/", etag='"1"')
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


def test_an_unreachable_host_is_named() -> None:
    with Fetcher(user_agent="kbkit", allow_private=True, timeout=2) as fetcher:
        closed = fetcher.get("http://127.0.0.1:9/")
        unknown = fetcher.get("http://nowhere.invalid/")
    assert closed.outcome is Outcome.FAILED
    assert "127.0.0.1:9" in closed.reason
    assert unknown.outcome is Outcome.FAILED
    assert "cannot resolve nowhere.invalid" in unknown.reason


def test_a_server_that_never_answers_times_out(site, silence) -> None:
    site.pages["/"] = silence
    with Fetcher(user_agent="kbkit", allow_private=True, timeout=0.5) as fetcher:
        response = fetcher.get(site.url + "/")
    assert response.outcome is Outcome.FAILED
    assert "within 0.5 s" in response.reason


def test_a_server_that_drips_times_out_too(site, silence) -> None:
    def drip(handler) -> None:
        handler.send_response(200)
        handler.end_headers()
        while not silence.over.wait(0.1):
            handler.wfile.write(b"x")
            handler.wfile.flush()

    site.pages["/"] = drip
    with Fetcher(user_agent="kbkit", allow_private=True, timeout=0.7) as fetcher:
        response = fetcher.get(site.url + "/")
    assert response.outcome is Outcome.FAILED


@pytest.mark.parametrize("wait", ["1", "50"])
def test_a_page_that_leads_on_and_has_to_be_waited_for_has_a_budget(site, wait) -> None:
    for step in range(10):
        first = []

        def reply(handler, step=step, first=first) -> None:
            status = 302 if first else 503
            first.append(step)
            said = {"Retry_After": wait} if status == 503 else {"Location": f"/{step + 1}"}
            answer(status, **said)(handler)

        site.pages[f"/{step}"] = reply
    site.pages["/10"] = "<p>the end</p>"
    options = {"user_agent": "kbkit", "allow_private": True, "timeout": 1}
    with Fetcher(page_seconds=1.5, **options) as fetcher:
        response = fetcher.get(site.url + "/0")
    assert response.outcome is Outcome.FAILED
    assert "took longer than the 1.5 s allowed for a page" in response.reason
    assert len(site.paths) <= 4


def test_a_request_to_stop_ends_a_slow_read(site, silence) -> None:
    stop = threading.Event()

    def asked(handler) -> None:
        stop.set()
        silence(handler)

    site.pages["/"] = asked
    with Fetcher(user_agent="kbkit", allow_private=True, timeout=250, stop=stop.is_set) as fetcher:
        response = fetcher.get(site.url + "/")
    assert response.outcome is Outcome.FAILED


def test_redirects_are_followed(site, fetcher) -> None:
    site.pages["/a"] = answer(301, Location="b/c?x=1#part")
    site.pages["/b/c?x=1"] = "<p>here</p>"
    response = fetcher.get(site.url + "/a")
    assert response.body == b"<p>here</p>"
    assert response.url == site.url + "/b/c?x=1"


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_every_kind_of_redirect_is_followed(site, fetcher, status) -> None:
    site.pages["/a"] = answer(status, Location="/b")
    site.pages["/b"] = "<p>here</p>"
    assert fetcher.get(site.url + "/a").body == b"<p>here</p>"


def test_a_license_that_a_header_links_to_is_an_address(site, fetcher) -> None:
    site.pages["/a/b"] = answer(200, b"x", Link='<../terms>; rel="license", </c>; rel="next"')
    site.pages["/c"] = answer(200, b"x", Link='</d>; rel="next"')
    assert fetcher.get(site.url + "/a/b").license.url == site.url + "/terms"
    assert not fetcher.get(site.url + "/c").license


def test_redirects_in_a_circle_end(site, fetcher) -> None:
    site.pages["/a"] = answer(302, Location="/b")
    site.pages["/b"] = answer(302, Location="/a")
    response = fetcher.get(site.url + "/a")
    assert (response.outcome, response.reason) == (Outcome.FAILED, "redirects in a circle")
    assert len(site.paths) == 2


def test_endless_redirects_end(site, fetcher) -> None:
    for number in range(30):
        site.pages[f"/{number}"] = answer(307, Location=f"/{number + 1}")
    response = fetcher.get(site.url + "/0")
    assert response.reason == "more than 10 redirects"


@pytest.mark.parametrize("target", ["file:///etc/passwd", "ftp://127.0.0.1/", "javascript:1"])
def test_redirects_to_other_schemes_are_refused(site, fetcher, target) -> None:
    site.pages["/"] = answer(302, Location=target)
    response = fetcher.get(site.url + "/")
    assert response.outcome is Outcome.SKIPPED
    assert "only http and https" in response.reason


def test_a_redirect_to_nowhere(site, fetcher) -> None:
    site.pages["/"] = answer(302)
    assert "without a Location" in fetcher.get(site.url + "/").reason


@pytest.mark.parametrize("says", [True, False])
def test_a_page_of_50_mb_is_not_read(site, says) -> None:
    sent = []

    def flood(handler) -> None:
        handler.send_response(200)
        if says:
            handler.send_header("Content-Length", str(50_000_000))
        handler.end_headers()
        for _ in range(50):
            handler.wfile.write(b"x" * 1_000_000)
            sent.append(1)

    site.pages["/"] = flood
    with Fetcher(user_agent="kbkit", allow_private=True, max_bytes=1_000_000) as fetcher:
        response = fetcher.get(site.url + "/")
    assert (response.outcome, response.reason) == (Outcome.SKIPPED, "larger than 1 MB")
    assert len(sent) < 40


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
def test_compressed_pages_are_read_and_bombs_are_not(site, encoding) -> None:
    pack = gzip.compress if encoding == "gzip" else zlib.compress
    site.pages["/page"] = answer(200, pack(b"<p>hello</p>"), Content_Encoding=encoding)
    site.pages["/bomb"] = answer(200, pack(b"\0" * 60_000_000), Content_Encoding=encoding)
    site.pages["/torn"] = answer(200, pack(b"hello" * 1000)[:-8], Content_Encoding=encoding)
    site.pages["/odd"] = answer(200, b"hello", Content_Encoding=encoding)
    with Fetcher(user_agent="kbkit", allow_private=True, max_bytes=1_000_000) as fetcher:
        assert fetcher.get(site.url + "/page").body == b"<p>hello</p>"
        assert fetcher.get(site.url + "/bomb").reason == "larger than 1 MB"
        assert "damaged" in fetcher.get(site.url + "/torn").reason
        assert "damaged" in fetcher.get(site.url + "/odd").reason


def test_an_encoding_that_was_not_asked_for(site, fetcher) -> None:
    site.pages["/"] = answer(200, b"hello", Content_Encoding="br")
    response = fetcher.get(site.url + "/")
    assert response.outcome is Outcome.FAILED
    assert "br" in response.reason


@pytest.mark.slow
def test_a_busy_server_is_asked_again_after_the_time_it_names(site, fetcher) -> None:
    def busy(handler) -> None:
        if site.count("/") < 3:
            answer(503 if site.count("/") == 1 else 429, Retry_After="1")(handler)
        else:
            answer(200, b"at last")(handler)

    site.pages["/"] = busy
    started = time.monotonic()
    assert fetcher.get(site.url + "/").body == b"at last"
    assert time.monotonic() - started >= 2


def test_a_server_that_wants_hours_is_left_alone(site, fetcher) -> None:
    site.pages["/"] = answer(429, Retry_After="7200")
    response = fetcher.get(site.url + "/")
    assert "it asks to wait 7200 s" in response.reason


def test_waiting_for_a_retry_can_be_stopped(site) -> None:
    stop = threading.Event()

    def busy(handler) -> None:
        answer(503, Retry_After="50")(handler)
        stop.set()

    site.pages["/"] = busy
    with Fetcher(user_agent="kbkit", allow_private=True, stop=stop.is_set) as fetcher:
        assert fetcher.get(site.url + "/").outcome is Outcome.FAILED
    assert site.count("/") == 1  # nobody waited to ask again


def test_what_is_not_http(site, fetcher) -> None:
    site.pages["/"] = lambda handler: handler.wfile.write(b"SSH-2.0-OpenSSH_9.2\r\n")
    response = fetcher.get(site.url + "/")
    assert response.outcome is Outcome.FAILED
    assert "not proper HTTP" in response.reason


def test_proxies_of_the_environment_are_not_used(site, monkeypatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    site.pages["/"] = "<p>direct</p>"
    with Fetcher(user_agent="kbkit", allow_private=True) as fetcher:
        assert fetcher.get(site.url + "/").body == b"<p>direct</p>"


@pytest.mark.parametrize(
    ("body", "charset", "text"),
    [
        ("Grüße".encode(), "", "Grüße"),
        ("Grüße".encode("cp1252"), "iso-8859-1", "Grüße"),
        ("Grüße".encode(), "iso-8859-1", "Grüße"),
        ("Grüße".encode("utf-16"), "utf-8", "Grüße"),
        (b"\xef\xbb\xbfhello", "latin-1", "hello"),
        ('<meta charset="shift_jis">日本語'.encode("shift_jis"), "", "日本語"),
        ('<meta charset="utf-8">Grüße'.encode(), "", "Grüße"),
        ("日本語のページです。".encode("euc-jp"), "euc-jp", "日本語のページです。"),
        ("Grüße".encode(), "no-such-charset", "Grüße"),
        ("Grüße".encode(), "hex", "Grüße"),
        ("hello".encode("utf-16-le"), "", "hello"),
        (b"caf\xe9 " * 30, "utf-8", "caf"),
    ],
)
def test_text_is_decoded_as_well_as_possible(body, charset, text) -> None:
    assert text in decode(body, charset)


def test_one_stray_byte_does_not_spoil_a_page() -> None:
    body = ("Größe und Grüße. " * 200).encode() + b"\xff"
    assert decode(body, "utf-8").count("Größe") == 200


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"%PDF-1.7 ...", "a PDF"),
        (b"\x89PNG\r\n\x1a\n", "an image"),
        (b"PK\x03\x04", "zip"),
        (b"<p>a\x00\x01\x02b</p>", "binary"),
        (b"<p>text</p>", ""),
        ("hi".encode("utf-16"), ""),
    ],
)
def test_binary_is_recognised(body, kind) -> None:
    found = binary_kind(body)
    assert kind in found if kind else found == ""


def raw(*parts: bytes, forever: bytes = b""):
    """A reply byte by byte as given, then something without end."""

    def reply(handler) -> None:
        for part in parts:
            handler.wfile.write(part)
        while forever:
            handler.wfile.write(forever)

    return reply


def test_a_server_that_sends_interim_answers_without_end_times_out(site) -> None:
    site.pages["/"] = raw(forever=b"HTTP/1.1 100 Continue\r\n\r\n" * 100)
    with Fetcher(user_agent="kbkit", timeout=0.5, allow_private=True) as fetcher:
        response = fetcher.get(site.url + "/")
    assert response.outcome is Outcome.FAILED


@pytest.mark.parametrize(
    "head",
    [
        b"HTTP/1.1 200 OK\r\nX: " + b"a" * 300_000 + b"\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\n" + b"X: a\r\n" * 100_000 + b"\r\nhello",
        b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 7\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFFFFFFFFFFF\r\nx",
        b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\nhello",
    ],
)
def test_headers_that_lie_or_never_end_are_outcomes(site, fetcher, head, monkeypatch) -> None:
    monkeypatch.setattr("kbkit.sources.web.RETRIES", 0)
    site.pages["/"] = raw(head)
    assert fetcher.get(site.url + "/").outcome is Outcome.FAILED


def test_no_more_is_read_than_was_announced(site, fetcher) -> None:
    site.pages["/"] = raw(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello, and more")
    assert fetcher.get(site.url + "/").body == b"hello"


def test_an_unchanged_that_nobody_asked_for_is_a_failure(site, fetcher) -> None:
    site.pages["/"] = answer(304)
    response = fetcher.get(site.url + "/")
    assert (response.outcome, response.reason) == (
        Outcome.FAILED,
        "HTTP 304 to a request without a condition",
    )


@pytest.mark.parametrize(
    "value", ["Mon, 01 Jan 99999999 00:00:00 GMT", "Mon, 01 Jan 0001 00:00:00 +2359", "²", "soon"]
)
def test_an_odd_retry_after_is_passed_over(site, fetcher, value, monkeypatch) -> None:
    monkeypatch.setattr("kbkit.sources.web.RETRIES", 0)
    site.pages["/"] = raw(
        b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\nRetry-After: "
        + value.encode("latin-1")
        + b"\r\n\r\n"
    )
    assert fetcher.get(site.url + "/").reason.startswith("HTTP 503")


def test_cookies_do_not_pile_up(site, fetcher) -> None:
    cookies = b"".join(b"Set-Cookie: c%d=%s\r\n" % (n, b"x" * 100) for n in range(80))
    site.pages["/"] = raw(b"HTTP/1.1 200 OK\r\n" + cookies + b"Content-Length: 2\r\n\r\nok")
    site.pages["/next"] = "ok"
    fetcher.get(site.url + "/")
    fetcher.get(site.url + "/next")
    assert "Cookie" not in dict(site.requests)["/next"]


@pytest.mark.parametrize("name", ["ann@", "ann:secret@", ":@"])
def test_a_name_in_an_address_is_not_sent(site, fetcher, name) -> None:
    response = fetcher.get(site.url.replace("//", f"//{name}") + "/")
    assert (response.outcome, response.reason) == (
        Outcome.SKIPPED,
        "the address holds a user name or password",
    )
    assert site.paths == []
