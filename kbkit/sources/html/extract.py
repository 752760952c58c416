"""A page of HTML -> its title and content as Markdown, and what a crawler wants to know.

trafilatura decides *what* is content, the tree decides *how* it is written: the element that
trafilatura's choice lies in is written out whole by `MarkdownWriter`. Of an ordinary article,
only what trafilatura kept is written.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urljoin

from kbkit.markdown.writing import escape
from kbkit.models import License
from kbkit.models.plain import plain
from kbkit.sources.html import articles
from kbkit.sources.html.applications import NEEDS_BROWSER, is_shell
from kbkit.sources.html.dom import (
    HEADINGS,
    Element,
    anchor,
    clean,
    links,
    normalized_text,
    parse,
    self_links,
    strip_scripts,
    to_html,
)
from kbkit.sources.html.licenses import page_license
from kbkit.sources.html.regions import (
    Region,
    ancestry,
    enclosing_element,
    find_region,
    landmark,
    word_counts,
)
from kbkit.sources.html.writer import MarkdownWriter

_SUFFIX = re.compile(r"\s+(?:[—–|·•»]|::|-)\s+[^—–|·•»]{1,80}$")
_BODY = re.compile("<body", re.IGNORECASE)
_REFRESH = re.compile(r"^\s*\d*\.?\d*\s*[;,]\s*(?:url\s*=)?\s*['\"]?\s*([^'\"]+)", re.IGNORECASE)
_GENERATORS = re.compile(
    r"sphinx|docutils|mkdocs|docusaurus|docbook|asciidoc|antora|javadoc|rustdoc|vitepress|hugo"
    r"|gitbook|doxygen|starlight|mdbook|jekyll",
    re.IGNORECASE,
)
_DESCRIPTIONS = ("description", "og:description")
_DESCRIPTION = 1_000  # characters of one that are kept
_LED_HEADINGS = 4  # which a table of contents leads to, as that of a manual does
_FEW = 20  # words that trafilatura has to keep before it may judge what stays of a page
_LOST, _LOST_WORDS = 0.1, 50  # share and words of the kept text that cleaning may take out
NOINDEX = "noindex"
"""How the reason begins where a page asks not to be indexed."""
_DEEP = "nested too deeply to be read"


@dataclass(frozen=True, slots=True)
class ExtractedPage:
    """What a page says.

    Attributes:
        title: One line of plain text.
        content: Markdown; empty when the page has no text.
        links: Absolute addresses that the page links to, in order, without fragments; those that
            are routes of scripts (``#/guide``) stay.
        canonical: What the page calls its own address, or ``""``.
        noindex: The page asks not to be indexed.
        refresh: Where a ``meta refresh`` leads, or ``""``.
        ballot: Vote on the site's template; empty when a known region was used.
        license: What the page states of its license.
        description: What the page's head states that the page is, or ``""``.
        article: The page was read as an ordinary article, by trafilatura's judgement.
        reason: Why there is no content, or why it should not be used; one line for a person.
        failed: The page could not be read, which says nothing about what it holds.
        fidelity: Kept and wanted things by kind, where that was measured.
        survey: Keys of its texts, where that was measured, for `html.fidelity.recurring`.
    """

    title: str = ""
    content: str = ""
    links: tuple[str, ...] = ()
    canonical: str = ""
    noindex: bool = False
    refresh: str = ""
    license: License = field(default_factory=License)
    description: str = ""
    ballot: tuple[Region, ...] = ()
    article: bool = False
    reason: str = ""
    failed: bool = False
    fidelity: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    survey: frozenset[int] = frozenset()

    @property
    def metadata(self) -> dict[str, str]:
        """What it states of itself, as metadata of a document."""
        described = {"description": self.description} if self.description else {}
        return self.license.to_metadata() | described


def extract(html: str, url: str, regions: tuple[Region, ...] = ()) -> ExtractedPage:
    """Read a page.

    Args:
        html: The page, decoded.
        url: Its address, which relative links start from.
        regions: Content elements of the site's templates; a page that has none of them, or in
            which the one found holds suspiciously little, is decided by trafilatura.

    Returns:
        What the page says; ``reason`` tells why there is no content, or that the page asks
        not to be indexed. Never raises for a hostile page.
    """
    root = parse(html) if html.strip() else None
    if root is None:
        return ExtractedPage(reason="empty page")
    try:
        if not _BODY.search(html):
            html = to_html(root)
        return _read(root, html, url, regions)
    except RecursionError:
        return ExtractedPage(reason=_DEEP, failed=True)


def _read(root: Element, html: str, url: str, regions: tuple[Region, ...]) -> ExtractedPage:
    base = _base(root, url)
    robots, refresh, description = _meta(root, base)
    nofollow = "nofollow" in robots or "none" in robots
    about: dict[str, Any] = {
        "links": () if nofollow else tuple(dict.fromkeys(_absolute(root, base))),
        "canonical": _canonical(root, base),
        "noindex": "noindex" in robots or "none" in robots,
        "refresh": refresh,
        "license": page_license(root, base),
        "description": description,
    }
    if about["noindex"]:
        about["reason"] = f"{NOINDEX}: the page asks not to be indexed"
    body = root.find("body")
    if body is None:
        return ExtractedPage(reason="no text", **about)
    if not about.get("reason") and is_shell(root):
        return ExtractedPage(reason=NEEDS_BROWSER, **about)
    own = self_links(body)
    clean(body)
    region = _known(body, regions)
    ballot: tuple[Region, ...] = ()
    article = False
    if region is None:
        # a tree of its own, since trafilatura changes what it reads
        text = _trafilatura(html)
        region = body
        if text.strip():
            region = landmark(enclosing_element(body, text), body)
            ballot = () if about["noindex"] else ancestry(region)
            if not _is_documentation(root, body, region, own):
                kept = articles.MainText(text)
                article = kept.words.total() >= _FEW
        if article:
            root, body, region = _article(root, body, html, kept)
    heading, title = _title(root, body, region)
    content = MarkdownWriter(base, own, links_last=article).write(region).strip()
    if not re.search(r"\w", content):
        return ExtractedPage(title=title, **{"reason": "no text", **about})
    inside = heading is not None and (region is heading or region in heading.iterancestors())
    if title and not inside:
        place = anchor(heading, own) if heading is not None else ""
        mark = f" {{#{place}}}" if place else ""
        content = f"# {escape(title)}{mark}\n\n{content}"
    return ExtractedPage(
        title=title, content=content + "\n", ballot=ballot, article=article, **about
    )


def _article(
    root: Element, body: Element, html: str, kept: articles.MainText
) -> tuple[Element, Element, Element]:
    """The tree of an article, its body, and the element that holds the text, pruned."""
    lost = 1 - kept.coverage(body)
    if lost > _LOST and lost * kept.words.total() > _LOST_WORDS:
        # what looked like furniture held the text, as happens where consent is asked for
        again = parse(html)
        bare = again.find("body") if again is not None else None
        if bare is not None:
            root, body = again, bare
            strip_scripts(body)
    region = articles.enclosing_element(body, kept)
    articles.prune(region, kept)
    return root, body, region


def _known(body: Element, regions: tuple[Region, ...]) -> Element | None:
    """The content element by the site's templates, if it holds a fair share of the page."""
    total = 0
    for region in regions:
        element = find_region(body, region)
        if element is None:
            continue
        inside = sum(word_counts(element).values())
        if inside and (element.tag in ("main", "article") or element.get("role") == "main"):
            return element  # the page itself says so, however little stands there
        total = total or sum(word_counts(body).values())
        if inside >= 0.3 * total or inside >= 300 or (inside >= 20 and total < 200):
            return element
    return None


def _is_documentation(
    root: Element, body: Element, region: Element, own: dict[Element, str]
) -> bool:
    """Whether a page that no template is known for looks like documentation."""
    if own or next(region.iter("pre"), None) is not None:
        return True
    for element in root.iter("meta"):
        if (element.get("name") or "").lower() == "generator":
            return bool(_GENERATORS.search(element.get("content") or ""))
    if next((True for term in region.iter("dt") if term.get("id")), False):
        return True
    headings = [heading for heading in region.iter(*HEADINGS) if normalized_text(heading)]
    targets = {(link.get("href") or "").partition("#")[2] for link in body.iter("a")}
    led = sum(bool(place := anchor(head, own)) and place in targets for head in headings)
    return led >= _LED_HEADINGS and led >= 0.9 * len(headings)


def _trafilatura(html: str) -> str:
    """The text that trafilatura keeps of a page."""
    import trafilatura

    # it logs errors about pages without text, which would go to the user's terminal
    logger = logging.getLogger("trafilatura")
    if logger.level == logging.NOTSET:
        logger.setLevel(logging.CRITICAL)
    try:
        kept: Any = trafilatura.bare_extraction(
            html, include_comments=False, include_tables=True, with_metadata=False, as_dict=False
        )
    except Exception:  # whatever a hostile page breaks in it, the body remains
        return ""
    text = getattr(kept, "text", None)
    return text if isinstance(text, str) else ""


def _base(root: Element, url: str) -> str:
    for element in root.iter("base"):
        if href := element.get("href"):
            try:
                return str(urljoin(url, href))
            except ValueError:
                break
    return url


def _meta(root: Element, base: str) -> tuple[str, str, str]:
    """Robots rules in lower case, where a refresh leads, and what the page says it is."""
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
                refresh = _joined(base, match.group(1).strip())
    found = (described.get(name, "") for name in _DESCRIPTIONS)
    return robots, refresh, next(filter(None, found), "")


def _canonical(root: Element, base: str) -> str:
    for element in root.iter("link"):
        if "canonical" in (element.get("rel") or "").lower().split():
            return _joined(base, element.get("href") or "")
    return ""


def _absolute(root: Element, base: str) -> list[str]:
    found = []
    for href in dict.fromkeys(_without_place(href.strip()) for href in links(root)):
        url = _joined(base, href) if href else ""
        if url.startswith(("http://", "https://")) and len(url) < 4000:
            found.append(url)
    return found[:20_000]


def _without_place(href: str) -> str:
    """An address without the place in a page that it may name, but with a route of scripts."""
    bare, _, fragment = href.partition("#")
    return href if fragment.startswith(("/", "!/")) else bare


def _joined(base: str, href: str) -> str:
    try:
        return urljoin(base, href)
    except ValueError:
        return ""


def _title(root: Element, body: Element, region: Element) -> tuple[Element | None, str]:
    """The heading that names the page, if there is one, and the page's title."""
    named = next((text for element in root.iter("title") if (text := normalized_text(element))), "")
    for place in (region, body):
        for heading in place.iter("h1"):
            text = normalized_text(heading).rstrip("¶# ")
            # outside of the content, a heading may as well be the name of the site
            if text and (place is region or not named or text in named):
                return heading, text[:500]
    if named:
        return None, (_SUFFIX.sub("", named) or named)[:500]
    for heading in region.iter("h2", "h3"):
        if text := normalized_text(heading).rstrip("¶# "):
            return heading, text[:500]
    return None, ""
