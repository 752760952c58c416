"""XLSX, CSV and TSV: rows in groups, each below the header; cells as their formats show them."""

import csv
import io
import re
import warnings
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from datetime import date, datetime, time, timedelta
from decimal import ROUND_HALF_UP, Context, Decimal
from itertools import chain, islice, zip_longest
from typing import Any

from kbkit.extras import extra
from kbkit.sources.decode import decode
from kbkit.sources.parts import GROUP, Part, check_length, grouped, one_line, stem
from kbkit.sources.untrusted import Archive, UnreadableError, office
from kbkit.text.markdown.writing import escape, pipe_table

Spans = Mapping[int, list[tuple[int, int]]]  # first and last column, from 0, by row
_LOOKED_AT = 12  # first rows, searched for the header
MAX_ROWS = 200_000
MAX_COLUMNS = 500
MAX_CELLS = 3_000_000
_WIDE = 300  # characters of a header, above which rows are written as lists


Row = tuple[int, list[str]]  # row number, from 1, and cells


def write_groups(rows: Iterable[Row], spans: Spans) -> Iterator[str]:
    """Write rows in groups with headings; lines above the table come first."""
    trimmed = _trim_rows(rows)
    first = list(islice(trimmed, _LOOKED_AT))
    preamble, header, body = _split_at_header(first, spans)
    yield from (escape(" ".join(filter(None, row))) for _, row in preamble)
    if header is None:
        return
    width = len(header)
    room = _length(header) + 6 * width + 30  # header, the rule below it, and a heading
    rows = chain(body, trimmed)
    groups = grouped(rows, lambda row: _length(row[1], width), GROUP - room)
    tables = (_group(header, group) for group in groups)
    yield next(tables, pipe_table([list(map(escape, header))]))
    yield from tables


def _trim_rows(rows: Iterable[Row]) -> Iterator[Row]:
    """Drop empty rows and trailing empty cells; refuse tables that are too large."""
    cells = 0
    for count, (number, raw) in enumerate(rows, 1):
        width = next((n for n in range(len(raw), 0, -1) if raw[n - 1]), 0)
        row = raw[:width]
        cells += len(row)
        if count > MAX_ROWS or cells > MAX_CELLS or len(row) > MAX_COLUMNS:
            raise UnreadableError(
                f"a table of more than {MAX_ROWS:,} rows, {MAX_COLUMNS} columns or "
                f"{MAX_CELLS:,} cells"
            )
        if row:
            yield number, row


def _split_at_header(
    rows: list[Row], spans: Spans
) -> tuple[list[Row], list[str] | None, list[Row]]:
    """Split rows into lines above a table, its header, and its rows.

    The header is the first row that fills more than half of the usual number of columns. If it has
    spanning cells, the names in the row below are added.
    """
    if not rows:
        return [], None, []
    counts = [sum(map(bool, row)) for _, row in rows]
    width = max(counts, key=lambda count: (counts.count(count), count))
    top = next(n for n, count in enumerate(counts) if 2 * count > width or rows[n][0] in spans)
    while counts[top] == 1 < width:  # a title that spans all columns
        top += 1
    number, header = rows[top][0], list(rows[top][1])
    below = rows[top + 1][1] if top + 1 < len(rows) else []
    if number not in spans or not below:
        return rows[:top], header, rows[top + 1 :]
    header += [""] * (len(below) - len(header))
    for start, end in spans[number]:
        header[start : end + 1] = [header[start]] * len(header[start : end + 1])
    names = zip_longest(header, below, fillvalue="")
    joined = [" ".join(dict.fromkeys(filter(None, pair))) for pair in names]
    return rows[:top], joined, rows[top + 2 :]


def _length(row: list[str], width: int = 0) -> int:
    """Return the characters of a row in a table of at least this width."""
    cells = sum(len(escape(cell)) + cell.count("|") + 3 for cell in row)
    return cells + 2 + 3 * max(0, width - len(row))


def _group(header: list[str], group: list[Row]) -> str:
    first, last = group[0][0], group[-1][0]
    title = f"## Rows {first} to {last}" if last > first else f"## Row {first}"
    width = max(len(header), *(len(row) for _, row in group))
    top = header + [""] * (width - len(header))
    if _length(header) <= _WIDE and _length(group[0][1]) <= GROUP:
        table = [[escape(cell) for cell in row] for row in (top, *(r for _, r in group))]
        return f"{title}\n\n{pipe_table(table)}"
    names = [escape(name or f"Column {number}") for number, name in enumerate(top, 1)]
    records = (
        "\n".join(f"- **{names[n]}**: {escape(cell)}" for n, cell in enumerate(row) if cell)
        for _, row in group
    )
    return f"{title}\n\n" + "\n\n---\n\n".join(records)


_MAX_SHEETS = 500
_SEPARATOR = re.compile(r"\ufeff?sep=(.)\r?\n", re.IGNORECASE)
_MERGED = re.compile(
    rb'<(?:\w+:)?mergeCell [^>]{0,200}?ref="([A-Z]{1,3})(\d{1,7}):([A-Z]{1,3})(\d{1,7})"'
)
_NO_VALUE = re.compile(
    rb'<(?:\w+:)?c (?![^>]*\bt="str")[^>]*>\s*<(?:\w+:)?f(?:[^>]*/>|[^>]*>[^<]*</(?:\w+:)?f>)'
    rb"\s*(?:<v\s*/>|<v></v>)?\s*</(?:\w+:)?c>"
)
"""A formula without a value; an empty text (`str`) is a value."""
_MAX_MERGED = 20_000
_EMPTY_RUN = 10_000  # consecutive empty rows, after which only formatting follows


def read_csv(data: bytes, name: str) -> list[Part]:
    text, title = decode(data, markup=False).replace("\x00", ""), stem(name)
    delimiter = "\t" if name.lower().endswith(".tsv") else _delimiter(text)
    if declared := _SEPARATOR.match(text):  # a hint for Excel
        text, delimiter = text[declared.end() :], declared[1]
    csv.field_size_limit(10_000_000)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    rows = (
        (number, [" ".join(cell.split()) for cell in row])
        for number, row in enumerate(reader, 1 + bool(declared))
    )
    body = "\n\n".join(write_groups(rows, {}))
    content = f"# {escape(title)}\n\n{body}\n" if body else ""
    return [Part(title, content, metadata={"format": "csv"})]


def _delimiter(text: str) -> str:
    lines = [line for line in text[:20_000].split("\n")[:20] if line.strip()]

    def score(mark: str) -> int:
        counts = [line.count(mark) for line in lines]
        usual = max(set(counts), key=counts.count, default=0)
        return counts.count(usual) * min(usual, 3)

    return max(",;\t|", key=score)


def read_sheet(data: bytes, name: str) -> list[Part]:
    """Read a workbook: a part per sheet with data."""
    return list(_workbook(data, stem(name)))


def _workbook(data: bytes, name: str) -> Iterator[Part]:
    with extra("office", "openpyxl", "Reading XLSX"):
        import openpyxl

    safe = office(data, "xl/", "an Excel workbook")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # unknown extensions
        book = openpyxl.load_workbook(io.BytesIO(safe), read_only=True, data_only=True)
        sheets: list[Any] = book.worksheets
        if len(sheets) > _MAX_SHEETS:
            raise UnreadableError(f"more than {_MAX_SHEETS} sheets")
        size = 0
        hidden = [sheet.title for sheet in sheets if sheet.sheet_state != "visible"]
        notes = [f"left out: hidden sheets ({', '.join(hidden)})"] if hidden else []
        sheets = [sheet for sheet in sheets if sheet.sheet_state == "visible"]
        single = len(sheets) == 1
        archive = Archive(safe)
        for sheet in sheets:
            xml = archive.read(sheet._worksheet_path)
            below, spans = _merged_cells(xml)
            body = "\n\n".join(write_groups(_rows(sheet, below), spans))
            if count := len(_NO_VALUE.findall(xml)):
                notes.append(
                    f"{sheet.title}: {count:,} formulas have no value; open the workbook in a "
                    "spreadsheet program and save it"
                )
            size += len(body)
            check_length(size)
            if not body:
                continue
            book_title = one_line(book.properties.title) or name
            title = book_title if single else f"{book_title}: {sheet.title}"
            yield Part(
                title,
                f"# {escape(title)}\n\n{body}\n",
                name="" if single else sheet.title,
                metadata={"format": "sheet", "sheet": sheet.title},
                note="; ".join(notes),
            )
            notes = []


def _merged_cells(xml: bytes) -> tuple[dict[tuple[int, int], tuple[int, int]], Spans]:
    """Map merged cells below the first row to the cell that they repeat; return spans too."""
    from openpyxl.utils import column_index_from_string

    below: dict[tuple[int, int], tuple[int, int]] = {}
    spans: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
    for left, top, right, bottom in islice(_MERGED.findall(xml), _MAX_MERGED):
        first, last = (column_index_from_string(name.decode()) - 1 for name in (left, right))
        if last > first:
            spans[int(top)].append((first, last))
        for row in range(int(top) + 1, min(int(bottom), int(top) + _MAX_MERGED) + 1):
            below[row, first] = int(top), first
        if len(below) > _MAX_MERGED:
            break
    return below, spans


def _rows(sheet: Any, below: Mapping[tuple[int, int], tuple[int, int]]) -> Iterator[Row]:
    # the declared size may be wrong, or a million columns
    sheet.reset_dimensions()
    empty = 0
    repeated = dict.fromkeys(below.values(), "")
    for number, row in enumerate(sheet.iter_rows(), 1):
        if number > MAX_ROWS * 5:
            raise UnreadableError("a table of more rows than can be read")
        cells = [" ".join(_cell_text(cell).split()) for cell in row[:MAX_COLUMNS]]
        for column, cell in enumerate(cells) if below else ():
            if (number, column) in repeated:
                repeated[number, column] = cell
            elif not cell and (number, column) in below:
                cells[column] = repeated[below[number, column]]
        if not any(cells):
            empty += 1
            if empty > _EMPTY_RUN:
                return
            continue
        empty = 0
        yield number, cells


def _cell_text(cell: Any) -> str:
    value = "" if cell.value is None else cell.value
    # text cells are most common, and looking up formats is slow
    return value if isinstance(value, str) else format_cell(value, cell.number_format)


_PARTS = re.compile(
    r'"([^"]*)"|\\(.)|\[(?!(?:h+|m+|s+)\])[^\]]*\]|_.|\*.'
    r"|\[?(am/pm|a/p|y+|m+|d+|h+|s+)\]?|(.)",
    re.IGNORECASE,
)
_SECTION = re.compile(r';(?=(?:[^"]*"[^"]*")*[^"]*$)')
_TOKEN = re.compile(
    r'"([^"]*)"|\\(.)|\[\$([^\]-]*)[^\]]*\]|\[[^\]]*\]|_.|\*.|(General)|([0#?.,]+)|(.)',
    re.IGNORECASE,
)
_CONDITION = re.compile(r"\[[<>=]")  # condition on the value that selects a section
_LONGEST_FORMAT = 255  # characters, as in Excel
_EXACT = Context(prec=1_200, rounding=ROUND_HALF_UP)
_LONGEST = 1e15  # larger numbers are written without a format
# Excel's "date in the local format"
_LOCAL = frozenset({"mm-dd-yy", "m/d/yy h:mm", "general", ""})


def format_cell(value: Any, number_format: str | None) -> str:
    """Return a cell's value as its format shows it, on one line; local dates as ISO 8601."""
    form = (number_format or "").partition(";")[0]
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, timedelta):
        return _duration(value)
    if isinstance(value, (datetime, date, time)):
        return _date(value, form)
    if isinstance(value, (int, float)) and abs(value) < _LONGEST:
        return _number(value, number_format or "")
    if isinstance(value, float) and not value.is_integer():
        return f"{value:.15g}"  # Excel's precision
    return "" if value is None else str(int(value) if isinstance(value, float) else value)


def _duration(value: timedelta) -> str:
    seconds = round(value.total_seconds())
    sign, seconds = ("-", -seconds) if seconds < 0 else ("", seconds)
    return f"{sign}{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}"


def _date(value: datetime | date | time, form: str) -> str:
    form = form[:_LONGEST_FORMAT]
    codes = [part[3].lower() for part in _PARTS.finditer(form) if part[3]]
    if form.lower() in _LOCAL or not codes:
        return _iso(value, form)
    neighbours = zip(["", *codes], [*codes[1:], ""], strict=False)
    hours = "%H" if {"am/pm", "a/p"}.isdisjoint(codes) else "%I"

    def shown(part: re.Match[str]) -> str:
        if not part[3]:
            return part[1] or part[2] or part[4] or ""
        code, (before, after) = part[3].lower(), next(neighbours)
        if code in {"m", "mm"} and ("h" in before or "s" in after):
            code = code.replace("m", "n")  # minutes
        directive = _DIRECTIVES.get(code, "").replace("%I", hours)
        if not directive:
            return part[0]
        if isinstance(value, time) and directive[-1] in "YymBbdAa":
            return ""
        text = value.strftime(directive.lstrip("-"))
        return text.lstrip("0") or "0" if directive.startswith("-") else text

    return " ".join(_PARTS.sub(shown, form).split())


def _iso(value: datetime | date | time, form: str) -> str:
    if isinstance(value, datetime):
        day = value.time() == time() and "h" not in form.lower()
        return value.date().isoformat() if day else value.isoformat(" ", "auto")
    return value.isoformat()


_DIRECTIVES = dict(
    pair.split("=")
    for pair in str.split("""
        yyyy=%Y yy=%y mmmm=%B mmm=%b mm=%m m=-%m dddd=%A ddd=%a dd=%d d=-%d hh=%I h=-%I
        nn=%M n=-%M ss=%S s=-%S am/pm=%p a/p=%p
    """)
)


def _number(value: float, number_format: str) -> str:
    """Format a number (ECMA-376, part 1, section 18.8.31), except fractions and exponents."""
    if len(number_format) > _LONGEST_FORMAT or _CONDITION.search(number_format):
        return f"{value:.15g}"
    sections = _SECTION.split(number_format)
    index = 1 if value < 0 and len(sections) > 1 else 2 if value == 0 and len(sections) > 2 else 0
    form = sections[index]
    tokens = [
        (next((text for text in (quoted, escaped, money, sign) if text), ""), digits or general)
        for quoted, escaped, money, general, digits, sign in _TOKEN.findall(form)
    ]
    masks = "".join(mask for _, mask in tokens)
    if not form or "eneral" in masks.lower() or "E+" in form or "?/" in form or "@" in form:
        return f"{value:.15g}"
    if not re.search("[0#?]", masks):
        return "".join(text for text, _ in tokens).strip()
    whole, point, fraction = masks.partition(".")
    thousands = sum(len(each) - len(each.rstrip(",")) for each in (whole, fraction))
    power = 2 * form.count("%") - 3 * thousands
    places = len(re.sub("[^0#?]", "", fraction))
    shifted = _EXACT.scaleb(Decimal(repr(abs(value))), power)
    rounded = f"{_EXACT.quantize(shifted, Decimal((0, (1,), -places))):f}"
    units, _, decimals = rounded.partition(".")
    while decimals and fraction.rstrip(",").endswith("#") and decimals.endswith("0"):
        decimals, fraction = decimals[:-1], fraction.rstrip(",")[:-1]
    units = units.lstrip("0").zfill(whole.count("0"))
    if re.search(r"[0#?],[0#?]", whole):
        units = re.sub(r"(?<=\d)(?=(?:\d{3})+$)", ",", units)
    negative = "-" if value < 0 and index == 0 and rounded.strip("0.") else ""
    return negative + _fill_places(
        tokens, units, f".{decimals}" if decimals or (point and not places) else ""
    )


def _fill_places(tokens: list[tuple[str, str]], units: str, rest: str) -> str:
    """Put digits into the places of a format, from the right."""
    texts = [text for text, _ in tokens]
    masked = [number for number, (_, mask) in enumerate(tokens) if mask]
    point = next((number for number in masked if "." in tokens[number][1]), masked[-1])
    texts[point] = rest
    for number in reversed(masked[: masked.index(point) + 1]):
        size = len(re.sub("[^0#?]", "", tokens[number][1].partition(".")[0]))
        cut = max(0, len(units) - size) if number > masked[0] else 0
        texts[number] = units[cut:] + texts[number]
        units = units[:cut]
    return " ".join("".join(texts).split())
