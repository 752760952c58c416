"""PPTX: a heading per slide, text by outline level, tables, charts, diagrams, speaker's notes."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

from lxml import etree

from kbkit.extras import extra
from kbkit.sources.formats.archive import is_media, office
from kbkit.sources.formats.docx import properties
from kbkit.sources.html.tables import pipe_table
from kbkit.sources.parts import PAGE_BREAK, Part, UnreadableError, one_line, stem
from kbkit.text.markdown.writing import escape, guard, quote, safe_url

_MAX_SLIDES = 5_000
_MAX_SHAPES = 100_000
_MAX_CELLS = 50_000
_DEEPEST = 20
_CHART = "{http://schemas.openxmlformats.org/drawingml/2006/chart}"
_DIAGRAM = "{http://schemas.openxmlformats.org/drawingml/2006/diagram}"
_RELATION = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"
_PARSER = etree.XMLParser(resolve_entities=False, no_network=True)


def read(data: bytes, name: str) -> list[Part]:
    """Read a presentation; form feeds separate the slides."""
    with extra("office", "python-pptx", "Reading PPTX"):
        from pptx import Presentation

    safe = office(data, is_media)
    if b"ppt/" not in safe:
        raise UnreadableError("broken: not a PowerPoint file")
    slides = Presentation(io.BytesIO(safe)).slides
    if len(slides) > _MAX_SLIDES:
        raise UnreadableError(f"more than {_MAX_SLIDES:,} slides")
    title, about = properties(safe)
    out: list[str] = []
    hidden: list[int] = []
    for number, slide in enumerate(slides, 1):
        if slide._element.get("show") in ("0", "false"):
            hidden.append(number)
            out.append("")
            continue
        head, blocks = _slide(slide)
        title = title or head
        if not head and not blocks:
            out.append("")
            continue
        heading = f"## {escape(head) if head else f'Slide {number}'}"
        out.append("\n\n".join([heading, *blocks]))
    title = title or stem(name)
    metadata = {"format": "pptx", "pages": len(slides), **about}
    end = "\n" if len(out) > 1 else PAGE_BREAK  # a break marks a single slide as slide 1
    content = PAGE_BREAK.join(out) + end if any(out) else ""
    note = f"left out: hidden slides ({', '.join(map(str, hidden))})" if hidden else ""
    return [Part(title, content, metadata=metadata, note=note)]


def _slide(slide: Any) -> tuple[str, list[str]]:
    title_shape = slide.shapes.title
    head = one_line(title_shape.text_frame.text) if title_shape is not None else ""
    own = title_shape.shape_id if title_shape is not None else None
    blocks: list[str] = []
    for shape in _shapes(slide.shapes, 0):
        if own is not None and shape.shape_id == own:
            continue
        if getattr(shape, "has_table", False) and shape.has_table:
            blocks.extend(_table(shape.table))
        elif getattr(shape, "has_chart", False) and shape.has_chart:
            blocks.extend(_chart(shape.chart))
        elif shape.has_text_frame:
            blocks.extend(_text(shape))
        elif texts := _diagram(shape):
            blocks.append("\n".join(f"- {guard(escape(text))}" for text in texts))
        elif words := _description(shape):
            blocks.append(guard(escape(words)))
    if slide.has_notes_slide:
        frame = slide.notes_slide.notes_text_frame
        notes = frame.text.strip() if frame is not None else ""
        if notes:
            lines = [guard(escape(line)) for line in notes.replace("\v", "\n").splitlines()]
            blocks.append(quote("**Notes**\n\n" + "\n".join(lines)))
    return head, blocks


def _shapes(shapes: Any, depth: int) -> Iterator[Any]:
    for number, shape in enumerate(shapes):
        if number >= _MAX_SHAPES or depth > _DEEPEST:
            return
        if hasattr(shape, "shapes"):
            yield from _shapes(shape.shapes, depth + 1)
        else:
            yield shape


def _text(shape: Any) -> list[str]:
    paragraphs = [(each.level, _linked(each)) for each in shape.text_frame.paragraphs]
    paragraphs = [(level, guard(text)) for level, text in paragraphs if text]
    listed = len(paragraphs) > 1 or any(level for level, _ in paragraphs)
    if not listed:
        return [text for _, text in paragraphs]
    return ["\n".join(f"{'    ' * level}- {text}" for level, text in paragraphs)]


def _linked(paragraph: Any) -> str:
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
    for each in root.iter(f"{_CHART}ser"):
        labels |= _points(each, "cat", "xVal")
        name = one_line(" ".join(v.text or "" for v in each.iterfind(f"{_CHART}tx//{_CHART}v")))
        series.append((name, _points(each, "val", "yVal")))
    rows = sorted({*labels, *(number for _, values in series for number in values)})
    if rows and len(rows) * len(series) <= _MAX_CELLS:
        table = [["", *(name for name, _ in series)]]
        table += [[labels.get(n, ""), *(each.get(n, "") for _, each in series)] for n in rows]
        blocks.append(pipe_table([list(map(escape, row)) for row in table]))
    return blocks


def _points(series: Any, *parts: str) -> dict[int, str]:
    """Return cached values of parts of a series, by index."""
    points: dict[int, str] = {}
    for part in parts:
        for point in (
            each for one in series.findall(_CHART + part) for each in one.iter(f"{_CHART}pt")
        ):
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
    ids = next((each for each in shape._element.iter(f"{_DIAGRAM}relIds")), None)
    if ids is None:
        return []
    try:
        root = etree.fromstring(shape.part.related_part(ids.get(f"{_RELATION}dm")).blob, _PARSER)
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
    for element in shape._element.iter():
        if isinstance(element.tag, str) and element.tag.endswith("}cNvPr"):
            return one_line(element.get("descr"))
    return ""
