"""Which part of a page is its content, and what the pages of one site have in common.

trafilatura decides what is content; here its decision becomes an element of the tree. Since it
is slow and the pages of a site share a template, its verdict on the first pages is generalised
and applied to the rest.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field

from kbkit.sources.html.dom import Element

Signature = tuple[str, str, str, str]
"""Tag, id, class and role: what tells an element from others in a template."""

COVERED = 0.9  # share of the kept words that the content element has to hold
LEARNED_FROM = 8  # pages that vote before a template is trusted
_AGREED = 0.5  # share of the votes that a template needs
_LANDMARK_IDS = frozenset(
    {"content", "main-content", "main", "apicontent", "bodycontent", "mw-content-text"}
)
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Region:
    """What identifies the content element on the pages of one template.

    Attributes:
        signature: Of the element.
        parent: Of the element's parent.
    """

    signature: Signature
    parent: Signature


def word_counts(element: Element) -> Counter[str]:
    """How often each word stands in an element."""
    return Counter(_WORD.findall(" ".join(element.itertext())))


def enclosing_element(body: Element, kept: str) -> Element:
    """The smallest element that holds at least `COVERED` of the words of a text.

    Args:
        body: Where to look.
        kept: The text that trafilatura kept.
    """
    wanted = Counter(_WORD.findall(kept))
    need = sum(wanted.values()) * COVERED
    element = body
    while True:
        for child in element:
            if not isinstance(child.tag, str) or child.tag in ("p", "pre", "ul", "ol", "table"):
                continue
            if (wanted & word_counts(child)).total() >= need:
                element = child
                break
        else:
            return element


def region_of(element: Element) -> Region:
    """What identifies an element in its template."""
    parent = element.getparent()
    return Region(_signature(element), _signature(parent) if parent is not None else ("",) * 4)


def ancestry(element: Element) -> tuple[Region, ...]:
    """The element and everything around it up to the body, innermost first: a page's vote."""
    regions = []
    while element is not None and element.tag not in ("html",):
        regions.append(region_of(element))
        element = element.getparent()
    return tuple(regions)


def find_region(body: Element, region: Region) -> Element | None:
    """The one element of a page that a region means, or ``None``."""
    if region.signature[0] == "body":
        return body
    found = None
    for element in body.iter(region.signature[0]):
        if _signature(element) == region.signature and (
            region_of(element).parent == region.parent or region.parent[0] == "body"
        ):
            if found is not None:
                return None
            found = element
    return found


def landmark(element: Element, body: Element) -> Element:
    """The landmark right around an element, if it adds little; else the element itself.

    A page's author says with ``main``, ``article`` or ``role`` where the content is; that
    mends a decision that went one level too deep.
    """
    inside = sum(word_counts(element).values())
    best = element
    around = element.getparent()
    while around is not None and around is not body:
        marked = (
            around.tag in ("main", "article")
            or around.get("role") in ("main", "article")
            or (around.get("id") or "").lower() in _LANDMARK_IDS
            or around.get("itemprop") == "articleBody"
            # the heading that names the page belongs to its content
            or (next(best.iter("h1"), None) is None and next(around.iter("h1"), None) is not None)
        )
        if sum(word_counts(around).values()) > inside * 1.25 + 25:
            break
        if marked:
            best = around
        around = around.getparent()
    return best


def _signature(element: Element) -> Signature:
    names = " ".join(sorted((element.get("class") or "").split()))
    identity = element.get("id") or ""
    if element.tag == "body":
        # bodies carry the page's own names
        return ("body", "", "", "")
    return (element.tag, identity, names, element.get("role") or "")


@dataclass(slots=True)
class SiteTemplate:
    """What the pages of a site have agreed on; grows with the votes.

    Attributes:
        regions: Content elements to try, most trusted first.
    """

    regions: tuple[Region, ...] = ()
    _votes: list[tuple[Region, ...]] = field(default_factory=list)
    _articles: int = 0

    @property
    def settled(self) -> bool:
        """Whether enough pages have voted."""
        return len(self._votes) >= LEARNED_FROM

    def vote(self, ballot: tuple[Region, ...], *, article: bool = False) -> bool:
        """Take a page's vote: its content element and all around it, innermost first.

        Args:
            ballot: The page's vote.
            article: The page is an ordinary article. Where most pages are, no template is
                trusted, since it would not tell their text from the teasers and forms amid it.

        Returns:
            Whether enough pages have voted.
        """
        if len(self._votes) > 500:
            return True
        self._votes.append(ballot)
        self._articles += article
        if len(self._votes) >= LEARNED_FROM and len(self._votes) % LEARNED_FROM == 0:
            self._count()
        return self.settled

    def _count(self) -> None:
        """Choose the innermost regions that most pages agree on.

        Pages outside the agreement, such as the index pages of a site, vote again among
        themselves, so that a site may have several templates.
        """
        if self._articles > 0.5 * len(self._votes):
            return
        ballots = list(self._votes)
        chosen = list(self.regions)
        for _ in range(3):
            if len(ballots) < 3:
                break
            counts = Counter(region for ballot in ballots for region in set(ballot))
            need = max(3, _AGREED * len(ballots))
            inner = [votes for region, votes in counts.items() if region.signature[0] != "body"]
            # as deep as (nearly) all go who agree at all: a few always go one level too deep
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
                # the whole page is no template: let each page be looked at on its own,
                # unless that is all there ever is
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
