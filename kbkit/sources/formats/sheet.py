"""XLSX, CSV and TSV: row by row, under the header."""

from __future__ import annotations

import csv
import io
import warnings
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any

from kbkit.extras import extra
from kbkit.markdown.writing import escape
from kbkit.sources.decode import decode
from kbkit.sources.formats.archive import is_media, office
from kbkit.sources.formats.base import MOST_CHARACTERS, Part, UnreadableError, one_line
from kbkit.sources.formats.number_formats import shown
from kbkit.sources.formats.rows import MOST_COLUMNS, MOST_ROWS, cell_text, grouped

_MOST_SHEETS = 500
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
    """What parts the columns: the mark that most lines have equally often."""
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
        if len(sheets) > _MOST_SHEETS:
            raise UnreadableError(f"more than {_MOST_SHEETS} sheets")
        size = 0
        single = len(sheets) == 1
        for sheet in sheets:
            body = "\n\n".join(grouped(_rows(sheet), 2))
            size += len(body)
            if size > MOST_CHARACTERS:
                raise UnreadableError(
                    f"more than {MOST_CHARACTERS / 1e6:g} million characters of text"
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
        if number > MOST_ROWS * 5:
            raise UnreadableError("a table of more rows than can be read")
        if len(row) > MOST_COLUMNS:
            row = row[:MOST_COLUMNS]  # noqa: PLW2901
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
