"""Requests and refusals of pages, and the records and documents of their responses.

Downloads are concurrent, at the pace of each host, by this machine or a cluster's workers. This
process handles robots.txt, delays, ``Retry-After``, retries and redirects; a worker makes single
requests.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from urllib.parse import unquote, urlsplit

from kbkit.models import PageRecord, SourceDocument
from kbkit.recipes import CrawlSource, FetchSpec, PageSource
from kbkit.runtime.engine import WorkerPool
from kbkit.sources import CrawlMemory, Outcome, SourceContext, SourceEvent
from kbkit.sources.html.extract import ExtractedPage
from kbkit.sources.html.images import prepare_image
from kbkit.sources.parts import detect
from kbkit.sources.web import Fetcher, Response
from kbkit.sources.web.addresses import Private
from kbkit.sources.web.urls import Robots, canonical, index_alias


@dataclass(frozen=True, slots=True)
class PageRequest:
    """A page to request.

    Attributes:
        referrer: Page that links to it, or ``""``.
        again: Known from an earlier run but not linked now; does not count against the limit.
        place: Position in the order of requests, from 0.
    """

    url: str
    depth: int = 0
    referrer: str = ""
    earlier: PageRecord | None = None
    again: bool = False
    place: int = 0


class Canonicals:
    """Canonical addresses of the pages of a crawl."""

    def __init__(self, memory: CrawlMemory) -> None:
        self._memory = memory
        self._copies: dict[str, str] = {}  # canonical address of each page
        self._waiting: dict[str, list[PageRequest]] = {}  # pages by canonical address
        self._empty: set[str] = set()  # addresses without a document

    def resolve(self, named: str, uri: str, start: str) -> str:
        if named in (uri, index_alias(uri), start):
            return ""  # names the start page
        if named in self._empty or named.rstrip("/") == uri.rstrip("/"):
            return ""  # the named address has no document, or is the same
        original, visited = named, {""}
        while original not in visited:
            visited.add(original)
            original = self._copy_of(original)
        return "" if uri in visited else named  # pages may name each other

    def add(self, task: PageRequest, uri: str, own: str) -> None:
        self._copies[uri] = own
        if own:
            self.wait_for(own, task)

    def wait_for(self, own: str, task: PageRequest) -> None:
        self._waiting.setdefault(own, []).append(replace(task, earlier=None))

    def settle(self, url: str, own: str) -> list[PageRequest]:
        """Return the pages that wait for an address without a document.

        A copy may still get one.
        """
        if not own:
            self._empty.add(url)
        missing = own or url
        return self._waiting.pop(missing, []) if missing in self._empty else []

    def _copy_of(self, url: str) -> str:
        if url not in self._copies:
            page = self._memory.page(url)
            self._copies[url] = page.canonical if page else ""
        return self._copies[url]


_REMEMBERED = 20_000  # refused addresses per reason; bounds memory


class Refusals:
    """Refused addresses, summed up by reason, since there may be thousands."""

    def __init__(self) -> None:
        self._urls: dict[str, dict[str, None]] = {}
        self._more: Counter[str] = Counter()
        self._final: set[str] = set()

    def __contains__(self, url: str) -> bool:
        return url in self._final

    def add(self, url: str, reason: str, *, for_good: bool = True) -> None:
        """Add an address; one that is not refused for good may still be read."""
        urls = self._urls.setdefault(reason, {})
        if url in urls:
            return
        if len(urls) >= _REMEMBERED:
            self._more[reason] += 1
            return
        urls[url] = None
        if for_good:
            self._final.add(url)

    def events(self, read: Collection[str]) -> Iterator[SourceEvent]:
        for reason, urls in self._urls.items():
            remaining = [url for url in urls if url not in read]
            count = len(remaining) + self._more[reason]
            if remaining:
                suffix = f" ({count:,} addresses, this is the first)" if count > 1 else ""
                yield SourceEvent(remaining[0], Outcome.SKIPPED, reason=reason + suffix)


_POLL = 0.5  # seconds between checks of `stop`
_MARGIN = 60  # seconds for resolving a name, which has no other limit


@dataclass(frozen=True, slots=True)
class FetchOptions:
    """Options of a worker's `Fetcher`."""

    user_agent: str
    timeout: float
    max_bytes: int
    allow_private: Private


@dataclass(frozen=True, slots=True)
class RequestTask:
    """One request; a `kbkit.runtime.processes.WorkerTask`."""

    options: FetchOptions
    url: str
    headers: tuple[tuple[str, str], ...]
    limit: int
    truncate: bool

    @property
    def seconds(self) -> float:
        return self.options.timeout + _MARGIN  # a `Fetcher` ends everything else by itself

    def perform(self) -> Response:
        return _fetcher(self.options).once(self.url, dict(self.headers), self.limit, self.truncate)

    def broken(self, reason: str) -> Response:
        return Response(self.url, Outcome.FAILED, reason, again=True)


class ClusterFetcher(Fetcher):
    """A `Fetcher` whose requests a cluster's workers make; each worker has its own cookies."""

    def __init__(self, pool: WorkerPool, options: FetchOptions, stop: Callable[[], bool]) -> None:
        super().__init__(**asdict(options), stop=stop)
        self._pool = pool
        self._options = options

    def once(self, url: str, headers: dict[str, str], limit: int, truncate: bool) -> Response:
        task = RequestTask(self._options, url, tuple(headers.items()), limit, truncate)
        future = self._pool.submit(task)
        while not self._stop():
            with suppress(TimeoutError):
                return future.result(_POLL)
        return Response(url, Outcome.FAILED, "stopped")


@lru_cache
def _fetcher(options: FetchOptions) -> Fetcher:
    return Fetcher(**asdict(options))


READER_VERSION = 10  # raise it to read unchanged pages again

_MARK = "kbkit:"


class Validators:
    """Makes and compares validators of page records."""

    def __init__(self, spec: CrawlSource | PageSource) -> None:
        options = [READER_VERSION, spec.document_type, spec.tags, spec.license, spec.attribution]
        if isinstance(spec, CrawlSource):
            options += [spec.include, spec.exclude]
        if spec.images:
            options.append("images and drawings")
        self._options = _hash(json.dumps(options).encode())

    def to_send(self, record: PageRecord | None) -> dict[str, str]:
        """Return the conditions of a request; none to force a full response."""
        if record is None or not record.etag.startswith(f"{_MARK}{self._options}:"):
            return {}
        etag, changed = record.etag.partition(" ")[2], record.last_modified
        conditions = {"If-None-Match": etag, "If-Modified-Since": changed}
        return {name: value for name, value in conditions.items() if value}

    def compare(self, task: PageRequest, response: Response) -> tuple[str, Response]:
        """Return a response with its address and validator; unchanged if an earlier visit's is."""
        uri, record = canonical(response.url, routes=True) or task.url, task.earlier
        if response.outcome is not Outcome.FETCHED:
            return uri, response
        headers = f"{response.media_type}\n{response.charset}\n{response.robots}\n"
        validator = f"{_MARK}{self._options}:{_hash(headers.encode() + response.body)}"
        response = replace(response, etag=f"{validator} {response.etag}")
        if record is None or record.address != uri:
            return uri, response
        is_same = record.etag.partition(" ")[0] == validator
        return uri, replace(response, outcome=Outcome.UNCHANGED) if is_same else response


def _hash(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=12).hexdigest()


def open_robots(spec: FetchSpec, context: SourceContext) -> Robots:
    """Return a new fetcher that obeys robots.txt."""
    options = FetchOptions(context.user_agent, context.timeout, spec.max_bytes, spec.allow_private)
    connections = spec.concurrency + 2 if isinstance(spec, CrawlSource) else 2
    fetcher = (
        Fetcher(**asdict(options), stop=context.stop, connections=connections)
        if context.engine.is_local
        else ClusterFetcher(context.engine.pool(), options, context.stop)
    )
    return Robots(fetcher, context.user_agent, spec.delay, context.stop)


def uses_browser(spec: CrawlSource | PageSource, context: SourceContext) -> bool:
    return (spec.provider or context.provider) == "browser"


def body_refusal(response: Response, accepted: frozenset[str]) -> str:
    if not response.body.strip():
        return "empty page"
    return "" if response.media_type in accepted else f"{response.media_type}, not a page"


def page_record(task: PageRequest, response: Response) -> PageRecord:
    uri = canonical(response.url, routes=True)
    place = uri if uri != task.url else ""
    return PageRecord(task.url, task.depth, response.etag, response.last_modified, location=place)


def event_without_body(task: PageRequest, response: Response) -> SourceEvent:
    """Return the event of a response without a body; stored content stays."""
    record = replace(task.earlier or PageRecord(task.url), depth=task.depth)
    uri = record.document_uri or task.url
    if response.outcome is Outcome.GONE:
        # without validators: if it comes back unchanged, a 304 would bring no content
        record = replace(record, etag="", last_modified="")
    if response.outcome is Outcome.UNCHANGED and not record.document_uri:
        reason = "unchanged, and no document the last time"
        return SourceEvent(uri, Outcome.SKIPPED, reason=reason, record=record)
    return SourceEvent(uri, response.outcome, reason=response.reason, record=record)


def event_of_page(
    uri: str, page: ExtractedPage, record: PageRecord | None = None, *, reason: str = ""
) -> SourceEvent:
    """Return the event of a page that was read; with a reason, it is skipped."""
    if record and page.failed:  # without a validator, it is read again even if unchanged
        record = replace(record, etag="")
    if reason := reason or page.refusal:
        outcome = Outcome.FAILED if page.failed else Outcome.SKIPPED
        return SourceEvent(uri, outcome, reason=reason, record=record)
    record = record and replace(record, document_uri=uri)
    return SourceEvent(uri, Outcome.FETCHED, _document(uri, page), record=record)


def _document(uri: str, page: ExtractedPage) -> SourceDocument:
    title = page.title or unquote(urlsplit(uri).path.rstrip("/").rpartition("/")[2]) or uri
    prepared = ((address, prepare_image(data)) for address, data in page.drawings.items())
    return SourceDocument(
        uri,
        title,
        page.content,
        detect(uri, title, page.content, page.template),
        metadata=page.metadata,
        fidelity=page.fidelity,
        note=page.note,
        images={address: image for address, image in prepared if image is not None},
    )
