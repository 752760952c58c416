"""Find the content region of a page, and ordinary articles.

trafilatura's selection becomes an element of the tree. It is slow and the pages of a site share a
template, so its selections on the first pages are generalized to the others.
"""

import re
import zlib
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice, takewhile

from lxml import etree

from kbkit.sources import html
from kbkit.sources.html import BLOCKS, HEADINGS, Element, classes, plain_text
from kbkit.sources.html.inline import lines_of_code

Signature = tuple[str, str, str, str]  # tag, id, class and role of an element

COVERED = 0.9  # share of the selected words that the content element must hold
_CONTAINERS = frozenset({"div", "section", "article", "main", "header", "footer", "center", "form"})
_TEXTS = frozenset({"p", "pre", "code", "ul", "ol", "table"})
_SHORT = 6_000  # maximum characters of a block of the template


@dataclass(frozen=True, slots=True)
class Region:
    """Identity of the content element on pages of one template."""

    signature: Signature
    parent: Signature


def word_counts(element: Element) -> Counter[str]:
    return Counter(html.WORD.findall(html.spaced_text(element)))


def enclosing_element(body: Element, selected: str) -> Element:
    selected_words = Counter(html.WORD.findall(selected))
    need = selected_words.total() * COVERED
    element = body
    while element is not None:
        outer = element
        children = (part for part in outer if part.tag not in _TEXTS and not lines_of_code(part))
        covers = (part for part in children if (selected_words & word_counts(part)).total() >= need)
        element = next(covers, None)
    return outer


def region_of(element: Element) -> Region:
    parent = element.getparent()
    return Region(_signature(element), _signature(parent) if parent is not None else ("",) * 4)


def ancestry(element: Element) -> tuple[Region, ...]:
    """Return the element and its ancestors up to the body, innermost first: a page's vote."""
    ancestors = (element, *element.iterancestors())
    return tuple(region_of(ancestor) for ancestor in ancestors if ancestor.tag != "html")


def find_region(body: Element, region: Region) -> Element | None:
    if region.signature[0] == "body":
        return body
    same = (part for part in body.iter(region.signature[0]) if _signature(part) == region.signature)
    is_in_body = region.parent[0] == "body"
    matches = [part for part in same if is_in_body or region_of(part) == region]
    if len(matches) != 1:
        return None
    match = matches[0]
    title = next(filter(plain_text, body.iter("h1")), None)
    if title is None or match in title.iterancestors() or region_of(match) == region:
        return match
    # other pages are such sections; this one may hold it after a title and a text of its own
    sections = takewhile(lambda up: up is not body, match.iterancestors())
    return next((up for up in sections if plain_text(up).startswith(plain_text(title))), match)


def landmark(element: Element, body: Element) -> Element:
    """Return the landmark around an element if it adds little, else the element.

    ``main``, ``article`` or ``role`` correct a selection that is one level too deep.
    """
    inner_words = word_counts(element).total()
    best = element
    for ancestor in takewhile(lambda ancestor: ancestor is not body, element.iterancestors()):
        marked = (
            ancestor.tag in ("main", "article")
            or ancestor.get("role") in ("main", "article")
            or (ancestor.get("id") or "").lower() in html.NAMES["landmarks"]
            or ancestor.get("itemprop") == "articleBody"
            # the page's own heading belongs to its content
            or (next(best.iter("h1"), None) is None and next(ancestor.iter("h1"), None) is not None)
        )
        if word_counts(ancestor).total() > inner_words * 1.25 + 25:
            break
        if marked:
            best = ancestor
    return best


def widen(region: Element, body: Element, common: Collection[int]) -> Element:
    """Extend a region by neighbours that are neither menus nor shared by most pages.

    For sites without a common region: from a page that is mostly a list, trafilatura may select the
    list without its heading and notes.
    """
    outer = region
    while outer is not body and (parent := outer.getparent()) is not None:
        names = classes(outer)
        siblings = [part for part in parent if part is not outer and plain_text(part)]
        unshared = [part for part in siblings if key_of(_short_text(part)) not in common]
        # a section of the same class is no menu, even if it only has references
        others = (part for part in unshared if not names or classes(part) != names)
        if any(html.linked_share(part) >= html.LINKED for part in others):
            break
        outer = parent
        if unshared:
            region = outer
    return region


def add_index(region: Element) -> None:
    """Move a list of links into the region before it that has its letters, in place."""
    following = region.getnext()
    if following is None or html.linked_share(following) < html.LINKED:
        return
    if len(html.targets(region) & html.places(following)) >= html.SITE_LINKS:
        region.append(following)


_MAIN_ROLES = etree.XPath("descendant::*/@role[.='main']/..")


def narrow(region: Element, common: Collection[int]) -> Element:
    """Return the page's declared main part, if the rest of its region is menus or shared."""
    marked = list(region.iterdescendants("main")) or _MAIN_ROLES(region)
    if not marked or any(marked[0] not in child.iterancestors() for child in marked[1:]):
        return region
    inner = marked[0]
    while inner is not region:
        parent = inner.getparent()
        texts = [parent.text, *(child.tail for child in parent)]
        siblings = [child for child in parent if child is not inner and plain_text(child)]
        unshared = (child for child in siblings if key_of(_short_text(child)) not in common)
        if any(text and text.strip() for text in texts) or any(
            html.linked_share(child) < html.LINKED for child in unshared
        ):
            return region
        inner = parent
    return narrow(marked[0], common)


def block_keys(body: Element) -> frozenset[int]:
    keys = {key_of(text) for text in map(_short_text, body.iter(*BLOCKS)) if text}
    return frozenset(keys) | {heading_key(plain_text(head)) for head in body.iter("h1")}


def heading_key(text: str) -> int:
    """Hash a heading of level 1, which needs a larger share to count as the template's."""
    return -key_of(text)


def key_of(text: str) -> int:
    """Hash a text, the same in every process."""
    return zlib.crc32(text.encode("utf-8", "replace"))


def _short_text(block: Element) -> str:
    text = ""
    for piece in block.itertext():
        text += piece
        if len(text) > 2 * _SHORT:
            return ""
    text = " ".join(text.split())
    return text if len(text) <= _SHORT else ""


def trim(region: Element, common: Collection[int], body: Element) -> None:
    """Remove shared text from both ends of a region, in place."""
    if common and region is not body:
        menus = {
            key_of(_short_text(menu))
            for menu in body.iter("ul", "ol")
            if region not in menu.iterancestors()
        }
        common = set(common) - menus
    for from_end in (False, True) if common else ():
        shared_blocks: list[Element] = []
        stop = _outermost(region, common, shared_blocks, from_end=from_end)
        if from_end and shared_blocks and stop is not None and stop.tag in HEADINGS:
            # sections may end with the same text on every page
            section = shared_blocks[-1].getparent()
            shared_blocks = [block for block in shared_blocks if block.getparent() is not section]
        for block in shared_blocks:
            html.drop_tree(block)


def _outermost(
    element: Element, common: Collection[int], shared_blocks: list[Element], *, from_end: bool
) -> Element | None:
    begins_with_text = bool((element.text or "").strip())
    if (begins_with_text and not from_end) or lines_of_code(element) is not None:
        return element
    for child in list(element)[:: -1 if from_end else 1]:
        tail = (child.tail or "").strip()
        if from_end and tail:
            return element
        has_heading = next(child.iter(*HEADINGS), None) is not None
        text = "" if has_heading else _short_text(child)
        if text and key_of(text) in common:
            shared_blocks.append(child)
        elif child.tag in _CONTAINERS or (from_end and _is_row(child)):
            if (stop := _outermost(child, common, shared_blocks, from_end=from_end)) is not None:
                return stop
        elif text or plain_text(child):
            return child
        if tail:
            return element
    return element if begins_with_text else None


def _is_row(element: Element) -> bool:
    if element.tag == "table":
        return len(element.findall(".//tr")) == 1
    return element.tag in ("tbody", "tr", "td")


def _signature(element: Element) -> Signature:
    if element.tag == "body":
        # attributes of the body belong to the page, not the template
        return ("body", "", "", "")
    names = " ".join(sorted(classes(element)))
    return (element.tag, element.get("id") or "", names, element.get("role") or "")


# Pages of documentation share a template, which separates content from boilerplate. The text of a
# single article has teasers, forms and comments in it, which only trafilatura's extract leaves out.
# That extract has no emphasis, and its links are at the end. On other pages it would lose short
# paragraphs, headings and code.
_LOST = 0.1  # share of the words under headings that the extract of a site's page may lose
_LOST_ALONE = 0.6  # the same for a single page, where no template separates teasers from text
_PLACES = 6  # minimum links to its own anchors of a page that looks like a manual
_KEPT_WORDS = 20  # minimum words of an extract that is trusted
_TYPE = re.compile(r'"@type"\s*:\s*\[?\s*"(?:\w*Article|\w*BlogPosting|Report)"')
_TYPES = re.compile(r"(?:Article|BlogPosting)$")
_DECLARED = etree.XPath(
    "boolean(//*[@itemprop='articleBody' or @itemprop='author']"
    " | //*[@rel='author'][not(self::link and starts-with(@href, 'mailto:'))]"  # a maintainer
    " | //meta[starts-with(@property, 'article:') or starts-with(@name, 'article:')]"
    " | //meta[@property='og:type' or @name='og:type'][contains(@content, 'article')])"
)
_ARTICLE_NAMES = html.NAMES["article"]
_GENERATORS = etree.XPath("//meta[@name='generator' or @name='GENERATOR']/@content")
_MANUAL_TOOLS = re.compile(
    "docbook|asciidoc|docutils|pandoc|linuxdoc|latex2html|tex4ht|texi2|makeinfo", re.IGNORECASE
)
"""Generators whose title pages name the author of a manual."""
_LEADS = frozenset({"p", "div", "section", "h2", "h3"})
_LEAD_WORDS = 8  # minimum words; bylines and dates have fewer
_MAX_LEAD = 50  # blocks examined
_LONG_WORD = re.compile(r"[^\W\d_]{2,}")


def is_stated(root: Element) -> bool:
    """Whether an uncleaned page declares itself an article: by metadata, byline or comments."""
    data = (script.text or "" for script in root.xpath("//script[contains(@type, 'ld+json')]"))
    if _DECLARED(root) or any(map(_TYPE.search, data)):
        return True
    if any(map(_MANUAL_TOOLS.search, _GENERATORS(root))):
        return False
    return any(
        _TYPES.search(element.get("itemtype") or "")
        or not _ARTICLE_NAMES.isdisjoint((element.get("class") or "").lower().split())
        or (element.get("id") or "").lower() in _ARTICLE_NAMES
        for element in root.iter()
        # in lists and tables, such fields name the author of a manual
        if element.tag not in ("dt", "dd", "th", "td", "tr")
    )


def is_article(
    body: Element,
    region: Element,
    selected: str,
    own: dict[Element, str],
    *,
    stated: bool,
    alone: bool,
) -> bool:
    if len(html.WORD.findall(selected)) < _KEPT_WORDS or not (stated or alone):
        return False
    if _is_documentation(body, region, selected, own, stated=stated):
        return False
    return (stated and alone) or _lost_share(region, selected) <= (_LOST_ALONE if alone else _LOST)


def _is_documentation(
    body: Element, region: Element, selected: str, anchors: dict[Element, str], *, stated: bool
) -> bool:
    if anchors or any(term.get("id") for term in region.iter("dt")):
        return True
    text = "".join(selected.split())
    for pre in region.iter("pre", "listing", "xmp"):
        if not stated or "".join("".join(pre.itertext()).split()) not in text:
            return True
    return not stated and len(html.places(region) & html.targets(body)) >= _PLACES


def _lost_share(region: Element, selected: str) -> float:
    words: list[str] = []
    in_section = False
    linked = 0
    for part, begins, text in html.texts_of(region):
        in_section = in_section or part.tag in HEADINGS
        linked += (part.tag == "a") * (1 if begins else -1)
        if in_section and not linked:
            words += html.WORD.findall(text)
    missing = Counter(words) - Counter(html.WORD.findall(selected))
    return missing.total() / max(1, len(words))


def complete(
    tree: Element, region: Element, selected: str, own: dict[Element, str], tabs: Sequence[Element]
) -> None:
    """Add anchors of headings, labels of tabs and links that trafilatura left out, in place."""
    if tabs:
        _restore_labels(tree, tabs)
    fragments = {plain_text(head): html.anchor(head, own) for head in region.iter(*HEADINGS)}
    for heading in tree.iter(*HEADINGS):
        if fragment := fragments.get(plain_text(heading)):
            heading.set("id", fragment)
    text = html.fold(selected)
    is_selected = cache(lambda block: html.fold(plain_text(block)) in text)
    links: dict[str, str] = {}
    for link in region.iter("a"):
        block = next((up for up in link.iterancestors() if up.tag in BLOCKS), None)
        href, link_text = link.get("href"), plain_text(link)
        if href and link_text and block is not None and is_selected(block):
            links.setdefault(href, link_text)
    link_list = etree.SubElement(tree, "ul")
    for href, link_text in links.items():
        etree.SubElement(etree.SubElement(link_list, "li"), "a", href=href).text = link_text


def restore_lead(tree: Element, body: Element, title: Element | None, selected: str) -> None:
    """Insert the paragraphs between title and selected text, which trafilatura leaves out."""
    text = html.fold(selected)
    title = next(body.iter("h1"), None) if title is None else title
    lead: list[Element] = []
    for block, words in islice(_blocks_after(title, body), _MAX_LEAD):
        if html.fold(words) in text:
            tree[:0] = lead
            return
        if _is_prose(block, words):
            lead.append(etree.Element("p"))
            lead[-1].text = words


def _blocks_after(title: Element | None, body: Element) -> Iterator[tuple[Element, str]]:
    past_title = title is None
    for element in body.iter(etree.Element):
        if past_title and element.tag in _LEADS and not any(part.tag in BLOCKS for part in element):
            text = plain_text(element)
            if len(_LONG_WORD.findall(text)) >= _LEAD_WORDS:
                yield element, text
        past_title = past_title or element is title


def _is_prose(element: Element, text: str) -> bool:
    linked = sum(len(plain_text(link)) for link in element.iter("a"))
    beside = element.iterancestors("figure", "nav", "aside", "footer", "form")
    return linked < len(text) / 3 and next(beside, None) is None


def _restore_labels(tree: Element, tabs: Sequence[Element]) -> None:
    blocks: dict[str, Element] = {}
    for block in tree.iterdescendants(etree.Element):
        blocks.setdefault(plain_text(block), block)
    for label in tabs:
        panel = label.getnext()
        parts = () if panel is None else panel.iter(etree.Element)
        texts = (text for part in parts if (text := plain_text(part)))
        if (first := next((blocks[text] for text in texts if text in blocks), None)) is not None:
            paragraph = etree.Element("p")
            etree.SubElement(paragraph, "strong").text = plain_text(label)
            first.addprevious(paragraph)
