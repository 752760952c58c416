"""Extensions of the Markdown parser: definition lists, footnotes, formulas and wiki links."""

import html
import re
import tomllib
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import count, pairwise
from pathlib import Path
from typing import Any

import nh3
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token

from kbkit.text.markdown import Block, blocks, change_blocks
from kbkit.text.markdown.sanitizing import escape
from kbkit.text.markdown.structure import CODE_SPAN, WIKI_LINK

_MAX_BETWEEN = 4  # characters between two equivalent terms: a comma, a bar, an ``or``


def make_definition_lists(tokens: list[Token]) -> list[Token]:
    terms: list[Token] = []
    for start in reversed([n for n, part in enumerate(tokens) if part.type == "bullet_list_open"]):
        end, level = end_of(tokens, start), tokens[start].level + 1
        items = [
            n
            for n in range(start, end)
            if tokens[n].type == "list_item_open" and tokens[n].level == level
        ]
        lengths = [_term(tokens[item + 1 : item + 4]) for item in items]
        if not items or not all(lengths):
            continue
        tokens[start].tag = tokens[end].tag = "dl"
        for item, length in zip(reversed(items), reversed(lengths), strict=True):
            tokens[item].tag = tokens[end_of(tokens, item)].tag = "dd"
            name = _name(tokens[item + 2], length)
            tokens[item:item] = name
            terms[:0] = name[:2]
    return terms


def end_of(tokens: Sequence[Token], start: int) -> int:
    level = tokens[start].level
    return next(n for n in range(start + 1, len(tokens)) if tokens[n].level == level)


def _term(begin: Sequence[Token]) -> int:
    """Count the tokens of the term that begins an item, bold marks included; 0 without one."""
    if [token.type for token in begin[:2]] != ["paragraph_open", "inline"]:
        return 0
    children = begin[1].children or []
    # markdown-it puts an empty text token before bold text
    kind = next((child.type for child in children if child.type != "text" or child.content), "")
    if kind not in {"strong_open", "code_inline"}:
        return 0
    depth = 0
    for number, (child, follows) in enumerate(pairwise(children), 1):
        depth += (child.type == "strong_open") - (child.type == "strong_close")
        if child.type in {"strong_close", "code_inline"} and not depth:
            if follows.content.startswith(":"):
                return number
            if len(follows.content) > _MAX_BETWEEN:
                return 0
    return 0


def _name(inline: Token, length: int) -> list[Token]:
    children = inline.children or []
    name_tokens = [child for child in children[:length] if not child.type.startswith("strong_")]
    definition = children[length:]
    definition[0].content = definition[0].content.removeprefix(":").lstrip()
    inline.children = definition
    opening = Token("dt_open", "dt", 1, block=True, level=inline.level - 1)
    text = Token("inline", "", 0, content="", children=name_tokens, level=inline.level)
    return [opening, text, Token("dt_close", "dt", -1, block=True, level=inline.level - 1)]


_PREFIX = "fn-"
_BACK = '<a class="kb-back" href="#%s" title="Back to the text">↩</a>'


def note_anchor(label: str) -> str:
    return _PREFIX + re.sub(r"[^\w.-]", "-", label)


def link_notes(tokens: list[Token], used: set[str]) -> None:
    notes = {
        str(token.attrGet("id")): number
        for number, token in enumerate(tokens)
        if token.type == "list_item_open" and str(token.attrGet("id")).startswith(_PREFIX)
    }
    references: dict[str, list[str]] = {}
    for token in tokens if notes else ():
        for link in token.children or []:
            note = str(link.attrGet("href") or "").removeprefix("#")
            if link.type == "link_open" and note in notes:
                names = (f"{note}-ref-{number}" for number in count(1))
                reference = next(name for name in names if name not in used)
                used.add(reference)
                link.attrSet("id", reference)
                link.attrSet("class", "kb-note")
                references.setdefault(note, []).append(reference)
    for note, number in notes.items():
        note_tokens = reversed(tokens[number : end_of(tokens, number)])
        text = next((token for token in note_tokens if token.type == "inline"), None)
        if text is not None:
            backlinks = "".join(f" {_BACK % reference}" for reference in references.get(note, ()))
            text.children = [*(text.children or []), Token("html_inline", "", 0, content=backlinks)]


_FORMULA = re.compile(r"\$\$(?=[^$])[^$]{1,4000}\$\$|\$(?=[^\s$])[^$\n]{0,500}(?<=[^\s\\])\$(?!\w)")
_TEX = re.compile(r"\\[A-Za-z]|[\^_]\{")
_WORD = re.compile(r"[A-Za-z]{3}|\s[A-Za-z]{2}\s")
_MAX_BRACES = 200
_UNSEEN = re.compile(r"\\(?:(?:label|tag\*?)\{[^{}]*\}|nonumber\b|notag\b)")
_ENVIRONMENTS = re.compile(
    r"\\(?P<place>begin|end)\{(?P<name>align|alignat|eqnarray|flalign|split|gather|multline|equation"
    r"|displaymath|math|array)\*?\}(?:(?<=array\})\{[^{}]*\})?"
)
_KNOWN = {
    **dict.fromkeys(
        ("align", "alignat", "eqnarray", "flalign", "split", "gather", "multline"), "aligned"
    ),
    "array": "matrix",
}
_BETWEEN = re.compile(r"(?<=>)\n\s*(?=<)")
_MARK = '<span class="kb-math">%s</span>'
_MARKED = re.compile(_MARK % r"([^<]*)")


def allowed(kind: str) -> dict[str, Any]:
    """Return nh3's arguments for allowed elements: ``html`` or ``mathml``."""
    allowed_names = tomllib.loads(Path(__file__).with_name("allowed.toml").read_text("utf-8"))[kind]
    attributes = {tag: set(names.split()) for tag, names in allowed_names["attributes"].items()}
    return {"tags": set(allowed_names["tags"].split()), "attributes": attributes}


_ALLOWED = allowed("mathml")


def formula(state: StateInline, silent: bool) -> bool:
    """A rule of markdown-it: TeX between dollars is one token, with its dollars."""
    match = _FORMULA.match(state.src, state.pos) if state.src[state.pos] == "$" else None
    if match is None:
        return False
    if not silent:
        previous = state.src[state.pos - 1 : state.pos]
        is_tex = "$$" in match[0] or _TEX.search(match[0]) or not _WORD.search(match[0])
        kind = "formula" if is_tex and not previous.isalnum() else "text"
        state.push(kind, "", 0).content = html.unescape(match[0])
    state.pos = match.end()
    return True


def with_mathml(page: str) -> str:
    return _MARKED.sub(lambda match: mathml(html.unescape(match[1])) or match[0], page)


def mark_formula(_: object, tokens: Sequence[Token], number: int, *__: object) -> str:
    """A rule of markdown-it: mark a formula's text for `with_mathml`."""
    return _MARK % html.escape(tokens[number].content, quote=False)


@lru_cache(maxsize=4_096)
def mathml(text: str) -> str:
    """Convert a formula to MathML, ``""`` if it is not supported."""
    # imported here because most pages have no formula
    from docutils.utils.math.latex2mathml import tex2mathml

    tex = text.strip("$").strip()
    if max(tex.count("{"), tex.count("\\left")) > _MAX_BRACES:
        return ""
    tex = _ENVIRONMENTS.sub(_environment, _UNSEEN.sub("", tex))
    try:
        markup = tex2mathml(tex, as_block=text.startswith("$$"))
    except (ValueError, LookupError, AttributeError, TypeError, RecursionError):
        return ""  # tex2mathml handles few errors in formulas itself
    return nh3.clean(_BETWEEN.sub("", markup), **_ALLOWED)


def _environment(match: re.Match[str]) -> str:
    name = _KNOWN.get(match["name"], "")
    return f"\\{match['place']}{{{name}}}" if name else ""


Address = Callable[[str, str], str | None]
"""Address of a name and heading (``""`` for none); ``None`` if unknown."""


def resolve_wiki_links(markdown: str, address: Address, *, keep: bool = False) -> str:
    """Convert links by name outside code to Markdown; broken ones become text, or stay (`keep`)."""
    if "[[" not in markdown:
        return markdown

    def linked(match: re.Match[str]) -> str:
        name, heading = match[1].strip(), (match[2] or "").strip()
        text = escape(match[3] or (f"{name} › {heading}" if heading else name))
        target = address(name, heading)
        if target is None:
            return match[0] if keep else text
        return f"[{text}]({target})"

    def prose(text: str) -> str:
        return _LINK.sub(linked, text) if "[[" in text else text

    def resolved(block: Block, text: str) -> str:
        return text if block.is_verbatim else outside_code(text, prose)

    return change_blocks(markdown, blocks(markdown), resolved)


_LINK = re.compile("!?" + WIKI_LINK.pattern)


def outside_code(text: str, change: Callable[[str], str]) -> str:
    """Change the text between inline code."""
    parts, at = [], 0
    for span in CODE_SPAN.finditer(text):
        parts += [change(text[at : span.start()]), span[0]]
        at = span.end()
    return "".join([*parts, change(text[at:])])
