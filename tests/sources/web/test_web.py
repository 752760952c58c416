"""Crawls of sites: scope, politeness, resumption, refresh, and sites that misbehave."""

import gzip
import io
import threading
import time
from dataclasses import replace
from itertools import islice

import pytest
from PIL import Image

from kbkit.models import DocumentType, SourceDocument
from kbkit.recipes import CrawlSource, PageSource
from kbkit.sources import Outcome, SourceContext, SourceEvent, open_reader
from kbkit.sources.web.browser_fetcher import add_pictures
from tests.sources.web.crawls import (
    Memory,
    answer,
    crawl,
    one_page,
    outcomes,
    read,
    reasons,
    redirect,
)


def test_each_linked_page_of_a_site_is_read_once(site, page) -> None:
    site.pages["/"] = page("Home", "/a", "b#part", "/a?utm_source=x", "HTTP://127.0.0.1/other")
    site.pages["/a"] = page("A", "/", "/b", "./c/../b", "mailto:x@y", "/missing")
    site.pages["/b"] = page("B", "/picture.png", "https://example.com/")
    events = crawl(site.url + "/")
    assert read(events, site) == ["/", "/a", "/b"]
    assert site.count("/a") == site.count("/b") == site.count("/missing") == 1
    assert "/picture.png" not in site.paths
    assert reasons(events, site) == {
        "/missing": f"gone: HTTP 404 Not Found (linked from {site.url}/a)"
    }
    document = next(event.document for event in events if event.uri.endswith("/a"))
    assert document.title == "A"
    assert document.content.startswith("# A\n")


def test_only_pages_below_the_start_folder_are_read(site) -> None:
    start = "/docs/index.html"
    site.link({start: ["/blog", "guide/x.html", "/docs/", "/docs2/y"]})
    site.link({"/docs/guide/x.html": ["../../blog"]})
    site.pages["/docs/"] = site.pages[start]
    assert read(crawl(site.url + start), site) == ["/docs/guide/x.html", start]


def test_include_exclude_and_limit(site) -> None:
    guides = [f"/guide/{number}" for number in range(10)]
    names = [*guides, "/news/1", "/guide/old/1"]
    site.link({"/": names}, *names)
    events = crawl(site.url + "/", include=("/guide/**",), exclude=("**/old/**",))
    assert read(events, site) == guides
    assert "read for its links only" in reasons(events, site)["/"]
    assert not site.count("/news/1")
    assert len(read(crawl(site.url + "/", limit=4), site)) == 4


def test_robots_txt_is_obeyed(site) -> None:
    site.pages["/robots.txt"] = "User-agent: *\nDisallow: /\n\nUser-agent: kbkit\nDisallow: /no\n"
    site.link({"/": ["/yes", "/no/page"]}, "/yes", "/no/page")
    events = crawl(site.url + "/")
    assert read(events, site) == ["/", "/yes"]
    assert reasons(events, site)["/no/page"] == "skipped: robots.txt forbids it"
    assert not site.count("/no/page")


def test_private_host_is_skipped_before_its_robots_txt(site) -> None:
    (event,) = crawl(site.url + "/", sitemap=False, allow_private=False)
    assert event.outcome is Outcome.SKIPPED
    assert "private" in event.reason or "loopback" in event.reason
    assert "robots.txt" not in event.reason
    assert site.paths == []


@pytest.mark.slow
def test_crawl_delay_of_robots_txt_is_kept(site) -> None:
    site.pages["/robots.txt"] = "User-agent: *\nCrawl-delay: 0.4"
    site.link({"/": ["/a", "/b", "/c"]}, "/a", "/b", "/c")
    started = time.monotonic()
    assert len(read(crawl(site.url + "/", sitemap=False), site)) == 4
    assert time.monotonic() - started >= 1.2


def test_few_requests_run_at_once(site, page) -> None:
    names = [f"/{number}" for number in range(12)]
    site.link({"/": names})
    running, most = 0, 0
    lock = threading.Lock()

    def slow(handler) -> None:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        time.sleep(0.05)
        body = page(handler.path).encode()
        handler.send_response(200)
        handler.send_header("Content-Type", "text/html")
        handler.end_headers()
        with lock:
            running -= 1
        handler.wfile.write(body)

    site.pages |= dict.fromkeys(names, slow)
    assert len(read(crawl(site.url + "/"), site)) == 13
    assert 1 < most <= 4


def test_sitemaps_may_be_nested_and_compressed(site) -> None:
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
    site.link({}, "/", "/far", "/far?a=1&b=2")
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
def test_broken_sitemaps_are_ignored(site, sitemap) -> None:
    site.pages["/sitemap.xml"] = sitemap
    site.link({}, "/")
    assert read(crawl(site.url + "/"), site) == ["/"]


def test_noindex_canonical_and_refresh(site, page) -> None:
    site.link({"/": ["/hidden", "/copy", "/stub", "/wrong"]}, "/behind", "/original", "/moved")
    site.pages["/hidden"] = page("Hidden", "/behind", head='<meta name="robots" content="noindex">')
    site.pages["/copy"] = page("Copy", head='<link rel="canonical" href="/original">')
    site.pages["/stub"] = page(
        "Moved", head="<meta http-equiv=refresh content=\"0; URL='/moved'\">", text="Moved."
    )
    site.pages["/wrong"] = page("Says home is it", head='<link rel="canonical" href="/">')
    events = crawl(site.url + "/")
    assert read(events, site) == ["/", "/behind", "/moved", "/original", "/wrong"]
    skipped = reasons(events, site)
    assert "noindex" in skipped["/hidden"]
    assert "a copy of" in skipped["/copy"]
    assert "meta refresh" in skipped["/stub"]


def test_redirects_inside_and_outside_the_site(site) -> None:
    site.link({"/": ["/old", "/out", "/again", "/round"]}, "/new")
    site.pages["/old"] = redirect("/new")
    site.pages["/again"] = redirect("/")
    site.pages["/out"] = redirect("https://example.com/")
    site.pages["/round"] = redirect("/round")
    events = crawl(site.url + "/")
    assert read(events, site) == ["/", "/new"]
    skipped = reasons(events, site)
    assert "outside the crawl" in skipped["/out"]
    assert "read itself" in skipped["/again"]
    assert "circle" in skipped["/round"]


def test_scope_follows_a_redirected_start_page(site) -> None:
    site.pages["/docs/"] = redirect("/en/latest/", 301)
    site.link({"/en/latest/": ["guide"]}, "/en/latest/guide")
    assert read(crawl(site.url + "/docs/"), site) == ["/en/latest/", "/en/latest/guide"]


def test_bad_pages_are_reported_and_others_are_read(site, page, silence) -> None:
    def flood(handler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Type", "text/html")
        handler.end_headers()
        for _ in range(50):
            handler.wfile.write(b"<p>" + b"x" * 1_000_000)

    bad = {
        "/flood": flood,
        "/binary": b"\x7fELF\x02\x01\x01" + bytes(range(256)) * 100,
        "/empty": b"",
        "/blank": "<html><body><script>1</script></body></html>",
        "/latin": page("Grüße aus Köln").encode("cp1252"),
        "/pdf": b"%PDF-1.7",
        "/deep": "<div>" * 100_000 + "deep text",
        "/hang": silence,
    }
    site.link({"/": [*bad, "/good"]}, "/good")
    site.pages |= bad
    site.headers["/pdf"] = {"Content-Type": "application/pdf"}
    events = crawl(site.url + "/", timeout=1, max_bytes=2_000_000)
    skipped = {
        "/flood": "skipped: larger than 2 MB",
        "/binary": "skipped: a program, though it is served as a page",
        "/empty": "skipped: empty page",
        "/blank": "skipped: no text",
        "/pdf": "skipped: application/pdf, not a page",
    }
    assert skipped.items() <= reasons(events, site).items()
    assert reasons(events, site)["/hang"].startswith("failed: no complete answer within 1 s")
    assert {"/", "/good", "/latin"} <= set(read(events, site))
    assert "Grüße aus Köln" in {event.document.title for event in events if event.document}


def test_second_crawl_fetches_only_changed_pages(site, page) -> None:
    site.link({"/": ["/a"], "/a": ["/b", "/c"]}, "/b", "/c")
    for name in ("/", "/a", "/b", "/c"):
        site.headers[name] = {"ETag": f'"{name}1"'}
    memory = Memory(crawl(site.url + "/"))
    site.pages["/b"] = page("B is new")
    site.headers["/b"] = {"ETag": '"/b2"'}
    del site.pages["/c"], site.headers["/c"]
    events = crawl(site.url + "/", memory)
    assert outcomes(events, site) == {
        "/": Outcome.UNCHANGED,
        "/a": Outcome.UNCHANGED,
        "/b": Outcome.FETCHED,
        "/c": Outcome.GONE,
    }
    records = {event.record.url: event.record for event in events}
    assert records[site.url + "/a"].links == (site.url + "/b", site.url + "/c")


def test_pages_without_links_to_them_are_checked_again(site) -> None:
    site.link({"/": ["/a", "/b"]}, "/a", "/b")
    memory = Memory(crawl(site.url + "/"))
    site.link({}, "/")
    del site.pages["/b"]
    second = outcomes(crawl(site.url + "/", memory), site)
    assert second["/a"] is Outcome.UNCHANGED  # no validators, but the same bytes
    assert second["/b"] is Outcome.GONE


def test_host_that_is_down_makes_no_page_gone(site) -> None:
    site.link({"/": ["/a"]}, "/a")
    memory = Memory(crawl(site.url + "/"))
    down = "http://127.0.0.1:9"
    memory.pages = {
        url.replace(site.url, down): replace(
            record,
            url=record.url.replace(site.url, down),
            document_uri=record.document_uri.replace(site.url, down),
            links=(),
        )
        for url, record in memory.pages.items()
    }
    events = crawl(f"{down}/", memory)
    assert {event.outcome for event in events} == {Outcome.FAILED}
    assert events[0].record.document_uri == f"{down}/"


def test_interrupted_crawl_continues_where_it_stopped(site) -> None:
    names = [f"/{number}" for number in range(8)]
    site.link({"/": ["/0"], **{name: [f"/{number}"] for number, name in enumerate(names, 1)}})
    spec = CrawlSource(url=site.url + "/", allow_private=True)
    first = list(islice(open_reader(spec).events(SourceContext(user_agent="kbkit")), 4))
    site.paths.clear()
    rest = crawl(site.url + "/", Memory(first, interrupted=True))
    assert sorted(read(first, site) + read(rest, site)) == sorted(["/", *names])
    assert not set(read(first, site)) & set(site.paths)


def test_request_to_stop_ends_a_waiting_crawl(site, silence) -> None:
    names = [f"/{number}" for number in range(50)]
    site.link({"/": names})
    stop = threading.Event()

    def wait(handler) -> None:
        stop.set()
        silence(handler)

    site.pages |= dict.fromkeys(names, wait)
    spec = CrawlSource(url=site.url + "/", allow_private=True)
    context = SourceContext(stop=stop.is_set, user_agent="kbkit", timeout=250)
    list(open_reader(spec).events(context))
    assert stop.is_set()
    assert len(site.paths) < 20


@pytest.mark.slow
def test_several_processes_read_pages_as_one_does(site, page, monkeypatch) -> None:
    names = [f"/{number}" for number in range(60)]
    site.link({"/": names})
    site.pages |= {name: page(name, text="Some words of prose. " * 20) for name in names}
    several = crawl(site.url + "/")
    monkeypatch.setattr("kbkit.sources.html.site_extractor.MANY", 10_000)
    one = crawl(site.url + "/")
    assert len(read(several, site)) == 61
    contents = [{e.uri: e.document.content for e in events} for events in (several, one)]
    assert contents[0] == contents[1]


@pytest.mark.slow
def test_crawl_leaves_endless_sites(site, page) -> None:
    def calendar(handler) -> None:
        month = int(handler.path.rpartition("=")[2])
        body = page(f"Month {month}", f"?month={month + 1}", f"x/{handler.path}")
        answer(200, body, Content_Type="text/html")(handler)

    site.link({"/": ["/calendar?month=1", "/a/a/a/a/a/a"]})
    site.pages |= {f"/calendar?month={month}": calendar for month in range(1, 300)}
    assert len(read(crawl(site.url + "/"), site)) <= 202
    assert not site.count("/a/a/a/a/a/a")


def test_one_page(site, page) -> None:
    site.pages["/tutorial"] = page("First steps", "/other")
    site.headers["/tutorial"] = {"ETag": '"1"'}
    url = site.url + "/tutorial#x"
    event = one_page(url, tags=("t",))
    assert event.document.title == "First steps"
    assert event.document.document_type is DocumentType.TUTORIAL
    assert event.document.tags == ("t",)
    assert event.document.uri == site.url + "/tutorial"
    assert site.paths == ["/robots.txt", "/tutorial"]
    assert one_page(url, event, tags=("t",)).outcome is Outcome.UNCHANGED


@pytest.mark.parametrize("kind", [PageSource, CrawlSource])
def test_time_for_a_large_page_is_bounded(site, monkeypatch, kind) -> None:
    """900,000 attributes once took minutes in this process, which could not be ended."""
    attributes = " ".join(f"a{number}=1" for number in range(60_000))
    site.pages["/"] = f"<html><body><h1>Long</h1><p {attributes}>Some text of it.</p></body></html>"
    monkeypatch.setattr("kbkit.sources.html.site_extractor.ExtractTask.seconds", 0.5)
    spec = kind(url=site.url + "/", allow_private=True)
    (event,) = open_reader(spec).events(SourceContext(user_agent="kbkit"))
    assert (event.outcome, event.reason) == (Outcome.FAILED, "took longer than 0.5 s")


def test_large_page_is_read_in_a_worker(site) -> None:
    text = "".join(f"<p>Paragraph {number} of a page that is large.</p>" for number in range(4_000))
    site.pages["/"] = f"<html><body><main><h1>Large</h1>{text}</main></body></html>"
    document = one_page(site.url + "/").document
    assert document.title == "Large"
    assert "Paragraph 3999 of" in document.content


def test_one_page_of_plain_markdown(site) -> None:
    site.pages["/README.md"] = "# Hello\n\nSome *text*.\n"
    site.headers["/README.md"] = {"Content-Type": "text/markdown"}
    document = one_page(site.url + "/README.md").document
    assert (document.title, document.content) == ("Hello", "# Hello\n\nSome *text*.\n")


def test_one_missing_page(site) -> None:
    event = one_page(site.url + "/x")
    assert (event.outcome, event.reason) == (Outcome.GONE, "HTTP 404 Not Found")


def test_robots_txt_is_obeyed_for_one_page(site) -> None:
    site.pages["/robots.txt"] = "User-agent: *\nDisallow: /secret/\n"
    site.link({}, "/secret/")
    site.pages["/open"] = redirect("/secret/")
    for path in ("/secret/", "/open"):
        event = one_page(site.url + path)
        assert (event.outcome, event.document) == (Outcome.SKIPPED, None)
        assert "robots.txt" in event.reason
    assert site.count("/open") == 1
    assert "/secret/" not in site.paths


def test_one_page_with_the_same_bytes_is_unchanged(site, page) -> None:
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
        ("<meta http-equiv=refresh content='0; /x'><p>Moved.</p>", {}, "redirects to http"),
        ("<p>Some words of a page.</p>", {"X-Robots-Tag": "none"}, "noindex"),
        ("<p>Some words of a page.</p>", {"X-Robots-Tag": "noindex"}, "noindex"),
    ],
)
def test_one_page_without_a_document_has_a_reason(site, body, headers, reason) -> None:
    site.pages["/"], site.headers["/"] = body, headers
    event = one_page(site.url + "/")
    assert (event.outcome, event.document) == (Outcome.SKIPPED, None)
    assert reason in event.reason
    assert event.record.url == site.url + "/"
    assert one_page(site.url + "/", event).outcome in (Outcome.SKIPPED, Outcome.UNCHANGED)


@pytest.mark.parametrize("whole", [True, False], ids=["crawl", "page"])
def test_page_that_failed_is_fetched_without_validators(site, page, monkeypatch, whole) -> None:
    def nested(*_: object, **options: object) -> None:
        raise RecursionError

    def fetch(*events: SourceEvent) -> list[SourceEvent]:
        if whole:
            return crawl(site.url + "/", Memory(events), sitemap=False)
        return [one_page(site.url + "/", *events)]

    site.pages["/"] = page("Home")
    site.headers["/"] = {"ETag": '"1"', "Last-Modified": "Mon, 01 Jan 2024 00:00:00 GMT"}
    with monkeypatch.context() as patch:
        patch.setattr("kbkit.sources.html.extract._read", nested)
        (failed,) = fetch()
    assert failed.outcome is Outcome.FAILED
    (event,) = fetch(failed)
    assert (event.outcome, event.document.title) == (Outcome.FETCHED, "Home")
    headers = [headers for path, headers in site.requests if path == "/"][-1]
    assert not {"If-None-Match", "If-Modified-Since"} & set(headers)


def png() -> bytes:
    stream = io.BytesIO()
    Image.new("RGB", (4, 4)).save(stream, "PNG")
    return stream.getvalue()


def test_images_of_pages_are_kept_on_request(site, page) -> None:
    site.pages["/robots.txt"] = "User-agent: *\nDisallow: /secret/\n"
    site.pages["/logo.png"] = site.pages["/secret/x.png"] = png()
    site.pages["/fake.png"] = "<script>alert(1)</script>"
    images = "".join(
        f"<p>Words beside it. <img src='{place}' alt='{place}'></p>"
        for place in ("/logo.png", "/secret/x.png", "/fake.png", "/none.png", "file:///etc/passwd")
    )
    for path in ("/", "/a"):
        site.pages[path] = page(f"Page {path}", "/a").replace("</body>", f"{images}</body>")
    assert all(not event.document.images for event in crawl(site.url + "/") if event.document)
    assert "/logo.png" not in site.paths
    events = crawl(site.url + "/", images=True)
    documents = [event.document for event in events if event.document]
    assert len(documents) == 2
    for document in documents:
        (address,) = document.images
        assert address == f"{site.url}/logo.png"
        assert document.images[address].name.endswith(".png")
    assert site.count("/logo.png") == 1
    assert "/secret/x.png" not in site.paths


@pytest.mark.parametrize("bound", ["_MAX_REQUESTS", "_MAX_FETCHED"])
def test_images_of_a_crawl_are_bounded(site, page, monkeypatch, bound) -> None:
    monkeypatch.setattr(f"kbkit.sources.web.browser_fetcher.{bound}", 1)
    site.pages["/1.png"] = site.pages["/2.png"] = png()
    images = "<p>Words beside them. <img src='/1.png' alt='1'> <img src='/2.png' alt='2'></p>"
    site.pages["/"] = page("Home").replace("</body>", f"{images}</body>")
    (event,) = crawl(site.url + "/", images=True, sitemap=False)
    assert event.document is not None
    assert list(event.document.images) == [site.url + "/1.png"]
    assert "/2.png" not in site.paths


def test_images_of_private_addresses_are_refused(site) -> None:
    url = "https://x.example/"
    document = SourceDocument(url, "X", f"![a]({site.url}/logo.png)")
    events = iter([SourceEvent(url, Outcome.FETCHED, document)])
    (event,) = add_pictures(events, PageSource(url=url, images=True), SourceContext())
    assert event.document is not None
    assert not event.document.images
    assert site.paths == []


def test_pages_are_read_again_when_include_changes(site) -> None:
    site.link({"/": ["/a"]}, "/a")
    assert read(crawl(site.url + "/", exclude=("/a",), sitemap=False), site) == ["/"]
    first = crawl(site.url + "/", include=("/",), sitemap=False)
    again = crawl(site.url + "/", Memory(first), sitemap=False)
    assert read(again, site) == ["/", "/a"]


def test_moved_page_is_stored_under_its_new_address(site, page) -> None:
    site.pages |= {"/": page("Home", "/a"), "/a": page("A"), "/b": page("A")}
    first = crawl(site.url + "/", sitemap=False)
    site.pages["/a"] = redirect("/b", 301)
    events = crawl(site.url + "/", Memory(first), sitemap=False)
    assert read(events, site) == ["/b"]


def test_addresses_in_robots_txt_and_sitemaps_may_be_relative(site) -> None:
    site.pages["/robots.txt"] = (
        "\ufeffUser-agent: *\nDisallow: /no\nSitemap: /all.txt\nSitemap: b/s.xml"
    )
    site.pages["/all.txt"] = "\ufeff/a\n/no\n"
    image = "<image:image><image:loc>/picture</image:loc></image:image>"
    site.pages["/b/s.xml"] = f"<sm:urlset><sm:url><sm:loc>c</sm:loc>{image}</sm:url></sm:urlset>"
    site.link({}, "/", "/a", "/no", "/b/c", "/picture")
    assert read(crawl(site.url + "/"), site) == ["/", "/a", "/b/c"]
    assert site.paths[0] == "/robots.txt"
    assert "/no" not in site.paths


def test_malformed_sitemap_line_stops_no_crawl(site) -> None:
    site.pages["/robots.txt"] = "Sitemap: http://[bad\nSitemap: /s.txt"
    site.pages["/s.txt"] = "http://[bad\n/a\n"
    site.link({}, "/", "/a")
    assert read(crawl(site.url + "/"), site) == ["/", "/a"]
