"""Small files of every format, document by the libraries that people make them with."""

import csv
import io
import json
import zipfile

from kbkit.sources.formats import Part, parse

TEXT = "The pump has to be primed before the valve is opened. "


def one(name: str, data: bytes | str) -> Part:
    """The only part of a file."""
    (part,) = parse(name, data if isinstance(data, bytes) else data.encode())
    return part


def saved(document) -> bytes:
    target = io.BytesIO()
    document.save(target)
    return target.getvalue()


def pdf(pages: int = 3, outline: bool = True, paragraphs: int = 3) -> bytes:
    from fpdf import FPDF

    class Manual(FPDF):
        def header(self) -> None:
            self.set_font("Helvetica", size=8)
            self.cell(0, 10, "The running head", new_x="LMARGIN", new_y="NEXT")

        def footer(self) -> None:
            self.set_y(-15)
            self.cell(0, 10, f"page {self.page_no()} of the manual")

    document = Manual()
    document.set_title("Pump manual")
    document.set_author("Ada")
    for page in range(1, pages + 1):
        document.add_page()
        document.set_font("Helvetica", "B", 16)
        if outline:
            document.start_section(f"Chapter {page}")
        document.cell(0, 10, f"{page}. Chapter {page}", new_x="LMARGIN", new_y="NEXT")
        document.set_font("Helvetica", size=11)
        for paragraph in range(paragraphs):
            document.multi_cell(0, 6, f"Paragraph {paragraph} of page {page}. " + TEXT * 4)
            document.ln(8)
    return bytes(document.output())


def encrypted_pdf() -> bytes:
    from pypdf import PdfWriter

    writer = PdfWriter(clone_from=io.BytesIO(pdf(1)))
    writer.encrypt("secret", algorithm="RC4-128")
    target = io.BytesIO()
    writer.write(target)
    return target.getvalue()


def docx() -> bytes:
    from docx import Document
    from docx.enum.style import WD_STYLE_TYPE

    document = Document()
    document.core_properties.title = "Valve <guide>"
    document.add_heading("Valves & pumps", 1)
    document.add_paragraph(TEXT)
    document.add_heading("Steps", 2)
    document.add_paragraph("Open", style="List Number")
    document.add_paragraph("Close", style="List Number")
    document.add_paragraph("A point", style="List Bullet")
    document.styles.add_style("Code", WD_STYLE_TYPE.PARAGRAPH)
    document.add_paragraph("def open():", style="Code")
    document.add_paragraph("    return 1 < 2", style="Code")
    table = document.add_table(rows=2, cols=2)
    for row, texts in zip(table.rows, (("Part", "Price"), ("Valve", "10 | 20")), strict=True):
        for cell, text in zip(row.cells, texts, strict=True):
            cell.text = text
    return saved(document)


def pptx() -> bytes:
    from pptx import Presentation
    from pptx.util import Inches

    document = Presentation()
    for number in (1, 2):
        slide = document.slides.add_slide(document.slide_layouts[1])
        slide.shapes.title.text = f"Slide title {number}"
        frame = slide.placeholders[1].text_frame
        frame.text = "First point"
        inner = frame.add_paragraph()
        inner.text, inner.level = "Inner <b>point</b>", 1
        slide.notes_slide.notes_text_frame.text = f"Say this on {number}"
    sizes = Inches(1), Inches(1), Inches(4), Inches(1)
    table = slide.shapes.add_table(2, 2, *sizes).table
    for index, text in enumerate(("Part", "Price", "Valve", "10")):
        table.cell(index // 2, index % 2).text = text
    return saved(document)


def xlsx(rows: int = 60, sheets: int = 2) -> bytes:
    from openpyxl import Workbook

    document = Workbook()
    document.remove(document.active)
    for number in range(1, sheets + 1):
        sheet = document.create_sheet(f"Sheet {number}")
        sheet.append(["Part", "Price", "Note"])
        for row in range(rows):
            sheet.append([f"P{number}-{row}", row * 1.5, "needs | care" if row % 7 == 0 else None])
    return saved(document)


def csv_file(rows: int = 60, delimiter: str = ";") -> bytes:
    target = io.StringIO()
    writer = csv.writer(target, delimiter=delimiter)
    writer.writerow(["Part", "Price", "Größe"])
    for row in range(rows):
        writer.writerow([f"P{row}", row, "two\nlines" if row == 3 else f"g{row}"])
    return target.getvalue().encode()


def zipped(members: dict[str, bytes | str], compressed: bool = True) -> bytes:
    target = io.BytesIO()
    kind = zipfile.ZIP_DEFLATED if compressed else zipfile.ZIP_STORED
    with zipfile.ZipFile(target, "w", kind) as archive:
        for name, body in members.items():
            archive.writestr(name, body)
    return target.getvalue()


def epub(encryption: str = "") -> bytes:
    chapter = (
        '<?xml version="1.0"?><!DOCTYPE html><html xmlns="http://www.w3.org/1999/xhtml">'
        "<head><title>x</title></head><body><h1 id='c{0}'>Chapter {0}</h1><p>{1}</p>"
        "<pre>  code &lt;{0}&gt;</pre></body></html>"
    )
    members: dict[str, bytes | str] = {
        "mimetype": "application/epub+zip",
        "META-INF/container.xml": '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:'
        'container"><rootfiles><rootfile full-path="OEBPS/book.opf"/></rootfiles></container>',
        "OEBPS/book.opf": '<package xmlns="http://www.idpf.org/2007/opf" '
        'xmlns:dc="http://purl.org/dc/elements/1.1/"><metadata><dc:title>The book</dc:title>'
        "<dc:creator>Ada</dc:creator></metadata><manifest>"
        '<item id="b" href="two%20b.xhtml" media-type="application/xhtml+xml"/>'
        '<item id="a" href="one.xhtml" media-type="application/xhtml+xml"/>'
        '<item id="n" href="nav.xhtml" properties="nav" media-type="application/xhtml+xml"/>'
        '</manifest><spine><itemref idref="a"/><itemref idref="n"/><itemref idref="b"/></spine>'
        "</package>",
        "OEBPS/one.xhtml": chapter.format(1, TEXT),
        "OEBPS/two b.xhtml": chapter.format(2, TEXT),
        "OEBPS/nav.xhtml": "<html><body><nav>contents</nav></body></html>",
    }
    if encryption:
        members["META-INF/encryption.xml"] = (
            f'<encryption><CipherData><CipherReference URI="{encryption}"/></CipherData>'
            "</encryption>"
        )
    return zipped(members)


def notebook() -> bytes:
    data = {"text/plain": ["42"], "text/html": "<b>42</b>", "image/png": "iVBO"}
    error = {
        "ename": "ValueError",
        "evalue": "bad",
        "traceback": ["\x1b[31mValueError\x1b[0m: bad"],
    }
    run = {"metadata": {}, "execution_count": 1}
    outputs = [
        {"output_type": "stream", "name": "stdout", "text": ["hello\n", "world\n"]},
        {"output_type": "execute_result", **run, "data": data},
        {"output_type": "error", **error},
    ]
    text = {"cell_type": "markdown", "metadata": {}, "source": ["# Analysis\n", "\n", "Words."]}
    code = {"cell_type": "code", **run, "source": "print('```')", "outputs": outputs}
    metadata = {"language_info": {"name": "python"}}
    version = {"nbformat": 4, "nbformat_minor": 5}
    return json.dumps({**version, "metadata": metadata, "cells": [text, code]}).encode()


RST = b"""\
Widgets
=======

Text with :class:`~pump.Valve`, :ref:`a label <x>` and ``code``.

.. versionadded:: 2.1
   The valve.

.. py:function:: open(valve, *, slowly=False)

   Opens a valve.

   .. code-block:: python

      open(v)   # <now>

.. toctree::
   :maxdepth: 2

   other

.. include:: /etc/passwd

.. raw:: html

   <script>alert(1)</script>

.. csv-table:: Parts
   :file: /etc/passwd

.. class:: Pump(size, \\
               colour=None)

   Pumps water.

.. unknown-thing:: With an argument
   :odd: option

   StoredPage text.

Deeper
------

====  =====
Part  Price
====  =====
a     1
====  =====
"""

JSON = json.dumps({"name": "pump", "parts": [{"id": i, "note": "x" * 40} for i in range(40)]})

YAML = """\
# about the service
name: pump
base: &base
  a: 1
services:
  web:
    <<: *base
    image: nginx  # a comment
"""

PYTHON = '''\
#!/usr/bin/env python
"""What the module does."""

import os

LIMIT = 3


# says hello
@decorated
def hello(name, *rest, loud=False, **more):
    return f"<b>{name}</b>"


class Big:
    """A class."""

    field = 1

''' + "".join(
    f"    def method{i}(self, a):\n        '''Doc {i}.'''\n        return {'a + ' * 20}{i}\n\n"
    for i in range(8)
)

GO = """\
package main

import "fmt"

// Hello says hello.
func Hello(name string) {
\tfmt.Println(name)

\tfmt.Println("again")
}

type Valve struct {
\tOpen bool
}
"""

HTML = f"<title>Pump page</title><h1>Pump</h1><p>{TEXT * 5}</p><pre>a  b</pre>".encode()


def every() -> dict[str, bytes]:
    """One file of each format, by name."""
    return {
        "manual.pdf": pdf(5),
        "guide.docx": docx(),
        "talk.pptx": pptx(),
        "parts.xlsx": xlsx(),
        "parts.csv": csv_file(),
        "parts.tsv": csv_file(delimiter="\t"),
        "book.epub": epub(),
        "work.ipynb": notebook(),
        "widgets.rst": RST,
        "data.json": JSON.encode(),
        "data.yaml": YAML.encode(),
        "pump.py": PYTHON.encode(),
        "pump.go": GO.encode(),
        "page.html": HTML,
        "note.md": b"---\ntitle: A note\n---\n# Note\n\nText.\n",
        "note.txt": b"Just text.\n",
    }
