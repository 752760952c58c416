"""Definition lists in an HTML tree: their parts, and terms that nothing links to."""

from __future__ import annotations

import re

from kbkit.markdown.writing import bold, indent
from kbkit.sources.html.dom import Element


def definition_parts(element: Element) -> list[Element]:
    """Terms and definitions, also where ``div`` groups them."""
    parts: list[Element] = []
    for child in element:
        if child.tag == "div":
            parts.extend(inner for inner in child if isinstance(inner.tag, str))
        elif isinstance(child.tag, str):
            parts.append(child)
    return parts


def write_terms(terms: list[str], blocks: list[str], out: list[str]) -> None:
    """Write terms that nothing links to as an item of a list."""
    if not terms:
        out.extend(blocks)
        return
    head = ", ".join(term.rstrip(": ") for term in terms)
    head = head if head.startswith("`") and head.endswith("`") else bold(head)
    terms.clear()
    if blocks and not re.match(r"(?:[-#>|]|\d+\.|`{3,}[^`\n]*\n)", blocks[0]):
        first = f"-   {head}: {indent(blocks[0], '    ')[4:]}"
        rest = blocks[1:]
    else:
        first, rest = f"-   {head}", blocks
    out.append("\n\n".join([first, *(indent(block, "    ") for block in rest)]))
