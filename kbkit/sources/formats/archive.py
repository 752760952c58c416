"""Open files that are zip archives (DOCX, PPTX, XLSX, EPUB) without trusting them.

Members are unpacked in small steps and counted, whatever sizes they declare. Parsers of Office
files get a new archive of checked members, without media, and without XML that declares a document
type and so may define entities (OOXML has none).
"""

from __future__ import annotations

import codecs
import io
import re
import unicodedata
import zipfile
import zlib
from collections.abc import Callable
from functools import cached_property

from kbkit.sources.parts import UnreadableError

_MAX_MEMBERS = 10_000
_MAX_UNPACKED = 200_000_000
_STEP = 65_536
_CFB = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_DOCTYPE = re.compile(rb"<!\s*(?:DOCTYPE|ENTITY)", re.IGNORECASE)
_ENCODING = re.compile(rb"""^\s*<\?xml[^>]{0,200}?encoding\s*=\s*["']([A-Za-z0-9_.:-]{1,40})""")
_MEDIA = tuple(
    str.split("""
        .png .jpg .jpeg .gif .emf .wmf .bmp .tif .tiff .svg .mp3 .mp4 .wav .avi .mov .bin .odttf
        .ttf .wdp
    """)
)
_PLAIN = frozenset({"utf-8", "utf8", "us-ascii", "ascii", "iso-8859-1", "windows-1252"})


class Archive:
    """A zip archive whose members are read within limits."""

    def __init__(self, data: bytes) -> None:
        if data.startswith(_CFB):
            raise UnreadableError("encrypted with a password, or an old binary Office file")
        try:
            self._zip = zipfile.ZipFile(io.BytesIO(data))
        except (zipfile.BadZipFile, ValueError, OSError, NotImplementedError, EOFError):
            raise UnreadableError("broken: not a whole zip archive") from None
        infos = self._zip.infolist()
        if len(infos) > _MAX_MEMBERS:
            raise UnreadableError(f"an archive of more than {_MAX_MEMBERS:,} members")
        self._infos = {info.filename: info for info in infos if not info.is_dir()}
        self._left = _MAX_UNPACKED

    @property
    def names(self) -> list[str]:
        """Names of the members, in order, without folders."""
        return list(self._infos)

    def find(self, name: str) -> str:
        """Return the member of a name in any case and Unicode form; ``""`` if there is none."""
        return name if name in self._infos else self._folded.get(_folded(name), "")

    @cached_property
    def _folded(self) -> dict[str, str]:
        return {_folded(name): name for name in reversed(self._infos)}

    def read(self, name: str) -> bytes:
        info = self._infos.get(name)
        if info is None:
            raise UnreadableError(f"broken: the archive lacks {name[:80]}")
        if info.flag_bits & 1:
            raise UnreadableError("encrypted with a password")
        if info.file_size > self._left:
            raise UnreadableError(self._too_much())
        pieces = []
        try:
            with self._zip.open(info) as stream:
                while piece := stream.read(_STEP):
                    self._left -= len(piece)
                    if self._left < 0:
                        raise UnreadableError(self._too_much())
                    pieces.append(piece)
        except (
            zipfile.BadZipFile,
            zlib.error,
            OSError,
            EOFError,
            ValueError,
            RuntimeError,
            NotImplementedError,
        ):
            raise UnreadableError(f"broken: {name[:80]} cannot be unpacked") from None
        return b"".join(pieces)

    @staticmethod
    def _too_much() -> str:
        return f"unpacks to more than {_MAX_UNPACKED / 1e6:g} MB"


def _folded(name: str) -> str:
    return unicodedata.normalize("NFC", name).casefold()


def office(data: bytes, drop: Callable[[str], bool]) -> bytes:
    archive = Archive(data)
    if "[Content_Types].xml" not in archive.names:
        raise UnreadableError("broken: not an Office file")
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as result:
        for name in archive.names:
            if drop(name):
                # parsers need a member for each relation
                result.writestr(name, b"")
                continue
            body = archive.read(name)
            if name.lower().endswith((".xml", ".rels", ".vml")):
                _check(name, body)
            result.writestr(name, body)
    return target.getvalue()


def _check(name: str, body: bytes) -> None:
    """Refuse XML that could define entities, in any charset."""
    named = _ENCODING.match(body.lstrip(codecs.BOM_UTF8)[:400])
    encoding = named.group(1).decode("ascii").lower() if named else "utf-8"
    text = body
    wide = body.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, b"<\x00", b"\x00<"))
    if wide:
        text = body.replace(b"\x00", b"")
    elif encoding not in _PLAIN or not body.lstrip(codecs.BOM_UTF8).lstrip().startswith(b"<"):
        raise UnreadableError(f"{name[:80]} is XML in a charset that Office does not write")
    if _DOCTYPE.search(text):
        raise UnreadableError(f"hostile: {name[:80]} declares XML entities")


def is_media(name: str) -> bool:
    low = name.lower()
    return "/media/" in low or low.endswith(_MEDIA)
