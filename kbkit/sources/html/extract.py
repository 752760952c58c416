"""Extract title, Markdown content and links from an HTML page; detect pages without text.

trafilatura selects the content; `MarkdownWriter` writes the whole element that contains this
selection. For an ordinary article only the selection is written.
"""

import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

from lxml import etree
from lxml.html import defs

from kbkit.models import DocumentType, License
from kbkit.models.documents import Navigation
from kbkit.models.values import plain
from kbkit.sources import html as dom
from kbkit.sources.html import Element, classes, metadata, plain_text, regions
from kbkit.sources.html.cleaning import clean
from kbkit.sources.html.images import take_drawings
from kbkit.sources.html.navigation import page_navigation
from kbkit.sources.html.tables import label_tabs
from kbkit.sources.html.writer import MarkdownWriter
from kbkit.text.markdown.writing import anchor_mark, escape

# placeholders of generators and editors
_PLACEHOLDER = re.compile(r"<?(?:no title|untitled(?: document| page)?)>?(?=$|\s+[—–|·•»-])", re.I)
_FILE_NAME = re.compile(r"[\w.-]+\.x?html?", re.IGNORECASE)  # not a title
_RULES = re.compile(r"\A(?:---(?:\n+|\Z))+|(?:\n+---)+\Z")  # around the content
_REFRESH = re.compile(r"^\s*\d*\.?\d*\s*[;,]\s*(?:url\s*=)?\s*['\"]?\s*([^'\"]+)", re.IGNORECASE)
_DESCRIPTION = 1_000  # maximum characters of a description
_STUB = 400  # a page that refreshes to another has no content below this many characters
NOINDEX = "noindex"  # start of the reason for pages that forbid indexing


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
    ballot: tuple[regions.Region, ...] = ()
    texts: frozenset[int] = frozenset()
    article: bool = False
    reason: str = ""
    failed: bool = False
    fidelity: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    survey: frozenset[int] = frozenset()
    note: str = ""
    drawings: Mapping[str, bytes] = field(default_factory=dict)

    @property
    def refusal(self) -> str:
        """Why the page is no document, in one line, or ``""``."""
        if self.refresh and len(self.content) < _STUB:
            return f"redirects to {self.refresh} (meta refresh)"
        return self.reason or ("" if self.content else "no text")

    @property
    def metadata(self) -> dict[str, Any]:
        described = {"description": self.description} if self.description else {}
        return {**self.license.to_metadata(), **described, **self.navigation.to_metadata()}


def extract(
    html: str,
    url: str,
    known: tuple[regions.Region, ...] = (),
    *,
    common: frozenset[int] = frozenset(),
    alone: bool = True,
    drawings: bool = False,
) -> ExtractedPage:
    html = dom.HTTP_HEAD.sub("", html)
    root = dom.parse(html) if html.strip() else None
    if root is None:
        return ExtractedPage(reason="empty page")
    try:
        if not re.search("(?i)<body", html):
            html = str(etree.tostring(root, encoding="unicode", method="html"))
        body = root.find("body")
        drawn = take_drawings(body, url) if drawings and body is not None else {}
        page = _read(root, html, url, known, common, alone=alone)
        used = {address: data for address, data in drawn.items() if address in page.content}
        return replace(page, drawings=used) if used else page
    except RecursionError:
        return ExtractedPage(reason="nested too deeply to be read", failed=True)


def _read(
    root: Element,
    html: str,
    url: str,
    known: tuple[regions.Region, ...],
    common: frozenset[int],
    *,
    alone: bool,
) -> ExtractedPage:
    base = dom.resolve_link(url, root.xpath("string(//base[@href!='']/@href)")) or url
    robots, refresh, description = _meta(root, base)
    nofollow = "nofollow" in robots or "none" in robots
    facts: dict[str, Any] = {
        "links": () if nofollow else tuple(dict.fromkeys(_absolute(root, base))),
        "canonical": _canonical(root, base),
        "noindex": "noindex" in robots or "none" in robots,
        "refresh": refresh,
        "license": metadata.page_license(root, base),
        "description": description,
        "template": generated_type(root, html, url),
        "navigation": page_navigation(root, base, url),
    }
    if facts["noindex"]:
        facts["reason"] = f"{NOINDEX}: the page asks not to be indexed"
    body = root.find("body")
    if body is None:
        return ExtractedPage(reason="no text", **facts)
    if not facts.get("reason") and not refresh and is_shell(root):
        return ExtractedPage(reason=NEEDS_BROWSER, **facts)
    anchors = dom.self_links(body)
    declared = not known and regions.is_stated(root)
    tabs = label_tabs(body)
    clean(body)
    head_titles = (plain_text(part) for part in root.iter("title"))
    head = next((text for text in head_titles if text and not _PLACEHOLDER.match(text)), "")
    region = _find_known_region(body, known)
    article = False
    if region is None:
        # trafilatura modifies its tree, so it parses its own copy
        selected, tree = _trafilatura(html)
        region = body
        if selected.strip():
            region = regions.landmark(regions.enclosing_element(body, selected), body)
            if not facts["noindex"]:
                facts["ballot"] = regions.ancestry(region)
                facts["texts"] = regions.block_keys(body) | metadata.title_keys(head)
            article = (
                tree is not None
                and not known
                and (declared or not any(region in label.iterancestors() for label in tabs))
                and regions.is_article(
                    body, region, selected, anchors, stated=declared, alone=alone
                )
            )
            if not article and not alone:
                region = regions.widen(region, body, common)
    page_name = "" if regions.key_of(head) in common or _FILE_NAME.fullmatch(head) else head
    if not article:
        regions.add_index(region)
        title_parts = metadata.title_block(body, region, page_name, common, in_site=bool(known))
        region = region if title_parts else regions.narrow(region, common)
        regions.trim(region, common, body)
        metadata.drop_site_line(region, head, common)
        if title_parts:
            metadata.lead(region, *title_parts)
    heading, title = metadata.page_title(body, region, page_name, common, shared=head)
    if article:
        regions.complete(tree, region, selected, anchors, tabs)
        regions.restore_lead(tree, body, heading, selected)
        region, heading = tree, next(tree.iter("h1", "h2"), None)
        heading = heading if heading is not None and plain_text(heading) == title else None
    title = title or head[: metadata.MAX_LENGTH]
    content = _RULES.sub("", MarkdownWriter(base, anchors, relative=not base).write(region)).strip()
    if not re.search(r"\w", content):
        return ExtractedPage(title=title, **{"reason": "no text", **facts})
    in_content = heading is not None and (region is heading or region in heading.iterancestors())
    if title and not in_content:
        fragment = dom.anchor(heading, anchors) if heading is not None else ""
        content = f"# {escape(title)}{anchor_mark(fragment)}\n\n{content}"
    return ExtractedPage(title=title, content=content + "\n", article=article, **facts)


def _find_known_region(body: Element, known: tuple[regions.Region, ...]) -> Element | None:
    total = 0
    for region in known:
        element = regions.find_region(body, region)
        if element is None:
            continue
        text = dom.spaced_text(element)
        is_declared = element.tag in ("main", "article") or element.get("role") == "main"
        if is_declared and dom.WORD.search(text):  # may have little text
            return element
        words = len(dom.WORD.findall(text))
        if words >= 300:
            return element
        total = total or len(dom.WORD.findall(dom.spaced_text(body)))
        if words >= 0.3 * total or (words >= 20 and total < 200):
            return element
    return None


def _trafilatura(html: str) -> tuple[str, Element]:
    import trafilatura
    from trafilatura.htmlprocessing import convert_to_html

    # trafilatura logs errors about pages without text; keep them off the user's terminal
    logger = logging.getLogger("trafilatura")
    if logger.level == logging.NOTSET:
        logger.setLevel(logging.CRITICAL)
    try:
        page: Any = trafilatura.load_html(html)
        for name in [a for h in page.iter(*dom.HEADINGS) for a in h.xpath(".//a[not(@href)]")]:
            name.drop_tag()  # taken for links, and headings that are links are left out
        extracted: Any = trafilatura.bare_extraction(
            page, include_comments=False, include_tables=True, with_metadata=False, as_dict=False
        )
        text, tree = getattr(extracted, "text", None), getattr(extracted, "body", None)
        if not isinstance(text, str) or tree is None:
            return "", None
        return text, convert_to_html(tree)[0]
    except Exception:  # bugs on hostile pages: use the whole body
        return "", None


def _meta(root: Element, base: str) -> tuple[str, str, str]:
    robots, refresh = "", ""
    described: dict[str, str] = {}
    for element in root.iter("meta"):
        content = element.get("content") or ""
        name = (element.get("name") or element.get("property") or "").lower()
        if name in ("robots", "kbkit"):
            robots += content.lower() + ","
        described.setdefault(name, plain(content[:_DESCRIPTION]))
        if (element.get("http-equiv") or "").lower() == "refresh":
            match = _REFRESH.match(content)
            refresh = refresh or (dom.resolve_link(base, match[1].strip()) if match else "")
    return robots, refresh, described.get("description") or described.get("og:description", "")


def _canonical(root: Element, base: str) -> str:
    for element in root.iter("link"):
        if "canonical" in (element.get("rel") or "").lower().split():
            return dom.resolve_link(base, element.get("href") or "")
    return ""


def _absolute(root: Element, base: str) -> list[str]:
    hrefs = dict.fromkeys(re.sub(r"(?s)#(?!!?/).*", "", href.strip()) for href in dom.links(root))
    urls = (dom.web_address(base, href) for href in hrefs)
    return [url for url in urls if 0 < len(url) < 4000][:20_000]


def markdown_of(html: str, *, relative: bool = False) -> str:
    """Convert HTML that holds content only to Markdown."""
    root = dom.parse(html)
    body = root.find("body") if root is not None else None
    if body is None:
        return ""
    permalinks = dom.self_links(body)
    clean(body)
    return MarkdownWriter("", permalinks, relative=relative).write(body).strip()


NEEDS_BROWSER = (
    "needs a browser: use `provider: browser`, the Firecrawl provider or a prerendered export"
)
"""Reason for skipping a page whose content is made by scripts."""

_FEW = 10  # maximum words of a page that waits for its application
_SILENT = frozenset(str.split("script style noscript template svg"))
_TEXTS = etree.XPath(
    f"descendant::text()[not({' or '.join(f'ancestor::{tag}' for tag in sorted(_SILENT))})]"
)
_BOILERPLATE = frozenset(str.split("nav header footer"))
_CONTAINERS = frozenset(str.split("div main section article"))
_SHOWN = frozenset(str.split("img picture video audio iframe object embed form input table"))
_MOUNT_NAME = re.compile(
    r"^(_*(app|root|next|nuxt|gatsby|main|mount|application|svelte|docsify|redoc)_*([-_]?(root|app|"
    r"container|ui|wrapper))?|swagger-?ui)$",
    re.IGNORECASE,
)
_WAIT = re.compile(
    r"\W*(please\W+)?(wait|loading|initiali[sz]ing|starting|just a moment|one moment|laden|lädt|"
    r"bitte warten|chargement|cargando|carregando|caricamento|загрузка|读取中|加载中|読み込み中)"
    r"(\W+[\w.-]+){0,4}\W*",
    re.IGNORECASE,
)
_JAVASCRIPT = re.compile(r"\bjava\s?script\b", re.IGNORECASE)
_RUNNABLE = frozenset({"", "module", "text/javascript", "application/javascript"})
_REQUEST = re.compile(r"enabl|disabl|requir|need|without|turn(ed)? on|activat", re.IGNORECASE)
_PAGE_WORDS = 100  # minimum words in paragraphs of a header or footer with the page's text
_NOTICE = 40  # maximum words of a request to switch JavaScript on


def is_shell(root: Element, *, rendered: bool = False) -> bool:
    """Whether a page holds an application and hardly any text."""
    body = root.find("body")
    kinds = ((script.get("type") or "").strip().lower() for script in root.iter("script"))
    if body is None or not (rendered or not _RUNNABLE.isdisjoint(kinds)):
        return False
    words, empty, has_mount, asks, has_menu = 0, False, False, False, False
    stack = [body]
    while stack:
        element = stack.pop()
        if element.tag == "noscript":
            asks = asks or bool(_JAVASCRIPT.search(plain_text(element)))
        if element is not body:
            words += len(dom.WORD.findall(element.tail or ""))
        if words > _FEW:
            return False
        if element.tag in _BOILERPLATE:
            # left unclosed, it holds the page's text
            paragraphs = " ".join(map(plain_text, element.iter("p")))
            if len(dom.WORD.findall(paragraphs)) > _PAGE_WORDS:
                return False
        has_title = element.tag == "header" and next(element.iter("h1"), None) is not None
        if (element.tag in _SILENT or element.tag in _BOILERPLATE) and not has_title:
            has_menu = has_menu or _is_menu(element)
            continue
        if element is not body and (mount := _mount(element)) is not None:
            empty, has_mount = True, has_mount or mount
            continue
        words += len(dom.WORD.findall(element.text or ""))
        stack += element
    has_src = any(script.get("src") for script in body.iter("script"))
    # a short page is no shell; a page without any text is one, unless its menu came from the
    # server: then the page is empty, and its scripts only add to it
    is_silent = not words and (asks or ((empty or has_src) and not has_menu))
    return words <= _FEW and (has_mount or is_silent)


def _is_menu(boilerplate: Element) -> bool:
    hrefs = {link.get("href") or "#" for link in boilerplate.iter("a") if plain_text(link)}
    return sum(href[0] != "#" for href in hrefs) >= dom.SITE_LINKS


def _mount(element: Element) -> bool | None:
    if len(list(islice(element.iter(), 30))) == 30 or next(element.iter(*_SHOWN), None) is not None:
        return None
    foreign = element.tag not in defs.tags
    texts = [folded for text in _TEXTS(element) if (folded := " ".join(text.split()))]
    if not texts:
        identity = element.get("id") or ""
        # "main" may also be the content element of an empty page
        may_mount = not (identity.lower() == "main" and len(element))
        names = any(map(_MOUNT_NAME.match, (identity, element.tag)))
        return names if may_mount and (foreign or element.tag in _CONTAINERS) else None
    text = " ".join(texts)
    asks = _JAVASCRIPT.search(text) and _REQUEST.search(text) and len(text.split()) <= _NOTICE
    waits = asks or all(map(_WAIT.fullmatch, texts))
    holds = foreign or element.tag in _CONTAINERS or element.tag in ("p", "span")
    return True if waits and holds else None


_COMMENT = re.compile(r"<!--\s*generated by (\w+)", re.IGNORECASE)
_HEAD = 4_000  # characters searched for this comment
_DOXYGEN = re.compile(
    r"(?:^|/)(?:class|struct|union|interface|namespace|group__|dir_|functions|globals|annotated|"
    r"classes|hierarchy|files|[\w-]+_8\w+(?:_source)?\.html)"
)
_CONSOLES = frozenset({"swagger-ui", "redoc", "rapi-doc", "elements-api"})


def generated_type(root: Element, html: str, url: str) -> DocumentType | None:
    metas = (meta for meta in root.iter("meta") if (meta.get("name") or "").lower() == "generator")
    texts = [(meta.get("content") or "").strip().lower() for meta in metas]
    if comment := _COMMENT.search(html[:_HEAD]):
        texts.append(comment[1].lower())
    names = {name for text in texts for name in re.findall(r"^[a-z]+\d?", text)}
    is_doxygen = "doxygen" in names and _DOXYGEN.search(url)  # which also writes prose
    if is_doxygen or names & dom.NAMES["api_generators"]:
        return DocumentType.REFERENCE
    for element in root.iter("body", "div", "section", *_CONSOLES):
        names = {*classes(element), element.get("id"), element.tag}
        if names & {"refentry", "manpage"}:
            return DocumentType.REFERENCE
        if names & _CONSOLES:
            return DocumentType.API_SPEC
    return None
