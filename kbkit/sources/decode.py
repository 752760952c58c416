"""Decode the bytes of a page or file; detect binary data and charsets."""

import codecs
import re
import unicodedata
from dataclasses import dataclass

import webencodings

_SIGNATURES = {
    "a PDF": (b"%PDF-",),
    "an image": (b"\x89PNG", b"\xff\xd8\xff", b"GIF8"),
    "a media file": (b"RIFF", b"OggS"),
    "a zip archive": (b"PK\x03\x04",),
    "a gzip archive": (b"\x1f\x8b",),
    "a bzip2 archive": (b"BZh",),
    "an xz archive": (b"\xfd7zXZ",),
    "a 7z archive": (b"7z\xbc\xaf",),
    "a program": (b"\x7fELF",),
    "a font": (b"wOF",),
}
_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_META = re.compile(rb"""<meta[^>]{0,200}?charset\s*=\s*["']?\s*([A-Za-z0-9_.:-]{1,40})""", re.I)
_XML = re.compile(rb"""^\s*<\?xml[^>]{0,200}?encoding\s*=\s*["']([A-Za-z0-9_.:-]{1,40})""")
_WESTERN = "cp1252"
# charsets that pages mean by these names (WHATWG Encoding Standard): with vendors' characters
_INTENDED = {"shift_jis": "cp932", "euc_kr": "cp949", "gbk": "gb18030", "big5": "big5hkscs"}
_ODD = re.compile(r"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f]")
_SHIFTS = re.compile(rb"\x1b[$(]|~\{")
"""Escape sequences of ISO-2022 and HZ, whose bytes are ASCII."""
_HEAD = 4096
_DETECTED = 1_000_000  # bytes for the detector
_WIDE = ("utf-32-le", "utf-32-be", "utf-16-le", "utf-16-be")
_MAX_ODD = 0.02  # share of unassigned, private and control characters
_MIN_LETTERS = {1: 8, 2: 4}  # of another alphabet, by bytes per letter
_DOS = "cp850"
_DOS_LETTERS = re.compile(rb"(?<=[a-z])[\x81\x82\x84\x94](?=[a-z])")
"""``ü``, ``é``, ``ä``, ``ö`` in DOS charsets, unknown to browsers' detectors. In Windows-1252 these
bytes are quotation marks, which do not occur inside words."""
_MIN_ACCENTS = 2  # accented letters
_ROMANIAN = re.compile("(?=.*[ăşţ])(?=.*[Ľľ¤])", re.DOTALL | re.IGNORECASE)
"""Romanian letters of ISO-8859-16, read as ISO-8859-2."""
_MULTIPLE = frozenset({"cp932", "euc_jp", "iso2022_jp", "gb18030", "big5hkscs", "cp949"})
_LATIN = ("LATIN", "MICRO SIGN", "FEMININE", "MASCULINE")


@dataclass(frozen=True, slots=True)
class Decoded:
    """A decoded text, with a note on guesses and losses for the reader."""

    text: str
    note: str = ""


def binary_kind(body: bytes) -> str:
    for kind, signatures in _SIGNATURES.items():
        if body.startswith(signatures):
            return kind
    head = body[:_HEAD]
    if b"\x00" not in head or body.startswith(tuple(bom for bom, _ in _BOMS)) or _wide(body):
        return ""
    without_nuls = head.replace(b"\x00", b"")
    text = without_nuls.decode("utf-8", errors="ignore")
    few_nuls = len(head) - len(without_nuls) <= len(head) // 100
    return "" if few_nuls and len(_ODD.findall(text)) <= len(text) // 200 else "binary data"


def charset_of(content_type: str) -> str:
    for parameter in content_type.split(";")[1:]:
        name, _, value = parameter.partition("=")
        if name.strip().lower() == "charset":
            return value.strip().strip("\"'")[:40]
    return ""


def decode(body: bytes, charset: str = "", *, markup: bool = True) -> str:
    """Decode text without failing; see `decode_text`."""
    return decode_text(body, charset, markup=markup).text


def decode_text(body: bytes, charset: str = "", *, markup: bool = True) -> Decoded:
    """Decode text without failing, and note guesses.

    The order is: byte order mark, valid UTF-8, the header's charset, the markup's charset, each if
    the bytes fit. Then the guess of Firefox's detector, if the result has enough letters for it;
    then Windows-1252.
    """
    for bom, name in _BOMS:
        if body.startswith(bom):
            return Decoded(body.decode(name, errors="replace").lstrip("\ufeff"))
    if wide := _wide(body):
        return Decoded(body.decode(wide, errors="replace"))
    shifts = body.isascii() and _SHIFTS.search(body) is not None
    if not shifts and (utf8 := _utf8(body)) is not None:
        return utf8
    declared = [charset]
    if markup:
        for pattern in (_META, _XML):
            if match := pattern.search(body[:_HEAD]):
                declared.append(match.group(1).decode("ascii"))
    declared = list(filter(None, declared))
    for name in declared:
        if (text := _try_decode(body, name)) is not None:
            return _with_losses(text, name)
    return _guess(body, f"is not in {declared[0]}, as it says" if declared else "names no charset")


def _with_losses(text: str, name: str) -> Decoded:
    losses = text.count("\ufffd")
    return Decoded(text, f"bytes that are not {name}, read as \ufffd: {losses:,}" if losses else "")


def _utf8(body: bytes) -> Decoded | None:
    """Decode UTF-8 with few stray bytes: other charsets are hardly ever UTF-8 by chance."""
    try:
        return Decoded(body.decode("utf-8"))
    except UnicodeDecodeError:
        text = body.decode("utf-8", errors="replace")
        return _with_losses(text, "utf-8") if _letters(text) > 2 * text.count("\ufffd") else None


def _letters(text: str) -> int:
    return sum(char > "\x7f" for char in text) - text.count("\ufffd")


def _try_decode(body: bytes, name: str) -> str | None:
    labelled = webencodings.lookup(name.replace("_", "-")) or webencodings.lookup(name)
    try:
        codec = labelled.codec_info if labelled is not None else codecs.lookup(name)
    except (LookupError, ValueError):
        return None
    if not getattr(codec, "_is_text_encoding", True) or codec.name in ("utf-7", "idna", "punycode"):
        return None
    if codec.name.startswith(("utf-16", "utf-32")):
        return None  # real UTF-16 and UTF-32 are detected by their NULs
    text = _try(body, _INTENDED.get(codec.name, codec.name))
    if text is not None and len(_ODD.findall(text[:20_000])) > len(text[:20_000]) // 100:
        return None
    return text


def _try(body: bytes, name: str) -> str | None:
    try:
        return body.decode(name, errors=_EXTENDED if name == "euc_jp" else "strict")
    except (UnicodeError, ValueError):
        # a stray byte must not change the charset of a whole page
        text = body.decode(name, errors="replace")
        losses = text.count("\ufffd")
        return text if losses <= max(1, len(text) // 100) and losses <= _letters(text) else None


def _decode_extension(error: UnicodeError) -> tuple[str, int]:
    """Decode NEC's and IBM's characters in EUC-JP, which Python lacks, by way of Shift JIS.

    Both have the same rows and cells of JIS X 0208, in different numbering.
    """
    if not isinstance(error, UnicodeDecodeError):
        raise error
    pair = error.object[error.start : error.start + 2]
    row, cell = (byte - 0xA0 for byte in pair) if len(pair) == 2 else (0, 0)
    if not (0 < row < 95 and 0 < cell < 95):
        raise error
    lead = (row + 1) // 2 + (0x80 if row < 63 else 0xC0)
    trail = cell + 0x9E if row % 2 == 0 else cell + 0x3F + (cell > 63)
    return bytes((lead, trail)).decode("cp932"), error.start + 2


_EXTENDED = "kbkit-euc-jp"
codecs.register_error(_EXTENDED, _decode_extension)


def _guess(body: bytes, why: str) -> Decoded:
    """Decode with the detected charset, unless Windows-1252 is as likely."""
    name = _DOS if len(_DOS_LETTERS.findall(body)) >= _MIN_ACCENTS else _detect(body)
    # like browsers, decode the five bytes that Windows-1252 lacks as Latin-1 controls
    western = "".join(
        part.decode(_WESTERN, errors="replace") if number % 2 == 0 else part.decode("latin-1")
        for number, part in enumerate(re.split(rb"([\x81\x8d\x8f\x90\x9d]+)", body))
    )
    name = _INTENDED.get(name, name)
    text = western if name == _WESTERN else _try(body, name)
    if name == "iso8859-2" and text is not None and _ROMANIAN.search(text):
        name = "iso8859-16"
        text = _try(body, name)
    if text is None or (text is not western and not _credible(text, name)):
        return Decoded(western, f"{why}, and none is certain: read as {_WESTERN} ({name}?)")
    return Decoded(text, f"{why}: read as {name}")


def _detect(body: bytes) -> str:
    from chardetng_py import EncodingDetector  # few texts need it

    detector = EncodingDetector()
    detector.feed(body[:_DETECTED], last=len(body) <= _DETECTED)
    return codecs.lookup(detector.guess(tld=None, allow_utf8=False)).name


def _credible(text: str, name: str) -> bool:
    """Whether a text has enough letters beyond ASCII for a guess."""
    if name.startswith("iso2022"):
        return True  # no other text has its escape sequences
    letters = [char for char in text if char > "\x7f" and char.isalpha()]
    foreign = sum(not unicodedata.name(char, "").startswith(_LATIN) for char in letters)
    if foreign:
        return foreign >= _MIN_LETTERS[1 + (name in _MULTIPLE)]
    return len(letters) >= _MIN_ACCENTS


def _wide(body: bytes) -> str:
    """Return the UTF-16 or UTF-32 codec of text without a byte order mark, or ``""``.

    The positions of NULs in spaces, digits and line feeds reveal the codec.
    """
    head = body[: _HEAD - _HEAD % 4]
    text = head.replace(b"\x00", b"").decode(errors="replace").rstrip("\ufffd")
    stray = len(head) > 8 * head.count(0) and "\ufffd" not in text and not _ODD.search(text)
    if b"\x00" not in head or len(head) < 4 or stray:
        return ""
    for name in _WIDE:
        width = int(name[4:6]) // 8
        # a surrogate pair may be cut at the end
        text = head[: len(head) - len(head) % width].decode(name, errors="replace").rstrip("\ufffd")
        odd = sum(
            (unicodedata.category(char) in _NO_TEXT and char not in _CONTROLS) or char == "\ufffd"
            for char in text
        )
        if not text or odd > _MAX_ODD * len(text):
            continue
        plain = sum(char.isascii() for char in text)
        swapped = sum(char in _SWAPPED for char in text)
        if width == 4 or plain > swapped:
            return name
    return ""


_NO_TEXT = frozenset({"Cc", "Cn", "Co", "Cs"})
_CONTROLS = frozenset("\t\n\v\f\r\x1b")
_SWAPPED = frozenset(chr(ord(char) << 8) for char in "\t\n\r 0123456789,.-etaoin")
"""Frequent letters with exchanged bytes."""
