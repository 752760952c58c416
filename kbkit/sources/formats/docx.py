"""DOCX: mammoth converts it to HTML, kbkit to Markdown."""

from __future__ import annotations

import io
import logging
import re
from pathlib import PurePosixPath
from typing import Any

from kbkit.extras import extra
from kbkit.models import License
from kbkit.sources.formats.archive import Archive, is_media, office
from kbkit.sources.formats.base import Part, UnreadableError, one_line
from kbkit.sources.formats.word_xml import Word
from kbkit.sources.html.extract import markdown_of
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
    html = mammoth.convert_to_html(
        io.BytesIO(word.data),
        style_map=_STYLES,
        include_embedded_style_map=False,
        external_file_access=False,
        convert_image=mammoth.images.img_element(lambda _: {"src": ""}),
        ignore_empty_paragraphs=True,
        transform_document=mammoth.transforms.element_of_type(mammoth.documents.Table, _with_head),
    ).value
    content = markdown_of(word.with_formulas(_HIDDEN_ANCHOR.sub("", html)))
    about = properties(safe)
    title = about.get("title") or one_line(document_title(content))
    title = title or PurePosixPath(name.replace("\\", "/")).stem
    metadata = {"format": "docx"}
    if author := about.get("creator"):
        metadata["author"] = author
    metadata |= license(safe).to_metadata()
    note = f"left out: {', '.join(word.left_out)}" if word.left_out else ""
    return [Part(title, content + "\n", metadata=metadata, note=note)]


def _with_head(table: Any) -> Any:
    """The table with its first row as its head: few authors tell Word which rows are."""
    first, *others = table.children or [None]
    if first is None or first.is_header:
        return table
    return table.copy(children=[first.copy(is_header=True), *others])


def properties(safe: bytes) -> dict[str, str]:
    """Return the properties of an Office file (``title``, ``creator``, ``rights``)."""
    import html

    try:
        text = Archive(safe).read("docProps/core.xml").decode("utf-8", "replace")
    except UnreadableError:
        return {}
    values = {key: one_line(html.unescape(value)) for key, value in _CORE.findall(text)}
    # what libraries write when nobody named the document
    if values.get("title", "").lower() in ("word document", "powerpoint presentation"):
        del values["title"]
    if values.get("creator") in ("python-docx", "openpyxl"):
        del values["creator"]
    return values


def license(safe: bytes) -> License:
    import html

    from kbkit.sources.html.metadata import rights_license

    stated = rights_license(properties(safe).get("rights", ""))
    try:
        text = Archive(safe).read("docProps/custom.xml").decode("utf-8", "replace")
    except UnreadableError:
        return stated
    for name, value in _CUSTOM.findall(text):
        unescaped = html.unescape(value)
        named = name.lower() in ("license", "licence")
        stated = stated.or_else(License.stated(unescaped) if named else rights_license(unescaped))
    return stated
