"""Extract title, Markdown content and links from an HTML page.

trafilatura selects the content; `MarkdownWriter` writes the whole element that contains this
selection. For an ordinary article only the selection is written.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from kbkit.models import DocumentType, License
from kbkit.models.documents import Navigation
from kbkit.models.values import plain
from kbkit.sources.html import (
    HTTP_HEAD,
    Element,
    anchor,
    articles,
    joined,
    links,
    metadata,
    normalized_text,
    parse,
    self_links,
    to_html,
)
from kbkit.sources.html.articles import NEEDS_BROWSER, generated_type, is_shell
from kbkit.sources.html.cleaning import clean
from kbkit.sources.html.images import take_drawings
from kbkit.sources.html.navigation import page_navigation
from kbkit.sources.html.regions import (
    Region,
    ancestry,
    block_keys,
    enclosing_element,
    find_region,
    key_of,
    landmark,
    narrowed,
    trim,
    widened,
    word_counts,
)
from kbkit.sources.html.tables import label_tabs
from kbkit.sources.html.writer import MarkdownWriter
from kbkit.text.markdown.writing import escape

# placeholders of generators and editors
_PLACEHOLDER = re.compile(r"<?(?:no title|untitled(?: document| page)?)>?(?=$|\s+[—–|·•»-])", re.I)
_FILE_NAME = re.compile(r"[\w.-]+\.x?html?", re.IGNORECASE)  # not a title
_RULES = re.compile(r"\A(?:---(?:\n+|\Z))+|(?:\n+---)+\Z")  # around the content
_BODY = re.compile("<body", re.IGNORECASE)
_REFRESH = re.compile(r"^\s*\d*\.?\d*\s*[;,]\s*(?:url\s*=)?\s*['\"]?\s*([^'\"]+)", re.IGNORECASE)
_DESCRIPTIONS = ("description", "og:description")
_DESCRIPTION = 1_000  # most characters of a description
NOINDEX = "noindex"  # start of the reason for pages that forbid indexing
_TOO_DEEP = "nested too deeply to be read"


@dataclass(frozen=True, slots=True)
class ExtractedPage:
    """Content of a page.

    Attributes:
        content: Markdown; empty if there is no text.
        links: Absolute links in order, without fragments, except script routes (``#/guide``).
        canonical: Canonical address, or ``""``.
        refresh: Target of ``meta refresh``, or ``""``.
        ballot: Vote on the site's template; empty if a known region was used.
        texts: Keys of its texts, compared with those of the site's pages; empty without a vote.
        description: Description in the page's head, or ``""``.
        template: Document type by its generator, if known.
        navigation: Place of the page in its site.
        article: Read as an ordinary article, by trafilatura's selection.
        reason: Why there is no content, or why it should not be used, in one line.
        failed: Reading failed; the content is unknown.
        fidelity: Kept and total items by kind, if measured.
        survey: Keys of its texts, if measured, for `html.fidelity.recurring`.
        note: Note on how it was read, or ``""``.
        drawings: SVG of the page, by the addresses of pictures in the content.
    """

    title: str = ""
    content: str = ""
    links: tuple[str, ...] = ()
    canonical: str = ""
    noindex: bool = False
    refresh: str = ""
    license: License = field(default_factory=License)
    description: str = ""
    template: DocumentType | None = None
    navigation: Navigation = field(default_factory=Navigation)
    ballot: tuple[Region, ...] = ()
    texts: frozenset[int] = frozenset()
    article: bool = False
    reason: str = ""
    failed: bool = False
    fidelity: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    survey: frozenset[int] = frozenset()
    note: str = ""
    drawings: Mapping[str, bytes] = field(default_factory=dict)

    @property
    def metadata(self) -> dict[str, Any]:
        described = {"description": self.description} if self.description else {}
        return {**self.license.to_metadata(), **described, **self.navigation.to_metadata()}


def extract(
    html: str,
    url: str,
    regions: tuple[Region, ...] = (),
    *,
    common: frozenset[int] = frozenset(),
    alone: bool = True,
    drawings: bool = False,
) -> ExtractedPage:
    html = HTTP_HEAD.sub("", html)
    root = parse(html) if html.strip() else None
    if root is None:
        return ExtractedPage(reason="empty page")
    try:
        if not _BODY.search(html):
            html = to_html(root)
        body = root.find("body")
        drawn = take_drawings(body, url) if drawings and body is not None else {}
        page = _read(root, html, url, regions, common, alone=alone)
        shown = {address: data for address, data in drawn.items() if address in page.content}
        return replace(page, drawings=shown) if shown else page
    except RecursionError:
        return ExtractedPage(reason=_TOO_DEEP, failed=True)


def _read(
    root: Element,
    html: str,
    url: str,
    regions: tuple[Region, ...],
    common: frozenset[int],
    *,
    alone: bool,
) -> ExtractedPage:
    base = _base(root, url)
    robots, refresh, description = _meta(root, base)
    nofollow = "nofollow" in robots or "none" in robots
    about: dict[str, Any] = {
        "links": () if nofollow else tuple(dict.fromkeys(_absolute(root, base))),
        "canonical": _canonical(root, base),
        "noindex": "noindex" in robots or "none" in robots,
        "refresh": refresh,
        "license": metadata.page_license(root, base),
        "description": description,
        "template": generated_type(root, html, url),
        "navigation": page_navigation(root, base, url),
    }
    if about["noindex"]:
        about["reason"] = f"{NOINDEX}: the page asks not to be indexed"
    body = root.find("body")
    if body is None:
        return ExtractedPage(reason="no text", **about)
    if not about.get("reason") and not refresh and is_shell(root):
        return ExtractedPage(reason=NEEDS_BROWSER, **about)
    own = self_links(body)
    stated = not regions and articles.is_stated(root)
    tabs = label_tabs(body)
    clean(body)
    heads = (normalized_text(part) for part in root.iter("title"))
    named = next((text for text in heads if text and not _PLACEHOLDER.match(text)), "")
    region = _known_region(body, regions)
    article = False
    if region is None:
        # trafilatura changes the tree that it reads, so it parses its own
        selected, tree = _trafilatura(html)
        region = body
        if selected.strip():
            region = landmark(enclosing_element(body, selected), body)
            if not about["noindex"]:
                about["ballot"] = ancestry(region)
                about["texts"] = block_keys(body) | metadata.affix_keys(named) | {key_of(named)}
            article = (
                tree is not None
                and not regions
                and (stated or not any(region in label.iterancestors() for label in tabs))
                and articles.is_article(body, region, selected, own, stated=stated, alone=alone)
            )
            if not article and not alone:
                region = widened(region, body, common)
    own_name = "" if key_of(named) in common or _FILE_NAME.fullmatch(named) else named
    if article:
        heading, title = metadata.page_title(body, region, own_name, common, shared=named)
        articles.complete(tree, region, selected, own, tabs)
        articles.restore_lead(tree, body, heading, selected)
        region, heading = tree, metadata.same_heading(tree, title)
    else:
        title_parts = metadata.title_block(body, region, own_name, common)
        region = region if title_parts else narrowed(region, common)
        trim(region, common, body)
        metadata.drop_site_line(region, named, common)
        if title_parts:
            metadata.lead(region, *title_parts)
        heading, title = metadata.page_title(body, region, own_name, common, shared=named)
    title = title or named[: metadata.MAX_LENGTH]
    content = _RULES.sub("", MarkdownWriter(base, own, relative=not base).write(region)).strip()
    if not re.search(r"\w", content):
        return ExtractedPage(title=title, **{"reason": "no text", **about})
    inside = heading is not None and (region is heading or region in heading.iterancestors())
    if title and not inside:
        place = anchor(heading, own) if heading is not None else ""
        mark = f" {{#{place}}}" if place else ""
        content = f"# {escape(title)}{mark}\n\n{content}"
    return ExtractedPage(title=title, content=content + "\n", article=article, **about)


def _known_region(body: Element, regions: tuple[Region, ...]) -> Element | None:
    total = 0
    for region in regions:
        element = find_region(body, region)
        if element is None:
            continue
        inside = sum(word_counts(element).values())
        if inside and (element.tag in ("main", "article") or element.get("role") == "main"):
            return element  # the page declares it, even if it has little text
        total = total or sum(word_counts(body).values())
        if inside >= 0.3 * total or inside >= 300 or (inside >= 20 and total < 200):
            return element
    return None


def _trafilatura(html: str) -> tuple[str, Element | None]:
    import trafilatura
    from trafilatura.htmlprocessing import convert_to_html

    # trafilatura logs errors about pages without text; keep them off the user's terminal
    logger = logging.getLogger("trafilatura")
    if logger.level == logging.NOTSET:
        logger.setLevel(logging.CRITICAL)
    try:
        extracted: Any = trafilatura.bare_extraction(
            html, include_comments=False, include_tables=True, with_metadata=False, as_dict=False
        )
        text, tree = getattr(extracted, "text", None), getattr(extracted, "body", None)
        if not isinstance(text, str) or tree is None:
            return "", None
        return text, convert_to_html(tree)[0]
    except Exception:  # bugs on hostile pages: use the whole body
        return "", None


def _base(root: Element, url: str) -> str:
    href = next(filter(None, (element.get("href") for element in root.iter("base"))), "")
    return (joined(url, href) if href else "") or url


def _meta(root: Element, base: str) -> tuple[str, str, str]:
    robots, refresh = "", ""
    described: dict[str, str] = {}
    for element in root.iter("meta"):
        content = element.get("content") or ""
        name = (element.get("name") or element.get("property") or "").lower()
        if name in ("robots", "kbkit"):
            robots += content.lower() + ","
        elif name in _DESCRIPTIONS:
            described.setdefault(name, plain(content[:_DESCRIPTION]))
        if (element.get("http-equiv") or "").lower() == "refresh":
            match = _REFRESH.match(content)
            if match and not refresh:
                refresh = joined(base, match.group(1).strip())
    descriptions = (described.get(name, "") for name in _DESCRIPTIONS)
    return robots, refresh, next(filter(None, descriptions), "")


def _canonical(root: Element, base: str) -> str:
    for element in root.iter("link"):
        if "canonical" in (element.get("rel") or "").lower().split():
            return joined(base, element.get("href") or "")
    return ""


def _absolute(root: Element, base: str) -> list[str]:
    urls = []
    for href in dict.fromkeys(_without_fragment(href.strip()) for href in links(root)):
        url = joined(base, href) if href else ""
        if url.startswith(("http://", "https://")) and len(url) < 4000:
            urls.append(url)
    return urls[:20_000]


def _without_fragment(href: str) -> str:
    bare, _, fragment = href.partition("#")
    return href if fragment.startswith(("/", "!/")) else bare


def markdown_of(html: str, *, relative: bool = False) -> str:
    """Convert HTML that holds content only to Markdown."""
    root = parse(html)
    body = root.find("body") if root is not None else None
    if body is None:
        return ""
    own = self_links(body)
    clean(body)
    return MarkdownWriter("", own, relative=relative).write(body).strip()
