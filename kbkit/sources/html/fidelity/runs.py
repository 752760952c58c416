"""Split a page into runs of text with their share of links."""

import re
from dataclasses import dataclass
from enum import IntEnum
from itertools import islice
from urllib.parse import unquote_plus
from zlib import crc32

from kbkit.sources import html
from kbkit.sources.html import HEADINGS, NAMES, Element

_BLOCKS = html.BLOCKS | {"dialog", "optgroup", "option", "search", "title"}
_HIDDEN = re.compile(r"(?:^|;)\s*(?:display\s*:\s*none|visibility\s*:\s*hidden)", re.IGNORECASE)
_MARKS = frozenset(
    {"", "#", "¶", "§", "🔗", "◆", "◆ ", "link", "permalink", "anchor", "\uf0c1", "∞"}
)
_SOURCE_BUTTON = frozenset(str.split("expand view show hide toggle see the source code"))
_LINE_NAMES = frozenset({"line", "code-line", "codeline", "cl", "view-line", "cm-line"})
_ITEMS = ("ul", "ol", "li", "div")  # each is a line of code
_PROGRAM = 60  # characters from which an address may hold a program
_UNFOLDING = 3  # maximum words of a link to "#" beside a name that unfolds something
LINKED = 0.6  # share of words in links
_LINES = 2  # minimum line elements of a code container
_LOOSE = re.compile("[\\\\*`^_~\xad\u200b\u200c\u200d\u2060\ufeff]")
_WORD = re.compile(r"\w+")


def words(text: str) -> list[str]:
    """Split text or Markdown into words, without markup."""
    return _WORD.findall(_LOOSE.sub("", text).casefold())


def squash(text: str) -> str:
    return "".join(words(text))


class State(IntEnum):
    """State of a text; of two states, the higher counts."""

    CONTENT = 0
    NEITHER = 1
    BOILERPLATE = 2


@dataclass(slots=True, eq=False)
class TextRun:
    """Text of one block; `key` is its hash, equal in all processes, and never 0."""

    holder: Element
    text: str
    linked: int
    size: int
    key: int
    code: bool
    shared: bool = False
    state: State = State.CONTENT

    @property
    def is_linked(self) -> bool:
        return self.linked >= LINKED * self.size

    @property
    def level(self) -> int:
        """Level of the heading around it, or 0."""
        ancestors = islice((self.holder, *self.holder.iterancestors()), 4)
        return next((HEADINGS[part.tag] for part in ancestors if part.tag in HEADINGS), 0)


class Runs:
    """Text of a page, read in one walk; text between two borders of blocks is a run.

    Attributes:
        spans: Runs of each block.
        formulas: Texts of formulas and pictures, which may be written differently.
        codes: Code blocks, ``pre`` or not.
        base: Declared base address of its links.
    """

    def __init__(self, root: Element) -> None:
        self.root = root
        self.title = " ".join(root.xpath("string(//title)").split())
        self.base: str = root.xpath("string(//base/@href)")
        self.runs: list[TextRun] = []
        self.spans: dict[Element, list[TextRun]] = {}
        self.formulas: list[str] = []
        self.codes: list[Element] = []
        self._pieces: list[str] = []
        self._linked: list[str] = []
        self._in_link = 0
        sources = _folded_sources(root)
        for element in list(root.iterdescendants()):
            if element in sources or _unseen(element):
                if element.tag == "a" and (name := element.get("id")):
                    element.addprevious(element.makeelement("a", id=name))
                html.drop_tree(element)
        self._read(root, root, code=False)

    def _read(self, element: Element, holder: Element, *, code: bool) -> None:
        is_block = element.tag in _BLOCKS or element is self.root
        if is_block:
            self._end(holder, code=code)
            holder = element
            has_lines = element.tag in html.PREFORMATTED or _holds_lines(element)
        else:
            has_lines = element.tag == "code" and _has_lines(element)
            is_styled = not (len(element) or element.text) or "classifier" in _classes(element)
            if element.tag == "span" and element.get("class") and is_styled:
                self._text(" ")  # style sheets may draw something
        if has_lines and not code:
            self.codes.append(element)
            code = True
        first = len(self.runs)
        is_link = element.tag == "a" and bool(element.get("href"))
        self._in_link += is_link
        self._text(element.text)
        for child in element:
            if child.tag == "br":
                self._text("\n")
            elif child.tag == "img":
                self.formulas.append(child.get("alt") or "")
            elif child.tag not in _BLOCKS and "math" in (child.tag, *_classes(child)):
                self.formulas.append("".join(child.itertext()))
            elif child.tag == "a" and not code and (_is_source_link(child) or _runs_code(child)):
                child.set("data-aside", "source")
            else:
                self._read(child, holder, code=code)
            self._text(child.tail)
        self._in_link -= is_link
        if is_block:
            self._end(element, code=code)
            self.spans[element] = self.runs[first:]

    def _text(self, text: str | None) -> None:
        if text:
            self._pieces.append(text)
            if self._in_link:
                self._linked.append(text)

    def _end(self, holder: Element, *, code: bool) -> None:
        text = "".join(self._pieces)
        if run_words := words(text):
            linked = min(len(words(" ".join(self._linked))), len(run_words))
            key = crc32(" ".join(run_words).encode("utf-8", "replace")) or 1
            self.runs.append(TextRun(holder, text, linked, len(run_words), key, code))
        self._pieces.clear()
        self._linked.clear()


def read(page: str) -> Runs | None:
    root = html.parse(html.HTTP_HEAD.sub("", page)) if page.strip() else None
    return None if root is None else Runs(root)


def _folded_sources(root: Element) -> set[Element]:
    sources: set[Element] = set()
    unfolds = False
    for element in root.iter("summary", "label", "pre", *HEADINGS):
        is_source = unfolds and element.tag == "pre"
        unfolds = False
        if element.tag in ("summary", "label"):
            label_words = set("".join(element.itertext()).lower().split())
            is_source = unfolds = "source" in label_words and label_words <= _SOURCE_BUTTON
        sources.update([element] * is_source)
    return sources


def _unseen(element: Element) -> bool:
    tag, attributes = element.tag, element.attrib
    if tag in NAMES["unseen_tags"]:
        return True
    if "class" in attributes:
        names = _classes(element)
        if not NAMES["unseen_classes"].isdisjoint(names) or any(
            "tooltip" in name for name in names
        ):
            return True
        numbers_lines = not NAMES["line_numbers"].isdisjoint(names)
        if numbers_lines and not re.search(r"[^\W\d_]", "".join(element.itertext())):
            return True  # with letters, it is numbered code
    if attributes.get("role") == "tooltip" or attributes.get("aria-hidden") == "true":
        return True
    if "hidden" in attributes and attributes.get("role") != "tabpanel":
        return bool(attributes["hidden"] != "until-found")
    if "style" in attributes and _HIDDEN.search(attributes["style"]):
        # rows that a click unfolds count as visible
        return tag != "tr" or element.getparent().find(".//*[@onclick]") is None
    if attributes.get("href") == "#" and len("".join(element.itertext()).split()) <= _UNFOLDING:
        heading = next(element.iterancestors(*HEADINGS, "dd"), None)
        return heading is not None and (heading.tag == "dd" or "toggle" in str(_classes(element)))
    return tag == "a" and _is_mark(element)


def _is_mark(link: Element) -> bool:
    href = link.get("href") or ""
    if "#" not in href or next(link.iter("img"), None) is not None:
        return False
    text = "".join(link.itertext()).strip().lower()
    if {"headerlink", "header-anchor", "hash-link", "anchorjs-link"} & set(_classes(link)):
        return len(text) <= 12
    return text in _MARKS and (bool(text) or len(link) == 0)


def _is_source_link(link: Element) -> bool:
    text = "".join(link.itertext())
    return len(text) < 40 and "".join(text.split()).lower() in NAMES["source_links"]


def _runs_code(link: Element) -> bool:
    code, href = link.getprevious(), link.get("href") or ""
    if code is None or code.tag != "pre" or len(href) < _PROGRAM:
        return False
    lines = "".join(code.itertext()).strip().split("\n")
    return squash(lines[-1]) in squash(unquote_plus(href))


def _holds_lines(element: Element) -> bool:
    if element.tag not in ("div", "code", "figure") or len(element) < _LINES:
        return False
    if "line-block" in _classes(element):
        return False  # verses and addresses
    lines = [child for child in element if not _LINE_NAMES.isdisjoint(_classes(child))]
    return len(lines) >= _LINES and len(lines) >= 0.8 * len(element)


def _has_lines(code: Element) -> bool:
    items = next(code.iter("li"), None) is not None
    has_blocks = next(code.iter("p", "table", "pre", "dl", *HEADINGS), None) is not None
    has_link = any(link.get("href") for link in code.iter("a"))
    breaks = sum(1 for _ in code.iter("br"))
    in_cell = next(code.iterancestors("td", "th"), None) is not None
    is_signature = in_cell and (breaks == 1 or has_link)
    return (breaks > 0 and not is_signature) or (items and not has_blocks and not has_link)


def code_text(element: Element) -> str:
    if element.tag == "code":
        return _fold_lines(element)
    if element.tag not in html.PREFORMATTED and _holds_lines(element):
        lines = [_copied_text(line).removesuffix("\n") for line in element]
        if all(line.startswith("\xa0") for line in lines if line.strip()):
            lines = [line[1:] for line in lines]  # separator of line numbers and code
        text = "\n".join(lines)
    else:
        text = _copied_text(element)
    return text.replace("\r\n", "\n").replace("\r", "\n").removeprefix("\n").removesuffix("\n")


def _fold_lines(element: Element) -> str:
    text = ""
    for part, begins, piece in html.texts_of(element):
        ends = part.tag in _ITEMS or (part.tag == "br" and not begins)
        text += "\0" * ends + piece
    items = next(element.iter(*_ITEMS), None) is not None
    folded = [re.sub("[ \t\r\n]+", " ", line).strip(" ") for line in text.split("\0")]
    return "\n".join(line for line in folded if line or not items).strip("\n")


def _copied_text(element: Element) -> str:
    pieces = [element.text or ""]
    for child in element:
        if child.tag == "br":
            pieces.append("\n")
        else:
            inner = _copied_text(child)
            # bare words are code
            is_source = (
                child.tag == "a" and inner.strip().startswith("[") and _is_source_link(child)
            )
            pieces.append("" if is_source else inner)
            has_following = child.tail or child.getnext() is not None
            if child.tag in _BLOCKS and has_following and not inner.endswith("\n"):
                pieces.append("" if (child.tail or "").startswith("\n") else "\n")
        pieces.append(child.tail or "")
    return "".join(pieces)


def _classes(element: Element) -> list[str]:
    return (element.get("class") or "").lower().split()


def classes(element: Element) -> list[str]:
    return [*_classes(element), (element.get("id") or "").lower()]
