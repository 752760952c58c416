"""Definition lists in an HTML tree: their parts, and terms that are items of a list."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from lxml import etree

from kbkit.markdown.writing import bold, indent
from kbkit.sources.html.dom import Element

_BLOCK = re.compile(r"(?:[-#>|]|\d+\. |`{3,}[^`\n]*\n)")  # what cannot stand behind a term
_COLON = re.compile(r":(?=\]\([^()\s]*\)$)")  # at the end of a link


class Term(NamedTuple):
    """What a list explains.

    Attributes:
        text: Markdown.
        place: The fragment that leads to it, or ``""``.
    """

    text: str
    place: str


def definition_groups(element: Element) -> list[tuple[list[Element], list[Element]]]:
    """Terms with what is said of them, also where ``div`` groups them."""
    parts: list[Element] = []
    for child in element:
        if child.tag == "div":
            parts.extend(inner for inner in child if isinstance(inner.tag, str))
        elif isinstance(child.tag, str):
            parts.append(child)
    groups: list[tuple[list[Element], list[Element]]] = []
    for part in parts:
        if not groups or (part.tag == "dt" and groups[-1][1]):
            groups.append(([], []))
        groups[-1][part.tag != "dt"].append(part)
    return groups


def gather_terms(region: Element) -> None:
    """Put terms that stand in no list, and what is said of them, into one; in place."""
    for term in list(region.iter("dt")):
        around = term.getparent()
        outer = around.getparent() if around is not None and around.tag == "div" else None
        if around is None or "dl" in (around.tag, getattr(outer, "tag", "")):
            continue
        found = etree.Element("dl")
        term.addprevious(found)
        part = term
        while part is not None and part.tag in ("dt", "dd"):
            behind = part.getnext() if not (part.tail or "").strip() else None
            found.append(part)
            part = behind
        found.tail, found[-1].tail = found[-1].tail, None


def write_terms(terms: Sequence[Term], blocks: list[str], out: list[str]) -> None:
    """Write terms and what is said of them as an item of a list.

    An item has one anchor, so of terms with several the first are items of their own.
    """
    names: list[str] = []
    place = ""
    for term in terms:
        if place and term.place:
            out.append(_item(names, place, []))
            names, place = [], ""
        names.append(term.text)
        place = place or term.place
    if names:
        out.append(_item(names, place, blocks))
    else:
        out.extend(blocks)


def _item(names: list[str], place: str, blocks: list[str]) -> str:
    head = ", ".join(_COLON.sub("", name.rstrip(": ")) for name in names)
    head = head if head.startswith("`") and head.endswith("`") else bold(head)
    mark = f" {{#{place}}}" if place else ""
    if blocks and not _BLOCK.match(blocks[0]) and not (mark and blocks[0].endswith("}")):
        first, rest = f"-   {head}: {indent(blocks[0], '    ')[4:]}{mark}", blocks[1:]
    else:
        first, rest = f"-   {head}{mark}", blocks
    return "\n\n".join([first, *(indent(block, "    ") for block in rest)])
