"""Pictures of documents, and inline drawings (``<svg>``) of pages: validation and limits.

The bytes decide the type, not the name. Bytes and pixels are bounded, and an SVG keeps only drawing
elements and attributes, so that it neither runs scripts nor fetches anything.
"""

import hashlib
import io
import re
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from urllib.parse import unquote, urlsplit

from lxml import etree

from kbkit.models import Image
from kbkit.models.values import plain
from kbkit.paths import bytes_of
from kbkit.sources.html import NAMES, Element, plain_text
from kbkit.sources.untrusted import parse_xml

MAX_BYTES = 5_000_000  # of one picture
MAX_IMAGES = 200  # of one document
_MAX_PIXELS = 50_000_000
_FORMATS = {"PNG": "png", "JPEG": "jpg", "GIF": "gif", "WEBP": "webp"}
_IMAGE = re.compile(
    r"!\[(?:\\.|[^\[\]\\\n]){0,1000}\]\(\s*(?:<([^<>\n]*)>|((?:\\.|\([^\s()]*\)|[^\s()\\])+))"
)
_NAMESPACE = "http://www.w3.org/2000/svg"
_SVG = f"{{{_NAMESPACE}}}"
_XLINK = "{http://www.w3.org/1999/xlink}href"
_ELEMENTS = frozenset(_SVG + name for name in NAMES["svg_tags"])
_ATTRIBUTE = re.compile(r"(?!on)(?:[a-z][\w-]*|\{http://www\.w3\.org/XML/1998/namespace\}space)")
_FETCHES = re.compile(r"url\(\s*['\"]?(?!#)|@import|@font-face|expression|javascript:|\\", re.I)


def prepare_image(data: bytes) -> Image | None:
    """Return a picture as stored; ``None`` if it is invalid or too large."""
    if not data or len(data) > MAX_BYTES:
        return None
    if b"<svg" in data[:4096].lower():
        svg = _svg(data)
        return None if svg is None else _name_image(svg, "svg")
    from PIL import Image as Pillow

    try:
        with (
            warnings.catch_warnings(),
            Pillow.open(io.BytesIO(data), formats=list(_FORMATS)) as picture,
        ):
            warnings.simplefilter("error")  # Pillow warns before it refuses bombs
            width, height = picture.size
            form = str(picture.format)
    except (OSError, ValueError, SyntaxError, Warning, Pillow.DecompressionBombError):
        return None
    return _name_image(data, _FORMATS[form]) if 0 < width * height <= _MAX_PIXELS else None


def _name_image(data: bytes, suffix: str) -> Image:
    return Image(f"{hashlib.sha256(data).hexdigest()[:32]}.{suffix}", data)


def _svg(data: bytes) -> bytes | None:
    try:
        root = parse_xml(data, recover=False)
    except (etree.LxmlError, ValueError):
        return None
    if root.tag != f"{_SVG}svg" or root.getroottree().docinfo.internalDTD is not None:
        return None
    for element in list(root.iter()):
        style = "".join(element.itertext()) if element.tag == f"{_SVG}style" else ""
        if element.tag not in _ELEMENTS or _FETCHES.search(style):
            if (parent := element.getparent()) is not None:
                parent.remove(element)
            continue
        for name, value in list(element.attrib.items()):
            is_local = name in {"href", _XLINK} and value.startswith("#")
            is_drawing = _ATTRIBUTE.fullmatch(name) and name != "href"
            if not (is_local or is_drawing) or _FETCHES.search(value):
                del element.attrib[name]
    return bytes(etree.tostring(root))


def image_addresses(markdown: str) -> list[str]:
    """Return the distinct addresses of a document's pictures, as written."""
    addresses = (match[1] or match[2] or "" for match in _IMAGE.finditer(markdown))
    return list(dict.fromkeys(filter(None, addresses)))[:MAX_IMAGES]


def collect(markdown: str, read: Callable[[str], bytes | None]) -> dict[str, Image]:
    images = {}
    for address in image_addresses(markdown):
        if image := prepare_image(read(address) or b""):
            images[address] = image
    return images


def local_reader(file: Path, root: Path) -> Callable[[str], bytes | None]:
    def read(address: str) -> bytes | None:
        try:
            parts = urlsplit(address)
        except ValueError:
            return None
        path, folders = unquote(parts.path), [file.parent]
        if path.startswith("/"):  # the site's root, for which VitePress and Docusaurus have folders
            folders = [root / folder for folder in (".", "public", "static", "docs")]
        for folder in folders if path and not (parts.scheme or parts.netloc) else ():
            with suppress(OSError, ValueError, RuntimeError):
                full = (folder / path.lstrip("/")).resolve()
                if full.is_relative_to(root):
                    return bytes_of(full, MAX_BYTES + 1)
        return None

    return read


_SHAPES = frozenset(str.split("path rect circle ellipse line polyline polygon use text"))
_FEW_SHAPES = 24  # a drawing without text and with fewer is an icon, a logo or an arrow
_LABELS = 12  # maximum texts of a drawing in its alternative text
_ALT = 300  # characters

_CAPITALS = {name.lower(): name for name in NAMES["svg_tags"] | NAMES["svg_attributes"]}
"""SVG names by their lower-case form, which HTML parsers yield."""


def take_drawings(body: Element, url: str) -> dict[str, bytes]:
    """Replace the drawings of a page by pictures, in place; return them by address.

    Drawings in links, buttons, headings and bars, hidden ones, and small ones without text stay.
    """
    drawings: dict[str, bytes] = {}
    for drawing in list(body.iter("svg")):
        if len(drawings) >= MAX_IMAGES:
            break
        if not _is_content(drawing) or len(data := _serialize(drawing)) > MAX_BYTES:
            continue
        address = f"{url}#drawing-{len(drawings) + 1}.svg"
        picture = etree.Element("img", {"src": address, "alt": _alternative(drawing)})
        picture.tail = drawing.tail
        drawing.getparent().replace(drawing, picture)
        drawings[address] = data
    return drawings


def _is_content(drawing: Element) -> bool:
    if (drawing.get("aria-hidden") or "").lower() == "true":
        return False
    if any(above.tag in NAMES["icon_tags"] for above in drawing.iterancestors()):
        return False
    shapes = [part.tag for part in drawing.iter() if part.tag in _SHAPES]
    return "text" in shapes or len(shapes) >= _FEW_SHAPES


def _alternative(drawing: Element) -> str:
    titles = (drawing.get("aria-label") or "", *map(plain_text, drawing.iterfind("title")))
    if label := next(filter(None, map(plain, titles)), ""):
        return label[:_ALT]
    texts = (plain(plain_text(part)) for part in drawing.iter("text"))
    labels = [text for text in dict.fromkeys(texts) if re.search(r"\w", text)]
    ellipsis = " …" if len(labels) > _LABELS else ""
    label_text = ", ".join(labels[:_LABELS]) + ellipsis
    return f"Diagram: {label_text}"[:_ALT] if labels else "Diagram"


def _serialize(drawing: Element) -> bytes:
    root = _add_namespaces(drawing)
    view = (root.get("viewBox") or "").replace(",", " ").split()
    if len(view) == 4 and not {"width", "height"} & set(root.attrib):
        root.set("width", view[2])
        root.set("height", view[3])
    return bytes(etree.tostring(root))


def _add_namespaces(element: Element) -> Element:
    # HTML parsers drop namespaces and capitals; links draw nothing themselves
    name = "g" if element.tag == "a" else _CAPITALS.get(element.tag, element.tag)
    copy = etree.Element(f"{_SVG}{name}", nsmap={None: _NAMESPACE})
    for key, value in element.attrib.items():
        local_name = key.rpartition(":")[2] if key.startswith("xlink:") else key
        if ":" not in local_name and local_name != "xmlns" and (name, local_name) != ("g", "href"):
            with suppress(ValueError):  # not valid in XML
                copy.set(_CAPITALS.get(local_name, local_name), value)
    copy.text, copy.tail = _clean(element.text), None
    for child in element:
        if child.tag.isidentifier():
            inner = _add_namespaces(child)
            inner.tail = _clean(child.tail)
            copy.append(inner)
    return copy


def _clean(text: str | None) -> str | None:
    return text and "".join(c for c in text if c.isprintable() or c in "\n\t ")
