"""Lines of Markdown: what is indented below one, options, and the blocks that are written."""

from __future__ import annotations

import re

from kbkit.markdown.admonitions import admonition
from kbkit.markdown.writing import indent

_OPTION = re.compile(r"[ \t]*:(?P<name>[\w-]+):[ \t]*(?P<value>.*)$")
_YAML_OPTION = re.compile(r"[ \t]{4,}[\w-]+:(?:[ \t]|$)")
_BEGINS_BLOCK = re.compile(r"(?:[-#>|]|\d+\.|`{3})")
TERM = re.compile(r"(?![ \t>|#:=]|[-*+][ \t]|\d+[.)][ \t]|```|~~~|\[\^|!\[|<)\S")


def list_item(mark: str, head: str, inner: list[str]) -> list[str]:
    """An item of a list that begins with what it is about.

    Args:
        mark: What no other list beside it begins with, or they would be one.
        head: What it is about.
        inner: The rest.
    """
    while inner and not inner[-1].strip():
        inner.pop()
    if inner and _BEGINS_BLOCK.match(inner[0].lstrip()):
        inner = ["", *inner]
        head = head.removesuffix(": ")
    first, *rest = inner or [""]
    return [
        f"{mark}   {head}{first}".rstrip(),
        *(f"    {line}" if line.strip() else "" for line in rest),
    ]


def quoted(title: str, inner: list[str]) -> list[str]:
    """The lines of an admonition."""
    text = admonition(title, "\n".join(inner).strip("\n"))
    return text.split("\n") if text else []


def caption(text: str) -> list[str]:
    """What names a block, above it."""
    return [f"**{text}**", ""] if text else []


def indented(block: list[str], lead: str) -> list[str]:
    """A block with the same white space before each of its lines."""
    return indent("\n".join(block), lead).split("\n") if block else []


def width_of(lead: str) -> int:
    """Columns of white space."""
    return len(lead.expandtabs(4))


def body_below(
    lines: list[str], at: int, width: int, *, lazy: bool = False
) -> tuple[list[str], int]:
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
            lead = width_of(line[: len(line) - len(line.lstrip(" \t"))])
            goes_on = lazy and lines[end - 1].strip() and TERM.match(line)
            if lead < width and not goes_on:
                break
        end += 1
    while end > at and not lines[end - 1].strip():
        end -= 1
    return dedented(lines[at:end], width), end


def dedented(lines: list[str], width: int) -> list[str]:
    """Lines without so many columns of white space in front, as far as they have them."""
    return [_cut(line, width) for line in lines] if width else lines


def _cut(line: str, width: int) -> str:
    bare = line.lstrip(" \t")
    lead = line[: len(line) - len(bare)].expandtabs(4)
    return lead[width:] + bare


def options_of(body: list[str]) -> tuple[dict[str, str], list[str]]:
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
