"""Code in HTML: detection, text and language."""

from __future__ import annotations

import re
from itertools import islice, takewhile
from urllib.parse import unquote_plus

from kbkit.sources.html import BLOCKS, PREFORMATTED, Element, classes, normalized_text, texts_of

_LINE_END = ""

_POPUP = re.compile(r"(?:^|[-_])(?:tooltip|popover)(?:$|[-_\d])", re.IGNORECASE)
_NUMBERS = re.compile(
    r"(?:^|[-_])(?:gutter|blob-num|line-?(?:no|nos|num|nums|number|numbers|nodiv))(?:$|[-_\d])",
    re.IGNORECASE,
)
"""Class names of line numbers, and of code that has them."""
_LINE_NAME = re.compile(r"(?:^|[-_])line$|^line-(?:content|text)$|^L\d+$", re.IGNORECASE)
_CODE = re.compile(
    r"(?:^|[-_])(?:code|codeblock|codemirror|fragment|highlight|highlighter|source|sourcecode"
    r"|listing|program|prettyprint|hljs|chroma|syntaxhighlighter|terminal|console)",
    re.IGNORECASE,
)
_SPACE = re.compile("[ \t\r\n]+")
_WORD = re.compile(r"\w+")
_LONG = 60  # fewest characters of an address that carries a program
_CARRIED = 0.9  # share of the code's words in the address of a link that runs it
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
    **dict.fromkeys(
        str.split("""
            default none text plaintext txt notranslate nohighlight no-highlight guess block
            wrapper example table box sample source code literal-block
            """),
        "",
    ),
}
_BARE_LANGUAGES = frozenset(
    str.split("""
        bash c clojure console cpp csharp css diff dockerfile elixir erlang go graphql groovy
        haskell html http ini java javascript js json julia kotlin lua makefile markdown nix
        ocaml perl php powershell protobuf pycon python r ruby rust scala sh shell sql swift toml
        typescript xml yaml zsh
        """)
)


def lines_of_code(element: Element) -> str | None:
    if element.tag not in ("div", "figure", "table", "ol", "ul", "code"):
        return None
    rows = _numbered_rows(element) if element.tag == "table" else _line_elements(element)
    if not rows and element.tag == "code":
        return _nested_lines(element)
    if not rows or not _is_code(element, rows):
        return None
    if next(element.iterdescendants(*PREFORMATTED, "table"), None) is not None:
        return None
    others = [child for child in element if child not in rows and child.get("id") is None]
    if element.tag != "table" and any("".join(child.itertext()).strip() for child in others):
        return None  # its popups are addressed from the line
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


def _line_elements(element: Element) -> list[Element]:
    return [child for child in element if any(_LINE_NAME.search(name) for name in classes(child))]


def _numbered_rows(table: Element) -> list[Element]:
    cells = [[cell for cell in row if cell.tag in ("td", "th")] for row in table.iter("tr")]
    if not cells or any(not 1 <= len(row) <= 2 for row in cells):
        return []
    numbers = ["".join(row[0].itertext()).strip() for row in cells if len(row) == 2]
    if len(numbers) != len(cells) or any(number and not number.isdigit() for number in numbers):
        return []
    counted = [int(number) for number in numbers if number]
    first = counted[0] if counted else 1
    if counted and counted != list(range(first, first + len(counted))):
        return []
    return [row[-1] for row in cells]


def _is_code(element: Element, rows: list[Element]) -> bool:
    for around in islice((element, *element.iterancestors()), 3):
        names = classes(around)
        if any(name == "line-block" for name in names):
            return False  # verses and addresses in reStructuredText
        if any(_CODE.search(name) for name in names) or around.tag in _CODE_TAGS:
            return True
    return all(next(row.iter(*_CODE_TAGS), None) is not None for row in rows)


def broken_code(element: Element) -> str | None:
    if element.tag not in _CODE_TAGS or next(element.iterdescendants("br"), None) is None:
        return None
    lines: list[list[str]] = [[]]
    for part, begins, text in texts_of(element):
        if part.tag == "br" and not begins:
            lines.append([])
        lines[-1].append(text)
    return "\n".join(_SPACE.sub(" ", "".join(line)).strip(" ") for line in lines).strip("\n")


def pops_up(element: Element) -> bool:
    return _is_named(element.get("class"), _POPUP) or numbers_lines(element)


def _is_named(names: str | None, pattern: re.Pattern[str]) -> bool:
    return any(map(pattern.search, (names or "").split()))


def numbers_lines(element: Element) -> bool:
    return _is_named(element.get("class"), _NUMBERS) and not any(
        char.isalpha() for text in element.itertext() for char in text
    )


def language(pre: Element) -> str:
    """Return the language of a code block as in fences, or ``""``."""
    around = takewhile(_holds_only_code, islice(pre.iterancestors(), 4))
    candidates = [pre, *pre.iterdescendants("code", "pre"), *around]
    for element in candidates:
        named = element.get("data-lang") or element.get("data-language") or ""
        if not named:
            matches = (pattern.search(element.get("class") or "") for pattern in _LANGUAGE_CLASSES)
            named = next((match.group(1) for match in matches if match), "")
        named = _LANGUAGES.get(named.lower(), named.lower())
        if named and re.fullmatch(r"[a-z][a-z0-9+#.-]{0,30}", named):
            return named
    bare = {name.lower() for element in candidates[:2] for name in classes(element)}
    return next(iter(sorted(bare & _BARE_LANGUAGES)), "")


def _holds_only_code(parent: Element) -> bool:
    # the language of a container of several blocks holds for none of them
    several = next(parent.iter("p", "h1", "h2", "h3", "h4", "ul", "ol"), None) is not None
    return parent.tag in _AROUND_CODE and not several


def labels_of_code(body: Element) -> list[Element]:
    labels = []
    for pre in body.iter("pre"):
        for sibling in (pre.getprevious(), pre.getnext()):
            if sibling is None or sibling.tag not in ("span", "div", "small", "em"):
                continue
            text = normalized_text(sibling).lower()
            if text and text == language(pre) and not (sibling.tail or "").strip():
                labels.append(sibling)
    return labels


def runs_code(link: Element) -> bool:
    href = link.get("href") or ""
    if len(href) < _LONG or "%" not in href:
        return False
    code = next(link.getparent().iterchildren("pre"), None)
    words = _WORD.findall(normalized_text(code)) if code is not None else []
    carried = set(_WORD.findall(unquote_plus(href)))
    return bool(words) and sum(word in carried for word in words) >= _CARRIED * len(words)


def code_text(pre: Element) -> str:
    """Return the text of a preformatted element, byte for byte as a browser would copy it."""
    pieces: list[str] = []
    _collect(pre, pieces)
    text = "".join(pieces).replace("\r\n", "\n").replace("\r", "\n")
    # HTML: a newline right after <pre> is not part of its text
    text = text.removeprefix("\n")
    return text.removesuffix("\n")


def _collect(element: Element, pieces: list[str]) -> None:
    """Collect text; end a line after each block, unless the text does."""
    if element.text:
        _append(element.text, pieces)
    for child in element:
        tag = child.tag
        if tag == "br":
            _append("\n", pieces)
        elif isinstance(tag, str) and not pops_up(child):
            if tag in BLOCKS and pieces and pieces[-1] == _LINE_END:
                # a newline in the block must not end the line before it
                _append("", pieces)
            _collect(child, pieces)
            if tag in BLOCKS:
                pieces.append(_LINE_END)
        if child.tail:
            _append(child.tail, pieces)


def _append(text: str, pieces: list[str]) -> None:
    ended = False
    while pieces and pieces[-1] == _LINE_END:
        pieces.pop()
        ended = True
    if ended and pieces and not pieces[-1].endswith("\n") and not text.startswith("\n"):
        pieces.append("\n")
    pieces.append(text)
