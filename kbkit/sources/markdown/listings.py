"""Directives of MyST whose text is a list or a table, as Markdown."""

from __future__ import annotations

import csv
import re
from itertools import zip_longest

_ROW = re.compile(r"(?P<lead>[*-][ ]+)(?P<mark>[*-])(?P<text>(?:[ ]+.*)?)$")
_MOST_COLUMNS = 200


def toctree(body: list[str]) -> list[str]:
    """The entries of a table of contents as a list of links."""
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
    """Terms with their definitions indented below, as definitions that begin with a colon."""
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
    """A list of lists as a table, its first row as the head."""
    rows: list[list[str]] = []
    for line in body:
        found = _ROW.match(line)
        if found:
            rows.append([found["text"].strip()])
        elif rows and (cell := re.match(r"[ ]{2,}[*-](?P<text>(?:[ ]+.*)?)$", line)):
            rows[-1].append(cell["text"].strip())
        elif rows and line.strip():
            rows[-1][-1] += f" {line.strip()}"
    return _table(rows) if rows else body


def csv_table(header: str, body: list[str]) -> list[str]:
    """Comma-separated values as a table.

    Args:
        header: The head, in the same form; without one it is the first row.
        body: The rows.
    """
    lines = [header, *body] if header else body
    try:
        rows = [row for row in csv.reader(lines, skipinitialspace=True, strict=True) if row]
    except csv.Error:
        return body
    return _table([[" ".join(cell.split()) for cell in row] for row in rows]) if rows else []


def _table(rows: list[list[str]]) -> list[str]:
    width = min(max(map(len, rows)), _MOST_COLUMNS)
    columns = zip_longest(*(row[:width] for row in rows), fillvalue="")
    head, *rest = [
        " | ".join(cell.replace("|", "\\|") for cell in row) for row in zip(*columns, strict=True)
    ]
    return [f"| {head} |", "|" + " --- |" * width, *(f"| {row} |" for row in rest)]
