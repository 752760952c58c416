"""Detect pages that hold a JavaScript application instead of text.

They are told by what they hold, not by who made them: next to no text, scripts, and an element that
waits to be filled, or a sentence that asks to wait or to switch JavaScript on.
"""

from __future__ import annotations

import re

from lxml.html import defs

from kbkit.sources.html.dom import Element, normalized_text

NEEDS_BROWSER = (
    "needs a browser: use `provider: browser`, the Firecrawl provider or a prerendered export"
)
"""Why such a page is skipped."""

_FEW = 10  # words that a page may show beside an element that says it waits for its application
_SILENT = frozenset(str.split("script style noscript template svg"))
_FURNITURE = frozenset(str.split("nav header footer"))
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
_WORD = re.compile(r"\w+")


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
        if element.tag in _FURNITURE and _holds_text(element):
            return False
        titled = element.tag == "header" and next(element.iter("h1"), None) is not None
        if (element.tag in _SILENT or element.tag in _FURNITURE) and not titled:
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


def _is_menu(furniture: Element) -> bool:
    targets = {link.get("href") for link in furniture.iter("a") if normalized_text(link)}
    return len({target for target in targets if target and not target.startswith("#")}) >= _MENU


def _holds_text(furniture: Element) -> bool:
    """Whether a header or footer holds the page's text, as an unclosed one does."""
    paragraphs = (normalized_text(paragraph) for paragraph in furniture.iter("p"))
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
    found = [element.text or ""]
    for child in element:
        if isinstance(child.tag, str) and child.tag not in _SILENT:
            found += _texts(child)
        found.append(child.tail or "")
    return [folded for text in found if (folded := " ".join(text.split()))]


def _runs(script: Element) -> bool:
    kind = (script.get("type") or "").strip().lower()
    return kind in ("", "module", "text/javascript", "application/javascript")
