"""Convert inline HTML to Markdown: links, emphasis, formulas, code; find code and its language."""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import chain, islice, pairwise, takewhile

from kbkit.sources.html import BLOCKS, NAMES, PREFORMATTED, Element, classes, plain_text, texts_of
from kbkit.text.markdown import writing
from kbkit.text.markdown.writing import BREAK, code_span, escape

_SEPARATORS = frozenset({"sep", "separator", "divider"})  # drawn by style sheets
_EMPHASIS = {"em": "*", "i": "*", "cite": "*", "var": "*", "dfn": "*", "strong": "**", "b": "**"}
_BRACKET = re.compile(r"(?<!\\)(?:\\\\)*(?=[\[\]])")  # place before one that is not escaped
_PICTURE = re.compile(r"\.(?:png|jpe?g|gif|svg|webp|avif)(?:\?[^/]*)?$", re.IGNORECASE)


class InlineWriter:
    """Writes inline elements of one page."""

    def __init__(self, base: str, *, relative: bool = False) -> None:
        self._base = base
        self._relative = relative
        self._plain = False  # inside a heading or term: no emphasis
        self._linkless = False  # no links either
        self._fragment: str | None = None  # anchor of the current heading; links to it are dropped
        self._in_link = False
        self._emphasis: set[str] = set()

    def line(self, element: Element, *, place: str | None = None) -> str:
        previous_state = self._linkless, self._plain, self._fragment
        if place is not None and (link := next(element.iter("a"), None)) is not None:
            leads_back = (link.get("href") or "").startswith("#")
            self._linkless |= leads_back and plain_text(link) == plain_text(element)
        self._plain, self._fragment = True, place
        text = writing.fold_spaces(self._children(element)).replace("  \n", " ")
        self._linkless, self._plain, self._fragment = previous_state
        return text

    def signature(self, element: Element, place: str) -> str:
        spans = _spans(element)
        # a part may link to this heading, such as the name of a constant in its value
        target = place if sum(bool(text.strip()) for text, _ in spans) == 1 else None
        texts = [
            (writing.SPACE.sub(" ", text).replace("( ", "("), self._target(href, target))
            for text, href in spans
        ]
        joined = "".join(text for text, _ in texts).rstrip("¶# ").strip()
        if any(href and text.strip() for text, href in texts):
            return self._code(spans, target).strip()
        # brackets of optional parameters look like links
        return code_span(joined) if escape(joined) != joined or "[" in joined else joined

    def write(self, element: Element) -> str:
        """Write an inline element with its content."""
        tag = element.tag
        if tag == "br":
            return BREAK
        if tag == "a":
            return self._link(element)
        if tag in _CODE_TAGS:
            return self._code_span(element)
        if tag in _EMPHASIS and not self._plain:
            return self._emphasise(element, _EMPHASIS[tag])
        if tag == "img":
            return self.image(element)
        if tag == "math":
            return writing.inline_math(element)
        if tag == "rt" and next(element.getparent().iter("rp"), None) is None:
            return f"({self._children(element)})"
        if tag == "span" and "math" in classes(element):
            text = writing.formula(plain_text(element))
            return f"${text}$" if text else ""
        if tag == "sup":
            return re.sub(r"^\s*([-+]?\w{1,3})\s*$", r"^\1", self._children(element))
        if tag == "span" and len(element) == 0 and not element.text:
            return "" if _SEPARATORS.isdisjoint(classes(element)) else " "
        if tag == "span" and "classifier" in classes(element):
            previous = element.getprevious()
            has_delimiter = previous is not None and "classifier-delimiter" in classes(previous)
            return ("" if has_delimiter else " : ") + self._children(element)
        return f"“{self._children(element)}”" if tag == "q" else self._children(element)

    def image(self, element: Element) -> str:
        alt = writing.SPACE.sub(" ", element.get("alt") or "").strip()
        if not alt and not self._relative:
            return ""
        alt = _BRACKET.sub(r"\g<0>\\", escape(alt))
        url = self._safe(element.get("src") or "")
        if not url or self._plain or (self._in_link and not self._relative):
            return alt
        return f"![{alt}]({url})"

    def _children(self, element: Element) -> str:
        pieces = [self._text(element.text)]
        for child in element:
            if child.tag == "a":
                escape_bang(pieces)
            space = " " if child.tag in BLOCKS else ""
            pieces.append(f"{space}{self.write(child)}{space}")
            if child.tail:
                pieces.append(self._text(child.tail))
        return "".join(pieces)

    def _text(self, text: str | None) -> str:
        text = escape(text or "")
        return _BRACKET.sub(r"\g<0>\\", text) if self._in_link else text

    def _code_span(self, element: Element) -> str:
        previous = element.getprevious()
        if previous is not None and previous.tag in _CODE_TAGS and not previous.tail:
            return ""  # already written with the previous code
        siblings = pairwise(chain([element], element.itersiblings()))
        adjacent = takewhile(lambda pair: not pair[0].tail and pair[1].tag in _CODE_TAGS, siblings)
        spans = _spans(element, *(following for _, following in adjacent))
        if self._linkless or self._in_link or not any(href for _, href in spans):
            raw = "".join(text for text, _ in spans)
            return code_span(raw) or (" " if raw else "")
        return self._code(spans, self._fragment)

    def _code(self, spans: Spans, here: str | None) -> str:
        code_spans = (
            f"{text[:1].isspace() * ' '}{self._write_link(code_span(text), href, here)}"
            f"{text[-1:].isspace() * ' '}"
            if text.strip()
            else " "
            for text, href in spans
        )
        return "".join(code_spans)

    def _link(self, element: Element) -> str:
        if self._in_link or self._linkless:
            return self._children(element)
        if _PICTURE.search(element.get("href") or "") and not plain_text(element):
            return self._children(element)  # a preview that links to its picture
        self._in_link = True
        text = writing.fold_spaces(self._children(element), strip=False)
        self._in_link = False
        return self._write_link(text, element.get("href"), self._fragment)

    def _target(self, href: str | None, here: str | None) -> str:
        url = self._safe(href) if href else ""
        if here is None:
            return url
        page, _, fragment = url.partition("#")
        return "" if page == self._base.partition("#")[0] and fragment in ("", here) else url

    def _write_link(self, text: str, href: str | None, here: str | None = None) -> str:
        inner = text.strip()
        if not inner or not href or self._linkless or self._in_link:
            return text
        url = self._target(href, here)
        if not url:
            return text
        leading, trailing = " " * text[0].isspace(), " " * text[-1].isspace()
        if inner.startswith("^"):
            inner = f"\\{inner}"  # some readers take [^ for a footnote
        return f"{leading}[{inner}]({url}){trailing}"

    def _safe(self, href: str) -> str:
        return writing.safe_url(href, self._base, relative=self._relative) if href else ""

    def _emphasise(self, element: Element, mark: str) -> str:
        if mark in self._emphasis:
            return self._children(element)
        self._emphasis.add(mark)
        text = self._children(element)
        self._emphasis.discard(mark)
        inner = text.strip(" \t\r\n\xa0" + BREAK)
        if not inner:
            return text
        before, _, after = text.partition(inner)
        return f"{before}{writing.mark_text(inner, mark)}{after}"


def escape_bang(pieces: list[str]) -> None:
    """Escape an exclamation mark before a link, which would make it a picture; in place."""
    if pieces and pieces[-1].endswith("!"):
        pieces[-1] = f"{pieces[-1][:-1]}\\!"


Spans = list[tuple[str, str | None]]


def _spans(*elements: Element) -> Spans:
    spans: Spans = []
    hrefs: list[str | None] = [None]
    for part, begins, text in chain.from_iterable(map(texts_of, elements)):
        if part.tag == "a" and begins:
            hrefs.append(part.get("href") or hrefs[-1])
        elif part.tag == "a":
            hrefs.pop()
        piece = " " * (part.tag == "br" and begins) + text
        if piece and spans and spans[-1][1] == hrefs[-1]:
            spans[-1] = (spans[-1][0] + piece, hrefs[-1])
        elif piece:
            spans.append((piece, hrefs[-1]))
    return spans


_BLOCK_BEGIN, _BLOCK_END = "\x01", "\x00"
_LINE_ENDS = re.compile(f"(?<=[^\n{_BLOCK_END}]){_BLOCK_END}+(?=[^\n{_BLOCK_END}])")
"""Ends of blocks that end a line of code. A newline in the next block does not end it instead."""
_POPUP = re.compile(r"(?:^|[-_])(?:tooltip|popover)(?:$|[-_\d])", re.IGNORECASE)
NUMBERS = re.compile(
    r"(?:^|[-_])(?:gutter|blob-num|line-?(?:no|nos|num|nums|number|numbers|nodiv))(?:$|[-_\d])",
    re.IGNORECASE,
)
"""Class names of line numbers, and of code that has them."""
_LINE_NAME = re.compile(r"(?:^|[-_])line$|^line-(?:content|text)$|^L\d+$", re.IGNORECASE)
_CODE_NAME = re.compile(
    r"(?:^|[-_])(?:code|codeblock|codemirror|fragment|highlight|highlighter|source|sourcecode"
    r"|listing|program|prettyprint|hljs|chroma|syntaxhighlighter|terminal|console)",
    re.IGNORECASE,
)
_SPACE = re.compile("[ \t\r\n]+")
_CODE_TAGS = frozenset({"code", "samp", "kbd", "tt"})
_LINE_TAGS = frozenset({"ul", "ol", "li", "div"})  # each starts a line of code
_AROUND_CODE = frozenset({"div", "figure", "td", "tr", "tbody", "table", "pre"})

_LANGUAGE_CLASSES = (
    re.compile(r"(?:^|\s)(?:language|lang|brush:)[-_ ]?([A-Za-z][\w+#.-]*)"),
    re.compile(
        r"(?:^|\s)(?:highlight-source|highlight|sourceCode|code|source(?=-)|src(?=-))[-_ ]?"
        r"([A-Za-z][\w+#.-]*)"
    ),
)
"""In order of precedence."""
_LANGUAGES = {
    **dict.fromkeys(("python3", "py", "python2", "ipython", "ipython3"), "python"),
    "pycon3": "pycon",
    "c++": "cpp",
    "shell-session": "console",
    **dict.fromkeys(NAMES["no_languages"], ""),
}


def lines_of_code(element: Element) -> str | None:
    if element.tag not in ("div", "figure", "table", "ol", "ul", "code"):
        return None
    if element.tag == "table":
        rows = _numbered_rows(element)
    else:
        rows = [child for child in element if _is_named(child.get("class"), _LINE_NAME)]
    if not rows and element.tag == "code":
        return _nested_lines(element)
    if not rows or not _is_code(element, rows):
        return None
    if next(element.iterdescendants(*PREFORMATTED, "table"), None) is not None:
        return None
    extras = [child for child in element if child not in rows and child.get("id") is None]
    if element.tag != "table" and any("".join(child.itertext()).strip() for child in extras):
        return None  # the line refers to its popups
    lines = [code_text(row).replace("\n", " ") for row in rows]
    filled = [line for line in lines if line.strip()]
    if all(line.startswith("\xa0") for line in filled):
        lines = [line[1:] for line in lines]  # separator of line numbers and code
    return "\n".join(lines).strip("\n") if filled else None


def _nested_lines(code: Element) -> str | None:
    if next(code.iterdescendants("ul", "ol"), None) is None:
        return None
    if any(part.tag in BLOCKS - _LINE_TAGS or part.get("href") for part in code.iterdescendants()):
        return None
    lines = [(0, "")]
    depth = 0
    for part, begins, text in texts_of(code):
        if part.tag in _LINE_TAGS:
            depth += (1 if begins else -1) * (part.tag in ("ul", "ol"))
            lines.append((depth, ""))
        lines[-1] = (depth, lines[-1][1] + text)
    folded = ((depth, _SPACE.sub(" ", text).strip(" ")) for depth, text in lines)
    return "\n".join("  " * depth + text for depth, text in folded if text)


def _numbered_rows(table: Element) -> list[Element]:
    cells = [[cell for cell in row if cell.tag in ("td", "th")] for row in table.iter("tr")]
    if not cells or any(len(row) != 2 for row in cells):
        return []
    numbers = filter(None, ("".join(row[0].itertext()).strip() for row in cells))
    values = [int(number) if number.isdecimal() else -1 for number in numbers]
    if not values and not all(numbers_lines(row[0]) for row in cells):
        return []  # text beside empty cells
    if -1 in values or any(after != before + 1 for before, after in pairwise(values)):
        return []
    return [row[1] for row in cells]


def _is_code(element: Element, rows: list[Element]) -> bool:
    for ancestor in islice((element, *element.iterancestors()), 3):
        if "line-block" in classes(ancestor):
            return False  # verses and addresses in reStructuredText
        if _is_named(ancestor.get("class"), _CODE_NAME) or ancestor.tag in _CODE_TAGS:
            return True
    return all(next(row.iter(*_CODE_TAGS), None) is not None for row in rows)


def broken_code(element: Element) -> str | None:
    breaks = [*element.iterdescendants("br")] if element.tag in _CODE_TAGS else []
    is_signature = len(breaks) == 1 or next(element.iterdescendants("a"), None) is not None
    if not breaks or (is_signature and next(element.iterancestors("td", "th"), None) is not None):
        return None
    text = "".join(
        BREAK * (part.tag == "br" and not begins) + text for part, begins, text in texts_of(element)
    )
    return "\n".join(_SPACE.sub(" ", line).strip(" ") for line in text.split(BREAK)).strip("\n")


def opens_popup(element: Element) -> bool:
    return _is_named(element.get("class"), _POPUP) or numbers_lines(element)


@lru_cache(maxsize=10_000)
def _is_named(names: str | None, pattern: re.Pattern[str]) -> bool:
    return any(map(pattern.search, (names or "").split()))


def numbers_lines(element: Element) -> bool:
    return _is_named(element.get("class"), NUMBERS) and not any(
        char.isalpha() for text in element.itertext() for char in text
    )


def language(pre: Element) -> str:
    """Return the language of a code block as in fences, or ``""``."""
    containers = takewhile(_holds_only_code, islice(pre.iterancestors(), 4))
    candidates = [pre, *pre.iterdescendants("code", "pre"), *containers]
    for element in candidates:
        matches = (pattern.search(element.get("class") or "") for pattern in _LANGUAGE_CLASSES)
        names = (*map(element.get, ("data-lang", "data-language")), *(m and m[1] for m in matches))
        language_name = next(filter(None, names), "").lower()
        language_name = _LANGUAGES.get(language_name, language_name)
        if re.fullmatch(r"[a-z][a-z0-9+#.-]{0,30}", language_name):
            return language_name
    class_names = {name.lower() for element in candidates[:2] for name in classes(element)}
    return next(iter(sorted(class_names & NAMES["languages"])), "")


def _holds_only_code(parent: Element) -> bool:
    # a container of several blocks does not give the language of any of them
    several = next(parent.iter("p", "h1", "h2", "h3", "h4", "ul", "ol"), None) is not None
    return parent.tag in _AROUND_CODE and not several


def code_text(pre: Element) -> str:
    """Return the text of a preformatted element, byte for byte as a browser would copy it."""
    text = _LINE_ENDS.sub("\n", _copied_text(pre)).replace(_BLOCK_BEGIN, "").replace(_BLOCK_END, "")
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    # HTML: a newline right after <pre> is not part of its text
    return text.removeprefix("\n").removesuffix("\n")


def _copied_text(element: Element) -> str:
    pieces = [element.text or ""]
    for child in element:
        if child.tag == "br":
            pieces.append("\n")
        elif not opens_popup(child):
            text = _copied_text(child)
            if child.tag in BLOCKS:
                begin = _BLOCK_BEGIN if text.strip(_BLOCK_END) else ""
                text = f"{begin}{text}{_BLOCK_END}"
            pieces.append(text)
        pieces.append(child.tail or "")
    return "".join(pieces)
