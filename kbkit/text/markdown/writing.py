"""Write Markdown: escaped text, code, links, formulas."""

import re
import tomllib
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import urljoin, urlsplit

BREAK = "\x00"
_MARKS = {"*": ("\x01", "\x02"), "**": ("\x03", "\x04")}
_OPENING, _CLOSING = "\x01\x03", "\x02\x04"
_MARK = re.compile(f"[{_OPENING}{_CLOSING}]")
SPACE = re.compile(r"[ \t\n\r\f\v\xa0]+")
_AROUNDBREAK = re.compile(rf" *{BREAK}[ {BREAK}]*")
_SPECIAL = re.compile(r"[\\`*_<&~\[\]{]")
_ESCAPES = re.compile(
    r"""(?P<slash>[\\`]|~~
      | (?<=\S)\*|\*(?=\S)
      | (?<![A-Za-z0-9])_|_(?![A-Za-z0-9])
      | \](?=[(\[:]|\Z)
      | \{(?=:|\s*[#.]|\s*[\w-]+\s*=))
      | (?P<less><(?=[A-Za-z/!?]|\Z))
      | (?P<amp>&(?=\#?\w+;))""",
    re.VERBOSE,
)
_LINE_START = re.compile(
    r"^(?:(?P<mark>\#{1,6}(?=\s|$)|[-+*](?=\s|$)|>|={3,}|-{3,}|`{3,}(?=[^`\n]*$)|~{3}|!{3}|\?{3}"
    r"|:{3}|\|)|(?P<number>\d{1,9})(?=[.)](?:\s|$)))",
    re.MULTILINE,
)


def fence(code: str, language: str = "") -> str:
    """Return a code block with a fence longer than any run of backticks inside."""
    ticks = "`" * (max(map(len, re.findall(r"`{3,}", code)), default=2) + 1)
    return f"{ticks}{language}\n{code}\n{ticks}"


def escape(text: str) -> str:
    return _ESCAPES.sub(_escape, text) if _SPECIAL.search(text) else text


def _escape(match: re.Match[str]) -> str:
    if match.lastgroup == "less":
        return "&lt;"
    if match.lastgroup == "amp":
        return "&amp;"
    char = match.group()
    if char == "\\":
        # a backslash before other characters than punctuation is literal
        following = match.string[match.end() : match.end() + 1]
        return char if following.isalnum() or following.isspace() else "\\\\"
    return "\\" + char


def code_span(text: str) -> str:
    """Return inline code; the text may contain backticks."""
    text = SPACE.sub(" ", text).strip()
    if not text:
        return ""
    ticks = "`" * (max(map(len, re.findall(r"`+", text)), default=0) + 1)
    return f"{ticks} {text} {ticks}" if len(ticks) > 1 else f"`{text}`"


_PIPE = re.compile(r"(\\[^|])|\\?\|")


def pipe_table(rows: list[list[str]]) -> str:
    """Write rows of one-line cells as a Markdown table whose first row is its header."""
    width = max(len(row) for row in rows)
    lines = []
    for row in rows:
        cells = [_PIPE.sub(lambda match: match[1] or r"\|", cell) for cell in row]
        cells += [""] * (width - len(row))
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join([lines[0], "|" + " --- |" * width, *lines[1:]])


def indent(block: str, prefix: str) -> str:
    return "\n".join(prefix + line if line else line for line in block.split("\n"))


def quoted(blocks: list[str]) -> list[str]:
    lines = "\n\n".join(blocks).split("\n")
    return ["\n".join(f"> {line}" if line else ">" for line in lines)] if blocks else []


def anchor_mark(anchor: str) -> str:
    return f" {{#{anchor}}}" if anchor else ""


def heading_line(text: str, level: int, anchor: str = "") -> str:
    text = re.sub(r"(?<!\\)(#+)$", r"\\\1", text)
    return f"{'#' * level} {text}{anchor_mark(anchor)}"


@lru_cache(maxsize=20_000)  # pages repeat their links
def resolve(base: str, href: str) -> str:
    """Resolve a link as browsers do, backslashes in paths as slashes; `ValueError` if malformed."""
    path = _PATH.match(href)
    if path is not None:
        href = path[0].replace("\\", "/") + href[path.end() :]
    return urljoin(base, href)


_PATH = re.compile(r"(?!(?!https?:)[a-z][a-z0-9+.-]*:)[^?#]*", re.IGNORECASE)


@lru_cache(maxsize=20_000)  # pages repeat their links
def safe_url(href: str, base: str, *, relative: bool = False) -> str:
    try:
        url = resolve(base, href.strip()[:4000])
        parts = urlsplit(url)
    except ValueError:
        return ""
    is_relative = relative and not parts.scheme and not parts.netloc
    if parts.scheme.lower() not in ("http", "https", "mailto") and not is_relative:
        return ""
    return _UNSAFE.sub(lambda match: f"%{ord(match[0]):02X}", url)[:4000]


_UNSAFE = re.compile(r"[\s()<>\\\"'`\[\]{}|\x00-\x1f]")


def fold_spaces(text: str, *, strip: bool = True) -> str:
    """Fold white space; breaks become hard line breaks."""
    text = SPACE.sub(" ", text)
    if BREAK in text:
        text = _AROUNDBREAK.sub(BREAK, text).strip(BREAK + " ").replace(BREAK, "  \n")
    return text.strip() if strip else text


def mark_text(text: str, mark: str) -> str:
    opening, closing = _MARKS[mark]
    return opening + re.sub(r"^\*(?=\s|$)|(?<=\s)\*$", r"\\*", text) + closing


def write_marks(text: str) -> str:
    """Write the marks of `marked` texts, except those that CommonMark would read as literal stars.

    Marks must flank text (CommonMark, flanking delimiter runs). Adjacent marks would join, so the
    second of two neighbouring texts and the inner of nested texts get none.
    """
    if not _MARK.search(text):
        return text
    marks: dict[int, str] = {}
    stack: list[int] = []
    pairs: dict[int, int] = {}
    for mark in _MARK.finditer(text):
        if mark[0] in _OPENING:
            stack.append(mark.start())
        elif stack:
            pairs[stack.pop()] = mark.start()
    for first, last in sorted(pairs.items()):
        before, above = _beside(text, first, -1)
        inner, _ = _beside(text, first, 1)
        end, _ = _beside(text, last, -1)
        after, below = _beside(text, last, 1)
        opens = any(marks.get(i) and text[i] in _OPENING for i in above)
        closes = any(text[i] in _CLOSING for i in below)
        touches = any(marks.get(i) and text[i] in _CLOSING for i in above)
        if touches or opens != closes or last - first == 1:
            continue
        if _flanks(before, inner) and _flanks(after, end):
            marks[first] = marks[last] = "*" if text[first] == _MARKS["*"][0] else "**"
    return _MARK.sub(lambda mark: marks.get(mark.start(), ""), text)


def bold(text: str) -> str:
    return write_marks(mark_text(text, "**"))


def _beside(text: str, position: int, step: int) -> tuple[str, list[int]]:
    """Return the next character that is not a mark, and the positions of the marks before it."""
    positions = []
    position += step
    while 0 <= position < len(text) and _MARK.match(text[position]):
        positions.append(position)
        position += step
    return text[position] if 0 <= position < len(text) else "", positions


def _flanks(outer: str, inner: str) -> bool:
    return inner.isalnum() or not outer.isalnum()


def formula(text: str) -> str:
    """Return TeX with dollars in place of the page's delimiters."""
    text = re.sub(r"^\\[(\[]|\\[)\]]$", "", text.strip()).strip(" $")
    return text.replace("<", r"\lt ").replace("`", "'")


def inline_math(element: Any) -> str:
    """Write a ``math`` element as its TeX annotation, else as converted TeX or text."""
    for note in element.iter("annotation"):
        if "tex" in (note.get("encoding") or "").lower():
            text = formula(_flat(note))
            return f"${text}$" if text else ""
    text = latex(element)
    return f"${text}$" if re.search(r"[\^_]\{|\\[a-z]", text) else escape(_flat(element))


def guard(text: str) -> str:
    """Escape block syntax at the starts of lines."""
    return _LINE_START.sub(
        lambda start: f"{start[0]}\\" if start["number"] else f"\\{start[0]}", text
    )


def _flat(element: Any) -> str:
    return " ".join("".join(element.itertext()).split())


WORDS = tomllib.loads(Path(__file__).with_name("words.toml").read_text("utf-8"))
KINDS, CODE, SILENT, NAMING, _NAMED_KINDS = (
    frozenset(WORDS[name].split()) for name in ("kinds", "code", "silent", "naming", "named_kinds")
)
VERSIONS: dict[str, str] = WORDS["versions"]
_TITLES: dict[str, str] = WORDS["titles"]
CODE_ROLES = re.compile(
    r"(?:(?:py|c|cpp|js|rst|std|sh)(?::\w+)*:)?"
    rf"(?:{'|'.join(WORDS['code_roles'].split())})(?:-\w+)?"
)
_STYLES: dict[str, str] = {
    word: style for style, words in WORDS["styles"].items() for word in (style, *words.split())
}


def title_of(kind: str, title: str | None) -> str:
    """Return an admonition's title, with its kind if the kind matters."""
    word = kind.split(" ", maxsplit=1)[0].lower()
    name = _TITLES.get(word, word.replace("-", " ").capitalize())
    first_word = (title or "").split(" ", maxsplit=1)[0].lower().rstrip(":!.,")
    if title and word in _NAMED_KINDS and first_word not in KINDS:
        return f"{name}: {title}"
    return name if title is None else title


def admonition_style(title: str) -> str:
    """Return the theme's style for an admonition, by the first word of its title."""
    return _STYLES.get(title.split(maxsplit=1)[0].lower().strip(":"), "note")


MATH = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"
_MAX_DEPTH = 60
_TEX_SPECIAL = re.compile(r"[#$%&_{}]")
_LEAVES = frozenset({"mi", "mn", "mo", "ms", "mtext"})
_INTEGRAL = "\u222b"
_ACCENTS = {"\u0302": "hat", "\u0303": "tilde", "\u0304": "bar", "\u0307": "dot", "\u20d7": "vec"}
_SHAPES = {
    **dict.fromkeys(("mfrac", "f"), r"\frac{{{}}}{{{}}}"),
    **dict.fromkeys(("msup", "mover", "sSup", "limUpp"), "{{{}}}^{{{}}}"),
    **dict.fromkeys(("msub", "munder", "sSub", "limLow"), "{{{}}}_{{{}}}"),
    **dict.fromkeys(("msubsup", "munderover", "sSubSup"), "{{{}}}_{{{}}}^{{{}}}"),
    "sPre": "{{}}_{{{}}}^{{{}}}{{{}}}",
    "mroot": r"\sqrt[{1}]{{{0}}}",
    "rad": r"\sqrt[{}]{{{}}}",
    "bar": r"\overline{{{}}}",
    "acc": r"\{accent}{{{}}}",
    "nary": "{sign}_{{{}}}^{{{}}} {}",
    "d": "{begin}{inside}{end}",
    **dict.fromkeys(("mtr", "mr"), "{cells}"),
    **dict.fromkeys(("mtable", "m"), r"\begin{{matrix}}{lines}\end{{matrix}}"),
    "eqArr": r"\begin{{aligned}}{lines}\end{{aligned}}",
}
"""LaTeX of MathML and Office elements (ECMA-376, part 1, section 22.1), with parts in order."""


def latex(element: Any) -> str:
    """Write presentation MathML, or an ``m:oMath`` element."""
    return " ".join(_latex(element, 0).split())


def _latex(element: Any, depth: int) -> str:
    name = element.tag.rpartition("}")[2]
    if name == "t":
        return _plain(element.text or "")
    if name in _LEAVES:
        text = _plain(" ".join("".join(element.itertext()).split()))
        return rf"\text{{{text}}}" if name == "mtext" and text else text
    if depth > _MAX_DEPTH or name.startswith("annotation"):
        return ""
    inner = (child for child in element if isinstance(child.tag, str))
    parts = [_latex(child, depth + 1) for child in inner if not child.tag.endswith("Pr")]
    if name == "msqrt" or (name == "rad" and not any(parts[:-1])):
        return rf"\sqrt{{{''.join(parts)}}}"
    settings = element.iterfind(f"{MATH}{name}Pr/*")
    values = {child.tag.rpartition("}")[2]: child.get(f"{MATH}val", "") for child in settings}
    try:
        return _SHAPES[name].format(
            *parts,
            accent=_ACCENTS.get(values.get("chr", ""), "hat"),
            sign=_plain(values.get("chr", _INTEGRAL)),
            begin=_plain(values.get("begChr", "(")),
            end=_plain(values.get("endChr", ")")),
            inside=values.get("sepChr", "|").join(parts),
            cells=" & ".join(parts),
            lines=r" \\ ".join(parts),
        )
    except LookupError:  # another element, or one that lacks parts
        return "".join(parts)


def _plain(text: str) -> str:
    """Escape TeX commands; write other signs as commands."""
    text = _TEX_SPECIAL.sub(r"\\\g<0>", text.replace("\\", "\u2216"))
    if text.isascii():
        return text
    from docutils.utils.math.unichar2tex import uni2tex_table

    return text.translate(uni2tex_table)
