"""Convert HTML pages to Markdown, and measure the fidelity."""

import re
import tomllib
from collections.abc import Iterator
from itertools import dropwhile
from pathlib import Path
from typing import Any
from urllib.parse import quote

from lxml import etree
from lxml.html import HtmlMixin

from kbkit.text.markdown.writing import resolve

Element = Any  # lxml ships no types

NAMES = {
    kind: frozenset(names.split())
    for kind, names in tomllib.loads(
        Path(__file__).with_name("names.toml").read_text("utf-8")
    ).items()
}
BLOCKS = NAMES["blocks"]
HEADINGS = {f"h{level}": level for level in range(1, 7)}
PREFORMATTED = frozenset({"pre", "listing", "xmp", "plaintext"})
WORD = re.compile(r"\w+")
LINKED = 0.5  # minimum share of linked words in a menu
SITE_LINKS = 3  # minimum links of a menu

_HEADING = re.compile(r"<(/?)h([1-6])(?=[\s/>])", re.IGNORECASE)
# HTTP headers of a response that was saved whole
HTTP_HEAD = re.compile(r"\A\s*(?:[A-Za-z][\w-]*:[^\n<]*\n)+\s*(?=<!doctype|<html)", re.IGNORECASE)
# characters that lxml does not write, and their references
_CONTROL = re.compile("[\x00-\x08\x0b\x0e-\x1f\x7f\ufffe\uffff]")
_CONTROL_REFERENCE = re.compile(
    r"&#(?:0*(?:[1-8]|1[124-9]|2\d|3[01]|6553[45])(?!\d)"
    r"|x0*(?:[1-8bcef]|1[\da-f]|fff[ef])(?![\da-f]));?",
    re.IGNORECASE,
)


def parse(text: str) -> Element | None:
    """Parse a page as leniently as browsers do; return ``None`` if it is not HTML."""
    text = _CONTROL_REFERENCE.sub("", _CONTROL.sub("", text.replace("\f", " ")))
    data = _close_headings(text).encode("utf-8", "replace")
    # lxml.html is slower: it calls Python for each element
    parser = etree.HTMLParser(encoding="utf-8", remove_comments=True, remove_pis=True)
    try:
        root = etree.fromstring(data, parser)
    except (etree.LxmlError, ValueError):
        return None
    if root is not None:
        _close_head(root)
    return root


def _close_headings(text: str) -> str:
    """Let the end tag of any heading end the open one, as HTML does and libxml2 does not."""
    level = ""

    def closed(tag: re.Match[str]) -> str:
        nonlocal level
        if not tag[1]:
            level = tag[2]
            return tag[0]
        open_level, level = level, ""
        return f"</h{open_level or tag[2]}"

    return _HEADING.sub(closed, text)


def _close_head(root: Element) -> None:
    """Move the first element that a head cannot hold, and all after it, into the body.

    HTML ends an unclosed head there; libxml2 leaves ``main`` and ``article`` in it.
    """
    head = root.find("head")
    is_head_tag = NAMES["head_tags"].__contains__
    strays = [] if head is None else list(dropwhile(lambda part: is_head_tag(part.tag), head))
    if not strays:
        return
    body = root.find("body")
    if body is None:
        body = etree.SubElement(root, "body")
    strays[-1].tail = (strays[-1].tail or "") + (body.text or "")
    body.text = None
    for index, stray in enumerate(strays):
        body.insert(index, stray)


def drop_tree(element: Element) -> None:
    """Remove an element from its tree, but not its tail."""
    if element.getparent() is not None:
        HtmlMixin.drop_tree(element)
        element.tail = None


def classes(element: Element) -> list[str]:
    return (element.get("class") or "").split()


def plain_text(element: Element) -> str:
    return " ".join("".join(element.itertext()).split())


def spaced_text(element: Element) -> str:
    """Return the text with a space between elements, so that words do not join."""
    return " ".join(element.itertext())


def fold(text: str) -> str:
    return f" {' '.join(WORD.findall(text.lower()))} "


def texts_of(element: Element) -> Iterator[tuple[Element, bool, str]]:
    """Yield each part of an element at its start and its end, with the text that follows."""
    for event, part in etree.iterwalk(element, events=("start", "end")):
        begins = event == "start"
        text = part.text if begins else part.tail if part is not element else ""
        yield part, begins, text or ""


def linked_share(element: Element) -> float:
    """Return the share of an element's words in links, 0 to 1; 1 if it has no words."""
    total = len(plain_text(element).split())
    linked = sum(len(plain_text(link).split()) for link in element.iter("a"))
    return linked / total if total else 1.0


def links(root: Element) -> Iterator[str]:
    for element in root.iter("a", "area", "frame", "iframe"):
        href = element.get("href") if element.tag in ("a", "area") else element.get("src")
        if href and "nofollow" not in (element.get("rel") or "").lower().split():
            yield href


def resolve_link(base: str, href: str) -> str:
    """Resolve a page's link; ``""`` if it is malformed."""
    try:
        return resolve(base, href)
    except ValueError:
        return ""


def web_address(base: str, href: str | None) -> str:
    """Resolve a page's link; ``""`` if it does not lead to a page."""
    url = resolve_link(base, href.strip()[:4_000]) if href else ""
    return url if url.startswith(("http://", "https://")) else ""


SELF_LINKS = NAMES["self_links"]
_SELF_LINK_TEXTS = frozenset(
    {"", "#", "¶", "§", "🔗", "link", "permalink", "anchor", "\uf0c1", "∞", "^", "↑", "↩"}
)
_LABEL_WORDS = 3  # maximum words of a label beside a heading
_LEVELS = 5  # of blocks around a heading that it may open
_NAME_WORDS = 60  # maximum words of a signature
_SIGNATURE = 400  # the same for a signature with a permalink
_AROUND = frozenset({"section", "div", "article", "header", "hgroup", "main", "ul", "li"})
_DEFINES = frozenset({"def", "definition", "defn"})
_NAME = re.compile(r"(?:^|[-_])(?:heading|signature)(?:$|[-_])", re.IGNORECASE)
"""Class names of block titles."""
_NOT_IN_ANCHORS = re.compile("[{}<>\"'`\\s]")


def is_self_link(link: Element) -> bool:
    """Whether a link is the permalink of a heading or term (pilcrow, hash, chain)."""
    if names_place(link):
        return False
    if _has_permalink_class(link) or link.get("aria-hidden") == "true":
        return not names_its_place(link)
    return "#" in (link.get("href") or "") and is_mark(link)


def _has_permalink_class(link: Element) -> bool:
    return not SELF_LINKS.isdisjoint(name.lower() for name in classes(link))


def names_its_place(link: Element) -> bool:
    """Whether a permalink is text: the whole heading or term, or around its own target."""
    if is_mark(link) or not _has_permalink_class(link):
        return False
    target = (link.get("href") or "").partition("#")[2]
    if target and any(inner.get("id") == target for inner in link.iterdescendants()):
        return True
    inline = ("span", "div", "code", "b", "strong")
    holder = next(ancestor for ancestor in link.iterancestors() if ancestor.tag not in inline)
    return holder.tag in (*HEADINGS, "dt") and plain_text(holder) == plain_text(link) != ""


def is_mark(link: Element) -> bool:
    text = (link.text or "").strip(" \t\r\n\xa0\ufe0e\ufe0f")
    return len(link) == 0 and text.lower() in _SELF_LINK_TEXTS


def names_place(link: Element) -> bool:
    return bool(link.get("id") or link.get("name"))


def places(element: Element) -> set[str]:
    return {part.get("id") or part.get("name") or "" for part in element.iter()} - {""}


def targets(element: Element) -> set[str]:
    return {(link.get("href") or "").partition("#")[2] for link in element.iter("a")}


def self_links(body: Element) -> dict[Element, str]:
    """Map headings and terms to the targets of their permalinks; call before cleaning."""
    anchors: dict[Element, str] = {}
    for link in body.iter("a"):
        page, _, target = (link.get("href") or "").partition("#")
        if page or not target or not (is_self_link(link) or _has_permalink_class(link)):
            continue
        holder = block = link.getparent()
        while holder is not None and holder.tag in ("span", "div", "a", "code"):
            block = holder if holder.tag == "div" and block.tag != "div" else block
            holder = holder.getparent()
        if holder is not None and (holder.tag in HEADINGS or holder.tag == "dt"):
            anchors.setdefault(holder, target)
        elif block.tag == "div" and _introduces(block):
            anchors.setdefault(block, target)
        elif block.get("id") == target and is_mark(link):
            # a permalink after the signature that opens its block
            title = link.getprevious()
            if title is not None and title.tag == "div" and _is_short(title, _SIGNATURE):
                anchors.setdefault(title, target)
    for block, target in _named_blocks(body):
        anchors.setdefault(block, target)
    return anchors


def _named_blocks(body: Element) -> Iterator[tuple[Element, str]]:
    for block in body.iter("div"):
        if not any(map(_NAME.search, classes(block))) or not _is_short(block):
            continue
        outer, is_only_child = block, True
        while outer.getprevious() is None and (parent := outer.getparent()) is not None:
            if (parent.text or "").strip() or parent.tag not in ("div", "section", "article"):
                break
            is_only_child = is_only_child and outer.getnext() is None
            if parent.get("id"):
                if not is_only_child:
                    yield block, parent.get("id")
                break
            outer = parent
    for link in body.iter("a", "dfn", "span"):
        block = link.getparent()
        if block.tag in ("p", "div") and link.get("id") and _DEFINES & set(classes(link)):
            is_first = link.getprevious() is None or not plain_text(link.getprevious())
            if _is_short(block) and (is_first or not block.text):
                yield block, link.get("id")


def _introduces(block: Element) -> bool:
    if any("caption" in name.lower() for name in classes(block)):
        return False
    befores = block.itersiblings(preceding=True)
    if any(not _is_empty(part) or not _place(part) for part in befores) or block.getnext() is None:
        return False
    in_cell = next(block.iterancestors("td", "th", "li", "dd"), None) is not None
    return not in_cell and _is_short(block)


def _is_short(block: Element, limit: int = _NAME_WORDS) -> bool:
    nested = next(block.iterdescendants(*BLOCKS), None) is not None
    return not nested and len(plain_text(block).split()) <= limit


def anchor(element: Element, own: dict[Element, str]) -> str:
    """Return the fragment of a heading or term, or ``""``.

    In this order: its id, the id of an inner element, the target of its permalink, an empty anchor
    right before it, the id of the section that it opens.
    """
    inner_names = map(_own_name, element.iter("a", "span"))
    name = element.get("id") or own.get(element) or next(filter(None, inner_names), "")
    return valid_anchor(name) or _around(element)


def _own_name(element: Element) -> str:
    return element.get("id") or (element.get("name") if element.tag == "a" else "") or ""


def opening_anchor(element: Element) -> str:
    """Return the fragment of a paragraph or list item, or ``""``: its id, or that of its start."""
    own_anchor = valid_anchor(element.get("id") or "")
    inner = element
    while not own_anchor and not (inner.text or "").strip() and len(inner):
        inner = inner[0]
        if inner.tag not in ("a", "span", "p", "dfn", "b", "strong", "code"):
            break
        target = inner.get("href") or ""
        if target and target != f"#{inner.get('id')}":
            break  # a reference; its id is the target of the back link
        own_anchor = valid_anchor(_own_name(inner))
    return own_anchor


def _around(element: Element) -> str:
    nearest_anchor = ""
    for level in range(_LEVELS):
        previous = element.getprevious()
        while previous is not None and (_is_empty(previous) or _is_label(previous)):
            # an empty block before the parent of a heading may belong to a script
            marks = not _is_label(previous) and (level == 0 or previous.tag in ("a", "span"))
            nearest_anchor = nearest_anchor or (_place(previous) if marks else "")
            previous = previous.getprevious()
        parent = element.getparent()
        if previous is not None or parent is None or (parent.text or "").strip():
            break
        if parent.tag not in _AROUND:
            break
        if identity := valid_anchor(parent.get("id") or ""):
            return identity
        element = parent
    return nearest_anchor


def _is_empty(element: Element) -> bool:
    text = "".join(element.itertext()) + (element.tail or "")
    is_bare = element.tag in ("a", "span", "p", "div", "i") and not text.strip()
    return is_bare and next(element.iter("img", "table", "hr"), None) is None


def _is_label(element: Element) -> bool:
    """Whether an element before a heading is a label, such as a source link."""
    words = plain_text(element).split() if element.tag in ("a", "span", "button") else []
    return 0 < len(words) <= _LABEL_WORDS and not (element.tail or "").strip()


def _place(element: Element) -> str:
    names = (valid_anchor(inner.get("id") or inner.get("name") or "") for inner in element.iter())
    return next(filter(None, names), "")


def valid_anchor(identity: str) -> str:
    identity = identity.strip()
    invalid = not identity or len(identity) > 200
    return "" if invalid else _NOT_IN_ANCHORS.sub(lambda match: quote(match[0]), identity)
