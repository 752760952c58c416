"""Bytes of a page or file -> text: recognise what is not text, find the charset."""

from __future__ import annotations

import codecs
import re

_SIGNATURES = (
    (b"%PDF-", "a PDF"),
    (b"\x89PNG", "an image"),
    (b"\xff\xd8\xff", "an image"),
    (b"GIF8", "an image"),
    (b"RIFF", "a media file"),
    (b"PK\x03\x04", "a zip archive"),
    (b"\x1f\x8b", "a gzip archive"),
    (b"BZh", "a bzip2 archive"),
    (b"\xfd7zXZ", "an xz archive"),
    (b"7z\xbc\xaf", "a 7z archive"),
    (b"\x7fELF", "a program"),
    (b"OggS", "a media file"),
    (b"wOF", "a font"),
)
_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_META = re.compile(rb"""<meta[^>]{0,200}?charset\s*=\s*["']?\s*([A-Za-z0-9_.:-]{1,40})""", re.I)
_XML = re.compile(rb"""^\s*<\?xml[^>]{0,200}?encoding\s*=\s*["']([A-Za-z0-9_.:-]{1,40})""")
# what pages mean when they say it (WHATWG Encoding Standard)
_MEANT = {"iso-8859-1": "cp1252", "latin-1": "cp1252", "latin1": "cp1252", "ascii": "cp1252"}
_ODD = re.compile(r"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f]")


def binary_kind(body: bytes) -> str:
    """Say what a body is when it is not text.

    Returns:
        A word for a person (``"a PDF"``, ``"binary data"``), or ``""`` for text.
    """
    for signature, kind in _SIGNATURES:
        if body.startswith(signature):
            return kind
    if body.startswith(tuple(bom for bom, _ in _BOMS)):
        return ""
    head = body[:4096]
    if b"\x00" in head:
        return "" if _utf16(head) else "binary data"
    return ""


def charset_of(content_type: str) -> str:
    """The charset that a Content-Type header names, or ``""``."""
    for parameter in content_type.split(";")[1:]:
        name, _, value = parameter.partition("=")
        if name.strip().lower() == "charset":
            return value.strip().strip("\"'")[:40]
    return ""


def decode(body: bytes, charset: str = "", *, markup: bool = True) -> str:
    """Decode text as well as possible; never fails.

    The byte order mark decides, then the charset of the header, then the one the markup names,
    then UTF-8 if the bytes are valid UTF-8, then detection. A named charset that does not fit
    the bytes gives way to the next.

    Args:
        body: The bytes.
        charset: What the Content-Type header says, or ``""``.
        markup: Look for a charset in ``<meta>`` and the XML declaration.
    """
    for bom, name in _BOMS:
        if body.startswith(bom):
            return body.decode(name, errors="replace").lstrip("\ufeff")
    named = [charset]
    if markup:
        for pattern in (_META, _XML):
            if match := pattern.search(body[:4096]):
                named.append(match.group(1).decode("ascii"))
    wide = _utf16(body[:4096])
    if wide:
        named.insert(0, wide)
    for name in [*(name for name in named if name), "utf-8"]:
        text = _strictly(body, name)
        if text is not None:
            return text
    from charset_normalizer import from_bytes

    best = from_bytes(body[:200_000]).best()
    if best is not None:
        return body.decode(best.encoding, errors="replace")
    return body.decode("utf-8", errors="replace")


def _strictly(body: bytes, name: str) -> str | None:
    try:
        codec = codecs.lookup(name)
    except LookupError:
        return None
    if not getattr(codec, "_is_text_encoding", True) or codec.name in ("utf-7", "idna", "punycode"):
        return None
    meant = _MEANT.get(codec.name, _MEANT.get(name.lower(), codec.name))
    if meant == "cp1252":
        # almost any bytes are valid in a single-byte charset; UTF-8 rarely is by accident
        text = _try(body, "utf-8")
        if text is not None:
            return text
    if meant in ("utf-16", "utf-16-le", "utf-16-be") and b"\x00" not in body[:4096]:
        return None
    text = _try(body, meant)
    if text is not None and len(_ODD.findall(text[:20_000])) > len(text[:20_000]) // 100:
        return None
    return text


def _try(body: bytes, name: str) -> str | None:
    try:
        return body.decode(name)
    except (UnicodeError, ValueError):
        # a stray byte in an otherwise good page must not change the charset of the whole
        text = body.decode(name, errors="replace")
        bad = text.count("\ufffd")
        most = len(text) // (1000 if name == "utf-8" else 100)
        return text if bad <= most else None


def _utf16(head: bytes) -> str:
    """Name the UTF-16 flavour of text without a byte order mark, or ``""``."""
    if len(head) < 4:
        return ""
    even, odd = head[0::2].count(0), head[1::2].count(0)
    half = len(head) // 2
    if odd > half * 0.6 and even < half * 0.05:
        return "utf-16-le"
    if even > half * 0.6 and odd < half * 0.05:
        return "utf-16-be"
    return ""
