"""Records, validators and documents of pages, and rendered pages read from an isolated world.

JavaScript in an isolated world sees the page's document, but no changes by the page's scripts to
JavaScript itself.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, replace
from typing import Any
from urllib.parse import unquote, urlsplit

from kbkit.models import PageRecord, SourceDocument
from kbkit.recipes import CrawlSource, PageSource
from kbkit.sources.base import Outcome, SourceContext, SourceEvent
from kbkit.sources.front_matter import detect
from kbkit.sources.html.extract import ExtractedPage
from kbkit.sources.images import kept_image
from kbkit.sources.web.downloads import ClusterFetcher, FetchOptions, PageRequest
from kbkit.sources.web.fetch import Fetcher, Response
from kbkit.sources.web.robots import Robots
from kbkit.sources.web.urls import canonical

STATE = """() => {
  const body = document.body;
  const text = body ? body.textContent.length : 0;
  return [document.readyState, document.getElementsByTagName("*").length, text].join(" ");
}"""
"""Text that changes with the page."""

UNFOLD = """(most) => {
  const chosen = 'button[aria-expanded="false"], [role="button"][aria-expanded="false"]';
  const excluded = "a[href], nav, header, footer, form, [aria-haspopup], [role='navigation']";
  let pressed = 0;
  for (const button of document.querySelectorAll(chosen)) {
    if (pressed >= most) break;
    if (button.closest(excluded)) continue;
    button.click();
    pressed += 1;
  }
  return pressed;
}"""
"""Clicks unfolding controls outside menus and forms; returns their number."""

SERIALIZE = """(limit) => {
  const of = (owner, name) => {
    const get = Object.getOwnPropertyDescriptor(owner, name).get;
    return (node) => get.call(node);  // a form's fields can hide its properties
  };
  const children = of(Node.prototype, "childNodes");
  const shadow = of(Element.prototype, "shadowRoot");
  const attributes = of(Element.prototype, "attributes");
  const empty = new Set(["area", "base", "br", "col", "hr", "img", "input", "link", "meta",
    "source", "track", "wbr"]);
  const left = new Set(["style", "template", "iframe", "object", "embed", "noscript", "canvas"]);
  const escaped = (text) =>
    text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;").replace(/"/g, "&quot;");
  const parts = ["<!DOCTYPE html>"];
  let size = 0;
  const put = (text) => { size += text.length; parts.push(text); };
  const lines = new Set();
  const stack = [document.documentElement];
  while (stack.length) {
    if (size > limit) return null;
    const node = stack.pop();
    if (typeof node === "string") { put(node); continue; }
    if (node.nodeType === 3) {
      const line = node.data.trim();
      if (line) lines.add(line.slice(0, 200));
      put(escaped(node.data));
      continue;
    }
    let name = node.localName;
    if (node.nodeType !== 1 || left.has(name) || !/^[a-z][\\w.:-]*$/i.test(name)) continue;
    if (name === "script") {
      if ((node.getAttribute("type") || "").trim().toLowerCase() === "application/ld+json")
        put(`<script type="application/ld+json">${node.textContent.replace(/<[/]/g, "<\\\\/")}` +
          "</" + "script>");
      continue;
    }
    // an unfolding button names its part; other buttons are dropped later
    if (name === "button" && node.matches("[aria-expanded]:not([aria-haspopup])")) name = "div";
    const written = [];
    for (const attribute of attributes(node))
      if (/^[^\\s"'<>/=]+$/.test(attribute.name))
        written.push(` ${attribute.name}="${escaped(attribute.value.slice(0, 5000))}"`);
    put(`<${name}${written.join("")}>`);
    if (empty.has(name)) continue;
    stack.push(`</${name}>`);
    let inside = children(node);
    const root = shadow(node);
    if (root) inside = children(root);
    else if (name === "slot") {
      const assigned = HTMLSlotElement.prototype.assignedNodes.call(node);
      if (assigned.length) inside = assigned;
    }
    for (let place = inside.length - 1; place >= 0; place -= 1) stack.push(inside[place]);
  }
  return [parts.join(""), [...lines].slice(0, 50000)];
}"""
"""Returns HTML with open shadow trees in place and without scripts, and its lines of text; ``null``
if it is longer than the limit."""


class RenderError(Exception):
    """A page could not be rendered; the message is a one-line reason."""


class IsolatedWorld:
    """JavaScript world of a page that the page's scripts cannot reach."""

    def __init__(self, session: Any) -> None:
        self._session = session
        self._context: int | None = None

    async def call(self, function: str, argument: int) -> Any:
        """Return the result of a function of one number; ``None`` if the document was replaced."""
        from playwright.async_api import Error

        if self._context is None:
            tree = await self._session.send("Page.getFrameTree")
            created = await self._session.send(
                "Page.createIsolatedWorld",
                {"frameId": tree["frameTree"]["frame"]["id"], "worldName": "kbkit"},
            )
            self._context = created["executionContextId"]
        try:
            answer = await self._session.send(
                "Runtime.evaluate",
                {
                    "expression": f"({function})({argument})",
                    "contextId": self._context,
                    "returnByValue": True,
                },
            )
        except Error as error:
            if "context" in str(error):  # document.open and the like replace it
                self._context = None
                return None
            raise
        if "exceptionDetails" in answer:
            raise RenderError("its document cannot be read")
        return answer["result"].get("value")


READER_VERSION = 8  # raise it to read unchanged pages again

_MARK = "kbkit:"


class Validators:
    """Makes and compares validators of page records."""

    def __init__(self, spec: CrawlSource | PageSource) -> None:
        shaping = [READER_VERSION, spec.document_type, spec.tags, spec.license, spec.attribution]
        if isinstance(spec, CrawlSource):
            shaping += [spec.include, spec.exclude]
        if spec.images:
            shaping.append("images and drawings")
        self._options = _hash(json.dumps(shaping).encode())

    def make(self, response: Response) -> str:
        about = f"{response.media_type}\n{response.charset}\n{response.robots}\n"
        contents = _hash((about + response.license.url).encode() + response.body)
        return f"{_MARK}{self._options}:{contents} {response.etag}"

    def sent(self, record: PageRecord | None) -> tuple[str, str]:
        """Return ETag and modification time to send; empty to force a full response."""
        if record is None or not record.etag.startswith(f"{_MARK}{self._options}:"):
            return "", ""
        return record.etag.partition(" ")[2], record.last_modified

    def compared(self, task: PageRequest, response: Response) -> tuple[str, Response]:
        """Return a response and its address, as unchanged if it equals the earlier visit's."""
        uri, record = canonical(response.url, routes=True) or task.url, task.earlier
        if record is None or record.address != uri:
            return uri, response
        same = record.etag.partition(" ")[0] == self.make(response).partition(" ")[0]
        unchanged = same and response.outcome is Outcome.FETCHED
        return uri, replace(response, outcome=Outcome.UNCHANGED) if unchanged else response


def _hash(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=12).hexdigest()


def open_fetcher(spec: CrawlSource | PageSource, context: SourceContext) -> Fetcher:
    options = FetchOptions(context.user_agent, context.timeout, spec.max_bytes, spec.allow_private)
    if not context.engine.is_local:
        return ClusterFetcher(context.engine.pool(), options, context.stop)
    connections = spec.concurrency + 2 if isinstance(spec, CrawlSource) else 2
    return Fetcher(**asdict(options), stop=context.stop, connections=connections)


def open_robots(spec: CrawlSource | PageSource, context: SourceContext) -> Robots:
    """Return the robots.txt rules for a new fetcher."""
    return Robots(open_fetcher(spec, context), context.user_agent, spec.delay, context.stop)


def rendered(spec: CrawlSource | PageSource, context: SourceContext) -> bool:
    return (spec.provider or context.provider) == "browser"


def body_refusal(response: Response, accepted: frozenset[str]) -> str:
    if not response.body.strip():
        return "empty page"
    if response.media_type not in accepted:
        return f"{response.media_type}, not a page"
    return ""


def page_record(task: PageRequest, response: Response, validator: str) -> PageRecord:
    uri = canonical(response.url, routes=True)
    return PageRecord(
        task.url,
        task.depth,
        validator,
        response.last_modified,
        location=uri if uri != task.url else "",
    )


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


def page_document(spec: CrawlSource | PageSource, uri: str, page: ExtractedPage) -> SourceDocument:
    title = page.title or unquote(urlsplit(uri).path.rstrip("/").rpartition("/")[2]) or uri
    kind = spec.document_type or detect(uri, title, page.content, page.template)
    drawn = ((address, kept_image(data)) for address, data in page.drawings.items())
    return SourceDocument(
        uri,
        title,
        page.content,
        kind,
        spec.tags,
        page.metadata,
        page.fidelity,
        page.note,
        {address: image for address, image in drawn if image is not None},
    )
