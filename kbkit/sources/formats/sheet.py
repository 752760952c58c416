"""XLSX, CSV and TSV: row by row, under the header."""

from __future__ import annotations

import csv
import io
import re
import warnings
from collections.abc import Iterable, Iterator
from datetime import date, datetime, time, timedelta
from pathlib import PurePosixPath
from typing import Any

from kbkit.extras import extra
from kbkit.sources.decode import decode
from kbkit.sources.formats.archive import is_media, office
from kbkit.sources.formats.base import GROUP, MAX_CHARACTERS, Part, UnreadableError, one_line
from kbkit.sources.html.tables import pipe_table
from kbkit.text.markdown.writing import escape

MAX_ROWS = 200_000
MAX_COLUMNS = 500
MAX_CELLS = 3_000_000
_WIDE = 300  # characters of header; wider tables are written a row at a time


def grouped(rows: Iterable[tuple[int, list[str]]], level: int) -> Iterator[str]:
    """Write rows under headings that say which they are."""
    header: list[str] | None = None
    group: list[tuple[int, list[str]]] = []
    size = room = count = cells = 0
    for number, raw in rows:
        row = _trimmed(raw)
        count += 1
        cells += len(row)
        if count > MAX_ROWS or cells > MAX_CELLS or len(row) > MAX_COLUMNS:
            raise UnreadableError(
                f"a table of more than {MAX_ROWS:,} rows, {MAX_COLUMNS} columns or "
                f"{MAX_CELLS:,} cells"
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


_QUOTED = re.compile(r'"([^"]*)"|\\(.)|\[(?!h|m|s)[^\]]*\]|_.|\*.', re.IGNORECASE)
_PARTS = re.compile(
    r"am/pm|a/p|yyyy|yy|mmmmm|mmmm|mmm|mm|m|dddd|ddd|dd|d|\[h+\]|\[m+\]|\[s+\]|hh|h|ss|s|0+|.",
    re.IGNORECASE,
)
_PERCENT = re.compile(r"0(?:\.(0+))?\s*%")
# what Excel writes for "the date of this country"
_LOCAL = frozenset({"mm-dd-yy", "m/d/yy h:mm", "general", ""})


def shown(value: Any, number_format: str | None) -> str:
    """A cell's value as its format shows it, on one line.

    A date whose format is that of the reader's country is written as ISO 8601 has it.
    """
    form = (number_format or "").partition(";")[0]
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, timedelta):
        return _duration(value)
    if isinstance(value, (datetime, date, time)):
        return _date(value, form)
    if isinstance(value, (int, float)) and (percent := _PERCENT.search(form)):
        return f"{value:.{len(percent[1] or '')}%}"
    if isinstance(value, float) and not value.is_integer():
        return f"{value:.15g}"  # what Excel keeps
    return "" if value is None else str(int(value) if isinstance(value, float) else value)


def _duration(value: timedelta) -> str:
    seconds = round(value.total_seconds())
    sign, seconds = ("-", -seconds) if seconds < 0 else ("", seconds)
    return f"{sign}{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}"


def _date(value: datetime | date | time, form: str) -> str:
    if form.lower() in _LOCAL or not re.search("[ymdhs]", form, re.IGNORECASE):
        return _iso(value, form)
    plain = _QUOTED.sub(lambda found: found[1] or found[2] or "", form)
    parts = _PARTS.findall(plain)
    half = any(part.lower() in {"am/pm", "a/p"} for part in parts)
    return " ".join("".join(_written(value, parts, half)).split())


def _iso(value: datetime | date | time, form: str) -> str:
    if isinstance(value, datetime):
        day = value.time() == time() and "h" not in form.lower()
        return value.date().isoformat() if day else value.isoformat(" ", "auto")
    return value.isoformat()


def _written(value: datetime | date | time, parts: list[str], half: bool) -> list[str]:
    out: list[str] = []
    names = [part.lower() for part in parts]
    for number, part in enumerate(names):
        before = next((one for one in reversed(names[:number]) if one[0] in "ymdhs["), "")
        after = next((one for one in names[number + 1 :] if one[0] in "ymdhs["), "")
        if part in {"m", "mm"} and (before.strip("[")[:1] == "h" or after.strip("[")[:1] == "s"):
            part = part.replace("m", "n")  # noqa: PLW2901 - minutes
        directive = _DIRECTIVES.get(part)
        if directive is None:
            out.append(parts[number])
            continue
        if "%I" in directive and not half:
            directive = directive.replace("%I", "%H")
        dated = isinstance(value, time) and directive[-1] in "YymBbdAa"
        text = "" if dated else value.strftime(directive.lstrip("-"))
        out.append(text.lstrip("0") or "0" if directive.startswith("-") else text)
    return out


_DIRECTIVES = {
    "yyyy": "%Y",
    "yy": "%y",
    "mmmm": "%B",
    "mmm": "%b",
    "mm": "%m",
    "m": "-%m",
    "dddd": "%A",
    "ddd": "%a",
    "dd": "%d",
    "d": "-%d",
    "hh": "%I",
    "h": "-%I",
    "[h]": "-%H",
    "[hh]": "%H",
    "nn": "%M",
    "n": "-%M",
    "ss": "%S",
    "s": "-%S",
    "am/pm": "%p",
    "a/p": "%p",
}


_MAX_SHEETS = 500
_EMPTY_RUN = 10_000  # rows without a cell in a row: what follows is formatting, not data


def read(data: bytes, name: str) -> list[Part]:
    """Read a workbook (a part for each sheet with data) or a table of text."""
    path = PurePosixPath(name.replace("\\", "/"))
    if path.suffix.lower() in (".csv", ".tsv"):
        return [_text(data, path)]
    return list(_workbook(data, path))


def _text(data: bytes, path: PurePosixPath) -> Part:
    text = decode(data, markup=False).replace("\x00", "")
    delimiter = "\t" if path.suffix.lower() == ".tsv" else _delimiter(text)
    csv.field_size_limit(10_000_000)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    rows = ((number, [cell_text(cell) for cell in row]) for number, row in enumerate(reader, 1))
    body = "\n\n".join(grouped(rows, 2))
    content = f"# {escape(path.stem)}\n\n{body}\n" if body else ""
    return Part(path.stem, content, metadata={"format": "csv"})


def _delimiter(text: str) -> str:
    lines = [line for line in text[:20_000].split("\n")[:20] if line.strip()]
    best, most = ",", 0.0
    for mark in ",;\t|":
        counts = [line.count(mark) for line in lines]
        usual = max(set(counts), key=counts.count) if counts else 0
        score = counts.count(usual) * min(usual, 3) if usual else 0
        if score > most:
            best, most = mark, score
    return best


def _workbook(data: bytes, path: PurePosixPath) -> Iterator[Part]:
    with extra("office", "openpyxl", "Reading XLSX"):
        import openpyxl

    safe = office(data, is_media)
    if b"xl/" not in safe:
        raise UnreadableError("broken: not an Excel workbook")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about extensions that it does not know
        book = openpyxl.load_workbook(io.BytesIO(safe), read_only=True, data_only=True)
        sheets = book.worksheets
        if len(sheets) > _MAX_SHEETS:
            raise UnreadableError(f"more than {_MAX_SHEETS} sheets")
        size = 0
        single = len(sheets) == 1
        for sheet in sheets:
            body = "\n\n".join(grouped(_rows(sheet), 2))
            size += len(body)
            if size > MAX_CHARACTERS:
                raise UnreadableError(
                    f"more than {MAX_CHARACTERS / 1e6:g} million characters of text"
                )
            if not body:
                continue
            named = one_line(book.properties.title) or path.stem
            title = named if single else f"{named}: {sheet.title}"
            yield Part(
                title,
                f"# {escape(title)}\n\n{body}\n",
                name="" if single else sheet.title,
                metadata={"format": "sheet", "sheet": sheet.title},
            )


def _rows(sheet: Any) -> Iterator[tuple[int, list[str]]]:
    # a sheet's own claim about its size may be wrong or a million columns wide
    sheet.reset_dimensions()
    empty = 0
    for number, row in enumerate(sheet.iter_rows(), 1):
        if number > MAX_ROWS * 5:
            raise UnreadableError("a table of more rows than can be read")
        if len(row) > MAX_COLUMNS:
            row = row[:MAX_COLUMNS]  # noqa: PLW2901
        cells = [cell_text(_shown(cell)) for cell in row]
        if not any(cells):
            empty += 1
            if empty > _EMPTY_RUN:
                return
            continue
        empty = 0
        yield number, cells


def _shown(cell: Any) -> str | None:
    value = cell.value
    # most cells are texts, and their formats cost a look-up each
    return value if isinstance(value, str) or value is None else shown(value, cell.number_format)
