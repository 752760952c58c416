"""Crawls and answers of sites on loopback."""

from collections.abc import Iterable

from kbkit.models import PageRecord
from kbkit.recipes import CrawlSource, PageSource
from kbkit.sources import Outcome, SourceContext, SourceEvent, open_reader


class Memory:
    """Keeps the record of each event, as the pipeline does."""

    def __init__(self, events: Iterable[SourceEvent] = (), *, interrupted: bool = False) -> None:
        self.pages = {event.record.url: event.record for event in events if event.record}
        self.interrupted = interrupted

    def visited(self) -> Iterable[PageRecord]:
        return list(self.pages.values()) if self.interrupted else ()

    def page(self, url: str) -> PageRecord | None:
        return self.pages.get(url)

    def known(self) -> Iterable[PageRecord]:
        return list(self.pages.values())


def crawl(url: str, memory: Memory | None = None, *, timeout=5, **options) -> list[SourceEvent]:
    spec = CrawlSource(url=url, **{"allow_private": True, **options})
    context = SourceContext(memory=memory or Memory(), user_agent="kbkit/test", timeout=timeout)
    return list(open_reader(spec).events(context))


def one_page(url: str, *events: SourceEvent, **options) -> SourceEvent:
    """Read one page, of which earlier events are known."""
    spec = PageSource(url=url, **{"allow_private": True, **options})
    context = SourceContext(memory=Memory(events), user_agent="kbkit/test")
    (event,) = open_reader(spec).events(context)
    return event


def read(events: Iterable[SourceEvent], site) -> list[str]:
    return sorted(
        event.uri.removeprefix(site.url) for event in events if event.outcome is Outcome.FETCHED
    )


def outcomes(events: Iterable[SourceEvent], site) -> dict[str, Outcome]:
    return {event.uri.removeprefix(site.url): event.outcome for event in events}


def reasons(events: Iterable[SourceEvent], site) -> dict[str, str]:
    return {
        event.uri.removeprefix(site.url): f"{event.outcome}: {event.reason}"
        for event in events
        if event.reason
    }


def answer(status: int = 200, body: bytes | str = b"", **headers: str):
    """A page that answers with a status, headers and a body."""
    data = body.encode() if isinstance(body, str) else body

    def reply(handler) -> None:
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.send_header("Content-Length", str(len(data)))
        handler.end_headers()
        handler.wfile.write(data)

    return reply


def redirect(target: str, status: int = 302):
    return answer(status, Location=target)


def in_turn(*replies):
    """A page that answers each request with the next of several replies."""
    remaining = iter(replies)

    def reply(handler) -> None:
        next(remaining)(handler)

    return reply
