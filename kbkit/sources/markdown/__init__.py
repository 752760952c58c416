"""Convert Markdown dialects to the Markdown that kbkit stores: CommonMark with tables and anchors.

* here: admonitions, tabs, details and directives of MkDocs, GitHub, MyST, Docusaurus and
  VitePress, footnotes, definition lists, abbreviations, components of MDX;
* `inline`: emoji codes, roles, attribute lists, tasks, tags, raw HTML.

Code is never changed.
"""

import re
from collections import defaultdict
from functools import cached_property
from itertools import takewhile
from textwrap import dedent

from kbkit.sources.markdown import lines as pieces
from kbkit.sources.markdown.inline import formula_block, formula_lines, heading_titles, plain_markup
from kbkit.sources.markdown.lines import caption, indent_block, quote_block, width_of
from kbkit.text.markdown.extensions import note_anchor
from kbkit.text.markdown.structure import split_anchor
from kbkit.text.markdown.writing import CODE, KINDS, NAMING, SILENT, VERSIONS, fence, title_of


def commonmark(text: str, *, components: bool = False) -> str:
    lines = text.split("\n")
    directives = _USES_DIRECTIVES.search(text) is not None
    unfolded = "\n".join(_Unfolding(lines, components, directives, 0).unfold())
    targets = heading_titles(unfolded) if "ref}`" in unfolded else {}
    notes = frozenset(match["label"] for line in lines if (match := _FOOTNOTE.match(line)))
    return plain_markup(unfolded, notes=notes, components=components, targets=targets)


_MODULE = re.compile(
    r"(?:import[ \t{*'\"].*|export[ \t]+(?:const|default|let|var|function|async|\{).*)$"
)
_BRACKETS = re.compile(r"[({\[]|[)}\]]")
_MAX_MODULE_LENGTH = 500  # lines
_OPENING = re.compile(r"[ \t]*<(?P<name>[A-Z][\w.]*)(?P<rest>(?:[ \t][^<>]*)?)(?<!/)>[ \t]*$")
_ATTRIBUTE = r"""\b(?:%s)=(?:"([^"\n]*)"|'([^'\n]*)'|\{[ ]*["'`]([^"'`\n{}]*)["'`][ ]*\})"""
_TITLE_ATTRIBUTE = re.compile(_ATTRIBUTE % "title|label|header|summary")
_TYPE = re.compile(_ATTRIBUTE % "type|kind|variant")
_CLOSING = re.compile(r"[ \t]*</(?P<name>[A-Z][\w.]*)[ \t]*>[ \t]*$")
_CODE_FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})")


def module_end(lines: list[str], at: int) -> int:
    """Return the blank line outside brackets after an ``import`` or ``export``, or 0."""
    if not _MODULE.match(lines[at]):
        return 0
    depth = 0
    for number, line in enumerate(lines[at : at + _MAX_MODULE_LENGTH], at):
        if not line.strip() and depth <= 0:
            return number
        depth += sum(1 if bracket in "({[" else -1 for bracket in _BRACKETS.findall(line))
    return len(lines) if depth <= 0 and len(lines) - at <= _MAX_MODULE_LENGTH else at + 1


_DEEPEST = 12
_MAX_TERMS = 5  # of one definition
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
_COMMENT = re.compile(r"%(?:[ \t]|$)|\+\+\+(?:[ \t]*\{.*\}|[ \t]*)$")
_USES_DIRECTIVES = re.compile(
    r"^[ \t]*(?:`{3,}|:{3,}|~{3,})\{[\w:.-]+\}|^\([\w.:/+-]{1,200}\)=[ \t]*$", re.MULTILINE
)
_PATH = re.compile(r"\w+(?:[.:]+\w+)+$")
_TITLE = re.compile(r"""\btitle=(?:"([^"\n]*)"|'([^'\n]*)'|(\S+))""")
_LABEL = re.compile(r"\[([^\[\]\n]+)\]")
_LANGUAGE = re.compile(r"\{?[ \t]*\.?([A-Za-z0-9+#_-][\w+#.-]*)")

_FOLDED = frozenset({"details", "dropdown", "spoiler", "collapse", "toggle"})
_UNNAMED = frozenset({"html", "code-group", "div", "grid", "container", "tab-set", "figure"})
"""Containers whose argument is not a title."""
_Written = tuple[list[str], int]  # a block, and the line after it


class _Unfolding:
    """Unfolds lines and the blocks nested in them."""

    def __init__(self, lines: list[str], components: bool, directives: bool, depth: int) -> None:
        self._lines = lines
        self._components = components
        self._directives = directives  # MyST, which has its own comments and block breaks
        self._depth = depth

    def _inner(self, lines: list[str]) -> list[str]:
        return _Unfolding(lines, self._components, self._directives, self._depth + 1).unfold()

    def unfold(self) -> list[str]:
        """Convert the lines to CommonMark; blocks nested too deeply stay."""
        lines = self._lines
        if self._depth > _DEEPEST:
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
            begins_block = line.lstrip(" \t").startswith(_BLOCK_STARTS)
            converted = (self._block(at) if begins_block else None) or self._terms(at, out)
            if converted is not None:
                block, at = converted
                if block and out and out[-1].strip():
                    out.append("")
                out += block
                if block and at < len(lines) and lines[at].strip():
                    out.append("")
            elif match := _ALERT.match(line):
                title = title_of(match["kind"], match["title"] or None)
                out += [f"{match['lead']}**{title}**", match["lead"].rstrip()]
                at += 1
            elif match := _TARGET.match(line):
                target = match["name"]
                at += 1
            elif self._components and (end := module_end(lines, at)):
                at = end
            else:
                is_comment = self._directives and _COMMENT.match(line)
                out += [] if is_comment or _DROPPED.match(line) else [line]
                at += 1
        return out

    def _block(self, at: int) -> _Written | None:
        line = self._lines[at]
        if match := _FENCE.match(line):
            return self._fence(match, at)
        if match := _ADMONITION.match(line):
            inner, after = self._indented(match, at)
            block = quote_block(title_of(match["kind"], match["title"]), inner)
            return indent_block(block, match["lead"]), after
        if match := _TAB.match(line):
            inner, after = self._indented(match, at)
            return indent_block([f"**{match['title']}**", "", *inner], match["lead"]), after
        if match := _CONTAINER.match(line):
            return self._container(match, at)
        if match := _FOOTNOTE.match(line):
            body, after = pieces.body_below(self._lines, at + 1, 4, lazy=True)
            return _note(match["label"], self._inner([match["text"], *body])), after
        if formula := formula_block(self._lines, at):
            return formula
        if self._components and at in self._ends and (match := _OPENING.match(line)):
            end = self._ends[at]
            return self._component(match, self._lines[at + 1 : end]), end + 1
        if match := _ABBREVIATION.match(line):
            return [f"*   **{match['name']}**: {match['text']}"], at + 1
        return None

    def _indented(self, match: re.Match[str], at: int) -> _Written:
        body, next_line = pieces.body_below(self._lines, at + 1, width_of(match["lead"]) + 4)
        return self._inner(body), next_line

    def _fence(self, match: re.Match[str], at: int) -> _Written | None:
        lines = self._lines
        marks, info = match["marks"], match["info"]
        if marks[0] == "`" and "`" in info:
            return None
        closing = re.compile(rf"[ \t]*{marks[0]}{{{len(marks)},}}[ \t]*$")
        end = next((n for n in range(at + 1, len(lines)) if closing.match(lines[n])), len(lines))
        next_line = min(end + 1, len(lines))
        directive = _DIRECTIVE.match(info) if not info.startswith("{.") else None
        if directive or info.strip() == "math":
            body = pieces.dedent_lines(lines[at + 1 : end], width_of(match["lead"]))
            if directive:
                block = self._directive(directive["kind"], directive["title"], body)
            else:
                block = formula_lines(body)
            return indent_block(block, match["lead"]), next_line
        code = lines[at:next_line]
        title = _value(_TITLE, info) or _value(_LABEL, info)
        if "{" in info or title or _TITLE.search(info):
            language = _LANGUAGE.match(info) if not info.startswith("{title") else None
            code[0] = f"{match['lead']}{marks}{language[1] if language else ''}"
        if title:
            return [f"{match['lead']}**{title}**", "", *code], next_line
        return code, next_line

    def _container(self, match: re.Match[str], at: int) -> _Written | None:
        marks, lead = match["marks"], match["lead"]
        kind = match["braced"] or match["kind"]
        title = match["title"].strip().removeprefix("|").strip()
        end = self._ends.get(at)
        if end is None:
            options, next_line = pieces.body_below(self._lines, at + 1, width_of(lead) + 4)
            if marks[0] != ":" or title or not (options or _PATH.match(kind)):
                return None
            return [f"{lead}`{kind}`"], next_line  # mkdocstrings would insert its documentation
        if labelled := re.match(r"\[([^\[\]]*)\]|\{[^{}]*\btitle=\"([^\"]*)\"[^{}]*\}", title):
            title = labelled[1] or labelled[2] or ""
        body = pieces.dedent_lines(self._lines[at + 1 : end], width_of(lead))
        return indent_block(self._directive(kind, title, body), lead), end + 1

    @cached_property
    def _ends(self) -> dict[int, int]:
        """The last line of each container and component, by its first."""
        ends: dict[int, int] = {}
        waiting: defaultdict[str, list[int]] = defaultdict(list)
        fence = ""
        for number, line in enumerate(self._lines):
            if (code := _CODE_FENCE.match(line)) and (not fence or code[1].startswith(fence)):
                fence = "" if fence else code[1]
            elif fence or not line.lstrip(" \t").startswith(("<", ":::", "///")):
                continue
            elif end := _CONTAINER_END.match(line) or _CLOSING.match(line):
                if starts := waiting[end[1]]:
                    ends[starts.pop()] = number
            elif start := _CONTAINER.match(line):
                waiting[start["marks"]].append(number)
            elif start := _OPENING.match(line):
                waiting[start["name"]].append(number)
        return ends

    def _directive(self, kind: str, title: str, body: list[str]) -> list[str]:
        options, body = pieces.options_of(body)
        kind = kind.lower().rpartition(":")[2]
        if kind in SILENT and not (kind in NAMING and any(map(str.strip, body))):
            return []
        if (block := _verbatim(kind, title, options, body)) is not None:
            return block
        if kind == "glossary":
            body = pieces.glossary(body)
        inner = self._inner(body)
        if kind == "list-table":
            return [*caption(title), *pieces.list_table(inner)]
        if kind in {"image", "figure", "figure-md"}:
            return [f"![{options.get('alt', '')}]({title})", "", *inner] if title else inner
        if kind in VERSIONS:
            return quote_block(f"{VERSIONS[kind]} {title}".strip(), inner)
        if kind in KINDS or kind in _FOLDED:
            kind = options.get("type") or (kind if kind in KINDS else "details")
            if kind == "admonition":
                kind = next(filter(KINDS.__contains__, options.get("class", "").split()), kind)
            return quote_block(title_of(kind, title or None), inner)
        return [*(caption(title) if kind not in _UNNAMED else []), *inner]

    def _component(self, match: re.Match[str], body: list[str]) -> list[str]:
        kind, title = match["name"].lower(), _value(_TITLE_ATTRIBUTE, match["rest"])
        if kind in {"admonition", "callout", "aside", "alert"}:
            kind = (_value(_TYPE, match["rest"]) or kind).lower()
        inner = self._inner(dedent("\n".join(body)).split("\n"))
        if kind in KINDS:
            return quote_block(title_of(kind, title or None), inner)
        return [*caption(title), *inner]

    def _terms(self, at: int, out: list[str]) -> _Written | None:
        lines = self._lines
        if out and out[-1].strip():
            return None
        terms = list(takewhile(pieces.TERM.match, lines[at : at + _MAX_TERMS]))
        first = at + len(terms)
        first += not "".join(lines[first : first + 1]).strip()
        if not terms or first >= len(lines) or not _DEFINITION.match(lines[first]):
            return None
        inner: list[str] = []
        next_line: int | None = first
        while next_line is not None and (match := _DEFINITION.match(lines[next_line])):
            body, end = pieces.body_below(lines, next_line + 1, len(match["lead"]), lazy=True)
            inner += ["", *self._inner([match["text"], *body])]
            next_line = next((n for n in range(end, len(lines)) if lines[n].strip()), None)
        head = ", ".join(map(str.strip, terms))
        head = head if re.fullmatch(r"`[^`]+`|\*\*[^*]+\*\*", head) else f"**{head}**"
        return pieces.list_item("*", f"{head}: ", inner[1:]), end


def _verbatim(kind: str, title: str, options: dict[str, str], body: list[str]) -> list[str] | None:
    text = "\n".join(body)
    if kind in CODE:
        language = "" if kind == "parsed-literal" else title.split(" ", maxsplit=1)[0]
        return [*caption(options.get("caption", "")), *fence(text, language).split("\n")]
    if kind == "mermaid":
        return fence(text, kind).split("\n")
    if kind == "eval-rst":
        from kbkit.sources.restructured_text import markdown_of_rst  # few texts need docutils

        return markdown_of_rst(text).split("\n")
    if kind == "math":
        return formula_lines([title, *body])
    return pieces.toctree(body) if kind == "toctree" else None


def _value(attribute: re.Pattern[str], text: str) -> str:
    match = attribute.search(text)
    return next(filter(None, match.groups()), "") if match else ""


_BLOCK_STARTS = tuple("`~!?=>:/[*<$\\")


def _note(label: str, inner: list[str]) -> list[str]:
    item = pieces.list_item("+", f"\\[{label}\\]: ", inner)
    blank = next((n for n, line in enumerate(item) if n and not line.strip()), len(item))
    return [*item[: blank - 1], f"{item[blank - 1]} {{#{note_anchor(label)}}}", *item[blank:]]
