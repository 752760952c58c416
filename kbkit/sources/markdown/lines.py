"""Lines of Markdown: indentation, options, written blocks."""

from __future__ import annotations

import csv
import re
from itertools import zip_longest

from kbkit.text.markdown.writing import admonition, indent

_OPTION = re.compile(r"[ \t]*:(?P<name>[\w-]+):[ \t]*(?P<value>.*)$")
_YAML_OPTION = re.compile(r"[ \t]{4,}[\w-]+:(?:[ \t]|$)")
_BEGINS_BLOCK = re.compile(r"(?:[-#>|]|\d+\.|`{3})")
TERM = re.compile(r"(?![ \t>|#:=]|[-*+][ \t]|\d+[.)][ \t]|```|~~~|\[\^|!\[|<)\S")


def list_item(mark: str, head: str, inner: list[str]) -> list[str]:
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
    text = admonition(title, "\n".join(inner).strip("\n"))
    return text.split("\n") if text else []


def caption(text: str) -> list[str]:
    return [f"**{text}**", ""] if text else []


def indented(block: list[str], lead: str) -> list[str]:
    """Put the same white space before each line of a block."""
    return indent("\n".join(block), lead).split("\n") if block else []


def width_of(lead: str) -> int:
    return len(lead.expandtabs(4))


def body_below(
    lines: list[str], at: int, width: int, *, lazy: bool = False
) -> tuple[list[str], int]:
    end = at
    while end < len(lines):
        line = lines[end]
        if line.strip():
            lead = width_of(line[: len(line) - len(line.lstrip(" \t"))])
            continues = lazy and lines[end - 1].strip() and TERM.match(line)
            if lead < width and not continues:
                break
        end += 1
    while end > at and not lines[end - 1].strip():
        end -= 1
    return dedented(lines[at:end], width), end


def dedented(lines: list[str], width: int) -> list[str]:
    return [_cut(line, width) for line in lines] if width else lines


def _cut(line: str, width: int) -> str:
    bare = line.lstrip(" \t")
    lead = line[: len(line) - len(bare)].expandtabs(4)
    return lead[width:] + bare


def options_of(body: list[str]) -> tuple[dict[str, str], list[str]]:
    options: dict[str, str] = {}
    at = 0
    if body and body[0].strip() == "---":  # YAML
        end = next((n for n, line in enumerate(body[1:], 1) if line.strip() == "---"), 0)
        return options, body[end + 1 :] if end else body
    while at < len(body) and (match := _OPTION.match(body[at])):
        options[match["name"]] = match["value"].strip()
        at += 1
    if not at:
        while at < len(body) and _YAML_OPTION.match(body[at]):
            name, _, value = body[at].partition(":")
            options[name.strip()] = value.strip()
            at += 1
    return options, body[at:]


_ROW = re.compile(r"(?P<lead>[*-][ ]+)(?P<mark>[*-])(?P<text>(?:[ ]+.*)?)$")
_MAX_COLUMNS = 200


def toctree(body: list[str]) -> list[str]:
    return [line for entry in body if (line := _entry(entry.strip()))]


def _entry(entry: str) -> str:
    titled = re.fullmatch(r"(.*\S)[ \t]*<([^<>\s]+)>", entry)
    place = titled[2] if titled else entry
    if not entry or entry == "self" or "*" in place or re.search(r"[\s()]", place):
        return ""
    name = titled[1] if titled else place.rpartition("/")[2]
    suffix = "" if "://" in place or re.search(r"\.\w{2,4}$", place) else ".md"
    return f"-   [{name}]({place}{suffix})"


def glossary(body: list[str]) -> list[str]:
    out: list[str] = []
    defined = True
    for line in body:
        if line[:1] in " \t" and line.strip():
            text = line.strip()
            out.append(f"    {text}" if defined else f":   {text}")
            defined = True
        else:
            if line.strip() and defined and out and out[-1].strip():
                out.append("")
            defined = defined and not line.strip()
            out.append(line)
    return out


def list_table(body: list[str]) -> list[str]:
    """Write a list of lists as a table; its first row is the head."""
    rows: list[list[str]] = []
    for line in body:
        match = _ROW.match(line)
        if match:
            rows.append([match["text"].strip()])
        elif rows and (cell := re.match(r"[ ]{2,}[*-](?P<text>(?:[ ]+.*)?)$", line)):
            rows[-1].append(cell["text"].strip())
        elif rows and line.strip():
            rows[-1][-1] += f" {line.strip()}"
    return _table(rows) if rows else body


def csv_table(header: str, body: list[str]) -> list[str]:
    lines = [header, *body] if header else body
    try:
        rows = [row for row in csv.reader(lines, skipinitialspace=True, strict=True) if row]
    except csv.Error:
        return body
    return _table([[" ".join(cell.split()) for cell in row] for row in rows]) if rows else []


def _table(rows: list[list[str]]) -> list[str]:
    width = min(max(map(len, rows)), _MAX_COLUMNS)
    columns = zip_longest(*(row[:width] for row in rows), fillvalue="")
    head, *rest = [
        " | ".join(cell.replace("|", "\\|") for cell in row) for row in zip(*columns, strict=True)
    ]
    return [f"| {head} |", "|" + " --- |" * width, *(f"| {row} |" for row in rest)]
