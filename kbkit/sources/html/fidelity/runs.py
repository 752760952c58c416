"""Split a page into runs of text with their share of links."""

import re
from dataclasses import dataclass, field
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
_LINES = 2  # minimum line elements of a code container
_LOOSE = re.compile("[\\\\*`^_~\xad\u200b\u200c\u200d\u2060\ufeff]")
_WORD = re.compile(r"\w+")


def words(text: str) -> list[str]:
    """Split text or Markdown into words, without markup."""
    return _WORD.findall(_LOOSE.sub("", text).casefold())


def squash(text: str) -> str:
    return "".join(words(text))


@dataclass(slots=True)
class TextRun:
    """Text of one block; `key` is its hash, equal in all processes, and never 0."""

    holder: Element
    text: str
    linked: int
    size: int
    key: int
    code: bool = False


@dataclass(slots=True)
class Runs:
    """A page's text.

    Attributes:
        spans: Index of each block's first run, and of the one after its last.
        formulas: Texts of formulas and pictures, which may be written differently.
        codes: Code blocks, ``pre`` or not.
        base: Declared base address of its links.
    """

    root: Element
    runs: list[TextRun] = field(default_factory=list)
    spans: dict[Element, tuple[int, int]] = field(default_factory=dict)
    formulas: list[str] = field(default_factory=list)
    codes: list[Element] = field(default_factory=list)
    title: str = ""
    base: str = ""


def read(page: str) -> Runs | None:
    root = html.parse(html.HTTP_HEAD.sub("", page)) if page.strip() else None
    if root is None:
        return None
    title = " ".join(root.xpath("string(//title)").split())
    runs = Runs(root, title=title, base=root.xpath("string(//base/@href)"))
    sources = _folded_sources(root)
    for element in list(root.iterdescendants()):
        if element in sources or _unseen(element):
            html.drop_tree(element)
    _Reader(runs).block(root, code=False)
    return runs


class _Reader:
    """Walks a tree once; text between two block borders is a run."""

    def __init__(self, runs: Runs) -> None:
        self._result = runs
        self._pieces: list[str] = []
        self._linked: list[str] = []
        self._in_link = 0

    def block(self, element: Element, *, code: bool) -> None:
        runs = self._result.runs
        first = len(runs)
        if not code and (element.tag in html.PREFORMATTED or _holds_lines(element)):
            self._result.codes.append(element)
            code = True
        self._text(element.text)
        self._children(element, element, code=code)
        self._end(element, code=code)
        self._result.spans[element] = (first, len(runs))

    def _children(self, element: Element, holder: Element, *, code: bool) -> None:
        for child in element:
            tag = child.tag
            if tag in _BLOCKS:
                self._end(holder, code=code)
                self.block(child, code=code)
            elif tag == "br":
                self._text("\n")
            elif tag == "img":
                self._result.formulas.append(child.get("alt") or "")
            elif tag == "math" or "math" in _classes(child):
                self._result.formulas.append("".join(child.itertext()))
            elif tag == "a" and not code and (_is_source_link(child) or _runs_code(child)):
                child.set("data-aside", "source")
            elif tag == "code" and not code and _has_lines(child):
                self._result.codes.append(child)
                self._inside(child, holder, code=True)
            else:
                self._inside(child, holder, code=code)
            self._text(child.tail)

    def _inside(self, child: Element, holder: Element, *, code: bool) -> None:
        is_styled = (len(child) == 0 and not child.text) or "classifier" in _classes(child)
        if child.tag == "span" and child.get("class") and is_styled:
            self._text(" ")  # style sheets may draw something
        link = child.tag == "a" and bool(child.get("href"))
        self._in_link += link
        self._text(child.text)
        self._children(child, holder, code=code)
        self._in_link -= link

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
            self._result.runs.append(TextRun(holder, text, linked, len(run_words), key, code))
        self._pieces.clear()
        self._linked.clear()


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
