"""Convert inline HTML to Markdown: links, code, emphasis, pictures, formulas."""

from __future__ import annotations

import re

from kbkit.sources.html import BLOCKS, Element, classes, normalized_text
from kbkit.text.markdown.writing import (
    BREAK,
    SPACE,
    code_span,
    escape,
    folded,
    formula,
    inline_math,
    marked,
    safe_url,
)

_SEPARATORS = frozenset({"sep", "separator", "divider"})  # drawn by style sheets
_EMPHASIS = {"em": "*", "i": "*", "cite": "*", "var": "*", "dfn": "*", "strong": "**", "b": "**"}
_PICTURE = re.compile(r"\.(?:png|jpe?g|gif|svg|webp|avif)(?:\?[^/]*)?$", re.IGNORECASE)
_CODE = frozenset({"code", "tt", "kbd", "samp"})


class InlineWriter:
    """Writes inline elements of one page."""

    def __init__(self, base: str, *, relative: bool = False) -> None:
        self._base = base
        self._relative = relative
        self._plain = False  # inside a heading or term: no emphasis
        self._linkless = False  # no links either
        self._place: str | None = None  # anchor of the current heading; links to it are dropped
        self._in_link = False
        self._emphasis: set[str] = set()

    def line(self, element: Element, *, place: str | None = None) -> str:
        before = self._linkless, self._plain, self._place
        linkless = self._linkless or (place is not None and _leads_back(element))
        self._linkless, self._plain, self._place = linkless, True, place
        text = folded(self._children(element)).replace("  \n", " ")
        self._linkless, self._plain, self._place = before
        return text

    def signature(self, element: Element, place: str) -> str:
        spans: Spans = []
        _spans(element, None, spans)
        # a part may lead to this place, such as the name of a constant in its value
        own = place if sum(bool(text.strip()) for text, _ in spans) == 1 else None
        written = [
            (SPACE.sub(" ", text).replace("( ", "("), self._target(href, own))
            for text, href in spans
        ]
        whole = "".join(text for text, _ in written).rstrip("¶# ").strip()
        if any(href and text.strip() for text, href in written):
            return self._code(spans, own).strip()
        # brackets of optional parameters look like links
        return code_span(whole) if escape(whole) != whole or "[" in whole else whole

    def write(self, element: Element) -> str:
        """Write an inline element with its content."""
        tag = element.tag
        if tag == "br":
            return BREAK
        if tag == "a":
            return self._link(element)
        if tag in _CODE:
            return self._code_span(element)
        if tag in _EMPHASIS and not self._plain:
            return self._emphasised(element, _EMPHASIS[tag])
        if tag == "img":
            return self.image(element)
        if tag == "math":
            return inline_math(element)
        if tag == "rt" and next(element.getparent().iter("rp"), None) is None:
            return f"({self._children(element)})"
        if tag == "span" and "math" in classes(element):
            text = formula(normalized_text(element))
            return f"${text}$" if text else ""
        if tag == "sup":
            text = self._children(element)
            bare = re.fullmatch(r"\s*[-+]?\w{1,3}\s*", text)
            return "^" + text.strip() if bare else text
        if tag == "span" and len(element) == 0 and not element.text:
            return "" if _SEPARATORS.isdisjoint(classes(element)) else " "
        if tag == "span" and "classifier" in classes(element):
            return self._classifier(element)
        if tag == "q":
            return f"“{self._children(element)}”"
        return self._children(element)

    def _classifier(self, element: Element) -> str:
        before = element.getprevious()
        drawn = before is not None and "classifier-delimiter" in classes(before)
        return ("" if drawn else " : ") + self._children(element)

    def image(self, element: Element) -> str:
        alt = SPACE.sub(" ", element.get("alt") or "").strip()
        if not alt and not self._relative:
            return ""
        alt = re.sub(r"(?<!\\)([\[\]])", r"\\\1", escape(alt))
        url = self._safe(element.get("src") or "")
        if not url or self._plain or (self._in_link and not self._relative):
            return alt
        return f"![{alt}]({url})"

    def _children(self, element: Element) -> str:
        pieces = [self._text(element.text)] if element.text else []
        for child in element:
            if child.tag == "a":
                escape_bang(pieces)
            if isinstance(child.tag, str):
                if child.tag in BLOCKS:
                    pieces.append(" ")
                pieces.append(self.write(child))
                if child.tag in BLOCKS:
                    pieces.append(" ")
            if child.tail:
                pieces.append(self._text(child.tail))
        return "".join(pieces)

    def _text(self, text: str) -> str:
        text = escape(text)
        if self._in_link:
            text = re.sub(r"(?<!\\)([\[\]])", r"\\\1", text)
        return text

    def _code_span(self, element: Element) -> str:
        before = element.getprevious()
        if before is not None and before.tag in _CODE and not before.tail:
            return ""  # written with the code before
        parts = _adjacent_codes(element)
        linked = any(next(part.iter("a"), None) is not None for part in parts)
        if self._linkless or self._in_link or not linked:
            raw = "".join(map(_raw, parts))
            return code_span(raw) or (" " if raw else "")
        spans: Spans = []
        for part in parts:
            _spans(part, None, spans)
        return self._code(spans, self._place)

    def _code(self, spans: Spans, place: str | None) -> str:
        written = (
            f"{text[:1].isspace() * ' '}{self._linked(code_span(text), href, place)}"
            f"{text[-1:].isspace() * ' '}"
            if text.strip()
            else " "
            for text, href in spans
        )
        return "".join(written)

    def _link(self, element: Element) -> str:
        if self._in_link or self._linkless:
            return self._children(element)
        if _PICTURE.search(element.get("href") or "") and not normalized_text(element):
            return self._children(element)  # a preview that links to its picture
        self._in_link = True
        text = folded(self._children(element), strip=False)
        self._in_link = False
        return self._linked(text, element.get("href"), self._place)

    def _target(self, href: str | None, place: str | None) -> str:
        url = self._safe(href) if href else ""
        if place is None:
            return url
        page, _, fragment = url.partition("#")
        return "" if page == self._base.partition("#")[0] and fragment in ("", place) else url

    def _linked(self, text: str, href: str | None, place: str | None = None) -> str:
        inner = text.strip()
        if not inner or not href or self._linkless or self._in_link:
            return text
        url = self._target(href, place)
        if not url:
            return text
        before = " " if text[0].isspace() else ""
        after = " " if text[-1].isspace() else ""
        if inner.startswith("^"):
            inner = f"\\{inner}"  # some readers take [^ for a footnote
        return f"{before}[{inner}]({url}){after}"

    def _safe(self, href: str) -> str:
        return safe_url(href, self._base, relative=self._relative) if href else ""

    def _emphasised(self, element: Element, mark: str) -> str:
        if mark in self._emphasis:
            return self._children(element)
        self._emphasis.add(mark)
        text = self._children(element)
        self._emphasis.discard(mark)
        inner = text.strip(" \t\r\n\xa0" + BREAK)
        if not inner:
            return text
        before, _, after = text.partition(inner)
        return f"{before}{marked(inner, mark)}{after}"


def _leads_back(heading: Element) -> bool:
    link = next(heading.iter("a"), None)
    return (
        link is not None
        and (link.get("href") or "").startswith("#")
        and normalized_text(link) == normalized_text(heading)
    )


def escape_bang(pieces: list[str]) -> None:
    """Escape an exclamation mark before a link, which would make it a picture; in place."""
    if pieces and pieces[-1].endswith("!"):
        pieces[-1] = f"{pieces[-1][:-1]}\\!"


def _adjacent_codes(code: Element) -> list[Element]:
    codes = [code]
    while not codes[-1].tail:
        following = codes[-1].getnext()
        if following is None or following.tag not in _CODE:
            break
        codes.append(following)
    return codes


Spans = list[tuple[str, str | None]]


def _raw(element: Element) -> str:
    for line_break in element.iterdescendants("br"):
        if not (line_break.tail or "").startswith((" ", "\n")):
            line_break.tail = " " + (line_break.tail or "")
    return "".join(element.itertext())


def _spans(element: Element, href: str | None, out: Spans) -> None:

    def add(text: str | None, href: str | None) -> None:
        if text and out and out[-1][1] == href:
            out[-1] = (out[-1][0] + text, href)
        elif text:
            out.append((text, href))

    add(element.text, href)
    for child in element:
        if isinstance(child.tag, str):
            _spans(child, child.get("href") or href if child.tag == "a" else href, out)
        add(child.tail, href)
