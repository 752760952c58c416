"""Headings that PDFs print, and cells as their formats show them."""

from __future__ import annotations

import io
import re
from datetime import date, datetime, time, timedelta

import pytest
from fpdf import FPDF
from openpyxl import Workbook

from kbkit.sources.formats import parse
from kbkit.sources.formats.sheet import shown
from kbkit.sources.parts import Part

SENTENCE = "The valve is closed slowly. "
LONG = "Valves of a kind, and a heading of which there is so much that it takes two lines"
END = {"new_x": "LMARGIN", "new_y": "NEXT"}


def one(name: str, data: bytes) -> Part:
    (part,) = parse(name, data)
    return part


class Manual(FPDF):
    def paragraph(self, text: str, style: str = "", size: int = 11) -> None:
        self.set_font("Helvetica", style, size)
        self.multi_cell(0, size * 0.6, text, **END)


def manual(title: str = "", outline: bool = False) -> bytes:
    made = Manual()
    if title:
        made.set_title(title)
    made.add_page()
    made.paragraph("Pump Maintenance Handbook", "B", 24)
    made.paragraph(SENTENCE * 12)
    for chapter in (1, 2, 3):
        made.set_font("Helvetica", "", 16)
        if outline:
            made.start_section(f"Valves {chapter}")
        made.paragraph(f"{chapter} {LONG}", "", 16)
        made.paragraph(SENTENCE * 20)
        made.ln(3)
        made.paragraph("Before you start", "B")
        for step in (1, 2):
            made.paragraph(f"{step}. Close valve {step}.")
        made.paragraph("Mind this.", "B")
        made.paragraph(SENTENCE * 3)
        made.set_font("Helvetica", "B", 11)
        made.cell(70, 6, "Part")
        made.cell(70, 6, "Size", **END)
        made.set_font("Helvetica", "", 11)
        for row in range(3):
            made.cell(70, 6, f"part {row}")
            made.cell(70, 6, f"{row} mm", **END)
    return bytes(made.output())


def headings(part: Part) -> list[str]:
    return re.findall(r"(?m)^#+ .+$", part.content)


def test_larger_and_bold_lines_of_a_pdf_are_headings() -> None:
    part = one("scan-0815.pdf", manual())
    assert part.title == "Pump Maintenance Handbook"
    assert headings(part) == [
        "# Pump Maintenance Handbook",
        *(
            heading
            for chapter in (1, 2, 3)
            for heading in (f"## {chapter} {LONG}", "### Before you start")
        ),
    ]
    assert part.content.count("Pump Maintenance Handbook") == 1
    assert "\n\n1. Close valve 1.\n\n2. Close valve 2.\n\n" in part.content
    assert "\\." not in part.content
    assert "Part Size" in part.content


def test_a_pdf_is_called_what_it_says_before_what_it_shows() -> None:
    assert one("x.pdf", manual("Said title")).title == "Said title"
    assert one("x.pdf", manual("Microsoft Word - x.docx")).title == "Pump Maintenance Handbook"


def test_the_outline_of_a_pdf_goes_before_its_letters() -> None:
    part = one("x.pdf", manual(outline=True))
    assert headings(part) == [f"# Valves {chapter}" for chapter in (1, 2, 3)]


@pytest.mark.parametrize("style", ["", "B"])
def test_a_pdf_of_one_kind_of_letters_has_no_headings(style: str) -> None:
    made = Manual()
    made.add_page()
    for number in range(20):
        made.paragraph(f"Short line {number}", style)
        made.ln(4)
    part = one("dir/plain-text.pdf", bytes(made.output()))
    assert headings(part) == []
    assert part.title == "plain-text"


DAY = datetime(2024, 3, 5, 14, 7, 9)


@pytest.mark.parametrize(
    ("value", "form", "text"),
    [
        (datetime(2024, 3, 5), "mm-dd-yy", "2024-03-05"),
        (datetime(2024, 3, 5), "yyyy-mm-dd", "2024-03-05"),
        (datetime(2024, 3, 5), "dd/mm/yyyy", "05/03/2024"),
        (datetime(2024, 3, 5), "d.m.yy", "5.3.24"),
        (datetime(2024, 3, 5), "[$-409]d mmmm yyyy;@", "5 March 2024"),
        (datetime(2024, 3, 5), "d-mmm-yy", "5-Mar-24"),
        (DAY, "yyyy-mm-dd hh:mm:ss", "2024-03-05 14:07:09"),
        (DAY, "d/m/yyyy h:mm AM/PM", "5/3/2024 2:07 PM"),
        (DAY, "mm:ss", "07:09"),
        (DAY, "General", "2024-03-05 14:07:09"),
        (datetime(2024, 3, 5), "m/d/yy h:mm", "2024-03-05 00:00:00"),
        (datetime(2024, 3, 5), 'yyyy"年"m"月"d"日"', "2024年3月5日"),
        (date(2024, 3, 5), "dd.mm.yyyy", "05.03.2024"),
        (time(9, 5), "h:mm", "9:05"),
        (timedelta(hours=30, minutes=5), "[h]:mm:ss", "30:05:00"),
        (0.25, "0%", "25%"),
        (0.1234, "0.0%", "12.3%"),
        (0.1 + 0.2, "General", "0.3"),
        (3.0, "0.00", "3.00"),
        (True, "General", "TRUE"),
    ],
)
def test_cells_are_written_as_their_formats_show_them(value, form: str, text: str) -> None:
    assert shown(value, form) == text


def test_a_workbook_keeps_dates_as_they_are_shown() -> None:
    book = Workbook()
    book.properties.title = "Deliveries of the year"
    sheet = book.active
    sheet.append(["Item", "Day", "When", "Share"])
    sheet.append(["pump", datetime(2024, 3, 5), DAY, 0.5])
    sheet["B2"].number_format = "dd/mm/yyyy"
    sheet["C2"].number_format = "yyyy-mm-dd hh:mm"
    sheet["D2"].number_format = "0%"
    stream = io.BytesIO()
    book.save(stream)
    part = one("x.xlsx", stream.getvalue())
    assert part.title == "Deliveries of the year"
    assert "| pump | 05/03/2024 | 2024-03-05 14:07 | 50% |" in part.content
    assert "00:00" not in part.content
