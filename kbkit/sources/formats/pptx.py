"""PPTX: a heading a slide, its text by outline level, its tables, and the speaker's notes."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any

from kbkit.extras import extra
from kbkit.sources.formats.archive import is_media, office
from kbkit.sources.formats.base import PAGE_BREAK, Part, UnreadableError, one_line
from kbkit.sources.formats.docx import license, properties
from kbkit.sources.html.tables import pipe_table
from kbkit.text.markdown.writing import escape, guard, quote

_MAX_SLIDES = 5_000
_MAX_SHAPES = 100_000
_MAX_CELLS = 50_000
_DEEPEST = 20


def read(data: bytes, name: str) -> list[Part]:
    """Read a presentation; form feeds part the slides."""
    with extra("office", "python-pptx", "Reading PPTX"):
        from pptx import Presentation

    safe = office(data, is_media)
    if b"ppt/" not in safe:
        raise UnreadableError("broken: not a PowerPoint file")
    slides = Presentation(io.BytesIO(safe)).slides
    if len(slides) > _MAX_SLIDES:
        raise UnreadableError(f"more than {_MAX_SLIDES:,} slides")
    about = properties(safe)
    out: list[str] = []
    title = about.get("title", "")
    for number, slide in enumerate(slides, 1):
        head, blocks = _slide(slide)
        title = title or head
        if not head and not blocks:
            out.append("")
            continue
        heading = f"## {escape(head) if head else f'Slide {number}'}"
        out.append("\n\n".join([heading, *blocks]))
    title = title or PurePosixPath(name.replace("\\", "/")).stem
    metadata: dict[str, Any] = {"format": "pptx", "pages": len(slides)}
    if author := about.get("creator"):
        metadata["author"] = author
    metadata |= license(safe).to_metadata()
    end = "\n" if len(out) > 1 else PAGE_BREAK  # or nothing would tell that it is slide 1
    content = PAGE_BREAK.join(out) + end if any(out) else ""
    return [Part(title, content, metadata=metadata)]


def _slide(slide: Any) -> tuple[str, list[str]]:
    named = slide.shapes.title
    head = one_line(named.text_frame.text) if named is not None else ""
    own = named.shape_id if named is not None else None
    blocks: list[str] = []
    for shape in _shapes(slide.shapes, 0):
        if own is not None and shape.shape_id == own:
            continue
        if getattr(shape, "has_table", False) and shape.has_table:
            blocks.extend(_table(shape.table))
        elif shape.has_text_frame:
            blocks.extend(_text(shape))
        elif words := _described(shape):
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
    paragraphs = [
        (paragraph.level, one_line(paragraph.text.replace("\v", " ")))
        for paragraph in shape.text_frame.paragraphs
    ]
    paragraphs = [(level, text) for level, text in paragraphs if text]
    listed = len(paragraphs) > 1 or any(level for level, _ in paragraphs)
    if not listed:
        return [guard(escape(text)) for _, text in paragraphs]
    return ["\n".join(f"{'    ' * level}- {guard(escape(text))}" for level, text in paragraphs)]


def _table(table: Any) -> list[str]:
    if len(table.rows) * len(table.columns) > _MAX_CELLS:
        return []
    rows = [[escape(one_line(cell.text)) for cell in row.cells] for row in table.rows]
    return [pipe_table(rows)] if rows and rows[0] else []


def _described(shape: Any) -> str:
    for element in shape._element.iter():
        if isinstance(element.tag, str) and element.tag.endswith("}cNvPr"):
            return one_line(element.get("descr"))
    return ""
