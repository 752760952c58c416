"""HTML tables -> rows of cells with every span filled in -> Markdown."""

from __future__ import annotations

from typing import Any

_MOST_COLUMNS = 200
_MOST_CELLS = 50_000

Element = Any  # lxml ships no types


def grid(table: Element) -> list[list[Element | None]] | None:
    """Lay the cells of a table out in rows of equal length.

    A cell that spans rows or columns stands in each place it covers. Spans are bounded by the
    table itself, since pages may claim millions.

    Args:
        table: A ``table`` element.

    Returns:
        Rows of ``td`` and ``th`` elements (``None`` where the page has no cell), header rows
        first, or ``None`` when the table is empty or too large to be one.
    """
    sources = _rows(table)
    rows: list[list[Element | None]] = [[] for _ in sources]
    covered: list[dict[int, Element]] = [{} for _ in sources]
    cells = 0
    for index, source in enumerate(sources):
        column = 0
        for cell in source:
            if cell.tag not in ("td", "th"):
                continue
            while column in covered[index]:
                column += 1
            width = _span(cell.get("colspan"), _MOST_COLUMNS)
            left = len(sources) - index
            height = left if cell.get("rowspan") == "0" else _span(cell.get("rowspan"), left)
            cells += width * height
            if cells > _MOST_CELLS or column + width > _MOST_COLUMNS:
                return None
            for down in range(height):
                for across in range(width):
                    covered[index + down].setdefault(column + across, cell)
            column += width
    width = max((max(places) + 1 for places in covered if places), default=0)
    for index, places in enumerate(covered):
        rows[index] = [places.get(column) for column in range(width)]
    rows = [row for row in rows if any(cell is not None for cell in row)]
    return rows or None


def pipe_table(rows: list[list[str]]) -> str:
    """Write rows of one-line cells as a Markdown table; the first row is its header."""
    width = max(len(row) for row in rows)
    lines = []
    for index, row in enumerate(rows):
        cells = [_piped(cell) for cell in row] + [""] * (width - len(row))
        lines.append("| " + " | ".join(cells) + " |")
        if index == 0:
            lines.append("|" + " --- |" * width)
    return "\n".join(lines)


def _piped(cell: str) -> str:
    return cell.replace("\\|", "|").replace("|", "\\|")


def _rows(table: Element) -> list[Element]:
    head: list[Element] = []
    body: list[Element] = []
    foot: list[Element] = []
    for child in table:
        if child.tag == "tr":
            body.append(child)
        elif child.tag in ("thead", "tbody", "tfoot"):
            part = {"thead": head, "tbody": body, "tfoot": foot}[child.tag]
            part.extend(row for row in child if row.tag == "tr")
    return head + body + foot


def _span(value: str | None, most: int) -> int:
    text = (value or "").strip()
    if not text.isdigit():
        return 1
    return max(1, min(int(text[:6]), most))
