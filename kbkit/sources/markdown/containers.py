"""What spans lines in dialects of Markdown: admonitions, tabs, directives, terms, footnotes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from kbkit.markdown.structure import split_anchor
from kbkit.markdown.writing import fence, indent, quote

_DEEPEST = 12
_FENCE = re.compile(r"(?P<lead>[ \t]*)(?P<marks>`{3,}|~{3,})[ \t]*(?P<info>[^\n]*)$")
_ADMONITION = re.compile(
    r'(?P<lead>[ \t]*)(?:!!!|\?\?\?\+?)[ \t]+(?P<kind>[\w -]*?)[ \t]*(?:"(?P<title>.*)")?[ \t]*$'
)
_TAB = re.compile(r"""(?P<lead>[ \t]*)===[!+]*[ \t]+(?P<mark>["'])(?P<title>.*)(?P=mark)[ \t]*$""")
_ALERT = re.compile(r"(?P<lead>[ \t]*(?:>[ \t]*)+)\[!(?P<kind>\w+)\][+-]?[ \t]*(?P<title>.*)$")
_CONTAINER = re.compile(
    r"(?P<lead>[ \t]*)(?P<marks>:{3,}|/{3,})[ \t]*(?:\{[ \t]*[.#]?(?P<braced>[\w:-]+)[^{}]*\}"
    r"|(?P<kind>[\w.:-]*[\w-]))[ \t]*(?P<title>.*)$"
)
_CONTAINER_END = re.compile(r"[ \t]*(:{3,}|/{3,})[ \t]*$")
_DIRECTIVE = re.compile(r"\{(?P<kind>[\w:.-]+)\}[ \t]*(?P<title>.*)$")
_OPTION = re.compile(r"[ \t]*:(?P<name>[\w-]+):[ \t]*(?P<value>.*)$")
_YAML_OPTION = re.compile(r"[ \t]{4,}[\w-]+:(?:[ \t]|$)")
_TERM = re.compile(r"(?![ \t>|#:=]|[-*+][ \t]|\d+[.)][ \t]|```|~~~|\[\^|!\[|<)\S")
_DEFINITION = re.compile(r"(?P<lead>[ ]{0,3}:[ \t]{1,3})(?P<text>\S.*)$")
_FOOTNOTE = re.compile(r"[ ]{0,3}\[\^(?P<label>[^\]\s]{1,80})\]:[ \t]*(?P<text>.*)$")
_ABBREVIATION = re.compile(r"[ ]{0,3}\*\[(?P<name>[^\]\n]{1,200})\]:[ \t]*(?P<text>\S.*)$")
_TARGET = re.compile(r"\((?P<name>[\w.:/+-]{1,200})\)=[ \t]*$")
_HEADING = re.compile(r"#{1,6}[ \t]")
_DROPPED = re.compile(
    r"[ \t]*(?:\[TOC\]|\[\[_?toc_?\]\]|\{:[^{}\n]*\}|\{[ ]*[.#][\w-][^{}\n]*\})[ \t]*$",
    re.IGNORECASE,
)
_ATTRIBUTES = re.compile(r"[ \t]*\{[ :][^{}\n]*\}[ \t]*$")
_MODULE = re.compile(r"(?:import[ \t{*].*|export[ \t]+(?:const|default|let|function|\{).*)$")
_PATH = re.compile(r"\w+(?:[.:]+\w+)+$")
_TITLE = re.compile(r"""\btitle=(?:"([^"\n]*)"|'([^'\n]*)'|(\S+))""")
_LABEL = re.compile(r"\[([^\[\]\n]+)\]")
_LANGUAGE = re.compile(r"\{?[ \t]*\.?([A-Za-z0-9+#_-][\w+#.-]*)")
_BEGINS_BLOCK = re.compile(r"(?:[-#>|]|\d+\.|`{3})")

_ADMONITIONS = frozenset(
    str.split("""
        note warning tip hint caution important danger error attention seealso info success
        question failure bug example quote abstract summary tldr todo check done fail missing
        cite help faq security admonition annotate secondary
        """)
)
_TOLD = frozenset(
    str.split("""
        warning tip hint caution important danger error attention success question failure bug
        example
        """)
)
"""Kinds that a page draws in a way of their own, which a title alone would not tell."""
_NAMES = {"seealso": "See also", "tldr": "TL;DR", "faq": "FAQ", "todo": "To do"}
_FOLDED = frozenset({"details", "dropdown", "spoiler", "collapse", "toggle"})
_UNNAMED = frozenset({"html", "code-group", "div", "grid", "container", "tab-set", "figure"})
"""Containers whose argument is no title."""
_VERSIONS = {
    "versionadded": "New in version", "versionchanged": "Changed in version",
    "versionremoved": "Removed in version", "deprecated": "Deprecated since version",
}  # fmt: skip
_CODE = frozenset(
    {"code-block", "code", "sourcecode", "code-cell", "ipython", "prompt", "parsed-literal"}
)
_PICTURES = frozenset({"image", "figure", "figure-md"})
_NOTHING = frozenset(
    {"contents", "index", "raw", "meta", "comment", "tableofcontents", "highlight", "currentmodule"}
)


def unfold(text: str, *, components: bool = False) -> str:
    """A text whose blocks are CommonMark's.

    Args:
        text: Markdown of any dialect.
        components: ``import`` and ``export`` outside of code are none of the text.
    """
    return "\n".join(_Unfolding(components).lines(text.split("\n"), 0))


class _Unfolding:
    """Goes through the lines of a text, and of what is nested in it."""

    def __init__(self, components: bool) -> None:
        self._components = components
        self._ended: dict[int, dict[int, int]] = {}  # by the lines that are gone through

    def lines(self, lines: list[str], depth: int) -> list[str]:
        """Lines as CommonMark; what is nested too deep stays as it is."""
        if depth > _DEEPEST:
            return lines
        out: list[str] = []
        at = 0
        target = ""
        while at < len(lines):
            line = lines[at]
            if target and line.strip():
                if _HEADING.match(line) and not split_anchor(line)[1]:
                    line = f"{_ATTRIBUTES.sub('', line).rstrip()} {{#{target}}}"
                target = ""
            stripped = line.lstrip(" \t")
            taken = self._taken(lines, at, depth) if stripped[:1] in _STARTS else None
            if taken is None:
                taken = self._terms(lines, at, depth, out)
            if taken is not None:
                block, at = taken
                if block and out and out[-1].strip():
                    out.append("")
                out += block
                if block and at < len(lines) and lines[at].strip():
                    out.append("")
            elif found := _ALERT.match(line):
                title = _titled(found["kind"], found["title"] or None)
                out += [f"{found['lead']}**{title}**", found["lead"].rstrip()]
                at += 1
            elif found := _TARGET.match(line):
                target = found["name"]
                at += 1
            elif _DROPPED.match(line) or (self._components and _MODULE.match(line)):
                at += 1
            else:
                out.append(line)
                at += 1
        self._ended.pop(id(lines), None)
        return out

    def _taken(self, lines: list[str], at: int, depth: int) -> tuple[list[str], int] | None:
        """The block that begins at a line, as CommonMark, and the line behind it."""
        line = lines[at]
        if found := _FENCE.match(line):
            return self._fence(found, lines, at, depth)
        if found := _ADMONITION.match(line):
            title = found["title"]
            return self._indented(found, lines, at, depth, _titled(found["kind"], title))
        if found := _TAB.match(line):
            lead = found["lead"]
            body, after = _body(lines, at + 1, _width(lead) + 4)
            inner = self.lines(body, depth + 1)
            return _indented([f"**{found['title']}**", "", *inner], lead), after
        if found := _CONTAINER.match(line):
            return self._container(found, lines, at, depth)
        if found := _FOOTNOTE.match(line):
            body, after = _body(lines, at + 1, 4, lazy=True)
            inner = self.lines([found["text"], *body], depth + 1)
            return _item(f"\\[{found['label']}\\]: ", inner), after
        if found := _ABBREVIATION.match(line):
            return [f"-   **{found['name']}**: {found['text']}"], at + 1
        return None

    def _indented(
        self, found: re.Match[str], lines: list[str], at: int, depth: int, title: str
    ) -> tuple[list[str], int]:
        """An admonition, whose text is indented below it."""
        lead = found["lead"]
        body, after = _body(lines, at + 1, _width(lead) + 4)
        return _indented(_quoted(title, self.lines(body, depth + 1)), lead), after

    def _fence(
        self, found: re.Match[str], lines: list[str], at: int, depth: int
    ) -> tuple[list[str], int] | None:
        """Code as it is, with its title above, or what a directive of MyST says."""
        marks, info = found["marks"], found["info"]
        if marks[0] == "`" and "`" in info:
            return None
        closing = _closing(marks)
        end = next((n for n in range(at + 1, len(lines)) if closing.match(lines[n])), len(lines))
        after = min(end + 1, len(lines))
        directive = _DIRECTIVE.match(info)
        if directive and not info.startswith("{."):
            body = _dedented(lines[at + 1 : end], _width(found["lead"]))
            block = self._directive(directive["kind"], directive["title"], body, depth)
            return _indented(block, found["lead"]), after
        code = lines[at:after]
        named = _TITLE.search(info) or _LABEL.search(info)
        if info.startswith("{") or named:
            language = _LANGUAGE.match(info)
            said = language[1] if language and not info.startswith(("[", "{title")) else ""
            code[0] = f"{found['lead']}{marks}{said}"
        if named and (title := next(filter(None, named.groups()), "")):
            return [f"{found['lead']}**{title}**", "", *code], after
        return code, after

    def _container(
        self, found: re.Match[str], lines: list[str], at: int, depth: int
    ) -> tuple[list[str], int] | None:
        """What stands between a line of colons and its end."""
        marks, lead = found["marks"], found["lead"]
        kind = found["braced"] or found["kind"]
        title = found["title"].strip().removeprefix("|").strip()
        end = self._ends(lines).get(at)
        if end is None:
            options, after = _body(lines, at + 1, _width(lead) + 4)
            if marks[0] != ":" or title or not (options or _PATH.match(kind)):
                return None
            return [f"{lead}`{kind}`"], after  # what mkdocstrings would put here
        if labelled := re.match(r"\[([^\[\]]*)\]|\{[^{}]*\btitle=\"([^\"]*)\"[^{}]*\}", title):
            title = labelled[1] or labelled[2] or ""
        body = _dedented(lines[at + 1 : end], _width(lead))
        return _indented(self._directive(kind, title, body, depth), lead), end + 1

    def _ends(self, lines: list[str]) -> dict[int, int]:
        """The line that ends each container, by the line that begins it."""
        ends = self._ended.get(id(lines))
        if ends is None:
            ends = self._ended[id(lines)] = {}
            open_: dict[str, list[int]] = {}
            for number, line in enumerate(lines):
                if ":::" not in line and "///" not in line:
                    continue
                if found := _CONTAINER_END.match(line):
                    if waiting := open_.get(found[1]):
                        ends[waiting.pop()] = number
                elif found := _CONTAINER.match(line):
                    open_.setdefault(found["marks"], []).append(number)
        return ends

    def _directive(self, kind: str, title: str, body: list[str], depth: int) -> list[str]:
        """What a directive or a container says."""
        options, body = _options(body)
        kind = kind.lower().rpartition(":")[2]
        if kind in _NOTHING:
            return []
        if kind in _CODE:
            language = "" if kind == "parsed-literal" else title.split(" ", maxsplit=1)[0]
            caption = options.get("caption", "")
            code = fence("\n".join(body), language).split("\n")
            return [f"**{caption}**", "", *code] if caption else code
        if kind == "math":
            return ["$$", *([title] if title else []), *body, "$$"]
        if kind == "toctree":
            return [line for entry in body if (line := _toctree_link(entry.strip()))]
        if kind == "mermaid":
            return fence("\n".join(body), "mermaid").split("\n")
        inner = self.lines(body, depth + 1)
        if kind in _PICTURES:
            picture = [f"![{options.get('alt', '')}]({title})", ""] if title else []
            return [*picture, *inner]
        if kind in _VERSIONS:
            said = f"{_VERSIONS[kind]} {title}".strip()
            return _quoted(said, inner)
        if kind in _ADMONITIONS or kind in _FOLDED:
            return _quoted(_titled(options.get("type", kind), title or None), inner)
        if title and kind not in _UNNAMED:
            return [f"**{title}**", "", *inner]
        return inner

    def _terms(
        self, lines: list[str], at: int, depth: int, out: list[str]
    ) -> tuple[list[str], int] | None:
        """A term and its definitions, which begin with a colon, as an item of a list."""
        if not _TERM.match(lines[at]) or at + 1 == len(lines) or (out and out[-1].strip()):
            return None
        first = at + 1
        while first < len(lines) and first - at < 5 and _TERM.match(lines[first]):
            first += 1
        terms = [line.strip() for line in lines[at:first]]
        if first < len(lines) and not lines[first].strip():
            first += 1
        if first == len(lines) or not (found := _DEFINITION.match(lines[first])):
            return None
        inner: list[str] = []
        end = first
        while found:
            body, end = _body(lines, end + 1, len(found["lead"]), lazy=True)
            inner += self.lines([found["text"], *body], depth + 1)
            more = end
            while more < len(lines) and not lines[more].strip():
                more += 1
            found = _DEFINITION.match(lines[more]) if more < len(lines) else None
            if found:
                inner.append("")
                end = more
        head = ", ".join(terms)
        head = head if re.fullmatch(r"`[^`]+`|\*\*[^*]+\*\*", head) else f"**{head}**"
        return _item(f"{head}: ", inner), end


@lru_cache(maxsize=64)
def _closing(marks: str) -> re.Pattern[str]:
    return re.compile(rf"[ \t]*{marks[0]}{{{len(marks)},}}[ \t]*$")


_STARTS = frozenset("`~!?=>:/[*")


def _item(head: str, inner: list[str]) -> list[str]:
    """An item of a list that begins with what it is about."""
    while inner and not inner[-1].strip():
        inner.pop()
    if inner and _BEGINS_BLOCK.match(inner[0].lstrip()):
        inner = ["", *inner]
        head = head.removesuffix(": ")
    first, *rest = inner or [""]
    return [
        f"-   {head}{first}".rstrip(),
        *(f"    {line}" if line.strip() else "" for line in rest),
    ]


def _quoted(title: str, inner: list[str]) -> list[str]:
    """An admonition as kbkit keeps it: a quotation, its title in bold."""
    text = "\n".join(inner).strip("\n")
    parts = [f"**{title}**"] if title else []
    return (
        quote("\n\n".join([*parts, text] if text else parts)).split("\n") if parts or text else []
    )


def _indented(block: list[str], lead: str) -> list[str]:
    return indent("\n".join(block), lead).split("\n") if block else []


def _titled(kind: str, title: str | None) -> str:
    """What names an admonition; a title of its own follows what kind it is, which pages draw.

    Args:
        kind: As it is written.
        title: Its own one; ``""`` for none at all in dialects that say so, ``None`` for its kind's.
    """
    first = (title or "").split(" ", maxsplit=1)[0].lower().rstrip(":!.,")
    if title and kind.split(" ", maxsplit=1)[0].lower() in _TOLD and first not in _ADMONITIONS:
        return f"{_named(kind)}: {title}"
    return _named(kind) if title is None else title


def _named(kind: str) -> str:
    """What an admonition of a kind is called that has no title."""
    kind = kind.split(" ", maxsplit=1)[0].lower()
    return _NAMES.get(kind, kind.replace("-", " ").capitalize())


def _width(lead: str) -> int:
    return len(lead.expandtabs(4))


def _body(lines: list[str], at: int, width: int, *, lazy: bool = False) -> tuple[list[str], int]:
    """The lines that are indented below one, without that indentation, and the line behind them.

    Args:
        lines: All lines.
        at: The first that may be.
        width: Columns of the indentation.
        lazy: A paragraph goes on in lines that are not indented.
    """
    end = at
    while end < len(lines):
        line = lines[end]
        if line.strip():
            lead = _width(line[: len(line) - len(line.lstrip(" \t"))])
            goes_on = lazy and lines[end - 1].strip() and _TERM.match(line)
            if lead < width and not goes_on:
                break
        end += 1
    while end > at and not lines[end - 1].strip():
        end -= 1
    return _dedented(lines[at:end], width), end


def _dedented(lines: list[str], width: int) -> list[str]:
    """Lines without so many columns of white space in front, as far as they have them."""
    return [_cut(line, width) for line in lines] if width else lines


def _cut(line: str, width: int) -> str:
    bare = line.lstrip(" \t")
    lead = line[: len(line) - len(bare)].expandtabs(4)
    return lead[width:] + bare


def _options(body: list[str]) -> tuple[dict[str, str], list[str]]:
    """The options that a directive begins with, and its text."""
    options: dict[str, str] = {}
    at = 0
    if body and body[0].strip() == "---":  # as YAML
        end = next((n for n, line in enumerate(body[1:], 1) if line.strip() == "---"), 0)
        return options, body[end + 1 :] if end else body
    while at < len(body) and (found := _OPTION.match(body[at])):
        options[found["name"]] = found["value"].strip()
        at += 1
    if not at:
        while at < len(body) and _YAML_OPTION.match(body[at]):
            name, _, value = body[at].partition(":")
            options[name.strip()] = value.strip()
            at += 1
    return options, body[at:]


def _toctree_link(entry: str) -> str:
    """An entry of a table of contents as an item of a list."""
    titled = re.fullmatch(r"(.*\S)[ \t]*<([^<>\s]+)>", entry)
    place = titled[2] if titled else entry
    if not entry or entry == "self" or "*" in place or re.search(r"[\s()]", place):
        return ""
    name = titled[1] if titled else place.rpartition("/")[2]
    suffix = "" if "://" in place or re.search(r"\.\w{2,4}$", place) else ".md"
    return f"-   [{name}]({place}{suffix})"


def labels(text: str) -> Iterator[str]:
    """The labels of the footnotes that a text defines, in any dialect of Markdown."""
    return (found["label"] for line in text.split("\n") if (found := _FOOTNOTE.match(line)))
