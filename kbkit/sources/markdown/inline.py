"""Inline constructs of Markdown dialects, and raw HTML."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache
from html import unescape
from typing import TYPE_CHECKING, NamedTuple

from kbkit.text.markdown import Block, Kind, blocks, text_anchor
from kbkit.text.markdown.extensions import note_anchor
from kbkit.text.markdown.structure import CODE_SPAN, PAGE_MARK, split_anchor
from kbkit.text.markdown.writing import CODE_ROLES, WORDS, anchor_mark, code_span, safe_url

if TYPE_CHECKING:
    from markdown_it import MarkdownIt


_EDGE = re.compile(r"<(/?)table\b", re.IGNORECASE)
_MARKED_CELL = re.compile(
    r"""(?P<start><(?P<name>td|th|dd|dt|li|p|summary|figcaption|caption)\b[^<>]*?)
    \s+markdown(?:=(?:"[^"]*"|'[^']*'|\w+))?(?P<rest>[^<>]*>)(?P<inner>.*?)(?=</(?P=name)\s*>)""",
    re.DOTALL | re.IGNORECASE | re.VERBOSE,
)


def table_end(parsed: Sequence[Block], first: int, text: str) -> int:
    """Return the block that ends an HTML table, which blank lines split; or `first`."""
    open_ = 0
    for number in range(first, len(parsed)):
        block = parsed[number]
        if block.kind is not Kind.HTML or not block.outermost:
            continue
        for edge in _EDGE.finditer(text, block.start, block.end):
            open_ += -1 if edge[1] else 1
        if open_ <= 0:
            return number
    return first


def _cell(match: re.Match[str]) -> str:
    inner = "\n".join(line.strip() for line in match["inner"].strip().split("\n"))
    render = _markdown().render if "\n" in inner else _markdown().renderInline
    lines = (line for line in render(inner).split("\n") if line.strip())
    return match["start"] + match["rest"] + "\n".join(lines)


@cache
def _markdown() -> MarkdownIt:
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])


_ACTIVE = re.compile(r"[\\`<:{=+\[$~^]")
_TICKS = re.compile(r"`+")
_TAG = re.compile(
    r"<(?P<end>/?)(?P<name>[A-Za-z][A-Za-z0-9-]*)"
    r"(?P<rest>(?:\s+(?:[^<>\"']|\"[^\"]*\"|'[^']*')*|\s*/)?)>"
)
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_ATTRIBUTE = re.compile(
    r"""\b(?P<name>href|src|alt|title)\s*=\s*
    (?:"([^"]*)"|'([^']*)'|\{[^{}"'`]*["'`]([^"'`{}]*)["'`][^{}"'`]*\}|([^\s"'>]+))""",
    re.VERBOSE,
)
_ROLE = re.compile(
    r"\{(?P<role>[\w:.+-]{1,40})\}(?P<ticks>`+)(?!`)(?P<text>.+?)(?<!`)(?P=ticks)(?!`)", re.DOTALL
)
_ATTRIBUTES = re.compile(
    r"""\{:?[ ]*(?:[.#][\w:-]+|[\w:@-]+=(?:"[^"\n]*"|'[^'\n]*'|[^\s{}"']+))
    (?:[ ]+(?:[.#][\w:-]+|[\w:@-]+(?:=(?:"[^"\n]*"|'[^'\n]*'|[^\s{}"']+))?))*[ ]*\}""",
    re.VERBOSE,
)
_EXPRESSION = re.compile(r"""\{[ ]*(?:/\*.{0,4000}?\*/|(?P<space>(["'`])[ ]*\2))[ ]*\}""", re.S)
_HEADING_ATTRIBUTES = re.compile(r"[ \t]*\{[^{}\n]*\}[ \t]*$")
_CLOSING_HASHES = re.compile(r"[ \t]+#+[ \t]*$")
_EMOJI = re.compile(r"(?<![\w:]):(?P<name>[a-z0-9_+-]{1,60}):(?![\w:])")
_ICON = re.compile(r"(?:material|fontawesome|octicons|simple)-[a-z0-9-]+")
_ICON_MARK = re.compile(rf":{_ICON.pattern}:(?:\{{[^{{}}\n]*\}})?(?:[ ]+(?=\S))?")
_ICON_LINK = re.compile(  # an icon without text
    rf"\[[ ]*:{_ICON.pattern}:[ ]*\](?:\[[^\[\]\n]*\]|\([^()\n]*\))"
)
_MARKED = re.compile(r"(?<![=\w])==(?=[^\s=])([^=\n]{1,300})(?<=\S)==(?![=\w])")
_KEYS = re.compile(
    r"""(?<![\w+])\+\+((?:[\w-]+|"[^"\n]{1,20}")(?:\+(?:[\w-]+|"[^"\n]{1,20}")){0,5})\+\+(?![\w+])"""
)
_FORMULA = re.compile(r"\\(?:\((?P<inline>.{1,2000}?)\\\)|\[(?P<block>.{1,4000}?)\\\])", re.DOTALL)
_TEX_FORMULA = re.compile(
    r"\$\$(?=[^$])[^$]{1,4000}\$\$|\$`(?P<ticked>[^`\n]{1,500})`\$"
    r"|\$(?=[^\s$])[^$\n]{0,500}(?<=[^\s\\])\$(?![\d\w])"
)
_RAISED = re.compile(r"(?<=[\w)])\^([^\s^\[\]]{1,12})\^(?!\^)")
_LOWERED = re.compile(r"(?<=\w)~(\w{1,12})~(?!~)")
_ADDRESS = re.compile(r"://[^\s<>\[\]`\"\\]{2,1000}")
_ADDRESS_START = re.compile(r"(?:^|(?<!\]:)\s|(?<!\])\(|[*_\u201c])(https?)$")
_ADDRESS_END = re.compile(r"(?:[.,:;!?'*_~]|&\w+;)+$")
_TEX = re.compile(r"[\\^_=]")
_NOTE = re.compile(r"\[\^([^\]\s]{1,80})\]")
_TASK = re.compile(r"(?P<lead>[ \t>]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)+)\[(?P<done>[ xX])\](?=[ \t])")
_LEAD = re.compile(r"[ \t]*")
_TITLED = re.compile(r"(?P<title>.*\S)\s*<(?P<goal>[^<>]+)>", re.DOTALL)

_EMPHASIS = {
    **dict.fromkeys(("b", "strong", "mark"), "**"),
    **dict.fromkeys(("i", "em", "cite", "var", "dfn"), "*"),
    **dict.fromkeys(("s", "del", "strike"), "~~"),
}
_CODE = frozenset({"code", "tt", "samp", "kbd"})
_SILENT, _TAGS = (frozenset(WORDS[name].split()) for name in ("silent_tags", "tags"))
_DEEPEST = 6
_REACH = 4_000  # maximum characters of an element


def plain_markup(
    text: str, *, notes: Collection[str] = (), components: bool, targets: Mapping[str, str] = {}
) -> str:
    """Convert inline markup of dialects; the blocks must be CommonMark."""
    writer = _LineWriter(notes, components, targets)
    out: list[str] = []
    at = 0
    parsed = list(blocks(text))
    for number, block in enumerate(parsed):
        if block.start < at:
            continue  # inside an HTML table
        gap, piece = text[at : block.start], text[block.start : block.end]
        out.append(gap)
        at = block.end
        if block.kind is Kind.HTML and (table_last := table_end(parsed, number, text)) > number:
            at = parsed[table_last].end
            out.append(writer.convert_mixed(text[block.start : at]) + "\n")
        elif block.kind is Kind.HTML and not PAGE_MARK.match(piece):
            separator = "\n" if text[at : at + 2].strip("\n") else ""
            out.append(writer.html(block, piece) + separator)
        elif block.kind is Kind.HEADING:
            out.append(writer.heading(block, piece))
        elif block.kind in {Kind.TEXT, Kind.TABLE}:
            if block.item and (task := _TASK.match(piece)):
                mark = "☐" if task["done"] == " " else "☑"
                piece = task["lead"] + mark + piece[task.end() :]
            piece, anchor = text_anchor(block, piece)
            converted = writer.text(piece, in_line=block.kind is Kind.TABLE)
            out.append(converted.rstrip() + anchor_mark(anchor) if anchor else converted)
        else:
            out.append(piece)
    return "".join([*out, text[at:]])


def heading_titles(text: str) -> dict[str, str]:
    headings = (block for block in blocks(text) if block.kind is Kind.HEADING)
    titles = (split_anchor(block.title) for block in headings)
    return {anchor: re.sub(r"[\[\]]", "", title) for title, anchor in titles if anchor}


class _LineWriter(NamedTuple):
    notes: Collection[str]
    components: bool
    targets: Mapping[str, str]

    def heading(self, block: Block, piece: str) -> str:
        source, anchor = split_anchor(block.title)
        if not block.outermost or block.markup[0] != "#":
            return self.text(piece, in_line=True)
        source = _HEADING_ATTRIBUTES.sub("", source) if _ATTRIBUTES.search(source) else source
        text = " ".join(self.text(_CLOSING_HASHES.sub("", source), in_line=True).split())
        return f"{piece[: piece.index('#')]}{block.markup} {text}{anchor_mark(anchor)}"

    def html(self, block: Block, piece: str) -> str:
        if not block.outermost:
            return "\n".join(self.text(line, in_line=True).rstrip() for line in piece.split("\n"))
        if re.match(r"[ \t]*<[A-Za-z]+[^<>]*\bmarkdown\b", piece):
            return self.text("\n".join(line.strip() for line in piece.split("\n")))
        if _MARKED_CELL.search(piece):
            return self.convert_mixed(piece)
        from kbkit.sources.html.extract import markdown_of  # few texts need it

        return markdown_of(piece, relative=True)

    def convert_mixed(self, piece: str) -> str:
        """Convert HTML with nested Markdown."""
        from kbkit.sources.html.extract import markdown_of

        html = _markdown().render(_MARKED_CELL.sub(_cell, piece))
        markdown = markdown_of(html, relative=True)
        return plain_markup(markdown, notes=self.notes, components=self.components)

    def text(self, text: str, *, in_line: bool = False, depth: int = 0) -> str:
        """Convert inline text; code stays."""
        out: list[str] = []
        at = 0
        while match := _ACTIVE.search(text, at):
            out.append(text[at : match.start()])
            at = match.start()
            replacement, at = self._piece(text, at, in_line, depth, out)
            out.append(replacement)
        return "".join(out) + text[at:]

    def _piece(
        self, text: str, at: int, in_line: bool, depth: int, out: list[str]
    ) -> tuple[str, int]:
        char = text[at]
        if char == "`":
            span = CODE_SPAN.match(text, at) or _TICKS.match(text, at)
            assert span is not None
            return span[0], span.end()
        if char == "<":
            return self._tag(text, at, in_line, depth)
        if char == "\\":
            formula = _FORMULA.match(text, at)
            if formula and _TEX.search(inner := (formula["inline"] or formula["block"])):
                marks = "$" if formula["inline"] else "$$"
                return f"{marks}{inner.strip()}{marks}", formula.end()
            return text[at : at + 2], min(at + 2, len(text))
        if char == ":" and not in_line and (address := _address(text, at, out)):
            return address
        for mark, pattern, write in _MARKS:
            if char == mark and (match := pattern.match(text, at)):
                replacement = write(match, self)
                if replacement is not None:
                    return replacement, match.end()
        if char == "{" and self.components and (match := _EXPRESSION.match(text, at)):
            return " " * (match["space"] is not None), match.end()
        if char == "{" and (match := _ATTRIBUTES.match(text, at)):
            before = text[at - 1] if at else ""
            at_end = not text[match.end() :].strip() or text[match.end()] == "\n"
            if (before in ")`*_]:" and before) or (before == " " and (at_end or out[-1:] == [""])):
                while out and out[-1].endswith(" ") and at_end:
                    out[-1] = out[-1].rstrip(" ")
                return "", match.end()
        return char, at + 1

    def _tag(self, text: str, at: int, in_line: bool, depth: int) -> tuple[str, int]:
        if comment := _COMMENT.match(text, at):
            return "", comment.end()
        tag = _TAG.match(text, at)
        if tag is None:
            return "<", at + 1
        name, end = tag["name"].lower(), tag.end()
        if name not in _TAGS:
            component = self.components and tag["name"][0].isupper()
            return ("" if component else tag[0]), end
        if name == "br":
            following = _LEAD.match(text, end)
            assert following is not None
            is_hard_break = text[following.end() : following.end() + 1] == "\n"
            return (" " if in_line else "  " if is_hard_break else "  \n"), following.end()
        if name == "img":
            return _picture(_attributes(tag["rest"])), end
        if tag["end"] or depth > _DEEPEST or tag["rest"].endswith("/"):
            return "", end
        closing = re.compile(rf"</{name}\s*>", re.IGNORECASE).search(text, end, end + _REACH)
        if closing is None:
            return "", end
        inner = text[end : closing.start()]
        if name in _SILENT:
            return "", closing.end()
        if name in _CODE:
            return code_span(unescape(_TAG.sub("", inner))), closing.end()
        content = self.text(inner, in_line=in_line, depth=depth + 1)
        stripped = content.strip()
        if name == "a":
            url = safe_url(_attributes(tag["rest"]).get("href", ""), "", relative=True)
            return (f"[{stripped}]({url})" if url and stripped else content), closing.end()
        if name in _EMPHASIS and stripped:
            mark = _EMPHASIS[name]
            return content.replace(stripped, f"{mark}{stripped}{mark}", 1), closing.end()
        if name == "sup" and re.fullmatch(r"[-+]?\w{1,3}", stripped):
            return f"^{stripped}", closing.end()
        return content, closing.end()


def _attributes(rest: str) -> dict[str, str]:
    return {
        match["name"].lower(): unescape(next(filter(None, match.groups()[1:]), ""))
        for match in _ATTRIBUTE.finditer(rest)
    }


def _picture(attributes: dict[str, str]) -> str:
    alt = re.sub(r"([\[\]\\])", r"\\\1", " ".join(attributes.get("alt", "").split()))
    url = safe_url(attributes.get("src", ""), "", relative=True)
    return f"![{alt}]({url})" if url else alt


@cache
def _emoji() -> dict[str, str]:
    from pymdownx import gemoji_db

    signs = {
        name: "".join(chr(int(code, 16)) for code in entry["unicode"].split("-"))
        for name, entry in gemoji_db.emoji.items()
        if entry.get("unicode")
    }
    signs |= {alias: signs[name] for alias, name in gemoji_db.aliases.items() if name in signs}
    return {name.strip(":"): sign for name, sign in signs.items()}


def _role(match: re.Match[str], writer: _LineWriter) -> str:
    role, text = match["role"], " ".join(match["text"].split())
    titled = _TITLED.fullmatch(text)
    goal = titled["goal"] if titled else text
    if role in {"ref", "numref", "std:ref", "std:numref"} and goal in writer.targets:
        return f"[{titled['title'] if titled else writer.targets[goal]}](#{goal})"
    if role == "math":
        return f"${text}$"
    label = titled["title"] if titled else text
    if role == "doc" and titled:
        return f"[{label}]({goal.removesuffix('.md')}.md)"
    if CODE_ROLES.fullmatch(role):
        return code_span(label.removeprefix("~") if titled else label.lstrip("~!"))
    if role in {"doc", "download"} and not titled:
        name = label.rpartition("/")[2]
        return f"[{name.removesuffix('.md')}]({label}{'' if '.' in name else '.md'})"
    return label


def _keys(match: re.Match[str], _: _LineWriter) -> str:
    keys = [key.strip('"') for key in match[1].split("+")]
    return code_span("+".join(key if len(key) == 1 else key.capitalize() for key in keys))


def _reference(match: re.Match[str], writer: _LineWriter) -> str | None:
    label = match[1]
    return f"[\\[{label}\\]](#{note_anchor(label)})" if label in writer.notes else None


def _address(text: str, at: int, out: list[str]) -> tuple[str, int] | None:
    match = _ADDRESS.match(text, at)
    scheme = _ADDRESS_START.search("".join(out[-2:])) if match and out else None
    if match is None or scheme is None or text.rfind("[", 0, at) > text.rfind("]", 0, at):
        return None
    tail = match[0]
    if (address := _ADDRESS_END.sub("", tail)) and address.count(")") > address.count("("):
        address = address[: address.rindex(")")]
    out[-1] = out[-1].removesuffix(scheme[1])
    return f"<{scheme[1]}{address}>", at + len(address)


_Write = Callable[[re.Match[str], _LineWriter], str | None]
_MARKS: tuple[tuple[str, re.Pattern[str], _Write], ...] = (
    (":", _ICON_MARK, lambda _found, _: ""),
    (":", _EMOJI, lambda match, _: _emoji().get(match["name"])),
    ("$", _TEX_FORMULA, lambda match, _: f"${match['ticked']}$" if match["ticked"] else match[0]),
    ("^", _RAISED, lambda match, _: f"^{match[1]}"),
    ("~", _LOWERED, lambda match, _: match[1]),
    ("{", _ROLE, _role),
    ("=", _MARKED, lambda match, _: f"**{match[1]}**"),
    ("+", _KEYS, _keys),
    ("[", _ICON_LINK, lambda _found, _: ""),
    ("[", _NOTE, _reference),
)


_ENVIRONMENT = re.compile(
    r"\\begin\{((?:equation|align|alignat|gather|multline|eqnarray|math|displaymath)\*?)\}"
)
_FORMULA_END = re.compile(r"(?P<text>[^$]*\$\$)[ \t]*(?:\([\w:.-]+\))?[ \t]*$")
_MAX_LENGTH = 200  # lines


def formula_block(lines: list[str], at: int) -> tuple[list[str], int] | None:
    """Return the formula that starts at a line, and the line after it; else ``None``.

    It is between lines of dollars, with an optional label after the last, or an environment.
    """
    if environment := _ENVIRONMENT.match(lines[at]):
        ending = f"\\end{{{environment[1]}}}"
        for end in range(at, min(at + _MAX_LENGTH, len(lines))):
            if lines[end].rstrip().endswith(ending):
                return formula_lines(lines[at : end + 1]), end + 1
    elif lines[at].strip() == "$$":
        for end in range(at + 1, min(at + _MAX_LENGTH, len(lines))):
            if match := _FORMULA_END.match(lines[end]):
                return [*lines[at:end], match["text"]], end + 1
    return None


def formula_lines(lines: list[str]) -> list[str]:
    """Put a formula between dollars, without blank lines, which would end it."""
    return ["$$", *(line for line in lines if line.strip()), "$$"]
