"""What a crawl leaves out and says so, what it asks again, and what it takes up."""

from __future__ import annotations

import pytest

from kbkit.models import DocumentType
from kbkit.recipes import CrawlSource
from kbkit.sources import open_reader
from kbkit.sources.base import NoMemory, Outcome, SourceContext, SourceEvent
from kbkit.sources.web.crawler import Canonicals
from kbkit.sources.web.pages import PageRequest
from kbkit.sources.web.robots import directives
from kbkit.sources.web.urls import CrawlScope
from tests.sources.web.test_web import Memory, crawl, read, reasons


def test_depth_counts_the_shortest_way(site, page) -> None:
    site.pages["/"] = page("Home", "/a", "/c")
    site.pages["/a"] = page("A", "/b")
    site.pages["/b"] = page("B", "/c", "/d")
    site.pages["/c"] = page("C", "/d")
    site.pages["/d"] = page("D", "/e")
    site.pages["/e"] = page("E")
    assert read(crawl(site.url + "/", depth=0), site) == ["/"]
    events = crawl(site.url + "/", depth=2)
    assert read(events, site) == ["/", "/a", "/b", "/c", "/d"]
    assert reasons(events, site) == {"/e": "skipped: more than 2 links away from the start (depth)"}


def test_what_is_not_followed_is_summed_up_by_reason(site, page) -> None:
    site.pages["/"] = page("Home", "/a", "/b", *(f"/no/{n}" for n in range(7)), "/x/y/x/y/x/y/")
    site.pages["/a"] = page("A")
    site.pages["/b"] = page("B")
    said = reasons(crawl(site.url + "/", exclude=("/no/",), limit=2), site)
    assert said == {
        "/no/0": "skipped: left out by include and exclude (7 addresses, this is the first)",
        "/x/y/x/y/x/y/": "skipped: repeats its folders again and again; looks endless",
        "/b": "skipped: beyond the limit of 2 pages",
    }


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("/calendar/1931/05/", "endless calendar"),
        ("/calendar/2931-05", "endless calendar"),
        ("/events?year=2990&month=1", "endless calendar"),
        ("/a/a/a/a/a/", "repeats its folders"),
        ("/" + "/".join("abcdefghijklmnopqrstuvwxyz"), "folders deep"),
        ("/blog/2024/05/12/news", ""),
        ("/issues/12345/6", ""),
        ("/rfc/1945/", ""),
        ("/api/2.1/index.html", ""),
        ("/org/json/json/index.html", ""),
    ],
)
def test_endless_sites_are_told_by_their_addresses(path, reason) -> None:
    scope = CrawlScope("https://x.org/")
    said = scope.refusal("https://x.org" + path)
    assert (reason in said) if reason else said == ""


def test_a_calendar_ends_even_among_possible_dates() -> None:
    scope = CrawlScope("https://x.org/")
    urls = [
        f"https://x.org/cal/{y}/{m}/{d}"
        for y in range(2000, 2020)
        for m in range(1, 13)
        for d in range(1, 29)
    ]
    assert sum(not scope.refusal(url) for url in urls) == 500


def test_queries_are_an_option() -> None:
    scope = CrawlScope("https://x.org/", queries=3)
    said = [scope.refusal(f"https://x.org/p?x={number}") for number in range(5)]
    assert said[:3] == ["", "", ""]
    assert "more than 3 queries" in said[3]


def test_x_robots_tag_is_read_as_it_is_meant() -> None:
    assert directives("noindex, nofollow", "kbkit") == {"noindex", "nofollow"}
    assert directives("googlebot: noindex, nofollow", "kbkit") == set()
    assert directives("googlebot: noindex\nnofollow", "kbkit") == {"nofollow"}
    assert directives("other: none, kbkit: noindex", "kbkit") == {"noindex"}
    assert directives("max-snippet: 5, noindex", "kbkit") == {"max-snippet", "noindex"}


def test_x_robots_tag_nofollow_and_that_of_others(site, page) -> None:
    site.pages["/"] = page("Home", "/a", "/b")
    site.pages["/a"] = page("A", "/hidden")
    site.headers["/a"] = {"X-Robots-Tag": "nofollow"}
    site.pages["/b"] = page("B")
    site.headers["/b"] = {"X-Robots-Tag": "somebot: noindex"}
    site.pages["/hidden"] = page("Hidden")
    assert read(crawl(site.url + "/"), site) == ["/", "/a", "/b"]


def test_a_copy_of_a_copy_waits_for_what_that_is_a_copy_of() -> None:
    pages, task = Canonicals(NoMemory()), PageRequest("https://x.org/a")
    pages.wait_for("https://x.org/b", task)
    assert pages.settle("https://x.org/b", "https://x.org/c") == []
    assert pages.settle("https://x.org/c", "") == [task]
    pages.wait_for("https://x.org/d", task)
    assert pages.settle("https://x.org/d", "https://x.org/c") == [task]


def test_pages_that_name_each_other_as_canonical_are_not_both_lost(site, page) -> None:
    site.pages["/"] = page("Home", "/a")
    site.pages["/a"] = page("A", head='<link rel="canonical" href="/b">')
    site.pages["/b"] = page("B", head='<link rel="canonical" href="/a">')
    assert read(crawl(site.url + "/"), site) == ["/", "/b"]


def redirect(target: str):
    def answer(handler) -> None:
        handler.send_response(301)
        handler.send_header("Location", target)
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    return answer


@pytest.mark.parametrize("start", ["/", "/faq/"])
def test_a_canonical_that_leads_back_names_the_page_itself(site, page, start) -> None:
    site.pages["/"] = page("Home", "/faq", "/old.html", "/copy")
    site.pages["/faq"] = redirect("/faq/")
    site.pages["/faq/"] = page("FAQ", "/", head='<link rel="canonical" href="/faq">')
    site.pages["/old.html"] = page("Old", head='<link rel="canonical" href="/old">')
    site.pages["/old"] = redirect("/old.html")
    site.pages["/copy"] = page("Copy", head='<link rel="canonical" href="/other">')
    site.pages["/other"] = page("Other", head='<link rel="canonical" href="/nowhere">')
    events = crawl(site.url + start)
    expected = ["/", "/faq/", "/old.html", "/other"]
    assert read(events, site) == (expected if start == "/" else ["/faq/"])
    for left in (1, 2, 3, 4):  # killed at any time
        memory = Memory(events[:left], interrupted=True)
        again = read(crawl(site.url + start, memory), site)
        before = [e.document.uri.removeprefix(site.url) for e in events[:left] if e.document]
        assert sorted({*before, *again}) == (expected if start == "/" else ["/faq/"])


def test_a_page_that_comes_back_as_it_was_is_read_again(site, page) -> None:
    site.pages["/"] = page("Home", "/a")
    site.pages["/a"] = page("A")
    site.headers["/a"] = {"ETag": '"1"'}
    memory = Memory(crawl(site.url + "/"))
    body, headers = site.pages.pop("/a"), site.headers.pop("/a")
    gone = crawl(site.url + "/", memory)
    assert [event.outcome for event in gone] == [Outcome.UNCHANGED, Outcome.GONE]
    memory = Memory(gone)
    site.pages["/a"], site.headers["/a"] = body, headers
    assert read(crawl(site.url + "/", memory), site) == ["/a"]


def test_changed_options_read_unchanged_pages_again(site, page) -> None:
    site.pages["/"] = page("Home")
    site.headers["/"] = {"ETag": '"1"'}
    memory = Memory(crawl(site.url + "/"))
    (event,) = crawl(site.url + "/", memory)
    assert event.outcome is Outcome.UNCHANGED
    (event,) = crawl(site.url + "/", memory, tags=("new",), document_type="faq")
    assert event.document.tags == ("new",)
    assert event.document.document_type is DocumentType.FAQ


def test_new_validators_for_the_same_bytes_change_nothing(site, page) -> None:
    site.pages["/"] = page("Home", "/a")
    site.pages["/a"] = page("A")
    site.headers["/"] = {"ETag": '"1"', "Last-Modified": "Mon, 02 Jan 2023 00:00:00 GMT"}
    memory = Memory(crawl(site.url + "/"))
    site.headers["/"] = {"ETag": '"2"', "Last-Modified": "Tue, 03 Jan 2023 00:00:00 GMT"}
    outcomes = {event.outcome for event in crawl(site.url + "/", memory)}
    assert outcomes == {Outcome.UNCHANGED}
    site.headers["/"] = {"X-Robots-Tag": "noindex"}
    events = crawl(site.url + "/", memory)
    assert reasons(events, site)["/"].startswith("skipped: noindex")


def test_known_pages_are_asked_even_when_new_ones_pass_the_limit(site, page) -> None:
    site.pages["/"] = page("Home", "/a", "/b")
    site.pages["/a"] = page("A")
    site.pages["/b"] = page("B")
    memory = Memory(crawl(site.url + "/", limit=3))
    site.pages["/"] = page("Home", *(f"/new{n}" for n in range(9)))
    del site.pages["/b"]
    for number in range(9):
        site.pages[f"/new{number}"] = page(f"New {number}")
    outcomes = {
        event.uri.removeprefix(site.url): event.outcome
        for event in crawl(site.url + "/", memory, limit=3)
    }
    assert outcomes["/a"] is Outcome.UNCHANGED
    assert outcomes["/b"] is Outcome.GONE


def test_an_interrupted_crawl_of_a_sitemap_goes_on_within_its_limit(site, page) -> None:
    names = [f"/{number}" for number in range(9)]
    locations = "".join(f"<url><loc>{site.url}{name}</loc></url>" for name in names)
    site.pages["/sitemap.xml"] = f"<urlset>{locations}</urlset>"
    site.pages["/"] = page("Home")
    for name in names:
        site.pages[name] = page(name)
    spec = CrawlSource(url=site.url + "/", allow_private=True, limit=8)
    first = []
    for event in open_reader(spec).events(SourceContext(user_agent="kbkit")):
        first.append(event)
        if len(first) == 4:
            break
    site.asked.clear()
    rest = crawl(site.url + "/", Memory(first, interrupted=True), limit=8)
    assert len(read(first, site)) == 4
    assert len(read(rest, site)) == 4
    assert not set(read(first, site)) & set(site.asked)


def test_an_index_of_sitemaps_leads_to_no_other_host(site, other_site, page) -> None:
    site.pages["/sitemap.xml"] = (
        f"<sitemapindex><sitemap><loc>{other_site.url}/s.xml</loc></sitemap>"
        f"<sitemap><loc>{site.url}/s.xml</loc></sitemap></sitemapindex>"
    )
    locations = f"<url><loc>{site.url}/deep</loc></url><url><loc>{other_site.url}/x</loc></url>"
    site.pages["/s.xml"] = other_site.pages["/s.xml"] = f"<urlset>{locations}</urlset>"
    site.pages["/"] = page("Home", f"{other_site.url}/y")
    site.pages["/deep"] = page("Deep")
    assert read(crawl(site.url + "/"), site) == ["/", "/deep"]
    assert other_site.asked == []


def test_a_redirect_leads_to_no_other_host(site, other_site, page) -> None:
    site.pages["/"] = page("Home", "/away")
    site.pages["/away"] = moved_to(f"{other_site.url}/")
    other_site.pages["/"] = page("Other")
    assert "outside the crawl" in reasons(crawl(site.url + "/"), site)["/away"]
    assert other_site.asked == []


def test_a_start_that_another_host_has_by_now_is_followed_there(site, other_site, page) -> None:
    """Its folder there is the scope, though the start page itself lies deeper."""
    site.pages["/docs/"] = moved_to(f"{other_site.url}/docs/en/start")
    other_site.pages["/docs/en/start"] = page("Start", "/docs/de/a", "/blog")
    other_site.pages["/docs/de/a"] = page("A")
    other_site.pages["/blog"] = page("Blog")
    found = read(crawl(site.url + "/docs/", sitemap=False), other_site)
    assert found == ["/docs/de/a", "/docs/en/start"]
    assert other_site.count("/blog") == 0


def moved_to(target: str):
    """A page that redirects."""

    def answer(handler) -> None:
        handler.send_response(302)
        handler.send_header("Location", target)
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    return answer


@pytest.mark.parametrize(
    ("status", "read_them"),
    [(404, True), (403, True), pytest.param(429, False, marks=pytest.mark.slow)],
)
def test_what_an_answer_to_robots_txt_allows(site, page, status, read_them) -> None:
    """RFC 9309: what is not there forbids nothing; who is asked too much is not to be asked."""

    def refused(handler) -> None:
        handler.send_response(status)
        handler.send_header("Content-Length", "0")
        handler.send_header("Retry-After", "0")
        handler.end_headers()

    site.pages["/robots.txt"] = refused
    site.pages["/"] = page("Home")
    assert read(crawl(site.url + "/", sitemap=False), site) == (["/"] if read_them else [])
    assert site.count("/") == read_them


def test_a_page_that_could_not_be_read_is_asked_for_anew(site, page, monkeypatch) -> None:
    site.pages["/"] = page("Home")
    site.headers["/"] = {"ETag": '"1"', "Last-Modified": "Mon, 01 Jan 2024 00:00:00 GMT"}
    with monkeypatch.context() as small:  # as if the page were nested without end

        def nested(*_: object, **options: object) -> None:
            raise RecursionError

        small.setattr("kbkit.sources.html.extract._read", nested)
        events = crawl(site.url + "/", sitemap=False)
    assert [event.outcome for event in events] == [Outcome.FAILED]
    assert read(crawl(site.url + "/", Memory(events), sitemap=False), site) == ["/"]
    asked = [headers for path, headers in site.requests if path == "/"][-1]
    assert not {"If-None-Match", "If-Modified-Since"} & set(asked)


@pytest.mark.parametrize("delay", ["nan", "-5", "inf days", "1e999999", "0"])
def test_a_crawl_delay_that_makes_no_sense_stops_nothing(site, page, delay) -> None:
    site.pages["/robots.txt"] = f"User-agent: *\nCrawl-delay: {delay}\nDisallow: /x\n"
    site.pages["/"] = page("Home")
    assert read(crawl(site.url + "/", sitemap=False), site) == ["/"]


def keep(events: list[SourceEvent], *urls: str) -> list[SourceEvent]:
    """The events of some pages, as a process that died earlier would have left them."""
    return [event for event in events if event.record and event.record.url in urls]


@pytest.mark.parametrize("start", ["/", "/index.html"])
def test_a_crawl_taken_up_before_its_start_was_stored_knows_its_twin(site, page, start) -> None:
    site.pages["/"] = site.pages["/index.html"] = page("Home", "/a")
    site.pages["/a"] = page("A", "/index.html", "/", "/b")
    site.pages["/b"] = page("B")
    whole = crawl(site.url + start)
    memory = Memory(keep(whole, site.url + "/a"), interrupted=True)
    assert read(crawl(site.url + start, memory), site) == sorted(["/b", start])


def test_a_page_met_under_its_other_name_keeps_the_one_it_has(site, page) -> None:
    site.pages["/"] = page("Home", "/x/index.html")
    site.pages["/x/"] = site.pages["/x/index.html"] = page("X")
    memory = Memory(crawl(site.url + "/"))
    site.pages["/"] = page("Home again", "/x/", "/x/index.html")
    events = crawl(site.url + "/", memory)
    outcomes = {event.uri.removeprefix(site.url): event.outcome for event in events}
    assert outcomes == {"/": Outcome.FETCHED, "/x/index.html": Outcome.UNCHANGED}


def test_where_the_start_led_is_known_when_a_crawl_is_taken_up(site, page) -> None:
    def moved(handler) -> None:
        handler.send_response(302)
        handler.send_header("Location", "/manual/en/")
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    site.pages["/docs/"] = moved
    site.pages["/manual/en/"] = page("Home", "a", "/other")
    site.headers["/manual/en/"] = {"X-Robots-Tag": "noindex"}
    site.pages["/manual/en/a"] = page("A")
    site.pages["/other"] = page("Other")
    whole = crawl(site.url + "/docs/")
    assert read(whole, site) == ["/manual/en/a"]
    memory = Memory(keep(whole, site.url + "/docs/"), interrupted=True)
    assert read(crawl(site.url + "/docs/", memory), site) == ["/manual/en/a"]
    assert site.count("/manual/en/") == 1


def test_pages_that_name_each_other_are_not_both_lost_to_a_kill(site, page) -> None:
    site.pages["/"] = page("Home", "/a")
    site.pages["/a"] = page("A", head='<link rel="canonical" href="/b">')
    site.pages["/b"] = page("B", head='<link rel="canonical" href="/a">')
    whole = crawl(site.url + "/")
    for left in ("/",), ("/", "/a"), ("/a",):
        memory = Memory(keep(whole, *(site.url + path for path in left)), interrupted=True)
        assert "/b" in read(crawl(site.url + "/", memory), site)


def test_pages_that_name_each_other_stay_as_they_were_when_read_again(site, page) -> None:
    site.pages["/"] = page("Home", "/a")
    site.pages["/a"] = page("A", head='<link rel="canonical" href="/b">')
    site.pages["/b"] = page("B", head='<link rel="canonical" href="/a">')
    memory = Memory(crawl(site.url + "/"))
    site.pages["/b"] = page("B changed", head='<link rel="canonical" href="/a">')
    assert read(crawl(site.url + "/", memory), site) == ["/b"]
