"""Measures what a page's Markdown keeps of the page, against its tree.

Written apart from the writer on purpose: it reads both sides in its own way, so that a mistake
of one does not hide behind the other.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import lxml.html

from kbkit.models.fidelity import fidelity_score

KINDS = ("code", "headings", "anchors", "terms", "rows", "navigation")
_CONTENT = "(//*[@role='main'] | //main | //article)[1]"
# what generators and hand-made sites call the parts of a page that lead to others
_NAMES = str.split("""
    nav navbar navigation nav-bar global-nav navheader navfooter topnav subnav related sidebar
    sphinxsidebar breadcrumb breadcrumbs prev-next prevnext pager pagination menu mainmenu submenu
    searchmenu footer page-footer site-footer md-sidebar md-footer md-header rst-footer-buttons
    wy-nav-side bottomnav toptoolbar hd ft header masthead
    """)
_NAMED = " or ".join(
    f"contains(concat(' ', normalize-space(@class), ' '), ' {name} ') or @id='{name}'"
    for name in _NAMES
)
_NAVIGATION = (
    "//nav | //*[@role='navigation' or @role='search' or @role='banner' or @role='contentinfo']"
    " | //*[self::header or self::footer][not(ancestor::main or ancestor::article"
    " or ancestor::*[@role='main'])]"
    # a section that is about menus is not one, nor is reStructuredText's sidebar
    f" | //*[self::div or self::ul or self::ol or self::p or self::table][{_NAMED}]"
)
_ADDRESS = re.compile(r"\]\([^)]*\)|\{#[^}]*\}")
_SHORTEST = 8  # characters of a text of navigation that can be told from others
_JUNK = (
    ".//script | .//style | .//noscript | .//button | .//nav | .//template"
    " | .//*[contains(concat(' ', @class, ' '), ' headerlink ')]"
    " | .//*[@class='linenos' or @class='viewcode-link' or @class='viewcode-back']"
    " | .//*[contains(@class, 'copybtn')] | .//a[@class='mark' and not(@id)]"
)
_FENCE = re.compile(r"^((?:> ?| )*)(`{3,})[\w+#.-]*$")
_HEADING = re.compile(r"^(?:> | )*(#{1,6}) (.*?)(?: \{#([^}\s]+)\})?$")
_RULE = re.compile(r"^[> ]*\|( --- \|)+$")


@dataclass(slots=True)
class Fidelity:
    """How much of some pages their Markdown keeps.

    The kinds: ``code`` blocks byte for byte, ``headings`` with level and text, ``anchors`` of
    headings that have one, ``terms`` (anchored terms of definition lists), ``rows`` of tables
    with all their cells in order, ``navigation`` (pages that have some, of which none turned
    up: the texts of navigation bars, page headers and footers, sidebars, breadcrumbs, links to
    the pages before and after, as far as they stand nowhere else on the page).

    Attributes:
        wanted: Things on the pages, by kind.
        kept: Those of them in the Markdown, by kind.
        lost: The others, by kind.
    """

    wanted: Counter[str] = field(default_factory=Counter)
    kept: Counter[str] = field(default_factory=Counter)
    lost: dict[str, list[Any]] = field(default_factory=dict)

    def share(self, kind: str) -> float:
        """Kept share of a kind, from 0 to 1; 1 where there is nothing to keep."""
        return self.kept[kind] / self.wanted[kind] if self.wanted[kind] else 1.0

    @property
    def score(self) -> float:
        """Kept share of code blocks, headings and table rows together, from 0 to 1."""
        return fidelity_score(self.counts())

    def counts(self) -> dict[str, tuple[int, int]]:
        """Kept and wanted things by kind."""
        return {kind: (self.kept[kind], self.wanted[kind]) for kind in KINDS}

    def include(self, other: Fidelity) -> None:
        """Take in what was measured of other pages."""
        self.wanted.update(other.wanted)
        self.kept.update(other.kept)
        for kind, things in other.lost.items():
            self.lost.setdefault(kind, []).extend(things)

    def to_dict(self) -> dict[str, Any]:
        """Shares (from 0 to 1), and counts of kept and wanted things, by kind, as JSON values."""
        return {
            kind: {
                "share": round(self.share(kind), 4),
                "kept": self.kept[kind],
                "wanted": self.wanted[kind],
            }
            for kind in KINDS
        }

    def add(self, html: str, markdown: str, content: str = _CONTENT) -> bool:
        """Measure one more page.

        Args:
            html: The page.
            markdown: What was made of it.
            content: XPath of its content element; by default its main landmark, else its body
                without navigation.

        Returns:
            Whether the page has such an element; if not, nothing was measured.
        """
        root = _parsed(html)
        texts = set(_navigation(root))
        body = _content(root, content)
        if body is None:
            return False
        if texts:
            written = _folded(_plain(_ADDRESS.sub("", markdown)))
            found = [text for text in texts if text in written]
            self.wanted["navigation"] += 1
            self.kept["navigation"] += not found
            self.lost.setdefault("navigation", []).extend(found)
        codes, headings, rows = _written(markdown)
        self._count("code", (c for pre in body.iter("pre") if (c := _code(pre)).strip()), codes)
        expected = list(_headings(body))
        self._count("headings", ((lv, t) for _, lv, t in expected),
                    ((lv, t) for lv, t, _ in headings))  # fmt: skip
        places: dict[tuple[int, str], set[str]] = {}
        for level, text, anchor in headings:
            places.setdefault((level, text), set()).add(anchor)
        linked = [(lv, t, ids) for head, lv, t in expected if (ids := _places(head))]
        right = [(lv, t) for lv, t, ids in linked if places.get((lv, t), set()) & ids]
        self._count("anchors", ((lv, t) for lv, t, _ in linked), right)
        anchors = {anchor for _, _, anchor in headings}
        terms = body.xpath(".//dl[not(contains(@class, 'footnote'))]/dt/@id")
        self._count("terms", terms, (term for term in terms if term in anchors))
        wanted = list(_rows(body))
        whole = {tuple(cell for cell in line if cell) for line in rows}
        held = [row for row in wanted if row in whole or any(_ordered(row, line) for line in rows)]
        self._count("rows", wanted, held)
        return True

    def _count(self, kind: str, wanted: Iterable[Hashable], found: Iterable[Hashable]) -> None:
        expected = Counter(wanted)
        missing = expected - Counter(found)
        self.wanted[kind] += expected.total()
        self.kept[kind] += expected.total() - missing.total()
        self.lost.setdefault(kind, []).extend(missing.elements())

    def __str__(self) -> str:
        return "  ".join(
            f"{kind} {100 * self.share(kind):.2f} % of {self.wanted[kind]}" for kind in KINDS
        )


def _parsed(html: str) -> Any:
    parser = lxml.html.HTMLParser(encoding="utf-8", remove_comments=True)
    return lxml.html.document_fromstring(html.encode("utf-8", "replace"), parser=parser)


def _navigation(root: Any) -> Iterator[str]:
    """Texts of a page's navigation that stand nowhere else on it; takes the navigation out."""
    parts = [part for part in root.xpath(_NAVIGATION) if part.tag not in ("body", "html")]
    texts: set[str] = set()
    for part in parts:
        for piece in part.iter("a", "p", "h1", "h2", "h3", "h4", "li", "span", "div"):
            if len(piece) == 0:
                texts.add(_folded(piece.text_content()))
    for part in parts:
        if part.getparent() is not None:
            part.drop_tree()
    rest = _folded(" ".join(root.itertext()))
    return (text for text in texts if len(text) >= _SHORTEST and text not in rest)


def _content(root: Any, xpath: str) -> Any | None:
    found = root.xpath(xpath) or (root.xpath("//body") if xpath == _CONTENT else [])
    if not found:
        return None
    for junk in found[0].xpath(_JUNK):
        if junk.getparent() is not None:
            junk.drop_tree()
    for mark in found[0].xpath(".//a[@class='mark']"):
        mark.text = ""
    return found[0]


def _code(pre: Any) -> str:
    for line_break in pre.iter("br"):
        line_break.tail = "\n" + (line_break.tail or "")
    text: str = "".join(pre.itertext())
    return text.removeprefix("\n").removesuffix("\n")


def _headings(body: Any) -> Iterator[tuple[Any, int, str]]:
    for heading in body.iter("h1", "h2", "h3", "h4", "h5", "h6"):
        text = _squashed(heading.text_content())
        if text and not any(around.tag in ("td", "th") for around in heading.iterancestors()):
            yield heading, int(heading.tag[1]), text


def _places(heading: Any) -> set[str]:
    """Every id that leads to a heading."""
    found = {heading.get("id")} | {inner.get("id") or inner.get("name") for inner in heading.iter()}
    node = heading
    for _ in range(2):
        before = node.getprevious()
        while before is not None and not before.text_content().strip():
            found |= {inner.get("id") or inner.get("name") for inner in before.iter()}
            before = before.getprevious()
        node = node.getparent()
        if node is None or before is not None:
            break
        found.add(node.get("id"))
    return {place for place in found if place}


def _rows(body: Any) -> Iterator[tuple[str, ...]]:
    """Rows of data tables; those that only arrange blocks are not written as tables."""
    for table in body.iter("table"):
        if len(table.xpath(".//td | .//th")) > 1 and not table.xpath(
            ".//table | .//pre | .//h1 | .//h2 | .//h3 | .//dl | .//blockquote"
        ):
            for row in table.iter("tr"):
                cells = [_squashed(cell.text_content()) for cell in row.iter("td", "th")]
                yield tuple(cell for cell in cells if cell)


def _ordered(row: tuple[str, ...], line: list[str]) -> bool:
    """Whether a line holds the cells in order; spans may repeat others between them."""
    rest = iter(line)
    return all(cell in rest for cell in row)


def _written(markdown: str) -> tuple[list[str], list[tuple[int, str, str]], list[list[str]]]:
    """Code blocks, headings (level, text, anchor) and table rows of Markdown."""
    codes: list[str] = []
    headings: list[tuple[int, str, str]] = []
    rows: list[list[str]] = []
    lines = iter(markdown.split("\n"))
    for line in lines:
        if fence := _FENCE.match(line):
            prefix, ticks = fence.groups()
            code = []
            for text in lines:
                if text.strip("> ") == ticks:
                    break
                inside = text.startswith(prefix)
                code.append(text[len(prefix) :] if inside else text.lstrip("> "))
            codes.append("\n".join(code))
        elif heading := _HEADING.match(line):
            text = _squashed(_plain(heading[2]))
            headings.append((len(heading[1]), text, heading[3] or ""))
        elif re.match(r"^[> ]*\|", line) and not _RULE.match(line):
            cells = re.split(r"(?<!\\)\|", line.strip("> "))[1:-1]
            rows.append([_squashed(_plain(cell)) for cell in cells])
    return codes, headings, rows


def _plain(text: str) -> str:
    text = re.sub(r"!?\[((?:[^\[\]\\]|\\.)*)\]\([^)\s]*\)", r"\1", text)
    return text.replace("&lt;", "<").replace("&amp;", "&")


def _folded(text: str) -> str:
    """The words of a text, each between blanks."""
    words = " ".join(re.findall(r"[^\W_]+", text))
    return f" {words.lower()} "


def _squashed(text: str) -> str:
    return re.sub(r"\W+", "", text).lower()
