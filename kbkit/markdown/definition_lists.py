"""Definition lists, for which CommonMark has no syntax.

Documents keep them as lists whose items begin with a term in bold, or with code, and a colon. On
pages they become what they were: a ``dl``, whose terms have anchors of their own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from markdown_it.token import Token

_BETWEEN = 4
"""Maximum characters between two equivalent terms: a comma, a bar, an ``or``."""


def make_definition_lists(tokens: list[Token]) -> list[Token]:
    terms: list[Token] = []
    for start in reversed([n for n, one in enumerate(tokens) if one.type == "bullet_list_open"]):
        items = list(_items(tokens, start))
        found = [_term(tokens[item + 1 : item + 4]) for item in items]
        if not items or not all(found):
            continue
        end = _end(tokens, start)
        tokens[start].tag = tokens[end].tag = "dl"
        added: list[Token] = []
        for item, length in zip(reversed(items), reversed(found), strict=True):
            inline = tokens[item + 2]
            tokens[item].tag = tokens[_end(tokens, item)].tag = "dd"
            name = _name(inline, length)
            tokens[item:item] = name
            added = [*name[:2], *added]
        terms = [*added, *terms]
    return terms


def _items(tokens: Sequence[Token], start: int) -> Iterator[int]:
    for number in range(start + 1, len(tokens)):
        token = tokens[number]
        if token.level == tokens[start].level:
            return
        if token.type == "list_item_open" and token.level == tokens[start].level + 1:
            yield number


def _end(tokens: Sequence[Token], start: int) -> int:
    level = tokens[start].level
    return next(n for n in range(start + 1, len(tokens)) if tokens[n].level == level)


def _term(begin: Sequence[Token]) -> int:
    """Count the tokens of the term that begins an item, bold marks included; 0 without one."""
    if [token.type for token in begin[:2]] != ["paragraph_open", "inline"]:
        return 0
    children = begin[1].children or []
    # the parser begins bold text with an empty one
    first = next((child.type for child in children if child.type != "text" or child.content), "")
    if first not in {"strong_open", "code_inline"}:
        return 0
    depth = 0
    for number, child in enumerate(children[:-1]):
        depth += (child.type == "strong_open") - (child.type == "strong_close")
        if child.type in {"strong_close", "code_inline"} and not depth:
            follows = children[number + 1]
            if follows.content.startswith(":"):
                return number + 1
            if len(follows.content) > _BETWEEN:
                return 0
    return 0


def _name(inline: Token, length: int) -> list[Token]:
    """Move a term's tokens into an element of their own."""
    children = inline.children or []
    named = [child for child in children[:length] if not child.type.startswith("strong_")]
    rest = children[length:]
    rest[0].content = rest[0].content.removeprefix(":").lstrip()
    inline.children = rest
    opened = Token("dt_open", "dt", 1, block=True, level=inline.level - 1)
    text = Token("inline", "", 0, content="", children=named, level=inline.level)
    return [opened, text, Token("dt_close", "dt", -1, block=True, level=inline.level - 1)]
