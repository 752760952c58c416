"""The Firecrawl provider, with a server on loopback that answers like v2."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from kbkit.errors import SourceError
from kbkit.recipes import CrawlSource, PageSource
from kbkit.sources import Outcome, SourceContext, SourceEvent, open_reader

pytest.importorskip("firecrawl")

SITE = "https://docs.example.org/"
PAGE = (
    "<html><head><title>{0}</title></head><body><nav><a href='/x'>Menu</a></nav><main>"
    "<h1 id='top'>{0}</h1><p>This page is about {0}, and says so in a whole sentence.</p>"
    "<pre><code class='language-python'>if x:\n    y = '&lt;b&gt;'\n</code></pre></main>"
    "</body></html>"
)


def item(path: str, status: int = 200, **content: str) -> dict[str, object]:
    about = {"sourceURL": SITE + path, "url": SITE + path, "statusCode": status, "title": path}
    return {"metadata": about, **(content or {"rawHtml": PAGE.format(path or "home")})}


class Service:
    """Answers like Firecrawl: one crawl of a few pages, in parts, and scrapes."""

    def __init__(self) -> None:
        self.items = [item(""), item("a"), item("b")]
        self.requests: list[tuple[str, str, dict[str, object]]] = []
        self.keys: set[str] = set()
        self.refuse: list[int] = []
        self.parts = 2
        self.state = "completed"
        self.states: list[str] = []
        service = self

        class Handler(BaseHTTPRequestHandler):
            def answer(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                body = json.loads(self.rfile.read(length) or "{}")
                service.requests.append((self.command, self.path, body))
                service.keys.add(self.headers.get("Authorization", ""))
                status, value = service.reply(self.command, self.path)
                data = json.dumps(value).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            do_GET = do_DELETE = do_POST = answer

            def log_message(self, *args: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def reply(self, method: str, path: str) -> tuple[int, dict[str, object]]:
        if self.refuse:
            status = self.refuse.pop(0)
            return status, {"success": False, "error": "no <b>way</b>"}
        if method == "DELETE":
            return 200, {"status": "cancelled"}
        if path == "/v2/scrape":
            return 200, {"success": True, "data": self.items[0]}
        if path == "/v2/crawl":
            return 200, {"success": True, "id": "job1", "url": f"{self.url}/v2/crawl/job1"}
        skip = int(path.partition("?skip=")[2] or 0)
        end = skip + self.parts
        answer: dict[str, object] = {
            "success": True,
            "status": self.states.pop() if self.states else self.state,
            "total": len(self.items),
            "completed": len(self.items),
            "creditsUsed": 3,
            "expiresAt": "2030-01-01T00:00:00.000Z",
            "data": self.items[skip:end],
        }
        if end < len(self.items):
            # another host, which must not get the key
            answer["next"] = f"http://api.elsewhere.invalid/v2/crawl/job1?skip={end}"
        return 200, answer


@pytest.fixture
def service(monkeypatch) -> Iterator[Service]:
    service = Service()
    thread = threading.Thread(target=service.server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    monkeypatch.setenv("FIRECRAWL_API_URL", service.url)
    monkeypatch.setenv("FIRECRAWL_API_KEY", "fc-key")
    monkeypatch.setattr("kbkit.sources.web.readers._POLL", 0.01)
    yield service
    service.server.shutdown()
    service.server.server_close()


def crawl(**options) -> list[SourceEvent]:
    spec = CrawlSource(url=SITE, provider="firecrawl", **options)
    return list(open_reader(spec).events(SourceContext(timeout=5)))


def scrape(**options) -> SourceEvent:
    spec = PageSource(url=SITE, provider="firecrawl", **options)
    (event,) = open_reader(spec).events(SourceContext(timeout=5))
    return event


def test_crawl_in_parts_is_read_faithfully(service) -> None:
    events = crawl(limit=7, depth=2, delay=1.5, sitemap=False)
    assert [event.uri for event in events] == [SITE, SITE + "a", SITE + "b"]
    content = events[1].document.content
    assert "# a {#top}" in content
    assert "```python\nif x:\n    y = '<b>'\n```" in content
    assert "Menu" not in content
    method, path, body = service.requests[0]
    assert (method, path) == ("POST", "/v2/crawl")
    assert body["url"] == SITE
    assert (body["limit"], body["maxDiscoveryDepth"], body["delay"]) == (7, 2, 2)
    assert body["sitemap"] == "skip"
    assert body["scrapeOptions"]["formats"] == ["rawHtml", "markdown"]
    assert service.keys == {"Bearer fc-key"}


def test_parts_are_fetched_once_while_the_crawl_goes_on(service) -> None:
    service.items = [item(name) for name in "abcdefg"]
    service.states = ["scraping"] * 9
    assert [event.uri for event in crawl()] == [SITE + name for name in "abcdefg"]
    read = [path for method, path, _ in service.requests if method == "GET"]
    assert [path.rpartition("/")[2] for path in read[:4]] == [
        "job1",
        "job1?skip=2",
        "job1?skip=4",
        "job1?skip=6",
    ]
    assert set(read[4:]) == {read[3]}


def test_setting_chooses_the_provider(service) -> None:
    source = open_reader(PageSource(url=SITE))
    (event,) = source.events(SourceContext(timeout=5, provider="firecrawl"))
    assert event.outcome is Outcome.FETCHED
    assert service.requests[0][1] == "/v2/scrape"


def test_markdown_without_html_is_sanitized(service) -> None:
    hostile = (
        "# Hello there\n\nSome text <script>alert(1)</script> with a "
        "[good](/y) and a [bad](javascript:alert(1)) link, <img src=x onerror=alert(1)>.\n\n"
        "```sh\nls -l\n```\n"
    )
    service.items = [item("", markdown=hostile)]
    content = scrape().document.content
    assert "[bad](javascript:" not in content
    assert f"[good]({SITE}y)" in content
    assert "<script" not in content
    assert "<img" not in content
    assert "```sh\nls -l\n```" in content


@pytest.mark.parametrize(
    ("status", "outcome"), [(404, Outcome.GONE), (410, Outcome.GONE), (500, Outcome.FAILED)]
)
def test_status_of_the_site_is_the_outcome(service, status, outcome) -> None:
    service.items = [item("", status)]
    assert scrape().outcome is outcome


def test_hostile_results_are_skipped(service) -> None:
    elsewhere, inside, big, nameless = item("a"), item("a"), item("big"), item("c")
    elsewhere["metadata"]["url"] = "https://other.example.net/"
    inside["metadata"]["url"] = "http://127.0.0.1/admin"
    nameless["metadata"] = {}
    big["rawHtml"] = "<p>" + "word " * 1000
    service.items = [item(""), elsewhere, inside, nameless, big]
    events = crawl(max_bytes=2000)
    assert [event.outcome for event in events] == [Outcome.FETCHED] + [Outcome.SKIPPED] * 4
    assert "outside" in events[1].reason
    assert "loopback" in events[2].reason
    assert "larger" in events[4].reason


def test_crawl_beyond_the_limit_is_cancelled(service) -> None:
    assert len(crawl(limit=1)) == 1
    assert service.requests[-1][:2] == ("DELETE", "/v2/crawl/job1")


@pytest.mark.parametrize("status", [401, 402, 500])
def test_refusal_of_the_service_is_explained(service, status) -> None:
    service.refuse = [status] * 3
    with pytest.raises(SourceError, match="Firecrawl: "):
        crawl()


def test_busy_service_is_retried(service) -> None:
    service.refuse = [429, 429]
    assert len(crawl()) == 3
    service.refuse = [429] * 9
    with pytest.raises(SourceError, match="too many requests"):
        crawl()


def test_page_that_the_service_cannot_fetch_is_an_event(service) -> None:
    service.refuse = [403]
    assert scrape().outcome is Outcome.FAILED
    service.refuse = [402]
    with pytest.raises(SourceError, match="credits"):
        scrape()


def test_failed_crawl_of_the_service_fails(service) -> None:
    service.state = "failed"
    with pytest.raises(SourceError, match="failed after 3 pages"):
        crawl()


def test_unreachable_service(service, monkeypatch) -> None:
    monkeypatch.setenv("FIRECRAWL_API_URL", "http://127.0.0.1:9")
    with pytest.raises(SourceError, match="Firecrawl"):
        scrape()


def test_private_addresses_are_not_sent(service) -> None:
    spec = PageSource(url="http://127.0.0.1:8000/secret", provider="firecrawl")
    (event,) = open_reader(spec).events(SourceContext())
    assert event.outcome is Outcome.SKIPPED
    assert service.requests == []


def test_nothing_is_sent_without_a_key(monkeypatch) -> None:
    monkeypatch.delenv("FIRECRAWL_API_KEY", raising=False)
    monkeypatch.delenv("FIRECRAWL_API_URL", raising=False)
    with pytest.raises(SourceError, match="FIRECRAWL_API_KEY"):
        scrape()
