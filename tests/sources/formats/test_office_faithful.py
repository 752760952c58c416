"""Headings that PDFs print, and cells as their formats show them."""

import re
from datetime import date, datetime, time, timedelta

import pytest
from fpdf import FPDF
from openpyxl import Workbook

from kbkit.sources.formats import Part
from kbkit.sources.formats.sheet import format_cell
from tests.sources.formats.samples import one, saved

SENTENCE = "The valve is closed slowly. "
LONG = "Valves of a kind, and a heading of which there is so much that it takes two lines"
END = {"new_x": "LMARGIN", "new_y": "NEXT"}


class Manual(FPDF):
    def paragraph(self, text: str, style: str = "", size: int = 11) -> None:
        self.set_font("Helvetica", style, size)
        self.multi_cell(0, size * 0.6, text, **END)


def manual(title: str = "", outline: bool = False) -> bytes:
    document = Manual()
    if title:
        document.set_title(title)
    document.add_page()
    document.paragraph("Pump Maintenance Handbook", "B", 24)
    document.paragraph(SENTENCE * 12)
    for chapter in (1, 2, 3):
        document.set_font("Helvetica", "", 16)
        if outline:
            document.start_section(f"Valves {chapter}")
        document.paragraph(f"{chapter} {LONG}", "", 16)
        document.paragraph(SENTENCE * 20)
        document.ln(3)
        document.paragraph("Before you start", "B")
        for step in (1, 2):
            document.paragraph(f"{step}. Close valve {step}.")
        document.paragraph("Mind this.", "B")
        document.paragraph(SENTENCE * 3)
        document.set_font("Helvetica", "B", 11)
        for cells in (("Part", "Size"), *((f"part {row}", f"{row} mm") for row in range(3))):
            document.cell(70, 6, cells[0])
            document.cell(70, 6, cells[1], **END)
            document.set_font("Helvetica", "", 11)
    return bytes(document.output())


def headings(part: Part) -> list[str]:
    return re.findall(r"(?m)^#+ .+$", part.content)


def test_larger_and_bold_lines_of_a_pdf_are_headings() -> None:
    part = one("scan-0815.pdf", manual())
    assert part.title == "Pump Maintenance Handbook"
    assert headings(part) == ["# Pump Maintenance Handbook"] + [
        heading
        for chapter in (1, 2, 3)
        for heading in (f"## {chapter} {LONG}", "### Before you start")
    ]
    assert part.content.count("Pump Maintenance Handbook") == 1
    assert "\n\n1. Close valve 1.\n\n2. Close valve 2.\n\n" in part.content
    assert "\\." not in part.content
    assert "Part Size" in part.content


def test_title_of_a_pdf_precedes_its_first_heading() -> None:
    assert one("x.pdf", manual("Said title")).title == "Said title"
    assert one("x.pdf", manual("Microsoft Word - x.docx")).title == "Pump Maintenance Handbook"


def test_outline_of_a_pdf_precedes_its_fonts() -> None:
    part = one("x.pdf", manual(outline=True))
    assert headings(part) == [f"# Valves {chapter}" for chapter in (1, 2, 3)]


@pytest.mark.parametrize("style", ["", "B"])
def test_pdf_of_one_font_has_no_headings(style: str) -> None:
    document = Manual()
    document.add_page()
    for number in range(20):
        document.paragraph(f"Short line {number}", style)
        document.ln(4)
    part = one("dir/plain-text.pdf", bytes(document.output()))
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
        (DAY, "[mm]:ss", "07:09"),
        (DAY, 'hh"h"mm', "14h07"),
        (time(9, 5, 7), 'h "hours" mm "mins"', "9 hours 05 mins"),
        (DAY, "[Magenta]d mmm", "5 Mar"),
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
        (42, "00000", "00042"),
        (3.14159, "0.00", "3.14"),
        (2.675, "0.00", "2.68"),
        (1234567.5, "#,##0", "1,234,568"),
        (-5, "#,##0;(#,##0)", "(5)"),
        (0, '0;-0;"none"', "none"),
        (99.5, '"$"#,##0.00', "$99.50"),
        (99.5, "[$€-407] #,##0.00", "€ 99.50"),
        (1234.5, '_("$"* #,##0.00_)', "$1,234.50"),
        (1234, '"SKU-"0000', "SKU-1234"),
        (123456789, "000-00-0000", "123-45-6789"),
        (5551234567, "(000) 000-0000", "(555) 123-4567"),
        (1234, "0.##", "1234"),
        (1_500_000, '0.0,,"M"', "1.5M"),
        (-0.001, "0.0", "0.0"),
        (3, "# ?/?", "3"),
        (1e20, "0", "100000000000000000000"),
        (123456789, "0." + "0" * 20, "123456789." + "0" * 20),
        (500, '[>=1000000]0.0,,"M";[>=1000]0.0,"K";0', "500"),
        (5, "0" + "," * 30_000, "5"),
    ],
)
def test_cells_are_written_as_their_formats_show_them(value, form: str, text: str) -> None:
    assert format_cell(value, form) == text


def test_workbook_keeps_dates_as_shown() -> None:
    book = Workbook()
    book.properties.title = "Deliveries of the year"
    sheet = book.active
    sheet.append(["Item", "Day", "When", "Share"])
    sheet.append(["pump", datetime(2024, 3, 5), DAY, 0.5])
    sheet["B2"].number_format = "dd/mm/yyyy"
    sheet["C2"].number_format = "yyyy-mm-dd hh:mm"
    sheet["D2"].number_format = "0%"
    part = one("x.xlsx", saved(book))
    assert part.title == "Deliveries of the year"
    assert "| pump | 05/03/2024 | 2024-03-05 14:07 | 50% |" in part.content
    assert "00:00" not in part.content
