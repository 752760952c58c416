"""Crawls of real servers: scope, politeness, resumption, refresh, and sites that misbehave."""

from __future__ import annotations

import gzip
import io
import threading
import time
from collections.abc import Iterable
from dataclasses import replace

import pytest
from PIL import Image

from kbkit.models import DocumentType, PageRecord, SourceDocument
from kbkit.recipes import CrawlSource, PageSource
from kbkit.sources import open_reader
from kbkit.sources.base import Outcome, SourceContext, SourceEvent
from kbkit.sources.web.browser_fetcher import illustrated
from tests.sources.web.test_fetch import answer


class Memory:
    """Remembers like the pipeline does: every event's visit."""

    def __init__(self, events: Iterable[SourceEvent] = (), *, interrupted: bool = False) -> None:
        self.pages = {event.record.url: event.record for event in events if event.record}
        self.interrupted = interrupted

    def visited(self) -> Iterable[PageRecord]:
        return list(self.pages.values()) if self.interrupted else ()

    def page(self, url: str) -> PageRecord | None:
        return self.pages.get(url)

    def known(self) -> Iterable[PageRecord]:
        return list(self.pages.values())


def crawl(url: str, memory: Memory | None = None, **options) -> list[SourceEvent]:
    spec = CrawlSource(url=url, allow_private=True, **options)
    context = SourceContext(memory=memory or Memory(), user_agent="kbkit/test", timeout=5)
    return list(open_reader(spec).events(context))


def read(events: Iterable[SourceEvent], site) -> list[str]:
    return sorted(
        event.uri.removeprefix(site.url) for event in events if event.outcome is Outcome.FETCHED
    )


def reasons(events: Iterable[SourceEvent], site) -> dict[str, str]:
    return {
        event.uri.removeprefix(site.url): f"{event.outcome}: {event.reason}"
        for event in events
        if event.reason
    }


def test_a_site_is_followed_along_its_links_once(site, page) -> None:
    site.pages["/"] = page("Home", "/a", "b#part", "/a?utm_source=x", "HTTP://127.0.0.1/other")
    site.pages["/a"] = page("A", "/", "/b", "./c/../b", "mailto:x@y", "/missing")
    site.pages["/b"] = page("B", "/picture.png", "https://example.com/")
    events = crawl(site.url + "/")
    assert read(events, site) == ["/", "/a", "/b"]
    assert site.count("/a") == site.count("/b") == site.count("/missing") == 1
    assert "/picture.png" not in site.asked
    assert reasons(events, site) == {
        "/missing": f"gone: HTTP 404 Not Found (linked from {site.url}/a)"
    }
    document = next(event.document for event in events if event.uri.endswith("/a"))
    assert document.title == "A"
    assert document.content.startswith("# A\n")


def test_only_pages_below_the_start_folder_are_read(site, page) -> None:
    site.pages["/docs/index.html"] = page("Docs", "/blog", "guide/x.html", "/docs/", "/docs2/y")
    site.pages["/docs/guide/x.html"] = page("X", "../../blog")
    site.pages["/docs/"] = site.pages["/docs/index.html"]
    assert read(crawl(site.url + "/docs/index.html"), site) == [
        "/docs/guide/x.html",
        "/docs/index.html",
    ]


def test_include_exclude_and_limit(site, page) -> None:
    names = [f"/guide/{number}" for number in range(10)] + ["/news/1", "/guide/old/1"]
    site.pages["/"] = page("Home", *names)
    for name in names:
        site.pages[name] = page(name)
    events = crawl(site.url + "/", include=("/guide/**",), exclude=("**/old/**",))
    assert read(events, site) == sorted(f"/guide/{number}" for number in range(10))
    assert "read for its links only" in reasons(events, site)["/"]
    assert not site.count("/news/1")
    assert len(read(crawl(site.url + "/", limit=4), site)) == 4


def test_robots_txt_is_obeyed(site, page) -> None:
    site.pages["/robots.txt"] = "User-agent: *\nDisallow: /\n\nUser-agent: kbkit\nDisallow: /no\n"
    site.pages["/"] = page("Home", "/yes", "/no/page")
    site.pages["/yes"] = page("Yes")
    site.pages["/no/page"] = page("No")
    events = crawl(site.url + "/")
    assert read(events, site) == ["/", "/yes"]
    assert reasons(events, site)["/no/page"] == "skipped: robots.txt forbids it"
    assert not site.count("/no/page")


def test_robots_txt_that_forbids_all(site, page) -> None:
    site.pages["/robots.txt"] = "User-agent: *\nDisallow: /"
    site.pages["/"] = page("Home")
    assert reasons(crawl(site.url + "/"), site) == {"/": "skipped: robots.txt forbids it"}
    assert site.asked == ["/robots.txt"]


def test_a_host_that_may_not_be_asked_is_passed_over_as_its_pages_are(site) -> None:
    spec = CrawlSource(url=site.url + "/", sitemap=False)  # without allow_private
    (event,) = open_reader(spec).events(SourceContext(user_agent="kbkit/test", timeout=5))
    assert event.outcome is Outcome.SKIPPED
    assert "private" in event.reason or "loopback" in event.reason
    assert "robots.txt" not in event.reason
    assert site.asked == []


def test_robots_txt_that_fails_forbids_all(site, page) -> None:
    def broken(handler) -> None:
        handler.send_response(500)
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    site.pages["/robots.txt"] = broken
    site.pages["/"] = page("Home")
    said = reasons(crawl(site.url + "/"), site)["/"]
    assert said.startswith("failed: robots.txt cannot be read (HTTP 500")
    assert site.asked == ["/robots.txt"]


@pytest.mark.slow
def test_the_pace_that_robots_txt_asks_for(site, page) -> None:
    site.pages["/robots.txt"] = "User-agent: *\nCrawl-delay: 0.4"
    site.pages["/"] = page("Home", "/a", "/b", "/c")
    times = []
    for name in ("/a", "/b", "/c"):
        site.pages[name] = page(name)
    started = time.monotonic()
    assert len(read(crawl(site.url + "/", sitemap=False), site)) == 4
    times.append(time.monotonic() - started)
    assert times[0] >= 1.2


def test_few_requests_at_once(site, page) -> None:
    names = [f"/{number}" for number in range(12)]
    site.pages["/"] = page("Home", *names)
    now, most = [0], [0]
    lock = threading.Lock()

    def slow(handler) -> None:
        with lock:
            now[0] += 1
            most[0] = max(most[0], now[0])
        time.sleep(0.05)
        body = page(handler.path).encode()
        handler.send_response(200)
        handler.send_header("Content-Type", "text/html")
        handler.end_headers()
        with lock:
            now[0] -= 1
        handler.wfile.write(body)

    for name in names:
        site.pages[name] = slow
    assert len(read(crawl(site.url + "/"), site)) == 13
    assert 1 < most[0] <= 4


def test_sitemaps_are_read_nested_and_packed(site, page) -> None:
    site.pages["/robots.txt"] = f"Sitemap: {site.url}/index.xml\n"
    site.pages["/index.xml"] = (
        "<sitemapindex><sitemap><loc>"
        f"{site.url}/a.xml.gz</loc></sitemap><sitemap><loc>{site.url}/index.xml</loc></sitemap>"
        "</sitemapindex>"
    )
    urls = "".join(
        f"<url><loc> {site.url}{path} </loc></url>" for path in ("/far?a=1&amp;b=2", "/far")
    )
    site.pages["/a.xml.gz"] = gzip.compress(
        f"<urlset>{urls}<url><loc>https://example.com/out</loc></url></urlset>".encode()
    )
    site.pages["/"] = page("Home")
    site.pages["/far"] = page("Far")
    site.pages["/far?a=1&b=2"] = page("Far with a query")
    assert read(crawl(site.url + "/"), site) == ["/", "/far", "/far?a=1&b=2"]
    assert read(crawl(site.url + "/", sitemap=False), site) == ["/"]


@pytest.mark.parametrize(
    "sitemap",
    [
        b"",
        b"\x00\x01\x02",
        b"\x1f\x8b\x08garbage",
        b"<urlset><url><loc>",
        b'<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;">]><urlset><loc>&b;</loc></urlset>',
        gzip.compress(b" " * 60_000_000),
    ],
)
def test_broken_sitemaps_do_not_matter(site, page, sitemap) -> None:
    site.pages["/sitemap.xml"] = sitemap
    site.pages["/"] = page("Home")
    assert read(crawl(site.url + "/"), site) == ["/"]


def test_noindex_canonical_and_refresh(site, page) -> None:
    site.pages["/"] = page("Home", "/hidden", "/copy", "/stub", "/wrong")
    site.pages["/hidden"] = page("Hidden", "/behind", head='<meta name="robots" content="noindex">')
    site.pages["/behind"] = page("Behind")
    site.pages["/copy"] = page("Copy", head='<link rel="canonical" href="/original">')
    site.pages["/original"] = page("Original")
    site.pages["/stub"] = page(
        "Moved", head="<meta http-equiv=refresh content=\"0; URL='/moved'\">", text="Moved."
    )
    site.pages["/moved"] = page("Moved here")
    site.pages["/wrong"] = page("Says home is it", head='<link rel="canonical" href="/">')
    events = crawl(site.url + "/")
    assert read(events, site) == ["/", "/behind", "/moved", "/original", "/wrong"]
    said = reasons(events, site)
    assert "noindex" in said["/hidden"]
    assert "a copy of" in said["/copy"]
    assert "meta refresh" in said["/stub"]


def test_redirects_inside_and_outside_the_site(site, page) -> None:
    def to(target: str):
        def redirect(handler) -> None:
            handler.send_response(302)
            handler.send_header("Location", target)
            handler.send_header("Content-Length", "0")
            handler.end_headers()

        return redirect

    site.pages["/"] = page("Home", "/old", "/out", "/again", "/round")
    site.pages["/old"] = to("/new")
    site.pages["/again"] = to("/")
    site.pages["/out"] = to("https://example.com/")
    site.pages["/round"] = to("/round")
    site.pages["/new"] = page("New")
    events = crawl(site.url + "/")
    assert read(events, site) == ["/", "/new"]
    said = reasons(events, site)
    assert "outside the crawl" in said["/out"]
    assert "read itself" in said["/again"]
    assert "circle" in said["/round"]


def test_a_start_page_that_moves_takes_the_scope_along(site, page) -> None:
    def redirect(handler) -> None:
        handler.send_response(301)
        handler.send_header("Location", "/en/latest/")
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    site.pages["/docs/"] = redirect
    site.pages["/en/latest/"] = page("Docs", "guide")
    site.pages["/en/latest/guide"] = page("Guide")
    assert read(crawl(site.url + "/docs/"), site) == ["/en/latest/", "/en/latest/guide"]


@pytest.mark.parametrize(
    ("status", "outcome"), [(404, Outcome.GONE), (500, Outcome.FAILED), (403, Outcome.FAILED)]
)
def test_a_start_page_that_cannot_be_had_is_an_event(site, status, outcome) -> None:
    def refuse(handler) -> None:
        handler.send_response(status)
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    site.pages["/"] = refuse
    (event,) = crawl(site.url + "/")
    assert event.outcome is outcome
    assert f"HTTP {status}" in event.reason


def test_an_unreachable_or_private_start_is_an_event() -> None:
    (event,) = crawl("http://127.0.0.1:9/")
    assert event.outcome is Outcome.FAILED
    assert "cannot connect to 127.0.0.1:9" in event.reason
    spec = CrawlSource(url="http://localhost/")
    (event,) = open_reader(spec).events(SourceContext())
    assert event.outcome is Outcome.SKIPPED
    assert "loopback" in event.reason


def test_bad_pages_are_reported_and_survived(site, page, silence) -> None:
    def flood(handler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Type", "text/html")
        handler.end_headers()
        for _ in range(50):
            handler.wfile.write(b"<p>" + b"x" * 1_000_000)

    names = ("/flood", "/binary", "/empty", "/blank", "/latin", "/pdf", "/deep", "/good", "/hang")
    site.pages["/"] = page("Home", *names)
    site.pages["/flood"] = flood
    site.pages["/binary"] = b"\x7fELF\x02\x01\x01" + bytes(range(256)) * 100
    site.pages["/empty"] = b""
    site.pages["/blank"] = "<html><body><script>1</script></body></html>"
    site.pages["/latin"] = page("Grüße aus Köln").encode("cp1252")
    site.pages["/pdf"] = b"%PDF-1.7"
    site.headers["/pdf"] = {"Content-Type": "application/pdf"}
    site.pages["/deep"] = "<div>" * 100_000 + "deep text"
    site.pages["/good"] = page("Good")
    site.pages["/hang"] = silence
    spec = CrawlSource(url=site.url + "/", allow_private=True, max_bytes=2_000_000)
    context = SourceContext(user_agent="kbkit/test", timeout=1)
    events = list(open_reader(spec).events(context))
    said = reasons(events, site)
    assert said["/flood"] == "skipped: larger than 2 MB"
    assert said["/binary"] == "skipped: a program, though it is served as a page"
    assert said["/empty"] == "skipped: empty page"
    assert said["/blank"] == "skipped: no text"
    assert said["/pdf"] == "skipped: application/pdf, not a page"
    assert said["/hang"].startswith("failed: no complete answer within 1 s")
    assert {"/", "/good", "/latin"} <= set(read(events, site))
    titles = {event.document.title for event in events if event.document}
    assert "Grüße aus Köln" in titles


def test_a_second_crawl_fetches_only_what_changed(site, page) -> None:
    names = ["/a", "/b", "/c"]
    site.pages["/"] = page("Home", "/a")
    site.pages["/a"] = page("A", "/b", "/c")
    site.pages["/b"] = page("B")
    site.pages["/c"] = page("C")
    for name in ("/", *names):
        site.headers[name] = {"ETag": f'"{name}1"'}
    memory = Memory(crawl(site.url + "/"))
    site.pages["/b"] = page("B is new")
    site.headers["/b"] = {"ETag": '"/b2"'}
    del site.pages["/c"], site.headers["/c"]
    events = crawl(site.url + "/", memory)
    outcomes = {event.uri.removeprefix(site.url): event.outcome for event in events}
    assert outcomes == {
        "/": Outcome.UNCHANGED,
        "/a": Outcome.UNCHANGED,
        "/b": Outcome.FETCHED,
        "/c": Outcome.GONE,
    }
    assert all(event.record for event in events)
    again = {event.record.url: event.record for event in events}
    assert again[site.url + "/a"].links == (site.url + "/b", site.url + "/c")


def test_a_page_that_nothing_links_to_any_more_is_asked_again(site, page) -> None:
    site.pages["/"] = page("Home", "/a", "/b")
    site.pages["/a"] = page("A")
    site.pages["/b"] = page("B")
    memory = Memory(crawl(site.url + "/"))
    site.pages["/"] = page("Home")
    del site.pages["/b"]
    outcomes = {e.uri.removeprefix(site.url): e.outcome for e in crawl(site.url + "/", memory)}
    assert outcomes["/a"] is Outcome.UNCHANGED  # no validators, but the same bytes
    assert outcomes["/b"] is Outcome.GONE


def test_a_host_that_is_down_makes_nothing_gone(site, page) -> None:
    site.pages["/"] = page("Home", "/a")
    site.pages["/a"] = page("A")
    memory = Memory(crawl(site.url + "/"))
    moved = {
        url.replace(site.url, "http://127.0.0.1:9"): replace(
            record,
            url=record.url.replace(site.url, "http://127.0.0.1:9"),
            document_uri=record.document_uri.replace(site.url, "http://127.0.0.1:9"),
            links=(),
        )
        for url, record in memory.pages.items()
    }
    memory.pages = moved
    events = crawl("http://127.0.0.1:9/", memory)
    assert {event.outcome for event in events} == {Outcome.FAILED}
    assert events[0].record.document_uri == "http://127.0.0.1:9/"


def test_an_interrupted_crawl_goes_on_where_it_was(site, page) -> None:
    names = [f"/{number}" for number in range(8)]
    site.pages["/"] = page("Home", "/0")
    for number, name in enumerate(names):
        site.pages[name] = page(name, f"/{number + 1}")
    spec = CrawlSource(url=site.url + "/", allow_private=True)
    seen: list[SourceEvent] = []
    for event in open_reader(spec).events(SourceContext(user_agent="kbkit")):
        seen.append(event)
        if len(seen) == 4:
            break
    site.asked.clear()
    rest = crawl(site.url + "/", Memory(seen, interrupted=True))
    assert sorted(read(seen, site) + read(rest, site)) == sorted(["/", *names])
    assert not set(read(seen, site)) & set(site.asked)


def test_pages_of_the_interrupted_run_count_against_the_limit(site, page) -> None:
    names = [f"/{number}" for number in range(10)]
    site.pages["/"] = page("Home", *names)
    for name in names:
        site.pages[name] = page(name)
    first = crawl(site.url + "/", limit=4)
    rest = crawl(site.url + "/", Memory(first, interrupted=True), limit=6)
    assert len(read(first, site)) == 4
    assert len(read(rest, site)) == 2


def test_a_request_to_stop_ends_a_crawl_that_waits(site, page, silence) -> None:
    names = [f"/{number}" for number in range(50)]
    site.pages["/"] = page("Home", *names)
    stop = threading.Event()

    def asked(handler) -> None:
        stop.set()
        silence(handler)

    for name in names:
        site.pages[name] = asked
    spec = CrawlSource(url=site.url + "/", allow_private=True)
    context = SourceContext(stop=stop.is_set, user_agent="kbkit", timeout=250)
    list(open_reader(spec).events(context))
    assert stop.is_set()
    assert len(site.asked) < 20


@pytest.mark.slow
def test_many_pages_are_read_in_several_processes_as_in_one(site, page, monkeypatch) -> None:
    names = [f"/{number}" for number in range(60)]
    site.pages["/"] = page("Home", *names)
    for name in names:
        site.pages[name] = page(name, text="Some words of prose. " * 20)
    several = crawl(site.url + "/")
    monkeypatch.setattr("kbkit.sources.html.site_extractor.MANY", 10_000)
    one = crawl(site.url + "/")
    assert len(read(several, site)) == 61
    contents = [{e.uri: e.document.content for e in events} for events in (several, one)]
    assert contents[0] == contents[1]


@pytest.mark.slow
def test_traps_are_kept_out_of(site, page) -> None:
    def calendar(handler) -> None:
        month = int(handler.path.rpartition("=")[2])
        body = page(f"Month {month}", f"?month={month + 1}", f"x/{handler.path}").encode()
        handler.send_response(200)
        handler.send_header("Content-Type", "text/html")
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    site.pages["/"] = page("Home", "/calendar?month=1", "/a/a/a/a/a/a")
    for month in range(1, 300):
        site.pages[f"/calendar?month={month}"] = calendar
    assert len(read(crawl(site.url + "/"), site)) <= 202
    assert not site.count("/a/a/a/a/a/a")


def test_one_page(site, page) -> None:
    site.pages["/tutorial"] = page("First steps", "/other")
    site.headers["/tutorial"] = {"ETag": '"1"'}
    spec = PageSource(url=site.url + "/tutorial#x", allow_private=True, tags=("t",))
    (event,) = open_reader(spec).events(SourceContext(user_agent="kbkit"))
    assert event.document.title == "First steps"
    assert event.document.document_type is DocumentType.TUTORIAL
    assert event.document.tags == ("t",)
    assert event.document.uri == site.url + "/tutorial"
    assert site.asked == ["/robots.txt", "/tutorial"]
    again = SourceContext(user_agent="kbkit", memory=Memory([event]))
    (unchanged,) = open_reader(spec).events(again)
    assert unchanged.outcome is Outcome.UNCHANGED


@pytest.mark.parametrize("kind", [PageSource, CrawlSource])
def test_a_large_page_is_read_where_its_time_can_be_ended(site, monkeypatch, kind) -> None:
    """900,000 attributes took minutes in this process, which nothing could end."""
    many = " ".join(f"a{number}=1" for number in range(60_000))
    site.pages["/"] = f"<html><body><h1>Long</h1><p {many}>Some text of it.</p></body></html>"
    monkeypatch.setattr("kbkit.sources.html.site_extractor.PAGE_SECONDS", 0.5)
    spec = kind(url=site.url + "/", allow_private=True)
    (event,) = open_reader(spec).events(SourceContext(user_agent="kbkit"))
    assert (event.outcome, event.reason) == (Outcome.FAILED, "took longer than 0.5 s")


def test_a_page_of_some_size_is_read_in_a_worker_as_it_is_here(site) -> None:
    text = "".join(f"<p>Paragraph {number} of a page that is large.</p>" for number in range(4_000))
    site.pages["/"] = f"<html><body><main><h1>Large</h1>{text}</main></body></html>"
    spec = PageSource(url=site.url + "/", allow_private=True)
    (event,) = open_reader(spec).events(SourceContext(user_agent="kbkit"))
    assert event.document.title == "Large"
    assert "Paragraph 3999 of" in event.document.content


def test_one_page_of_plain_markdown(site) -> None:
    site.pages["/README.md"] = "# Hello\n\nSome *text*.\n"
    site.headers["/README.md"] = {"Content-Type": "text/markdown"}
    spec = PageSource(url=site.url + "/README.md", allow_private=True)
    (event,) = open_reader(spec).events(SourceContext(user_agent="kbkit"))
    assert (event.document.title, event.document.content) == ("Hello", "# Hello\n\nSome *text*.\n")


def test_one_page_that_is_not_there(site) -> None:
    (event,) = open_reader(PageSource(url=site.url + "/x", allow_private=True)).events(
        SourceContext(user_agent="kbkit")
    )
    assert (event.outcome, event.reason) == (Outcome.GONE, "HTTP 404 Not Found")


def one_page(address: str, *events: SourceEvent) -> SourceEvent:
    """What becomes of a page by itself, which events told of before."""
    spec = PageSource(url=address, allow_private=True)
    context = SourceContext(memory=Memory(events), user_agent="kbkit")
    (event,) = open_reader(spec).events(context)
    return event


def test_one_page_is_not_asked_for_where_robots_forbid_it(site, page) -> None:
    def leading_there(handler) -> None:
        handler.send_response(302)
        handler.send_header("Location", "/secret/")
        handler.end_headers()

    site.pages["/robots.txt"] = "User-agent: *\nDisallow: /secret/\n"
    site.pages["/secret/"] = page("Secret")
    site.pages["/open"] = leading_there
    for path in ("/secret/", "/open"):
        event = one_page(site.url + path)
        assert (event.outcome, event.document) == (Outcome.SKIPPED, None)
        assert "robots.txt" in event.reason
    assert site.asked.count("/open") == 1
    assert "/secret/" not in site.asked


def test_one_page_whose_bytes_are_the_same_is_unchanged(site, page) -> None:
    site.pages["/"] = page("Home")
    first = one_page(site.url + "/")
    assert one_page(site.url + "/", first).outcome is Outcome.UNCHANGED
    site.pages["/"] = page("Home again")
    assert one_page(site.url + "/", first).document.title == "Home again"


@pytest.mark.parametrize(
    ("body", "headers", "reason"),
    [
        ("GIF89a", {"Content-Type": "image/gif"}, "image/gif, not a page"),
        (" \n", {}, "empty page"),
        ("<html><body><main></main></body></html>", {}, "no text"),
        ("<p>Some words of a page.</p>", {"X-Robots-Tag": "none"}, "noindex"),
        ("<p>Some words of a page.</p>", {"X-Robots-Tag": "noindex"}, "noindex"),
    ],
)
def test_one_page_that_is_no_document_says_why(site, body, headers, reason) -> None:
    site.pages["/"], site.headers["/"] = body, headers
    event = one_page(site.url + "/")
    assert (event.outcome, event.document) == (Outcome.SKIPPED, None)
    assert reason in event.reason
    assert event.record.url == site.url + "/"
    assert one_page(site.url + "/", event).outcome in (Outcome.SKIPPED, Outcome.UNCHANGED)


def test_one_page_that_could_not_be_read_is_asked_for_anew(site, page, monkeypatch) -> None:
    def nested(*_: object, **options: object) -> None:
        raise RecursionError

    site.pages["/"] = page("Home")
    site.headers["/"] = {"ETag": '"1"', "Last-Modified": "Mon, 01 Jan 2024 00:00:00 GMT"}
    with monkeypatch.context() as small:
        small.setattr("kbkit.sources.html.extract._read", nested)
        failed = one_page(site.url + "/")
    assert failed.outcome is Outcome.FAILED
    assert one_page(site.url + "/", failed).document.title == "Home"
    asked = [headers for path, headers in site.requests if path == "/"][-1]
    assert not {"If-None-Match", "If-Modified-Since"} & set(asked)


def test_pictures_of_pages_are_kept_where_the_recipe_says_so(site, page) -> None:
    stream = io.BytesIO()
    Image.new("RGB", (4, 4)).save(stream, "PNG")
    site.pages["/robots.txt"] = "User-agent: *\nDisallow: /secret/\n"
    site.pages["/logo.png"] = site.pages["/secret/x.png"] = stream.getvalue()
    site.pages["/fake.png"] = "<script>alert(1)</script>"
    pictures = "".join(
        f"<p>Words beside it. <img src='{place}' alt='{place}'></p>"
        for place in ("/logo.png", "/secret/x.png", "/fake.png", "/none.png", "file:///etc/passwd")
    )
    for path in ("/", "/a"):
        text = page(f"Page {path}", "/a")
        site.pages[path] = text.replace("</body>", f"{pictures}</body>")
    assert all(not event.document.images for event in crawl(site.url + "/") if event.document)
    assert "/logo.png" not in site.asked
    found = [event.document for event in crawl(site.url + "/", images=True) if event.document]
    assert len(found) == 2
    for document in found:
        (address,) = document.images
        assert address == f"{site.url}/logo.png"
        assert document.images[address].name.endswith(".png")
    assert site.asked.count("/logo.png") == 1
    assert "/secret/x.png" not in site.asked


@pytest.mark.parametrize("bound", ["_MAX_REQUESTS", "_MAX_FETCHED"])
def test_pictures_of_a_run_have_bounds(site, page, monkeypatch, bound) -> None:
    monkeypatch.setattr(f"kbkit.sources.web.browser_fetcher.{bound}", 1)
    stream = io.BytesIO()
    Image.new("RGB", (4, 4)).save(stream, "PNG")
    site.pages["/1.png"] = site.pages["/2.png"] = stream.getvalue()
    shown = "<p>Words beside them. <img src='/1.png' alt='1'> <img src='/2.png' alt='2'></p>"
    site.pages["/"] = page("Home").replace("</body>", f"{shown}</body>")
    (event,) = crawl(site.url + "/", images=True, sitemap=False)
    assert event.document is not None
    assert list(event.document.images) == [site.url + "/1.png"]
    assert "/2.png" not in site.asked


def test_pictures_of_private_addresses_are_refused(site, page) -> None:
    events = [
        SourceEvent(
            "https://x.example/",
            Outcome.FETCHED,
            SourceDocument("https://x.example/", "X", f"![a]({site.url}/logo.png)"),
        )
    ]
    spec = PageSource(url="https://x.example/", images=True)
    (event,) = illustrated(iter(events), spec, SourceContext())
    assert event.document is not None
    assert not event.document.images
    assert site.asked == []


def test_pages_are_read_again_when_include_changes(site, page) -> None:
    site.pages |= {"/": page("Home", "/a"), "/a": page("A")}
    first = crawl(site.url + "/", exclude=("/a",), sitemap=False)
    assert read(first, site) == ["/"]
    first = crawl(site.url + "/", include=("/",), sitemap=False)
    again = crawl(site.url + "/", Memory(first), sitemap=False)
    assert read(again, site) == ["/", "/a"]


def test_a_page_that_moved_is_stored_under_its_new_address(site, page) -> None:
    site.pages |= {"/": page("Home", "/a"), "/a": page("A"), "/b": page("A")}
    first = crawl(site.url + "/", sitemap=False)
    site.pages["/a"] = answer(301, Location="/b")
    events = crawl(site.url + "/", Memory(first), sitemap=False)
    assert read(events, site) == ["/b"]


def test_addresses_in_robots_txt_and_sitemaps_may_be_relative(site, page) -> None:
    site.pages["/robots.txt"] = (
        "\ufeffUser-agent: *\nDisallow: /no\nSitemap: /all.txt\nSitemap: b/s.xml"
    )
    site.pages["/all.txt"] = "\ufeff/a\n/no\n"
    picture = "<image:image><image:loc>/picture</image:loc></image:image>"
    site.pages["/b/s.xml"] = f"<sm:urlset><sm:url><sm:loc>c</sm:loc>{picture}</sm:url></sm:urlset>"
    for name in ("/", "/a", "/no", "/b/c", "/picture"):
        site.pages[name] = page(name)
    assert read(crawl(site.url + "/"), site) == ["/", "/a", "/b/c"]
    assert site.asked[0] == "/robots.txt"
    assert "/no" not in site.asked


def test_a_malformed_sitemap_line_stops_no_crawl(site, page) -> None:
    site.pages["/robots.txt"] = "Sitemap: http://[bad\nSitemap: /s.txt"
    site.pages |= {"/s.txt": "http://[bad\n/a\n", "/": page("Home"), "/a": page("A")}
    assert read(crawl(site.url + "/"), site) == ["/", "/a"]
