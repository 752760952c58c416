"""Find the content region of a page, and the template of its site.

trafilatura's selection becomes an element of the tree. It is slow and the pages of a site share a
template, so its selections on the first pages are generalized to the others.
"""

from __future__ import annotations

import re
import zlib
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field
from itertools import takewhile

from kbkit.sources.html import BLOCKS, HEADINGS, Element, drop_tree, linked_share, normalized_text

Signature = tuple[str, str, str, str]  # tag, id, class and role of an element

COVERED = 0.9  # share of the selected words that the content element must hold
LEARNED_FROM = 8  # pages that vote before a template is trusted
_AGREED = 0.5  # share of the votes that a template needs
_LANDMARK_IDS = frozenset(
    {"content", "main-content", "main", "apicontent", "bodycontent", "mw-content-text"}
)
_WORD = re.compile(r"\w+")
_MIN = 3  # fewest pages from which a small site's template is learned
_SHARED, _SHARED_PAGES = 0.5, 4  # least share and number of pages with a text of the template
_HEADED = 0.75  # the same share for headings of level 1
_CONTAINERS = frozenset({"div", "section", "article", "main", "header", "footer", "center", "form"})
_SHORT = 600  # most characters of a block of the template
_LINKED = 0.5  # share of the words of a menu that are links


@dataclass(frozen=True, slots=True)
class Region:
    """Identity of the content element on pages of one template."""

    signature: Signature
    parent: Signature


def word_counts(element: Element) -> Counter[str]:
    return Counter(_WORD.findall(" ".join(element.itertext())))


def enclosing_element(body: Element, selected: str) -> Element:
    selected_words = Counter(_WORD.findall(selected))
    need = sum(selected_words.values()) * COVERED
    element = body
    while True:
        for child in element:
            if not isinstance(child.tag, str) or child.tag in ("p", "pre", "ul", "ol", "table"):
                continue
            if (selected_words & word_counts(child)).total() >= need:
                element = child
                break
        else:
            return element


def region_of(element: Element) -> Region:
    parent = element.getparent()
    return Region(_signature(element), _signature(parent) if parent is not None else ("",) * 4)


def ancestry(element: Element) -> tuple[Region, ...]:
    """Return the element and its ancestors up to the body, innermost first: a page's vote."""
    around = (element, *element.iterancestors())
    return tuple(region_of(each) for each in around if each.tag != "html")


def find_region(body: Element, region: Region) -> Element | None:
    if region.signature[0] == "body":
        return body
    found = [
        element
        for element in body.iter(region.signature[0])
        if _signature(element) == region.signature
        and (region_of(element).parent == region.parent or region.parent[0] == "body")
    ]
    return found[0] if len(found) == 1 else None


def landmark(element: Element, body: Element) -> Element:
    """Return the landmark around an element if it adds little, else the element.

    ``main``, ``article`` or ``role`` correct a selection that is one level too deep.
    """
    inside = sum(word_counts(element).values())
    best = element
    for around in takewhile(lambda up: up is not body, element.iterancestors()):
        marked = (
            around.tag in ("main", "article")
            or around.get("role") in ("main", "article")
            or (around.get("id") or "").lower() in _LANDMARK_IDS
            or around.get("itemprop") == "articleBody"
            # the page's own heading belongs to its content
            or (next(best.iter("h1"), None) is None and next(around.iter("h1"), None) is not None)
        )
        if sum(word_counts(around).values()) > inside * 1.25 + 25:
            break
        if marked:
            best = around
    return best


def widened(region: Element, body: Element, common: Collection[int]) -> Element:
    """Extend a region by neighbours that are neither menus nor shared by most pages.

    For sites without a common region: from a page that is mostly a list, trafilatura may select the
    list without its heading and notes.
    """
    around = region
    while around is not body and (parent := around.getparent()) is not None:
        siblings = [one for one in parent if one is not around and normalized_text(one)]
        own = [one for one in siblings if key_of(_short_text(one)) not in common]
        if any(linked_share(one) >= _LINKED for one in own):
            break
        around = parent
        if own:
            region = around
    return region


def narrowed(region: Element, common: Collection[int]) -> Element:
    """Return the page's declared main part, if the rest of its region is menus or shared."""
    marked = [
        one
        for one in region.iterdescendants("main", "article", "section", "div")
        if one.tag == "main" or one.get("role") == "main"
    ]
    if not marked or any(marked[0] not in one.iterancestors() for one in marked[1:]):
        return region
    inner = marked[0]
    while inner is not region:
        around = inner.getparent()
        texts = [around.text, *(one.tail for one in around)]
        siblings = [one for one in around if one is not inner and normalized_text(one)]
        own = (one for one in siblings if key_of(_short_text(one)) not in common)
        if any(text and text.strip() for text in texts) or any(
            linked_share(one) < _LINKED for one in own
        ):
            return region
        inner = around
    return narrowed(marked[0], common)


def block_keys(body: Element) -> frozenset[int]:
    keys = {key_of(text) for block in body.iter(*BLOCKS) if (text := _short_text(block))}
    return frozenset(keys) | {heading_key(normalized_text(head)) for head in body.iter("h1")}


def heading_key(text: str) -> int:
    """Hash a heading of level 1, which needs a larger share to count as the template's."""
    return -key_of(text)


def key_of(text: str) -> int:
    """Hash a text, the same in every process."""
    return zlib.crc32(text.encode("utf-8", "replace"))


def _short_text(block: Element) -> str:
    pieces: list[str] = []
    size = 0
    for piece in block.itertext():
        size += len(piece)
        if size > 2 * _SHORT:
            return ""
        pieces.append(piece)
    text = " ".join("".join(pieces).split())
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
    for last in (False, True) if common else ():
        same: list[Element] = []
        stop = _outermost(region, common, same, last=last)
        if last and same and stop is not None and stop.tag in HEADINGS:
            # sections may end with the same text on every page
            section = same[-1].getparent()
            same = [block for block in same if block.getparent() is not section]
        for block in same:
            drop_tree(block)


def _outermost(
    element: Element, common: Collection[int], same: list[Element], *, last: bool
) -> Element | None:
    if not last and (element.text or "").strip():
        return element
    for child in list(element)[:: -1 if last else 1]:
        tail = (child.tail or "").strip()
        if last and tail:
            return element
        if isinstance(child.tag, str):
            text = _short_text(child)
            headed = child.tag in HEADINGS or next(child.iter(*HEADINGS), None) is not None
            if text and not headed and key_of(text) in common:
                same.append(child)
            elif child.tag in _CONTAINERS:
                if (stop := _outermost(child, common, same, last=last)) is not None:
                    return stop
            elif text or normalized_text(child):
                return child
        if tail:
            return element
    return element if last and (element.text or "").strip() else None


def _signature(element: Element) -> Signature:
    names = " ".join(sorted((element.get("class") or "").split()))
    identity = element.get("id") or ""
    if element.tag == "body":
        # attributes of the body belong to the page, not the template
        return ("body", "", "", "")
    return (element.tag, identity, names, element.get("role") or "")


@dataclass(slots=True)
class SiteTemplate:
    """Template that pages vote on; `common` are keys (`key_of`) of texts on most pages."""

    regions: tuple[Region, ...] = ()
    common: frozenset[int] = frozenset()
    _votes: list[tuple[Region, ...]] = field(default_factory=list)
    _texts: list[frozenset[int]] = field(default_factory=list)
    _articles: int = 0
    _closed: bool = False

    @property
    def settled(self) -> bool:
        return self._closed or len(self._votes) >= LEARNED_FROM

    def close(self) -> None:
        if not self.settled and len(self._votes) >= _MIN:
            self._closed = True
            self.count()

    def vote(
        self, ballot: tuple[Region, ...], texts: frozenset[int] = frozenset(), article: bool = False
    ) -> None:
        """Count a page's vote: its content element and all ancestors, innermost first."""
        self._votes.append(ballot)
        if not self.settled or len(self._texts) < LEARNED_FROM:
            self._texts.append(texts)
        self._articles += article

    def count(self) -> None:
        """Choose the innermost regions that most pages agree on.

        Other pages, such as indexes, vote again among themselves, so a site may have several
        templates.
        """
        if self._articles > 0.5 * len(self._votes):
            return
        if not self.common:
            keys = Counter(key for texts in self._texts for key in texts)
            pages = len(self._texts)
            self.common = frozenset(
                key
                for key, count in keys.items()
                if count >= max(_SHARED_PAGES, (_HEADED if key < 0 else _SHARED) * pages)
            )
        ballots = list(self._votes)
        chosen = list(self.regions)
        for _ in range(3):
            if len(ballots) < 3:
                break
            counts = Counter(region for ballot in ballots for region in set(ballot))
            need = max(3, _AGREED * len(ballots))
            inner = [votes for region, votes in counts.items() if region.signature[0] != "body"]
            # nearly as many votes as the best region: a few pages always select one level deeper
            need = max(need, 0.9 * max(inner, default=0))
            agreed = [region for region, votes in counts.items() if votes >= need]
            if not agreed:
                break
            places = {
                region: sum(b.index(region) / len(b) for b in ballots if region in b)
                / counts[region]
                for region in agreed
            }
            best = min(agreed, key=lambda region: (places[region], repr(region)))
            if best.signature[0] == "body":
                # the whole body is no template: read each page by itself, unless most pages
                # selected the body
                if counts[best] == len(ballots) and _all_body(ballots):
                    chosen.append(best)
                break
            if best not in chosen:
                chosen.append(best)
            ballots = [ballot for ballot in ballots if best not in ballot]
        self.regions = tuple(chosen[:6])


def _all_body(ballots: list[tuple[Region, ...]]) -> bool:
    direct = sum(ballot[0].signature[0] == "body" for ballot in ballots)
    return direct >= 0.5 * len(ballots)
