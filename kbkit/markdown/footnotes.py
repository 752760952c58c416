"""Footnotes on pages, linked in both directions.

A note is an item of a list with an anchor, a reference a link to it; `note_anchor` tells both.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from markdown_it.token import Token

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
    places: dict[str, list[str]] = {}
    for token in tokens if notes else ():
        for link in token.children or []:
            note = str(link.attrGet("href") or "").removeprefix("#")
            if link.type == "link_open" and note in notes:
                place = _place(note, used)
                link.attrSet("id", place)
                link.attrSet("class", "kb-note")
                places.setdefault(note, []).append(place)
    for note, number in notes.items():
        text = next(_texts(tokens, number), None)
        if text is not None:
            back = "".join(f" {_BACK % place}" for place in places.get(note, ()))
            text.children = [*(text.children or []), Token("html_inline", "", 0, content=back)]


def _place(note: str, used: set[str]) -> str:
    number = 1
    while (place := f"{note}-ref-{number}") in used:
        number += 1
    used.add(place)
    return place


def _texts(tokens: list[Token], item: int) -> Iterator[Token]:
    level = tokens[item].level
    end = next(n for n in range(item + 1, len(tokens)) if tokens[n].level == level)
    return (token for token in reversed(tokens[item:end]) if token.type == "inline")
