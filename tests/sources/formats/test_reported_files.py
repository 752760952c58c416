"""Files like those in bug reports of other projects."""

import io
import json
import zipfile
from importlib import import_module

import pytest
from fpdf import FPDF
from openpyxl import Workbook

from kbkit.sources.formats import _MODULES, FORMATS, UnreadableError, parse
from tests.sources.formats.samples import one, saved, zipped

WORD = (
    'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main" '
    'xmlns:m="http://schemas.openxmlformats.org/officeDocument/2006/math"'
)
RELATIONS = "application/vnd.openxmlformats-package.relationships+xml"
PACKAGE = "http://schemas.openxmlformats.org/package/2006"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument"


def word(*paragraphs: str, **members: str) -> bytes:
    body = "".join(f"<w:p>{paragraph}</w:p>" for paragraph in paragraphs)
    kind = "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"
    return zipped(
        {
            "[Content_Types].xml": f'<Types xmlns="{PACKAGE}/content-types"><Default '
            f'Extension="rels" ContentType="{RELATIONS}"/><Override '
            f'PartName="/word/document.xml" ContentType="{kind}"/></Types>',
            "_rels/.rels": f'<Relationships xmlns="{PACKAGE}/relationships"><Relationship Id="r1" '
            f'Type="{OFFICE}" Target="word/document.xml"/></Relationships>',
            "word/document.xml": f"<w:document {WORD}><w:body>{body}</w:body></w:document>",
            **{f"word/{name}.xml": text for name, text in members.items()},
        }
    )


def run(text: str, properties: str = "") -> str:
    return f'<w:r>{properties}<w:t xml:space="preserve">{text}</w:t></w:r>'


def math(text: str) -> str:
    return f"<m:r><m:t>{text}</m:t></m:r>"


READING = (
    "<w:r><w:ruby><w:rt><w:r><w:t>とうきょう</w:t></w:r></w:rt>"
    "<w:rubyBase><w:r><w:t>東京</w:t></w:r></w:rubyBase></w:ruby></w:r>"
)
LINK = 'HYPERLINK "https://h.example/x"'
FRACTION = f"<m:f><m:num>{math('a')}</m:num><m:den>{math('2%')}</m:den></m:f>"
SUM = (
    f'<m:nary><m:naryPr><m:chr m:val="∑"/></m:naryPr><m:sub>{math("i")}</m:sub>'
    f"<m:sup>{math('n')}</m:sup><m:e><m:sSup><m:e>{math('x')}</m:e><m:sup>{math('2')}</m:sup>"
    "</m:sSup></m:e></m:nary>"
)


@pytest.mark.parametrize(
    ("paragraph", "text"),
    [
        (READING, "東京（とうきょう）"),
        (f'<w:fldSimple w:instr=" REF c ">{run("SEVEN")}</w:fldSimple>', "SEVEN"),
        (
            f"<w:fldSimple w:instr='{LINK}'>{run('a link')}</w:fldSimple>",
            "[a link](https://h.example/x)",
        ),
        (f'<w:bdo w:val="rtl">{run("turned")}</w:bdo>', "turned"),
        ("<w:r><w:t>one</w:t><w:cr/><w:t>two</w:t></w:r>", "one  \ntwo"),
        (run("x = ") + f"<m:oMath>{FRACTION}</m:oMath>", r"x = $\frac{a}{2\%}$"),
        (f"<m:oMathPara><m:oMath>{SUM}</m:oMath></m:oMathPara>", "$$\n\\sum _{i}^{n} {x}^{2}\n$$"),
        (f"<m:oMath><m:d><m:e>{math('a')}</m:e></m:d></m:oMath>", "$$\n(a)\n$$"),
        (f"<m:oMath><m:rad><m:deg/><m:e>{math('y')}</m:e></m:rad></m:oMath>", "$$\n\\sqrt{y}\n$$"),
    ],
)
def test_word_keeps_ruby_fields_breaks_and_formulas(paragraph: str, text: str) -> None:
    assert one("x.docx", word(run("Begin"), paragraph)).content == f"Begin\n\n{text}\n"


def test_content_left_out_of_word_is_noted() -> None:
    hidden = run(" secret", "<w:rPr><w:vanish/></w:rPr>")
    shown = run("!", '<w:rPr><w:vanish w:val="0"/></w:rPr>')
    text = f"<w:x {WORD}>{run('text')}</w:x>"
    part = one("x.docx", word(run("Shown") + hidden + shown, header1=text, comments=text))
    assert part.content == "Shown!\n"
    assert part.note == "left out: hidden text, headers and footers, comments"


def slides(count: int, title: str):
    """A presentation, and its first slide."""
    from pptx import Presentation

    presentation = Presentation()
    for _ in range(count):
        presentation.slides.add_slide(presentation.slide_layouts[5])
    slide = presentation.slides[0]
    slide.shapes.title.text = title
    return presentation, slide


def add_chart(slide, **series: tuple) -> None:
    from pptx.chart.data import CategoryChartData
    from pptx.enum.chart import XL_CHART_TYPE

    figures = CategoryChartData()
    figures.categories = ["East", "West"]
    for name, values in series.items():
        figures.add_series(name, values)
    slide.shapes.add_chart(XL_CHART_TYPE.COLUMN_CLUSTERED, 0, 0, 9, 9, figures)


def test_powerpoint_keeps_charts_and_links_but_no_hidden_slides() -> None:
    presentation, slide = slides(2, "Sales")
    hidden = presentation.slides[1]
    hidden.shapes.title.text = "Secret"
    hidden._element.set("show", "0")
    add_chart(slide, Q1=(19.5, 21), Q2=(22, None))
    paragraph = slide.shapes.add_textbox(0, 0, 9, 9).text_frame.paragraphs[0]
    paragraph.add_run().text = "See "
    linked = paragraph.add_run()
    linked.text, linked.hyperlink.address = "the docs", "https://h.example/x"
    part = one("x.pptx", saved(presentation))
    assert "| East | 19.5 | 22 |\n| West | 21 |  |" in part.content
    assert "See [the docs](https://h.example/x)" in part.content
    assert "Secret" not in part.content
    assert part.note == "left out: hidden slides (2)"


def changed(data: bytes, old: bytes, new: bytes) -> bytes:
    """An archive, in whose members a text is replaced."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {name: archive.read(name).replace(old, new) for name in archive.namelist()}
    return zipped(members)


@pytest.mark.parametrize("kind", [b"bar3DChart", b"surfaceChart", b"stockChart"])
def test_charts_of_all_kinds_keep_their_figures(kind: bytes) -> None:
    presentation, slide = slides(1, "Sales")
    add_chart(slide, Q1=(19.2, 21))
    part = one("x.pptx", changed(saved(presentation), b"c:barChart", b"c:" + kind))
    assert "|  | Q1 |\n| --- | --- |\n| East | 19.2 |\n| West | 21 |" in part.content


DRAWING = "http://schemas.openxmlformats.org/drawingml/2006"
RELATION = OFFICE.removesuffix("/officeDocument")
FRAME = f"""<p:graphicFrame
    xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main"
    xmlns:a="{DRAWING}/main" xmlns:dgm="{DRAWING}/diagram" xmlns:r="{RELATION}">
  <p:nvGraphicFramePr><p:cNvPr id="9" name="d"/><p:cNvGraphicFramePr/><p:nvPr/>
  </p:nvGraphicFramePr><p:xfrm><a:off x="0" y="0"/><a:ext cx="9" cy="9"/></p:xfrm>
  <a:graphic><a:graphicData uri="{DRAWING}/diagram"><dgm:relIds r:dm="ID"/></a:graphicData>
  </a:graphic></p:graphicFrame>"""


def test_texts_of_a_diagram_become_a_list() -> None:
    from pptx.opc.package import Part as PackagePart
    from pptx.opc.packuri import PackURI
    from pptx.oxml import parse_xml

    presentation, slide = slides(1, "Steps")
    points = "".join(f"<dgm:pt><a:t>{name}</a:t></dgm:pt>" for name in ("Prime", "Open"))
    spaces = f'xmlns:dgm="{DRAWING}/diagram" xmlns:a="{DRAWING}/main"'
    data = f"<dgm:dataModel {spaces}>{points}</dgm:dataModel>".encode()
    place, kind = PackURI("/ppt/diagrams/data1.xml"), "application/xml"
    part = PackagePart(place, kind, slide.part.package, data)
    identity = slide.part.relate_to(part, f"{RELATION}/diagramData")
    slide.shapes._spTree.append(parse_xml(FRAME.replace("ID", identity)))
    assert "## Steps\n\n- Prime\n- Open" in one("x.pptx", saved(presentation)).content


def book(*rows: list[object], merged: tuple[str, ...] = (), state: str = "visible") -> bytes:
    workbook = Workbook()
    sheet = workbook.active
    for row in rows:
        sheet.append(row)
    for cells in merged:
        sheet.merge_cells(cells)
    other = workbook.create_sheet("Other")
    other.append(["secret", "=A1"])
    other.sheet_state = state
    return saved(workbook)


def test_title_and_two_header_rows_are_kept() -> None:
    rows = (
        ["Report"],
        ["Region", "2023", None, "2024", None],
        [None, "Q1", "Q2", "Q1", "Q2"],
        ["East", 1, 2, 3, 4],
        [None, 5, 6, 7, 8],
    )
    merged = ("A1:E1", "B2:C2", "D2:E2", "A4:A5")
    part = one("x.xlsx", book(*rows, merged=merged, state="veryHidden"))
    assert "Report\n\n## Rows 4 to 5" in part.content
    assert "| Region | 2023 Q1 | 2023 Q2 | 2024 Q1 | 2024 Q2 |" in part.content
    assert "| East | 5 | 6 | 7 | 8 |" in part.content
    assert part.note == "left out: hidden sheets (Other)"


def test_formulas_without_values_are_noted() -> None:
    data = book(["a", "b"], [1, 2])
    *_, other = parse("x.xlsx", data)
    assert other.note.startswith("Other: 1 formulas have no value")
    empty = changed(data, b'<c r="B1">', b'<c r="B1" t="str">')  # its value is no text
    assert [part.note for part in parse("x.xlsx", empty)] == ["", ""]


@pytest.mark.parametrize(
    ("text", "content"),
    [
        ("sep=;\nName;Age\nAnn;3\n", "## Row 3\n\n| Name | Age |\n| --- | --- |\n| Ann | 3 |"),
        ("Of 2024\n\nA,B,C\n1,2,3\n", "Of 2024\n\n## Row 4\n\n| A | B | C |"),
        ("Name\nAnn\nBob\n", "## Rows 2 to 3\n\n| Name |\n| --- |\n| Ann |\n| Bob |"),
        ("A,B,C\n1,2,3\n1,2,3,4,5,6,7\n4,5,6\n", "## Rows 2 to 4\n\n| A | B | C |"),
        ("Name,Age\nAnn,\nBob,4\n", "| Name | Age |\n| --- | --- |\n| Ann |  |\n| Bob | 4 |"),
    ],
)
def test_lines_above_a_table_are_not_its_header(text: str, content: str) -> None:
    assert content in one("x.csv", text).content


def epub(href: str, name: str, *extra: str) -> bytes:
    page = "<html><head><title>Book</title></head><body><p>Once upon a time.</p></body></html>"
    container = '<container><rootfiles><rootfile full-path="o/b.opf"/></rootfiles></container>'
    toc = (
        f'<ncx><navMap><navPoint><navLabel><text>The well</text></navLabel><content src="{href}"/>'
        "</navPoint></navMap></ncx>"
    )
    items = f'<item id="c" href="{href}" media-type="application/xhtml+xml"/>' + "".join(
        f'<item id="{each}" href="{each}" media-type="application/xhtml+xml"/>' for each in extra
    )
    spine = "".join(f'<itemref idref="{each}"/>' for each in ("c", *extra))
    ncx = '<item id="n" href="toc.ncx" media-type="application/x-dtbncx+xml"/>'
    opf = f"<package><manifest>{items}{ncx}</manifest><spine>{spine}</spine></package>"
    return zipped(
        {"META-INF/container.xml": container, "o/b.opf": opf, "o/toc.ncx": toc, f"o/{name}": page}
    )


@pytest.mark.parametrize(
    ("href", "name"),
    [
        ("a%20b.xhtml", "a b.xhtml"),
        ("a%20b.xhtml", "a%20b.xhtml"),
        ("Chapter.xhtml", "chapter.XHTML"),
        ("caf%C3%A9.xhtml", "cafe\u0301.xhtml"),
    ],
)
def test_chapters_are_found_by_any_form_of_their_name(href: str, name: str) -> None:
    part = one("x.epub", epub(href, name, "missing.xhtml"))
    assert part.title == "x: The well"
    assert part.note == "1 chapters cannot be read: o/missing.xhtml"


def printed(*lines: str, title: str = "") -> bytes:
    document = FPDF()
    document.set_title(title)
    document.add_page()
    document.set_font("Helvetica", size=12)
    for line in lines:
        document.cell(0, 6, line, new_x="LMARGIN", new_y="NEXT")
    return bytes(document.output())


def test_hyphens_at_line_ends_join_words_and_stay_in_compounds() -> None:
    lines = (
        "The coffee is brew-",
        "ed by a state-of-the-",
        "art pot, and by e-",
        "mail too. It is",
    )
    part = one("x.pdf", printed(*lines, "a self-", "made thing.", title="(anonymous)"))
    assert " ".join(part.content.replace("\n\n", "|").strip("| \n\f").split()) == (
        "The coffee is brewed by a state-of-the-art pot, and by e-mail too. "
        "It is a self-made thing."
    )
    assert part.title == "x"


@pytest.mark.timeout(20)
def test_progress_bar_keeps_its_last_state() -> None:
    text = ["0%|  \r", "50%|# \r100%|##\n", "done\n", "x" * 1_000_000]
    output = {"output_type": "stream", "name": "stdout", "text": text}
    cell = {"cell_type": "code", "metadata": {}, "source": ["go()"], "outputs": [output]}
    part = one("x.ipynb", json.dumps({"cells": [cell], "metadata": {}, "nbformat": 4}))
    assert "```text\n100%|##\ndone\nxxx" in part.content


@pytest.mark.parametrize(
    ("front", "title"),
    [
        ('title: "The meaning of *args"', "The meaning of *args"),
        ("title: *args and **kwargs", "*args and **kwargs"),
        ('title: "Q &A"', "Q &A"),
        ("title: &A and B", "&A and B"),
        ("title: Foo: a bar", "Foo: a bar"),
        ("title: [draft] One", "[draft] One"),
        ("title: @user", "@user"),
        ("title: 3.10", "3.10"),
        ("title: 007", "007"),
        ("title: Yes", "Yes"),
        ("title: true", "true"),
        ("title: 12:30", "12:30"),
        ("title: 2024-01-02", "2024-01-02"),
        ("", "Head"),
    ],
)
def test_front_matter_keeps_titles_as_written(front: str, title: str) -> None:
    part = one("x.md", f"---\n{front}\ntags: [3.10, no]\n---\n# Head\n\nText.\n")
    assert (part.title, part.content, part.tags) == (title, "# Head\n\nText.\n", ("3.10", "no"))
    assert not part.note


def test_front_matter_may_be_toml_or_empty() -> None:
    part = one("x.md", '+++\ntitle = "T"\ndate = 2024-01-02\n+++\nText.\n')
    assert (part.title, part.content, part.metadata) == ("T", "Text.\n", {"date": "2024-01-02"})
    assert one("x.md", "---\n---\nText.\n").content == "Text.\n"


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ('---\ntags: [a]\ntitle: "open\n---\nText.\n', "line 3, column 8"),
        ('+++\ntitle = "T\n+++\nText.\n', "line 2, column 11"),
    ],
)
def test_invalid_front_matter_stays_and_is_noted(text: str, place: str) -> None:
    part = one("x.md", text)
    assert part.content.startswith(text[:3])
    assert place in part.note


def test_type_parameters_stay_in_titles() -> None:
    text = "# A <b>bold</b> Map<K, List<String>>\n\nText.\n"
    assert one("x.md", text).title == "A bold Map<K, List<String>>"


@pytest.mark.parametrize("form", sorted(set(FORMATS.values())))
@pytest.mark.parametrize("error", [KeyError("x"), RecursionError(), MemoryError()])
def test_any_exception_of_a_reader_is_a_reason(form: str, error: Exception, monkeypatch) -> None:
    def broken(*_: object) -> None:
        raise error

    suffix = next(suffix for suffix, each in FORMATS.items() if each == form)
    module = import_module(f"kbkit.sources.formats.{_MODULES.get(form, form)}")
    reader = next(name for name in (f"read_{form}", "read") if hasattr(module, name))
    monkeypatch.setattr(module, reader, broken)
    with pytest.raises(UnreadableError, match=r"broken|nested too deeply|too much memory"):
        parse(f"x{suffix}", b"text")


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "front",
    [
        "---\n" + "\n" * 19_000 + "a: [b\n---\n",
        "---\n" + " " * 19_000 + "\n---\n",
        "---\n" + " " * 9_000 + '"x' + " " * 9_000 + "\n---\n",
        "+++\na = " + "[" * 19_000 + "\n+++\n",
    ],
)
def test_hostile_front_matter_is_read_quickly(front: str) -> None:
    assert one("x.md", f"{front}# Head\n\nText.\n").content.endswith("# Head\n\nText.\n")


def test_formulas_contain_no_injected_commands() -> None:
    formula = f"<m:oMath>{math(chr(92) + 'input{x}')}</m:oMath>"
    assert chr(92) + "input" not in one("x.docx", word(run("Is") + formula)).content
