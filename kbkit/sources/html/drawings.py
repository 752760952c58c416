"""Drawings that stand in a page itself (``<svg>``) -> pictures of the document."""

from __future__ import annotations

import re

from lxml import etree

from kbkit.models import DocumentType
from kbkit.models.plain import plain
from kbkit.sources.html.dom import Element, normalized_text
from kbkit.sources.images import MOST_BYTES, MOST_IMAGES

_SVG = "http://www.w3.org/2000/svg"
_SHAPES = frozenset(str.split("path rect circle ellipse line polyline polygon use text"))
_FEW_SHAPES = 24  # of an icon, a logo or an arrow without any text
_AROUND = frozenset(
    str.split("""
        a button summary label h1 h2 h3 h4 h5 h6 nav header footer pre code svg mjx-container
    """)
)
"""What stands around icons, and around formulas that are kept as such."""
_LABELS = 12  # texts of a drawing without a title that its alternative text names
_ALT = 300  # characters

_CAPITALS = {
    name.lower(): name
    for name in str.split("""
        clipPath linearGradient radialGradient textPath feBlend feColorMatrix feComposite feFlood
        feGaussianBlur feMerge feMergeNode feOffset feDropShadow feComponentTransfer feFuncA
        feFuncB feFuncG feFuncR viewBox preserveAspectRatio gradientUnits gradientTransform
        spreadMethod clipPathUnits maskUnits maskContentUnits patternUnits patternContentUnits
        patternTransform markerUnits markerWidth markerHeight refX refY stdDeviation textLength
        lengthAdjust startOffset pathLength filterUnits primitiveUnits
    """)
}
"""Names of SVG that HTML writes in any case."""


def take_drawings(body: Element, url: str) -> dict[str, bytes]:
    """Put a picture into the place of each drawing of a page. In place.

    Icons stay, which are no content: what stands in links, buttons, headings and bars, what is
    hidden from screen readers, and what has no text and few shapes.

    Args:
        body: Of the page.
        url: Address of the page.

    Returns:
        The drawings as SVG by the addresses that the pictures have now: places in the page.
    """
    found: dict[str, bytes] = {}
    for drawing in list(body.iter("svg")):
        if len(found) >= MOST_IMAGES:
            break
        if not _is_content(drawing):
            continue
        data = _written(drawing)
        if len(data) > MOST_BYTES:
            continue
        address = f"{url}#drawing-{len(found) + 1}.svg"
        picture = etree.Element("img", {"src": address, "alt": _alternative(drawing)})
        picture.tail = drawing.tail
        parent = drawing.getparent()
        if parent is not None:
            parent.replace(drawing, picture)
            found[address] = data
    return found


def _is_content(drawing: Element) -> bool:
    if (drawing.get("aria-hidden") or "").lower() == "true":
        return False
    if any(above.tag in _AROUND for above in drawing.iterancestors()):
        return False
    shapes = [part.tag for part in drawing.iter() if part.tag in _SHAPES]
    return "text" in shapes or len(shapes) >= _FEW_SHAPES


def _alternative(drawing: Element) -> str:
    for said in (drawing.get("aria-label"), *map(normalized_text, drawing.iterfind("title"))):
        if said and plain(said):
            return plain(said)[:_ALT]
    texts = (plain(normalized_text(part)) for part in drawing.iter("text"))
    labels = [text for text in dict.fromkeys(texts) if re.search(r"\w", text)]
    more = " …" if len(labels) > _LABELS else ""
    named = ", ".join(labels[:_LABELS]) + more
    return f"Diagram: {named}"[:_ALT] if labels else "Diagram"


def _written(drawing: Element) -> bytes:
    """A drawing as a file of its own, of the size that it has in the page."""
    root = _copied(drawing)
    view = (root.get("viewBox") or "").replace(",", " ").split()
    if len(view) == 4 and not {"width", "height"} & set(root.attrib):
        root.set("width", view[2])
        root.set("height", view[3])
    return bytes(etree.tostring(root))


def _copied(element: Element) -> Element:
    # HTML knows no namespaces, and its parser no capitals; links draw nothing themselves
    name = "g" if element.tag == "a" else _CAPITALS.get(element.tag, element.tag)
    copy = etree.Element(f"{{{_SVG}}}{name}", nsmap={None: _SVG})
    for key, value in element.attrib.items():
        bare = key.rpartition(":")[2] if key.startswith("xlink:") else key
        if ":" not in bare and bare != "xmlns" and (name, bare) != ("g", "href"):
            try:
                copy.set(_CAPITALS.get(bare, bare), value)
            except ValueError:
                continue  # no name, or no text, of XML
    copy.text, copy.tail = _clean(element.text), None
    for child in element:
        if isinstance(child.tag, str) and child.tag.isidentifier():
            inner = _copied(child)
            inner.tail = _clean(child.tail)
            copy.append(inner)
    return copy


def _clean(text: str | None) -> str | None:
    return text and "".join(c for c in text if c.isprintable() or c in "\n\t ")


_API = frozenset(
    str.split(
        "javadoc rustdoc doxygen pydoctor pdoc pdoc3 typedoc jsdoc yard rdoc godoc dokka dartdoc"
    )
)
_OF_MANY = frozenset({"doxygen"})  # which writes prose too
_COMMENT = re.compile(r"<!--\s*generated by (\w+)", re.IGNORECASE)
_HEAD = 4_000  # characters in which such a comment stands
_DOXYGEN = re.compile(
    r"(?:^|/)(?:class|struct|union|interface|namespace|group__|dir_|functions|globals|annotated|"
    r"classes|hierarchy|files|[\w-]+_8\w+(?:_source)?\.html)"
)
_ENTRY = frozenset({"refentry", "manpage"})
_CONSOLES = frozenset({"swagger-ui", "redoc", "rapi-doc", "elements-api"})


def generated_type(root: Element, html: str, url: str) -> DocumentType | None:
    """The type of a page that its template tells.

    Args:
        root: Its tree, from which nothing has been taken yet.
        html: The page itself.
        url: Its address.

    Returns:
        ``REFERENCE`` for the pages of generators of API documentation and for manual pages,
        ``API_SPEC`` for a console of an HTTP API, else ``None``.
    """
    names = {_first_word(meta.get("content")) for meta in root.iter("meta")
             if (meta.get("name") or "").lower() == "generator"}  # fmt: skip
    if comment := _COMMENT.search(html[:_HEAD]):
        names.add(comment[1].lower())
    if names & (_API - _OF_MANY) or ("doxygen" in names and _DOXYGEN.search(url)):
        return DocumentType.REFERENCE
    body = root.find("body")
    if body is None:
        return None
    if _ENTRY & set((body.get("class") or "").split()):
        return DocumentType.REFERENCE
    for element in body.iter("div", "section", *_CONSOLES):
        classes = {*(element.get("class") or "").split(), element.get("id"), element.tag}
        if "refentry" in classes:
            return DocumentType.REFERENCE
        if classes & _CONSOLES:
            return DocumentType.API_SPEC
    return None


def _first_word(text: str | None) -> str:
    found = re.match(r"[a-z]+\d?", (text or "").strip().lower())
    return found[0] if found else ""
