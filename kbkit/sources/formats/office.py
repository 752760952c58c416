"""DOCX through mammoth's HTML; PPTX with a heading per slide.

Word's XML is rewritten first, for parts that mammoth drops: readings, fields, directions, formulas.
"""

import html
import io
import logging
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from lxml import etree

from kbkit.extras import extra
from kbkit.models import License
from kbkit.sources.html.extract import markdown_of
from kbkit.sources.html.metadata import rights_license
from kbkit.sources.parts import PAGE_BREAK, Part, one_line, stem
from kbkit.sources.untrusted import Archive, UnreadableError, office, parse_xml
from kbkit.text.markdown.structure import document_title
from kbkit.text.markdown.writing import MATH, escape, guard, latex, pipe_table, quoted, safe_url

_STYLES = Path(__file__).with_name("word_styles.txt").read_text("utf-8")
_CORE = re.compile(r"<(?:\w+:)?(title|creator|rights)>([^<]{1,1000})</")
_CUSTOM = re.compile(
    r'<(?:\w+:)?property\b[^>]{0,300}\bname="(license|licence|copyright|rights)"[^>]{0,300}>\s*'
    r"<vt:lpw?str>([^<]{1,1000})</",
    re.IGNORECASE,
)
_HIDDEN_ANCHOR = re.compile(r'<a id="_[^"]*"></a>')


def read_docx(data: bytes, name: str) -> list[Part]:
    with extra("office", "mammoth", "Reading DOCX"):
        import mammoth

    word = Word()
    safe = office(data, "word/", "a Word document", word.rewritten)
    logging.getLogger("mammoth").setLevel(logging.CRITICAL)
    page = mammoth.convert_to_html(
        io.BytesIO(safe),
        style_map=_STYLES,
        include_embedded_style_map=False,
        external_file_access=False,
        convert_image=mammoth.images.img_element(lambda _: {"src": ""}),
        ignore_empty_paragraphs=True,
        transform_document=mammoth.transforms.element_of_type(mammoth.documents.Table, _with_head),
    ).value
    content = markdown_of(word.with_formulas(_HIDDEN_ANCHOR.sub("", page)))
    title, fields = properties(safe)
    title = title or one_line(document_title(content)) or stem(name)
    note = f"left out: {', '.join(word.left_out)}" if word.left_out else ""
    return [Part(title, content + "\n", metadata={"format": "docx", **fields}, note=note)]


def _with_head(table: Any) -> Any:
    """Make the first row the head of a table: few authors mark it in Word."""
    first, *other_rows = table.children or [None]
    if first is None or first.is_header:
        return table
    return table.copy(children=[first.copy(is_header=True), *other_rows])


def properties(safe: bytes) -> tuple[str, dict[str, Any]]:
    """Return the title of an Office file, and its author and license as metadata."""
    archive = Archive(safe)
    core = _CORE.findall(_member_text(archive, "docProps/core.xml"))
    values = {key: one_line(html.unescape(value)) for key, value in core}
    title, author = values.get("title", ""), values.get("creator")
    # defaults of libraries
    if title.lower() in ("word document", "powerpoint presentation"):
        title = ""
    metadata = {"author": author} if author and author not in ("python-docx", "openpyxl") else {}
    license = rights_license(values.get("rights", ""))
    for name, value in _CUSTOM.findall(_member_text(archive, "docProps/custom.xml")):
        text = html.unescape(value)
        is_license = name.lower() in ("license", "licence")
        license = license.or_else(License.stated(text) if is_license else rights_license(text))
    return title, {**metadata, **license.to_metadata()}


def _member_text(archive: Archive, name: str) -> str:
    try:
        return archive.read(name).decode("utf-8", "replace")
    except UnreadableError:
        return ""


_WORD = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_BODIES = ("word/document.xml", "word/footnotes.xml", "word/endnotes.xml")
_LEFT_OUT = (
    (re.compile(r"word/(?:header|footer)\d*\.xml"), "headers and footers"),
    (re.compile(r"word/comments\.xml"), "comments"),
)
_LINK = re.compile(r'\s*HYPERLINK\s+(?:\\l\s+)?"')
_PLACE = re.compile("(<p>)?\ue000(\\d{1,7})\ue001(?(1)</p>)")


class Word:
    """Rewrites a Word file for mammoth, and keeps the formulas in it.

    Attributes:
        left_out: Kinds of text in the file that are not converted.
    """

    def __init__(self) -> None:
        self._formulas: list[str] = []
        self.left_out: dict[str, None] = {}

    def rewritten(self, name: str, body: bytes) -> bytes:
        for pattern, kind in _LEFT_OUT:
            if pattern.fullmatch(name) and "".join(_parse_xml(body).itertext()).strip():
                self.left_out[kind] = None
        return self._rewritten(body) if name in _BODIES else body

    def with_formulas(self, page: str) -> str:
        """Put the formulas back into mammoth's HTML."""

        def formula(place: re.Match[str]) -> str:
            if int(place[2]) >= len(self._formulas):
                return place[0]
            text = html.escape(self._formulas[int(place[2])])
            return f'<{(tag := "div" if place[1] else "span")} class="math">{text}</{tag}>'

        return _PLACE.sub(formula, page)

    def _rewritten(self, body: bytes) -> bytes:
        root = _parse_xml(body)
        rewrites: dict[str, Callable[[Any], None]] = {
            f"{_WORD}vanish": self._hide,
            f"{_WORD}ruby": _write_reading,
            f"{_WORD}fldSimple": _unwrap_field,
            f"{_WORD}dir": _unwrap,
            f"{_WORD}bdo": _unwrap,
            f"{_WORD}cr": lambda each: setattr(each, "tag", f"{_WORD}br"),
            f"{_WORD}ptab": lambda each: setattr(each, "tag", f"{_WORD}tab"),
            f"{MATH}oMath": self._take_formula,
            f"{MATH}oMathPara": _unwrap,
        }
        for tag, rewrite in rewrites.items():
            for element in list(root.iter(tag)):
                rewrite(element)
        return bytes(etree.tostring(root, encoding="utf-8", xml_declaration=True))

    def _hide(self, mark: Any) -> None:
        run = mark.getparent().getparent()
        is_visible = mark.get(f"{_WORD}val", "1") in ("0", "false", "off")
        if is_visible or run is None or run.tag != f"{_WORD}r" or run.getparent() is None:
            return
        self.left_out["hidden text"] = None
        run.getparent().remove(run)

    def _take_formula(self, formula: Any) -> None:
        run = _run("t", f"\ue000{len(self._formulas)}\ue001")
        self._formulas.append(latex(formula))
        run.tail = formula.tail
        formula.getparent().replace(formula, run)


def _parse_xml(body: bytes) -> Any:
    # `office` excluded entities and bounded the size
    return parse_xml(body, recover=False, huge=True)


def _run(tag: str, text: str, **attributes: str) -> Any:
    run = etree.Element(f"{_WORD}r")
    inner = etree.SubElement(
        run, f"{_WORD}{tag}", {f"{_WORD}{k}": v for k, v in attributes.items()}
    )
    inner.text = text or None
    return run


def _write_reading(ruby: Any) -> None:
    base, reading = (
        "".join(ruby.xpath(f"./*[local-name()='{name}']//*[local-name()='t']/text()"))
        for name in ("rubyBase", "rt")
    )
    text = etree.Element(f"{_WORD}t")
    text.text = f"{base}\uff08{reading}\uff09" if reading else base
    ruby.getparent().replace(ruby, text)


def _unwrap_field(field: Any) -> None:
    instruction = field.get(f"{_WORD}instr") or ""
    if _LINK.match(instruction):
        field.insert(0, _run("fldChar", "", fldCharType="begin"))
        field.insert(1, _run("instrText", instruction))
        field.insert(2, _run("fldChar", "", fldCharType="separate"))
        field.append(_run("fldChar", "", fldCharType="end"))
    _unwrap(field)


def _unwrap(element: Any) -> None:
    parent = element.getparent()
    position = parent.index(element)
    parent[position : position + 1] = list(element)


_MAX_SLIDES = 5_000
_MAX_SHAPES = 100_000
_MAX_CELLS = 50_000
_DEEPEST = 20
_CHART = "{http://schemas.openxmlformats.org/drawingml/2006/chart}"
_DIAGRAM = "{http://schemas.openxmlformats.org/drawingml/2006/diagram}"
_RELATION = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"


def read_pptx(data: bytes, name: str) -> list[Part]:
    """Read a presentation; form feeds separate the slides."""
    with extra("office", "python-pptx", "Reading PPTX"):
        from pptx import Presentation

    safe = office(data, "ppt/", "a PowerPoint file")
    slides = Presentation(io.BytesIO(safe)).slides
    if len(slides) > _MAX_SLIDES:
        raise UnreadableError(f"more than {_MAX_SLIDES:,} slides")
    title, fields = properties(safe)
    out: list[str] = []
    hidden: list[int] = []
    for number, slide in enumerate(slides, 1):
        if slide._element.get("show") in ("0", "false"):
            hidden.append(number)
            out.append("")
            continue
        head, blocks = _slide(slide)
        title = title or head
        heading = f"## {escape(head) if head else f'Slide {number}'}"
        out.append("\n\n".join([heading, *blocks]) if head or blocks else "")
    title = title or stem(name)
    metadata = {"format": "pptx", "pages": len(slides), **fields}
    end = "\n" if len(out) > 1 else PAGE_BREAK  # a break marks a single slide as slide 1
    content = PAGE_BREAK.join(out) + end if any(out) else ""
    note = f"left out: hidden slides ({', '.join(map(str, hidden))})" if hidden else ""
    return [Part(title, content, metadata=metadata, note=note)]


def _slide(slide: Any) -> tuple[str, list[str]]:
    title = slide.shapes.title
    head = one_line(title.text_frame.text) if title is not None else ""
    blocks: list[str] = []
    for shape in _shapes(slide.shapes, 0):
        if title is not None and shape.shape_id == title.shape_id:
            continue
        if getattr(shape, "has_table", False):
            blocks.extend(_table(shape.table))
        elif getattr(shape, "has_chart", False):
            blocks.extend(_chart(shape.chart))
        elif shape.has_text_frame:
            blocks.extend(_frame_text(shape))
        elif texts := _diagram(shape):
            blocks.append("\n".join(f"- {guard(escape(text))}" for text in texts))
        elif words := _description(shape):
            blocks.append(guard(escape(words)))
    if slide.has_notes_slide:
        frame = slide.notes_slide.notes_text_frame
        notes = frame.text.strip() if frame is not None else ""
        if notes:
            lines = [guard(escape(line)) for line in notes.replace("\v", "\n").splitlines()]
            blocks += quoted(["**Notes**", "\n".join(lines)])
    return head, blocks


def _shapes(shapes: Any, depth: int) -> Iterator[Any]:
    for number, shape in enumerate(shapes):
        if number >= _MAX_SHAPES or depth > _DEEPEST:
            return
        if hasattr(shape, "shapes"):
            yield from _shapes(shape.shapes, depth + 1)
        else:
            yield shape


def _frame_text(shape: Any) -> list[str]:
    paragraphs = [(each.level, _linked_text(each)) for each in shape.text_frame.paragraphs]
    paragraphs = [(level, guard(text)) for level, text in paragraphs if text]
    if len(paragraphs) > 1 or any(level for level, _ in paragraphs):
        return ["\n".join(f"{'    ' * level}- {text}" for level, text in paragraphs)]
    return [text for _, text in paragraphs]


def _linked_text(paragraph: Any) -> str:
    runs = [(run.text, run.hyperlink.address) for run in paragraph.runs]
    if not any(address for _, address in runs):
        return escape(one_line(paragraph.text.replace("\v", " ")))
    texts = [
        f"[{escape(one_line(text))}]({url})"
        if address and text.strip() and (url := safe_url(address, ""))
        else escape(text)
        for text, address in runs
    ]
    return one_line("".join(texts))


def _chart(chart: Any) -> list[str]:
    root = chart._chartSpace
    title = one_line("".join(root.xpath("./c:chart/c:title//a:t/text()")))
    blocks = [f"**{escape(title)}**"] if title else []
    labels: dict[int, str] = {}
    series: list[tuple[str, dict[int, str]]] = []
    for element in root.iter(f"{_CHART}ser"):
        labels |= _points(element, "cat", "xVal")
        name = one_line(" ".join(v.text or "" for v in element.iterfind(f"{_CHART}tx//{_CHART}v")))
        series.append((name, _points(element, "val", "yVal")))
    rows = sorted({*labels, *(number for _, values in series for number in values)})
    if rows and len(rows) * len(series) <= _MAX_CELLS:
        table = [["", *(name for name, _ in series)]]
        table += [[labels.get(n, ""), *(points.get(n, "") for _, points in series)] for n in rows]
        blocks.append(pipe_table([list(map(escape, row)) for row in table]))
    return blocks


def _points(series: Any, *parts: str) -> dict[int, str]:
    """Return cached values of parts of a series, by index."""
    points: dict[int, str] = {}
    for part in parts:
        for point in series.iterfind(f"{_CHART}{part}//{_CHART}pt"):
            number, text = point.get("idx", ""), one_line(point.findtext(f"{_CHART}v"))
            if number.isascii() and number.isdigit():
                # names of outer categories follow those of inner ones
                key = int(number[:9])
                points[key] = f"{text} {points[key]}" if key in points else _figure(text)
    return points


def _figure(text: str) -> str:
    try:
        return f"{float(text):.15g}"
    except ValueError:
        return text


def _diagram(shape: Any) -> list[str]:
    """Return the texts of a SmartArt diagram, in the order of the file."""
    ids = next(shape._element.iter(f"{_DIAGRAM}relIds"), None)
    if ids is None:
        return []
    try:
        root = parse_xml(shape.part.related_part(ids.get(f"{_RELATION}dm")).blob, recover=False)
    except (KeyError, etree.XMLSyntaxError):
        return []
    texts = (
        "".join(point.xpath(".//*[local-name()='t']/text()"))
        for point in root.iter(f"{_DIAGRAM}pt")
    )
    return [text for each in texts if (text := one_line(each))]


def _table(table: Any) -> list[str]:
    if len(table.rows) * len(table.columns) > _MAX_CELLS:
        return []
    rows = [[escape(one_line(cell.text)) for cell in row.cells] for row in table.rows]
    return [pipe_table(rows)] if rows and rows[0] else []


def _description(shape: Any) -> str:
    return next((one_line(each.get("descr")) for each in shape._element.iter("{*}cNvPr")), "")
