"""HTML tables -> rows of cells with every span filled in -> Markdown."""

from __future__ import annotations

import re
from itertools import islice

from kbkit.sources.html.code import code_text
from kbkit.sources.html.dom import HEADINGS, Element, normalized_text

_ESCAPED = re.compile(r"\\.|\|")
_MOST_COLUMNS = 200
_MOST_CELLS = 50_000


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


def has_head(rows: list[list[Element | None]]) -> bool:
    """Whether the first row of a table names its columns: the page says so, or it is all bold."""
    cells = [cell for cell in dict.fromkeys(rows[0]) if cell is not None]
    if cells[0].getparent().getparent().tag == "thead":
        return True
    filled = [cell for cell in cells if normalized_text(cell)]
    return bool(filled) and all(
        cell.tag == "th"
        or normalized_text(cell) == " ".join(map(normalized_text, cell.iter("b", "strong")))
        for cell in filled
    )


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
    return _ESCAPED.sub(lambda found: "\\|" if found[0][-1] == "|" else found[0], cell)


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


def table_cells(table: Element) -> list[Element]:
    """Cells of this table and not of tables inside it, in reading order."""
    found = []
    for cell in table.iter("td", "th"):
        holder = cell.getparent()
        while holder is not None and holder.tag != "table":
            holder = holder.getparent()
        if holder is table:
            found.append(cell)
    return found


def is_layout(table: Element, rows: list[list[Element | None]]) -> bool:
    """Whether a table arranges blocks that cannot stand in the cells of a Markdown table."""
    if len(rows) == 1 and len(rows[0]) == 1:
        return True
    if table.get("role") in ("presentation", "none"):
        return True
    if next(table.iter("th"), None) is None and all(map(_stands_alone, rows)):
        return True  # a list that is drawn as a table, or what an empty cell indents
    shown = [cell for cell in dict.fromkeys(rows[0]) if cell is not None and _shows(cell)]
    if len(rows) == 1 and all(next(cell.iter("ul", "ol"), None) is not None for cell in shown):
        return True  # a list in columns
    filled = [row for row in rows if not is_section_title(row)]
    arranging = sum(any(cell is not None and _arranges(cell) for cell in row) for row in filled)
    return 2 * arranging > len(filled)


def is_section_title(row: list[Element | None]) -> bool:
    """Whether a row is the heading of those behind it: one cell across the table, with one."""
    cell = row[0]
    return (
        cell is not None
        and all(other is cell for other in row)
        and next(cell.iterdescendants(*HEADINGS), None) is not None
    )


def _stands_alone(row: list[Element | None]) -> bool:
    """Whether at most one cell of a row shows something."""
    shown = (cell for cell in dict.fromkeys(row) if cell is not None and _shows(cell))
    return len(list(islice(shown, 2))) < 2


def _shows(cell: Element) -> bool:
    return bool("".join(cell.itertext()).strip()) or next(cell.iter("img"), None) is not None


def _arranges(cell: Element) -> bool:
    """Whether a cell holds what is laid out rather than tabulated."""
    inner = cell.iterdescendants("table", "h1", "h2", "h3", "dl", "blockquote")
    if next(inner, None) is not None:
        return True
    return any("\n" in code_text(pre).strip() for pre in cell.iterdescendants("pre"))


def needs_lines(block: str, code: list[str] | None) -> bool:
    """Whether a block is lost in one line: code of several, a table, a heading, a quotation."""
    if code is not None:
        return len(code) > 1
    if re.search(r"^#{1,6} |^ *`{3,}[^`\n]*$", block, re.MULTILINE):
        return True
    return "\n" in block and block[0] in "|>"
