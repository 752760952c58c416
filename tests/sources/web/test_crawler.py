"""What a crawl leaves out, checks again and resumes."""

from itertools import islice

import pytest

from kbkit.models import DocumentType
from kbkit.recipes import CrawlSource
from kbkit.sources import Outcome, SourceContext, SourceEvent, open_reader
from kbkit.sources.web.urls import CrawlScope, directives
from tests.sources.web.crawls import Memory, answer, crawl, outcomes, read, reasons, redirect


def test_depth_counts_the_shortest_way(site) -> None:
    site.link({"/": ["/a", "/c"], "/a": ["/b"], "/b": ["/c", "/d"]}, "/e")
    site.link({"/c": ["/d"], "/d": ["/e"]})
    assert read(crawl(site.url + "/", depth=0), site) == ["/"]
    events = crawl(site.url + "/", depth=2)
    assert read(events, site) == ["/", "/a", "/b", "/c", "/d"]
    assert reasons(events, site) == {"/e": "skipped: more than 2 links away from the start (depth)"}


def test_skipped_addresses_are_grouped_by_reason(site) -> None:
    targets = ["/a", "/b", *(f"/no/{n}" for n in range(7)), "/x/y/x/y/x/y/"]
    site.link({"/": targets}, "/a", "/b")
    assert reasons(crawl(site.url + "/", exclude=("/no/",), limit=2), site) == {
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
def test_endless_sites_are_recognized_by_their_addresses(path, reason) -> None:
    refusal = CrawlScope("https://x.org/").refusal("https://x.org" + path)
    assert (reason in refusal) if reason else refusal == ""


def test_calendars_of_possible_dates_are_bounded() -> None:
    scope = CrawlScope("https://x.org/")
    urls = [
        f"https://x.org/cal/{y}/{m}/{d}"
        for y in range(2000, 2020)
        for m in range(1, 13)
        for d in range(1, 29)
    ]
    assert sum(not scope.refusal(url) for url in urls) == 500


def test_number_of_queries_is_an_option() -> None:
    scope = CrawlScope("https://x.org/", queries=3)
    refusals = [scope.refusal(f"https://x.org/p?x={number}") for number in range(5)]
    assert refusals[:3] == ["", "", ""]
    assert "more than 3 queries" in refusals[3]


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("noindex, nofollow", {"noindex", "nofollow"}),
        ("googlebot: noindex, nofollow", set()),
        ("googlebot: noindex\nnofollow", {"nofollow"}),
        ("other: none, kbkit: noindex", {"noindex"}),
        ("max-snippet: 5, noindex", {"max-snippet", "noindex"}),
    ],
)
def test_x_robots_tag_is_parsed_for_one_agent(header, expected) -> None:
    assert directives(header, "kbkit") == expected


def test_x_robots_tag_of_other_agents_is_ignored(site) -> None:
    site.link({"/": ["/a", "/b"], "/a": ["/hidden"]}, "/b", "/hidden")
    site.headers["/a"] = {"X-Robots-Tag": "nofollow"}
    site.headers["/b"] = {"X-Robots-Tag": "somebot: noindex"}
    assert read(crawl(site.url + "/"), site) == ["/", "/a", "/b"]


def test_one_copy_of_a_missing_page_is_read(site, page) -> None:
    site.link({"/": ["/a"]})
    for name, original in (("a", "b"), ("b", "c")):
        head = f'<link rel="canonical" href="/{original}">'
        site.pages[f"/{name}"] = page(name.upper(), head=head)
    assert read(crawl(site.url + "/"), site) == ["/", "/b"]


@pytest.mark.parametrize("links", [["/a", "/b"], ["/b", "/a"]])
def test_unchanged_copy_is_read_once_its_original_is_gone(site, page, links) -> None:
    site.link({"/": links}, "/b")
    site.pages["/a"] = page("A", head='<link rel="canonical" href="/b">')
    events = crawl(site.url + "/")
    assert read(events, site) == ["/", "/b"]
    del site.pages["/b"]
    assert read(crawl(site.url + "/", Memory(events)), site) == ["/a"]


def link_copies(site, page, names: str) -> None:
    """Write pages that name each other as canonical, in a circle."""
    site.link({"/": ["/a"]})
    for name, original in zip(names, names[1:] + names[0], strict=True):
        head = f'<link rel="canonical" href="/{original}">'
        site.pages[f"/{name}"] = page(name.upper(), head=head)


@pytest.mark.parametrize("names", ["ab", "abc"])
def test_one_of_the_pages_that_name_each_other_is_read_each_time(site, page, names) -> None:
    link_copies(site, page, names)
    last = f"/{names[-1]}"
    events = crawl(site.url + "/")
    assert read(events, site) == ["/", last]
    site.pages[last] = page("Changed", head='<link rel="canonical" href="/a">')
    assert read(crawl(site.url + "/", Memory(events)), site) == [last]


@pytest.mark.parametrize("start", ["/", "/faq/"])
def test_canonical_that_redirects_back_is_the_page_itself(site, page, start) -> None:
    site.link({"/": ["/faq", "/old.html", "/copy"]})
    site.pages["/faq"] = redirect("/faq/", 301)
    site.pages["/faq/"] = page("FAQ", "/", head='<link rel="canonical" href="/faq">')
    site.pages["/old.html"] = page("Old", head='<link rel="canonical" href="/old">')
    site.pages["/old"] = redirect("/old.html", 301)
    site.pages["/copy"] = page("Copy", head='<link rel="canonical" href="/other">')
    site.pages["/other"] = page("Other", head='<link rel="canonical" href="/nowhere">')
    events = crawl(site.url + start)
    expected = ["/", "/faq/", "/old.html", "/other"] if start == "/" else ["/faq/"]
    assert read(events, site) == expected
    for stored in (1, 2, 3, 4):  # killed at any time
        memory = Memory(events[:stored], interrupted=True)
        after = read(crawl(site.url + start, memory), site)
        before = [e.document.uri.removeprefix(site.url) for e in events[:stored] if e.document]
        assert sorted({*before, *after}) == expected


def test_page_that_returns_unchanged_is_read_again(site) -> None:
    site.link({"/": ["/a"]}, "/a")
    site.headers["/a"] = {"ETag": '"1"'}
    memory = Memory(crawl(site.url + "/"))
    body, headers = site.pages.pop("/a"), site.headers.pop("/a")
    second = crawl(site.url + "/", memory)
    assert [event.outcome for event in second] == [Outcome.UNCHANGED, Outcome.GONE]
    site.pages["/a"], site.headers["/a"] = body, headers
    assert read(crawl(site.url + "/", Memory(second)), site) == ["/a"]


def test_changed_options_read_unchanged_pages_again(site) -> None:
    site.link({}, "/")
    site.headers["/"] = {"ETag": '"1"'}
    memory = Memory(crawl(site.url + "/"))
    (event,) = crawl(site.url + "/", memory)
    assert event.outcome is Outcome.UNCHANGED
    (event,) = crawl(site.url + "/", memory, tags=("new",), document_type="faq")
    assert event.document.tags == ("new",)
    assert event.document.document_type is DocumentType.FAQ


def test_new_validators_for_the_same_bytes_change_nothing(site) -> None:
    site.link({"/": ["/a"]}, "/a")
    site.headers["/"] = {"ETag": '"1"', "Last-Modified": "Mon, 02 Jan 2023 00:00:00 GMT"}
    memory = Memory(crawl(site.url + "/"))
    site.headers["/"] = {"ETag": '"2"', "Last-Modified": "Tue, 03 Jan 2023 00:00:00 GMT"}
    assert {event.outcome for event in crawl(site.url + "/", memory)} == {Outcome.UNCHANGED}
    site.headers["/"] = {"X-Robots-Tag": "noindex"}
    events = crawl(site.url + "/", memory)
    assert reasons(events, site)["/"].startswith("skipped: noindex")


def test_known_pages_are_checked_even_beyond_the_limit(site) -> None:
    site.link({"/": ["/a", "/b"]}, "/a", "/b")
    memory = Memory(crawl(site.url + "/", limit=3))
    new = [f"/new{n}" for n in range(9)]
    site.link({"/": new}, *new)
    del site.pages["/b"]
    second = outcomes(crawl(site.url + "/", memory, limit=3), site)
    assert (second["/a"], second["/b"]) == (Outcome.UNCHANGED, Outcome.GONE)


def test_interrupted_crawl_of_a_sitemap_keeps_its_limit(site) -> None:
    names = [f"/{number}" for number in range(9)]
    locations = "".join(f"<url><loc>{site.url}{name}</loc></url>" for name in names)
    site.pages["/sitemap.xml"] = f"<urlset>{locations}</urlset>"
    site.link({}, "/", *names)
    spec = CrawlSource(url=site.url + "/", allow_private=True, limit=8)
    first = list(islice(open_reader(spec).events(SourceContext(user_agent="kbkit")), 4))
    site.paths.clear()
    rest = crawl(site.url + "/", Memory(first, interrupted=True), limit=8)
    assert len(read(first, site)) == len(read(rest, site)) == 4
    assert not set(read(first, site)) & set(site.paths)


def test_sitemap_index_leads_to_no_other_host(site, other_site) -> None:
    site.pages["/sitemap.xml"] = (
        f"<sitemapindex><sitemap><loc>{other_site.url}/s.xml</loc></sitemap>"
        f"<sitemap><loc>{site.url}/s.xml</loc></sitemap></sitemapindex>"
    )
    locations = f"<url><loc>{site.url}/deep</loc></url><url><loc>{other_site.url}/x</loc></url>"
    site.pages["/s.xml"] = other_site.pages["/s.xml"] = f"<urlset>{locations}</urlset>"
    site.link({"/": [f"{other_site.url}/y"]}, "/deep")
    assert read(crawl(site.url + "/"), site) == ["/", "/deep"]
    assert other_site.paths == []


def test_redirect_leads_to_no_other_host(site, other_site) -> None:
    site.link({"/": ["/away"]})
    site.pages["/away"] = redirect(f"{other_site.url}/")
    other_site.link({}, "/")
    assert "outside the crawl" in reasons(crawl(site.url + "/"), site)["/away"]
    assert other_site.paths == []


def test_start_page_that_moved_to_another_host_is_followed(site, other_site) -> None:
    """Its folder there is the scope, though the start page itself lies deeper."""
    site.pages["/docs/"] = redirect(f"{other_site.url}/docs/en/start")
    other_site.link({"/docs/en/start": ["/docs/de/a", "/blog"]}, "/docs/de/a", "/blog")
    events = crawl(site.url + "/docs/", sitemap=False)
    assert read(events, other_site) == ["/docs/de/a", "/docs/en/start"]
    assert other_site.count("/blog") == 0


@pytest.mark.parametrize(
    ("status", "allowed"),
    [(404, True), (403, True), (500, False), pytest.param(429, False, marks=pytest.mark.slow)],
)
def test_status_of_robots_txt_allows_or_forbids(site, status, allowed) -> None:
    """RFC 9309: a missing file forbids nothing; an error or too many requests forbid all."""
    site.pages["/robots.txt"] = answer(status, Retry_After="0")
    site.link({}, "/")
    events = crawl(site.url + "/", sitemap=False)
    assert read(events, site) == (["/"] if allowed else [])
    reason = f"failed: robots.txt cannot be read (HTTP {status}"
    assert allowed or reasons(events, site)["/"].startswith(reason)
    assert site.count("/") == allowed


@pytest.mark.parametrize("delay", ["nan", "-5", "inf days", "1e999999", "0"])
def test_invalid_crawl_delay_is_ignored(site, delay) -> None:
    site.pages["/robots.txt"] = f"User-agent: *\nCrawl-delay: {delay}\nDisallow: /x\n"
    site.link({}, "/")
    assert read(crawl(site.url + "/", sitemap=False), site) == ["/"]


def interrupted(events: list[SourceEvent], *urls: str) -> Memory:
    """Memory of some pages, as a killed process left it."""
    stored = [event for event in events if event.record and event.record.url in urls]
    return Memory(stored, interrupted=True)


@pytest.mark.parametrize("start", ["/", "/index.html"])
def test_resumed_crawl_recognizes_its_start_by_either_name(site, start) -> None:
    site.link({"/": ["/a"], "/a": ["/index.html", "/", "/b"]}, "/b")
    site.pages["/index.html"] = site.pages["/"]
    memory = interrupted(crawl(site.url + start), site.url + "/a")
    assert read(crawl(site.url + start, memory), site) == sorted(["/b", start])


def test_page_keeps_its_name_when_linked_by_its_other_name(site, page) -> None:
    site.link({"/": ["/x/index.html"]})
    site.pages["/x/"] = site.pages["/x/index.html"] = page("X")
    memory = Memory(crawl(site.url + "/"))
    site.link({"/": ["/x/", "/x/index.html"]})
    second = outcomes(crawl(site.url + "/", memory), site)
    assert second == {"/": Outcome.FETCHED, "/x/index.html": Outcome.UNCHANGED}


def test_resumed_crawl_remembers_the_redirect_of_its_start(site) -> None:
    site.pages["/docs/"] = redirect("/manual/en/")
    site.link({"/manual/en/": ["a", "/other"]}, "/manual/en/a", "/other")
    site.headers["/manual/en/"] = {"X-Robots-Tag": "noindex"}
    events = crawl(site.url + "/docs/")
    assert read(events, site) == ["/manual/en/a"]
    memory = interrupted(events, site.url + "/docs/")
    assert read(crawl(site.url + "/docs/", memory), site) == ["/manual/en/a"]
    assert site.count("/manual/en/") == 1


@pytest.mark.parametrize("stored", [["/"], ["/", "/a"], ["/a"]])
def test_resumed_crawl_reads_one_of_two_pages_that_name_each_other(site, page, stored) -> None:
    link_copies(site, page, "ab")
    memory = interrupted(crawl(site.url + "/"), *(site.url + path for path in stored))
    assert "/b" in read(crawl(site.url + "/", memory), site)
