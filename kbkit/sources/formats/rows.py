"""Rows of cells -> Markdown in groups that each repeat the header, so that any chunk has it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from kbkit.markdown.writing import escape
from kbkit.sources.formats.base import GROUP, UnreadableError
from kbkit.sources.html.tables import pipe_table

MOST_ROWS = 200_000
MOST_COLUMNS = 500
MOST_CELLS = 3_000_000
_WIDE = 300  # characters of header; wider tables are written a row at a time


def grouped(rows: Iterable[tuple[int, list[str]]], level: int) -> Iterator[str]:
    """Write rows under headings that say which they are.

    Args:
        rows: Number in the file and cells, one line each; the first row is the header.
        level: Of the headings.

    Raises:
        UnreadableError: There are more rows or cells than a table has.
    """
    header: list[str] | None = None
    group: list[tuple[int, list[str]]] = []
    size = room = count = cells = 0
    for number, raw in rows:
        row = _trimmed(raw)
        count += 1
        cells += len(row)
        if count > MOST_ROWS or cells > MOST_CELLS or len(row) > MOST_COLUMNS:
            raise UnreadableError(
                f"a table of more than {MOST_ROWS:,} rows, {MOST_COLUMNS} columns or "
                f"{MOST_CELLS:,} cells"
            )
        if not row:
            continue
        if header is None:
            header = row
            room = _length(header) + 6 * len(header) + 30  # with the rule below it, and a heading
            continue
        length = _length(row, len(header))
        if group and size + length + room > GROUP:
            yield _group(header, group, level)
            group, size = [], 0
        group.append((number, row))
        size += length
    if header is None:
        return
    if group:
        yield _group(header, group, level)
    else:
        yield pipe_table([[escape(cell) for cell in header]])


def cell_text(value: object) -> str:
    """A cell as one line."""
    if value is None:
        return ""
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return re.sub(r"\s+", " ", str(value)).strip()


def _trimmed(row: list[str]) -> list[str]:
    width = len(row)
    while width and not row[width - 1]:
        width -= 1
    return row[:width]


def _length(row: list[str], width: int = 0) -> int:
    """Characters that a row takes, at least with so many cells."""
    return (
        sum(len(escape(cell)) + cell.count("|") + 3 for cell in row)
        + 2
        + 3 * max(0, width - len(row))
    )


def _group(header: list[str], group: list[tuple[int, list[str]]], level: int) -> str:
    first, last = group[0][0], group[-1][0]
    name = f"Rows {first} to {last}" if last > first else f"Row {first}"
    title = f"{'#' * level} {name}"
    if _length(header) <= _WIDE and _length(group[0][1]) <= GROUP:
        width = max(len(header), *(len(row) for _, row in group))
        top = header + [""] * (width - len(header))
        table = pipe_table(
            [[escape(cell) for cell in row] for row in (top, *(r for _, r in group))]
        )
        return f"{title}\n\n{table}"
    records = []
    for _, row in group:
        lines = []
        for column, cell in enumerate(row):
            if cell:
                name = header[column] if column < len(header) else ""
                lines.append(f"- **{escape(name or f'Column {column + 1}')}**: {escape(cell)}")
        records.append("\n".join(lines))
    return "\n\n---\n\n".join([f"{title}\n\n{records[0]}", *records[1:]])
