"""Pictures of documents: validation and limits.

The bytes decide the type, not the name. Bytes and pixels are bounded, and an SVG keeps only drawing
elements and attributes, so that it neither runs scripts nor fetches anything.
"""

from __future__ import annotations

import hashlib
import io
import re
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

from lxml import etree

from kbkit.models import Image
from kbkit.regular_files import bytes_of
from kbkit.sources.parts import untrusted_xml

MAX_BYTES = 5_000_000  # of one picture
MAX_IMAGES = 200  # of one document
_MAX_PIXELS = 50_000_000
_FORMATS = {"PNG": "png", "JPEG": "jpg", "GIF": "gif", "WEBP": "webp"}
_IMAGE = re.compile(
    r"!\[(?:\\.|[^\[\]\\\n]){0,1000}\]\(\s*(?:<([^<>\n]*)>|((?:\\.|\([^\s()]*\)|[^\s()\\])+))"
)
_SVG = "{http://www.w3.org/2000/svg}"
_XLINK = "{http://www.w3.org/1999/xlink}href"
_ELEMENTS = frozenset(
    _SVG + name
    for name in str.split("""
        svg g defs symbol use path rect circle ellipse line polyline polygon text tspan textPath
        title desc linearGradient radialGradient stop clipPath mask pattern marker filter
        feBlend feColorMatrix feComposite feFlood feGaussianBlur feMerge feMergeNode feOffset
        feDropShadow feComponentTransfer feFuncA feFuncB feFuncG feFuncR style switch
    """)
)
_ATTRIBUTE = re.compile(r"(?!on)(?:[a-z][\w-]*|\{http://www\.w3\.org/XML/1998/namespace\}space)")
_FETCHES = re.compile(r"url\(\s*['\"]?(?!#)|@import|@font-face|expression|javascript:|\\", re.I)


def kept_image(data: bytes) -> Image | None:
    """Return a picture as stored; ``None`` if it is invalid or too large."""
    if not data or len(data) > MAX_BYTES:
        return None
    if b"<svg" in data[:4096].lower():
        drawn = _svg(data)
        return None if drawn is None else _named(drawn, "svg")
    from PIL import Image as Pillow
    from PIL import UnidentifiedImageError

    try:
        with (
            warnings.catch_warnings(),
            Pillow.open(io.BytesIO(data), formats=list(_FORMATS)) as picture,
        ):
            warnings.simplefilter("error")  # Pillow warns before it refuses bombs
            width, height = picture.size
            form = str(picture.format)
    except (
        UnidentifiedImageError,
        OSError,
        ValueError,
        SyntaxError,
        Warning,
        Pillow.DecompressionBombError,
    ):
        return None
    return _named(data, _FORMATS[form]) if 0 < width * height <= _MAX_PIXELS else None


def _named(data: bytes, suffix: str) -> Image:
    return Image(f"{hashlib.sha256(data).hexdigest()[:32]}.{suffix}", data)


def _svg(data: bytes) -> bytes | None:
    try:
        root = untrusted_xml(data, recover=False)
    except (etree.LxmlError, ValueError):
        return None
    if root.tag != f"{_SVG}svg" or root.getroottree().docinfo.internalDTD is not None:
        return None
    for element in list(root.iter()):
        if element.tag not in _ELEMENTS or _FETCHES.search(_style(element)):
            parent = element.getparent()
            if parent is not None:
                parent.remove(element)
            continue
        for name, value in list(element.attrib.items()):
            inside = name in {"href", _XLINK} and value.startswith("#")
            draws = _ATTRIBUTE.fullmatch(name) and name != "href"
            if not (inside or draws) or _FETCHES.search(value):
                del element.attrib[name]
    return bytes(etree.tostring(root))


def _style(element: etree._Element) -> str:
    return "".join(element.itertext()) if element.tag == f"{_SVG}style" else ""


def image_addresses(markdown: str) -> list[str]:
    """Return the distinct addresses of a document's pictures, as written."""
    addresses = (match[1] or match[2] or "" for match in _IMAGE.finditer(markdown))
    return list(dict.fromkeys(filter(None, addresses)))[:MAX_IMAGES]


def collect(markdown: str, read: Callable[[str], bytes | None]) -> dict[str, Image]:
    images = {}
    for address in image_addresses(markdown):
        data = read(address)
        if data is not None and (image := kept_image(data)) is not None:
            images[address] = image
    return images


def local_reader(file: Path, root: Path) -> Callable[[str], bytes | None]:
    def read(address: str) -> bytes | None:
        for path in _candidates(address, file, root):
            try:
                full = path.resolve()
                if full.is_relative_to(root):
                    return bytes_of(full, MAX_BYTES + 1)
            except (OSError, ValueError, RuntimeError):
                continue
        return None

    return read


def _candidates(address: str, file: Path, root: Path) -> Iterator[Path]:
    try:
        split = urlsplit(address)
    except ValueError:
        return
    inside = unquote(split.path)
    if split.scheme or split.netloc or not inside or "\0" in inside:
        return
    if not inside.startswith("/"):
        yield file.parent / inside
        return
    # root of the site, for which VitePress and Docusaurus have folders
    for folder in (".", "public", "static", "docs"):
        yield root / folder / inside.lstrip("/")
