"""Detect ordinary articles, and complete trafilatura's extract of them.

Pages of documentation share a template, which separates content from boilerplate. A single article
has teasers, forms and comments in its text, which only trafilatura's extract leaves out; so an
article keeps that, without emphasis and with its links at the end. On other pages it would lose
short paragraphs, headings and code.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from lxml import etree
from lxml.html import defs

from kbkit.sources.html.dom import BLOCKS, HEADINGS, Element, anchor, normalized_text

_LOST = 0.1  # share of the words under the headings that a page of a site may lose
_LOST_ALONE = 0.6  # likewise of a page on its own, where nothing else tells teasers from text
_PLACES = 6  # of its own that a page leads to, as a manual does
_KEPT_WORDS = 20  # that trafilatura has to keep before it may judge what stays of a page
_WORD = re.compile(r"\w+")
_TYPE = re.compile(r'"@type"\s*:\s*\[?\s*"(?:\w*Article|\w*BlogPosting|Report)"')
_TYPES = re.compile(r"(?:Article|BlogPosting)$")
_STATED = etree.XPath(
    "boolean(//*[@itemprop='articleBody' or @rel='author' or @itemprop='author'])"
)
_SIGNS = frozenset(
    str.split("""
        comments comment-list commentlist comments-area respond comment-respond disqus_thread
        byline author entry-author post-author p-author
        """)
)
_FIELDS = frozenset({"dt", "dd", "th", "td", "tr"})
_PREFORMATTED = ("pre", "listing", "xmp")


def is_stated(root: Element) -> bool:
    """Whether an uncleaned page declares itself an article.

    By its metadata, its byline, or the comments below it.
    """
    for meta in root.iter("meta"):
        name = (meta.get("property") or meta.get("name") or "").lower()
        if name.startswith("article:"):
            return True
        if name == "og:type" and "article" in (meta.get("content") or "").lower():
            return True
    for script in root.iter("script"):
        if "ld+json" in (script.get("type") or "") and _TYPE.search(script.text or ""):
            return True
    if _STATED(root):
        return True
    return any(
        _TYPES.search(element.get("itemtype") or "")
        or not _SIGNS.isdisjoint((element.get("class") or "").lower().split())
        or (element.get("id") or "").lower() in _SIGNS
        for element in root.iter()
        # a field of a list or a table says who wrote a manual
        if isinstance(element.tag, str) and element.tag not in _FIELDS
    )


def is_article(
    body: Element, region: Element, kept: str, own: dict[Element, str], *, stated: bool, alone: bool
) -> bool:
    if len(_WORD.findall(kept)) < _KEPT_WORDS or not (stated or alone):
        return False
    if _is_documentation(body, region, kept, own, stated=stated):
        return False
    return (stated and alone) or _lost(region, kept) <= (_LOST_ALONE if alone else _LOST)


def _is_documentation(
    body: Element, region: Element, kept: str, own: dict[Element, str], *, stated: bool
) -> bool:
    if own or any(term.get("id") for term in region.iter("dt")):
        return True
    text = "".join(kept.split())
    for pre in region.iter(*_PREFORMATTED):
        if not stated or "".join("".join(pre.itertext()).split()) not in text:
            return True
    places = {part.get("id") or part.get("name") for part in region.iter()}
    targets = {(link.get("href") or "").partition("#")[2] for link in body.iter("a")}
    return not stated and len((places & targets) - {""}) >= _PLACES


def _lost(region: Element, kept: str) -> float:
    words: list[str] = []
    headed = False
    linked = 0
    for event, element in etree.iterwalk(region, events=("start", "end")):
        ends = event == "end"
        if not ends:
            headed = headed or element.tag in HEADINGS
        linked += (element.tag == "a") * (-1 if ends else 1)
        text = element.tail if ends and element is not region else element.text
        if text and headed and not linked and (ends or isinstance(element.tag, str)):
            words += _WORD.findall(text)
    missing = Counter(words) - Counter(_WORD.findall(kept))
    return missing.total() / max(1, len(words))


def complete(
    tree: Element, region: Element, kept: str, own: dict[Element, str], tabs: Sequence[Element]
) -> None:
    """Add anchors of headings, labels of tabs and links that trafilatura left out; in place."""
    if tabs:
        _restore_labels(tree, tabs)
    places = {normalized_text(head): anchor(head, own) for head in region.iter(*HEADINGS)}
    for heading in tree.iter(*HEADINGS):
        if place := places.get(normalized_text(heading)):
            heading.set("id", place)
    text = _folded(kept)
    verdicts: dict[Element, bool] = {}
    links: dict[str, str] = {}
    for link in region.iter("a"):
        block = next((up for up in link.iterancestors() if up.tag in BLOCKS), None)
        href, named = link.get("href"), normalized_text(link)
        if block is None or not href or not named:
            continue
        if block not in verdicts:
            verdicts[block] = _folded(normalized_text(block)) in text
        if verdicts[block]:
            links.setdefault(href, named)
    last = etree.SubElement(tree, "ul")
    for href, named in links.items():
        etree.SubElement(etree.SubElement(last, "li"), "a", href=href).text = named


def _restore_labels(tree: Element, tabs: Sequence[Element]) -> None:
    blocks: dict[str, Element] = {}
    for block in tree.iterdescendants(etree.Element):
        blocks.setdefault(normalized_text(block), block)
    for label in tabs:
        panel = label.getnext()
        parts = () if panel is None else panel.iter(etree.Element)
        texts = (text for part in parts if (text := normalized_text(part)))
        if (first := next((blocks[text] for text in texts if text in blocks), None)) is not None:
            paragraph = etree.Element("p")
            etree.SubElement(paragraph, "strong").text = normalized_text(label)
            first.addprevious(paragraph)


def _folded(text: str) -> str:
    return f" {' '.join(_WORD.findall(text))} "


NEEDS_BROWSER = (
    "needs a browser: use `provider: browser`, the Firecrawl provider or a prerendered export"
)
"""Why such a page is skipped."""

_FEW = 10  # words that a page may show beside an element that says it waits for its application
_SILENT = frozenset(str.split("script style noscript template svg"))
_BOILERPLATE = frozenset(str.split("nav header footer"))
_CONTAINERS = frozenset(str.split("div main section article"))
_SHOWN = frozenset(str.split("img picture video audio iframe object embed form input table"))
_NAMED = re.compile(
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
_ASKS = re.compile(r"enabl|disabl|requir|need|without|turn(ed)? on|activat", re.IGNORECASE)
_PAGE_WORDS = 100  # words of paragraphs that no header or footer of a site has
_MENU = 3  # links from which a menu is one
_NOTICE = 40  # words of a sentence that asks to switch JavaScript on, at the most


def is_shell(root: Element, *, rendered: bool = False) -> bool:
    """Whether a page holds an application and hardly any text."""
    body = root.find("body")
    if body is None:
        return False
    if not rendered and next(filter(_runs, root.iter("script")), None) is None:
        return False
    words, empty, waits, asks, served = 0, False, False, False, False
    stack = [body]
    while stack:
        element = stack.pop()
        if not isinstance(element.tag, str):
            continue
        if element.tag == "noscript":
            asks = asks or bool(_JAVASCRIPT.search(normalized_text(element)))
        if element is not body:
            words += len(_WORD.findall(element.tail or ""))
        if words > _FEW:
            return False
        if element.tag in _BOILERPLATE and _holds_text(element):
            return False
        titled = element.tag == "header" and next(element.iter("h1"), None) is not None
        if (element.tag in _SILENT or element.tag in _BOILERPLATE) and not titled:
            served = served or _is_menu(element)
            continue
        if element is not body and (mount := _mount(element)) is not None:
            empty, waits = True, waits or mount
            continue
        words += len(_WORD.findall(element.text or ""))
        stack += element
    if words > _FEW:
        return False
    sourced = any(script.get("src") for script in body.iter("script"))
    # a page may be short; one that shows nothing at all shows what its scripts make, unless a
    # server wrote its menu, whose scripts then add to a page that is empty in truth
    return waits or (not words and (asks or ((empty or sourced) and not served)))


def _is_menu(boilerplate: Element) -> bool:
    targets = {link.get("href") for link in boilerplate.iter("a") if normalized_text(link)}
    return len({target for target in targets if target and not target.startswith("#")}) >= _MENU


def _holds_text(boilerplate: Element) -> bool:
    """Whether a header or footer holds the page's text, as an unclosed one does."""
    paragraphs = (normalized_text(paragraph) for paragraph in boilerplate.iter("p"))
    return sum(len(_WORD.findall(text)) for text in paragraphs) > _PAGE_WORDS


def _mount(element: Element) -> bool | None:
    inside = sum(1 for _ in zip(element.iter(), range(30), strict=False))
    if inside >= 30 or next(element.iter(*_SHOWN), None) is not None:
        return None
    foreign = element.tag not in defs.tags
    texts = _texts(element)
    if not texts:
        identity = element.get("id") or ""
        named = any(_NAMED.match(name) for name in (identity, element.tag))
        if identity.lower() == "main" and len(element):
            return None  # which is as well the content of a page that says nothing
        return named if foreign or element.tag in _CONTAINERS else None
    if element.tag in _CONTAINERS or foreign or element.tag in ("p", "span"):
        text = " ".join(texts)
        asks = _JAVASCRIPT.search(text) and _ASKS.search(text) and len(text.split()) <= _NOTICE
        if all(map(_WAIT.fullmatch, texts)) or asks:
            return True
    return None


def _texts(element: Element) -> list[str]:
    texts = [element.text or ""]
    for child in element:
        if isinstance(child.tag, str) and child.tag not in _SILENT:
            texts += _texts(child)
        texts.append(child.tail or "")
    return [folded for text in texts if (folded := " ".join(text.split()))]


def _runs(script: Element) -> bool:
    kind = (script.get("type") or "").strip().lower()
    return kind in ("", "module", "text/javascript", "application/javascript")
