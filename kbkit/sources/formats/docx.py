"""DOCX: mammoth converts it to HTML, kbkit to Markdown.

Word's XML is rewritten first, for parts that mammoth drops: readings, fields, directions, formulas.
"""

from __future__ import annotations

import html
import io
import logging
import re
import zipfile
from collections.abc import Callable
from typing import Any

from lxml import etree

from kbkit.extras import extra
from kbkit.models import License
from kbkit.sources.formats.archive import Archive, is_media, office
from kbkit.sources.html.extract import markdown_of
from kbkit.sources.html.metadata import rights_license
from kbkit.sources.parts import Part, UnreadableError, one_line, stem
from kbkit.text.markdown.formulas import MATH, office_latex
from kbkit.text.markdown.structure import document_title

_CODE = (
    "Code",
    "Source Code",
    "Code Block",
    "CodeBlock",
    "Verbatim",
    "Listing",
    "Macro Text",
    "HTML Preformatted",
    "Preformatted Text",
    "Preformatted",
    "macro",
)
_INLINE = (
    "Code Char",
    "Verbatim Char",
    "Source Code Char",
    "HTML Code",
    "Source Text",
    "Inline Code",
    "HTML Preformatted Char",
)
_STYLES = "\n".join(
    [
        "p[style-name='Title'] => h1:fresh",
        "p[style-name='Subtitle'] => p > strong:fresh",
        *(f"p[style-name='Heading {level}'] => h{min(level, 6)}:fresh" for level in range(7, 10)),
        *(f"p[style-name='{name}'] => pre:separator('\\n')" for name in _CODE),
        *(f"r[style-name='{name}'] => code" for name in _INLINE),
        "p[style-name='Quote'] => blockquote > p:fresh",
        "p[style-name='Intense Quote'] => blockquote > p:fresh",
        "p[style-name='Caption'] => p > em:fresh",
    ]
)
_CORE = re.compile(r"<(?:\w+:)?(title|creator|rights)>([^<]{1,1000})</")
_CUSTOM = re.compile(
    r'<(?:\w+:)?property\b[^>]{0,300}\bname="(license|licence|copyright|rights)"[^>]{0,300}>\s*'
    r"<vt:lpw?str>([^<]{1,1000})</",
    re.IGNORECASE,
)
_HIDDEN_ANCHOR = re.compile(r'<a id="_[^"]*"></a>')


def read(data: bytes, name: str) -> list[Part]:
    with extra("office", "mammoth", "Reading DOCX"):
        import mammoth

    safe = office(data, is_media)
    if b"word/" not in safe:
        raise UnreadableError("broken: not a Word document")
    logging.getLogger("mammoth").setLevel(logging.CRITICAL)
    word = Word(safe)
    page = mammoth.convert_to_html(
        io.BytesIO(word.data),
        style_map=_STYLES,
        include_embedded_style_map=False,
        external_file_access=False,
        convert_image=mammoth.images.img_element(lambda _: {"src": ""}),
        ignore_empty_paragraphs=True,
        transform_document=mammoth.transforms.element_of_type(mammoth.documents.Table, _with_head),
    ).value
    content = markdown_of(word.with_formulas(_HIDDEN_ANCHOR.sub("", page)))
    title, about = properties(safe)
    title = title or one_line(document_title(content))
    title = title or stem(name)
    note = f"left out: {', '.join(word.left_out)}" if word.left_out else ""
    return [Part(title, content + "\n", metadata={"format": "docx", **about}, note=note)]


def _with_head(table: Any) -> Any:
    """Make the first row the head of a table: few authors mark it in Word."""
    first, *others = table.children or [None]
    if first is None or first.is_header:
        return table
    return table.copy(children=[first.copy(is_header=True), *others])


def properties(safe: bytes) -> tuple[str, dict[str, Any]]:
    """Return the title of an Office file, and its author and license as metadata."""
    archive = Archive(safe)
    core = _CORE.findall(_text(archive, "docProps/core.xml"))
    values = {key: one_line(html.unescape(value)) for key, value in core}
    title, author = values.get("title", ""), values.get("creator")
    # defaults of libraries
    if title.lower() in ("word document", "powerpoint presentation"):
        title = ""
    metadata = {"author": author} if author and author not in ("python-docx", "openpyxl") else {}
    stated = rights_license(values.get("rights", ""))
    for name, value in _CUSTOM.findall(_text(archive, "docProps/custom.xml")):
        unescaped = html.unescape(value)
        named = name.lower() in ("license", "licence")
        stated = stated.or_else(License.stated(unescaped) if named else rights_license(unescaped))
    return title, {**metadata, **stated.to_metadata()}


def _text(archive: Archive, name: str) -> str:
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
    """A Word file for mammoth, and the formulas in it.

    Attributes:
        data: The file.
        left_out: Kinds of text in the file that are not converted.
    """

    def __init__(self, safe: bytes) -> None:
        self._formulas: list[str] = []
        self.left_out: list[str] = []
        target = io.BytesIO()
        with (
            zipfile.ZipFile(io.BytesIO(safe)) as source,
            zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as result,
        ):
            for name in source.namelist():
                body = source.read(name)
                for pattern, kind in _LEFT_OUT:
                    if pattern.fullmatch(name) and "".join(_parsed(body).itertext()).strip():
                        self._leave_out(kind)
                result.writestr(name, self._rewritten(body) if name in _BODIES else body)
        self.data = target.getvalue()

    def with_formulas(self, page: str) -> str:
        """Put the formulas back into mammoth's HTML."""

        def formula(place: re.Match[str]) -> str:
            if int(place[2]) >= len(self._formulas):
                return place[0]
            text = html.escape(self._formulas[int(place[2])])
            return f'<{(tag := "div" if place[1] else "span")} class="math">{text}</{tag}>'

        return _PLACE.sub(formula, page)

    def _leave_out(self, kind: str) -> None:
        if kind not in self.left_out:
            self.left_out.append(kind)

    def _rewritten(self, body: bytes) -> bytes:
        root = _parsed(body)
        for tag, rewrite in self._rewrites().items():
            for element in list(root.iter(tag)):
                rewrite(element)
        data: bytes = etree.tostring(root, encoding="utf-8", xml_declaration=True)
        return data

    def _rewrites(self) -> dict[str, Callable[[Any], None]]:
        return {
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

    def _hide(self, mark: Any) -> None:
        run = mark.getparent().getparent()
        shown = mark.get(f"{_WORD}val", "1") in ("0", "false", "off")
        if shown or run is None or run.tag != f"{_WORD}r" or run.getparent() is None:
            return
        self._leave_out("hidden text")
        run.getparent().remove(run)

    def _take_formula(self, formula: Any) -> None:
        run = _run("t", f"\ue000{len(self._formulas)}\ue001")
        self._formulas.append(office_latex(formula))
        run.tail = formula.tail
        formula.getparent().replace(formula, run)


def _parsed(body: bytes) -> Any:
    # `archive` excluded entities and bounded the size
    parser = etree.XMLParser(resolve_entities=False, no_network=True, huge_tree=True)
    try:
        return etree.fromstring(body, parser)
    except etree.XMLSyntaxError as error:
        raise UnreadableError(f"broken: its XML cannot be read ({error})") from None


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
    at = parent.index(element)
    parent[at : at + 1] = list(element)
