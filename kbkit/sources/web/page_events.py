"""What a fetched page becomes: an event, a record to remember it by, a document.

A record's validator holds three things, written ``kbkit:OPTIONS:BYTES ETAG``: a hash of the options
that shaped the document, so that a changed recipe reads the page again; a hash of what the server
sent, so that a page is known again where the server gives no validators or gives new ones for the
same bytes; and the server's own ETag.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, replace
from urllib.parse import unquote, urlsplit

from kbkit.models import PageRecord, SourceDocument
from kbkit.recipes import CrawlSource, PageSource
from kbkit.sources.base import Outcome, SourceContext, SourceEvent
from kbkit.sources.doctype import detect
from kbkit.sources.html.extract import ExtractedPage
from kbkit.sources.images import kept_image
from kbkit.sources.web.cluster_fetcher import ClusterFetcher, FetchOptions
from kbkit.sources.web.downloads import PageRequest
from kbkit.sources.web.fetch import Fetcher, Response
from kbkit.sources.web.robots import Robots
from kbkit.sources.web.urls import canonical

READER_VERSION = 8
"""Raised when pages are read so differently that those that did not change are worth reading
again."""

_MARK = "kbkit:"


class Validators:
    """Makes and compares the validators of records.

    Args:
        spec: The part of the recipe that shapes the documents.
    """

    def __init__(self, spec: CrawlSource | PageSource) -> None:
        shaping = [READER_VERSION, spec.document_type, spec.tags, spec.license, spec.attribution]
        if isinstance(spec, CrawlSource):
            shaping += [spec.include, spec.exclude]
        if spec.images:
            shaping.append("images and drawings")
        self._options = _hash(json.dumps(shaping).encode())

    def make(self, response: Response) -> str:
        """The validator to remember of a page that came."""
        return f"{_MARK}{self._options}:{_contents(response)} {response.etag}"

    def sent(self, record: PageRecord | None) -> tuple[str, str]:
        """ETag and modification time to send to the server; empty where the page is to come."""
        if record is None or not record.etag.startswith(f"{_MARK}{self._options}:"):
            return "", ""
        return record.etag.partition(" ")[2], record.last_modified

    def same(self, record: PageRecord | None, response: Response, uri: str) -> bool:
        """Say whether the bytes that came are those of the earlier visit."""
        if record is None or record.address != uri:
            return False
        return record.etag.partition(" ")[0] == self.make(response).partition(" ")[0]


def _contents(response: Response) -> str:
    about = f"{response.media_type}\n{response.charset}\n{response.robots}\n"
    about += response.license.url
    return _hash(about.encode() + response.body)


def _hash(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=12).hexdigest()


def open_fetcher(spec: CrawlSource | PageSource, context: SourceContext) -> Fetcher:
    """A fetcher with the bounds of a recipe."""
    options = FetchOptions(context.user_agent, context.timeout, spec.max_bytes, spec.allow_private)
    if not context.engine.is_local:
        return ClusterFetcher(context.engine.pool(), options, context.stop)
    connections = spec.concurrency + 2 if isinstance(spec, CrawlSource) else 2
    return Fetcher(**asdict(options), stop=context.stop, connections=connections)


def rendered(spec: CrawlSource | PageSource, context: SourceContext) -> bool:
    """Whether a browser renders the pages."""
    return (spec.provider or context.provider) == "browser"


def robots_refusal(robots: Robots, url: str) -> Response | None:
    """The response to a request that robots.txt forbids, or ``None``."""
    verdict = robots.verdict(url)
    return Response(url, verdict.outcome, verdict.reason) if verdict else None


def body_refusal(response: Response, accepted: frozenset[str]) -> str:
    """Say why a body is not worth reading, or ``""``."""
    if not response.body.strip():
        return "empty page"
    if response.media_type not in accepted:
        return f"{response.media_type}, not a page"
    return ""


def page_record(task: PageRequest, response: Response, validator: str) -> PageRecord:
    """What to remember of a page that came, links and document apart."""
    uri = canonical(response.url, routes=True)
    return PageRecord(
        task.url,
        task.depth,
        validator,
        response.last_modified,
        location=uri if uri != task.url else "",
    )


def event_without_body(task: PageRequest, response: Response) -> SourceEvent:
    """The event of a page that brought no body; what the last visit left is kept."""
    record = replace(task.earlier or PageRecord(task.url), depth=task.depth)
    uri = record.document_uri or task.url
    if response.outcome is Outcome.GONE:
        # should it come back as it was, a 304 would keep it away for ever
        record = replace(record, etag="", last_modified="")
    if response.outcome is Outcome.UNCHANGED and not record.document_uri:
        reason = "unchanged, and no document the last time"
        return SourceEvent(uri, Outcome.SKIPPED, reason=reason, record=record)
    return SourceEvent(uri, response.outcome, reason=response.reason, record=record)


def page_document(
    spec: CrawlSource | PageSource, uri: str, page: ExtractedPage, response: Response | None = None
) -> SourceDocument:
    """The document that a page becomes; what it does not say of its license, headers may."""
    title = page.title or unquote(urlsplit(uri).path.rstrip("/").rpartition("/")[2]) or uri
    kind = spec.document_type or detect(uri, title, page.content, page.template)
    if response is not None:
        page = replace(page, license=page.license.or_else(response.license))
    drawn = ((address, kept_image(data)) for address, data in page.drawings.items())
    return SourceDocument(
        uri, title, page.content, kind, spec.tags, page.metadata, page.fidelity, page.note,
        {address: image for address, image in drawn if image is not None},
    )  # fmt: skip
