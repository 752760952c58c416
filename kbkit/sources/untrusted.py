"""Parse untrusted JSON, YAML and XML, and open zip archives, within bounds.

YAML is built from the parser's events: its usual loaders recurse, so deep nesting ends the process,
and let aliases multiply a small text. Members of archives are unpacked in small steps and counted,
whatever sizes they declare. Parsers of Office files get a new archive of checked members, without
media, and without XML that declares a document type and so may define entities (OOXML has none).
"""

import codecs
import io
import json
import re
import unicodedata
import zipfile
import zlib
from collections.abc import Callable
from functools import cached_property
from typing import Any

import yaml

from kbkit.models.values import valid_values
from kbkit.placed_yaml import scalar_value


class UnreadableError(Exception):
    """The file yields no document; the message is a one-line reason."""


_DEEPEST = 200
_MAX = 3_000_000  # values in all; aliased ones count each time

_HALF = re.compile(r"\\u[dD][89a-fA-F]")  # surrogate, possibly unpaired


def load_values(text: str, *, exact: bool = False, max_values: int = _MAX) -> Any:
    """Parse JSON, else YAML (1.2 core schema, with merge keys).

    Args:
        text: Untrusted text.
        exact: Keep numbers that JSON would write differently, such as ``3.10``, as text.
        max_values: Maximum number of values.
    """
    if text.lstrip("\ufeff \t\r\n").startswith(("{", "[")):
        try:
            loaded = json.loads(text.lstrip("\ufeff"), parse_constant=str)
        except RecursionError:
            raise ValueError(f"nested more than {_DEEPEST} deep") from None
        except ValueError:
            pass  # YAML may start like JSON
        else:
            _check_depth(loaded)
            return valid_values(loaded) if _HALF.search(text) else loaded
    try:
        return _Builder(text, exact, max_values).build()
    except yaml.MarkedYAMLError as error:
        open_ended = "end of stream" in str(error.problem)
        mark = error.context_mark if open_ended else error.problem_mark
        place = f"line {mark.line + 1}, column {mark.column + 1}" if mark else "line 1"
        raise ValueError(f"not YAML, {place}: {error.problem}") from None
    except yaml.YAMLError as error:
        raise ValueError(f"not YAML: {' '.join(str(error).split())[:200]}") from None


def _check_depth(value: Any) -> None:
    level = [value]
    for _ in range(_DEEPEST):
        level = [
            inner
            for outer in level
            if isinstance(outer, (dict, list))
            for inner in (outer.values() if isinstance(outer, dict) else outer)
        ]
        if not level:
            return
    raise ValueError(f"nested more than {_DEEPEST} deep")


class _Builder:
    def __init__(self, text: str, exact: bool, max_values: int) -> None:
        loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        self._events = yaml.parse(text, Loader=loader)
        self._exact = exact
        self._max_values = max_values
        self._anchors: dict[str, tuple[Any, int]] = {}

    def build(self) -> Any:
        """Return the value of the first document."""
        result, documents = None, 0
        for event in self._events:
            documents += isinstance(event, yaml.DocumentStartEvent)
            if documents > 1:
                break
            if isinstance(event, yaml.NodeEvent):
                result, _ = self._value(event, 0)
        return result

    def _value(self, event: Any, depth: int) -> tuple[Any, int]:
        """Return the value that begins with an event, and its number of values."""
        if isinstance(event, yaml.AliasEvent):
            if event.anchor not in self._anchors:
                raise ValueError(f"the alias *{event.anchor} is not defined before")
            return self._anchors[event.anchor]
        if isinstance(event, yaml.ScalarEvent):
            value, size = self._scalar(event), 1
        else:
            value, size = self._collection(event, depth)
        if event.anchor:
            # set after the end, so an alias inside its own anchor is undefined: no cycles
            self._anchors[event.anchor] = value, size
        return value, size

    def _scalar(self, event: Any) -> Any:
        value = scalar_value(event)
        exact = not self._exact or not isinstance(value, (int, float))
        return value if exact or json.dumps(value) == event.value.lower() else event.value

    def _collection(self, event: Any, depth: int) -> tuple[Any, int]:
        if depth >= _DEEPEST:
            raise ValueError(f"nested more than {_DEEPEST} deep")
        inner: list[Any] = []
        size = 1
        while not isinstance(following := next(self._events), yaml.CollectionEndEvent):
            value, count = self._value(following, depth + 1)
            inner.append(value)
            size += count
            if size > self._max_values:
                raise ValueError(f"more than {self._max_values:,} values (aliases multiply it?)")
        if isinstance(event, yaml.SequenceStartEvent):
            return inner, size
        pairs = [(_key(key), value) for key, value in zip(inner[::2], inner[1::2], strict=True)]
        merged = [mapping for key, value in pairs if key == "<<" for mapping in _mappings(value)]
        values = {key: value for other in reversed(merged) for key, value in other.items()}
        values |= {key: value for key, value in pairs if key != "<<" or not _mappings(value)}
        return values, size


def _mappings(value: Any) -> list[Any]:
    values = value if isinstance(value, list) else [value]
    return values if all(isinstance(part, dict) for part in values) else []


def _key(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, (dict, list)):
        raise ValueError("a key is a list or mapping; keys must be strings")
    return json.dumps(value)


def parse_xml(data: bytes, *, recover: bool, huge: bool = False) -> Any:
    """Parse XML without entities, comments and outside access; ``None`` without a root."""
    from lxml import etree

    parser = etree.XMLParser(
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        huge_tree=huge,
        recover=recover,
        remove_comments=True,
        remove_pis=True,
    )
    return etree.fromstring(data, parser)


_MAX_MEMBERS = 10_000
_MAX_UNPACKED = 200_000_000
_TOO_LARGE = f"unpacks to more than {_MAX_UNPACKED / 1e6:g} MB"
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
        self._budget = _MAX_UNPACKED

    @property
    def names(self) -> list[str]:
        """Names of the members, in order, without folders."""
        return list(self._infos)

    def find(self, name: str) -> str:
        """Return the member with a name in any case and Unicode form; ``""`` if there is none."""
        return name if name in self._infos else self._folded.get(_fold(name), "")

    @cached_property
    def _folded(self) -> dict[str, str]:
        return {_fold(name): name for name in reversed(self._infos)}

    def read(self, name: str) -> bytes:
        info = self._infos.get(name)
        if info is None:
            raise UnreadableError(f"broken: the archive lacks {name[:80]}")
        if info.flag_bits & 1:
            raise UnreadableError("encrypted with a password")
        if info.file_size > self._budget:
            raise UnreadableError(_TOO_LARGE)
        pieces = []
        try:
            with self._zip.open(info) as stream:
                while piece := stream.read(_STEP):
                    self._budget -= len(piece)
                    if self._budget < 0:
                        raise UnreadableError(_TOO_LARGE)
                    pieces.append(piece)
        except (zipfile.BadZipFile, zlib.error, OSError, EOFError, ValueError, RuntimeError):
            raise UnreadableError(f"broken: {name[:80]} cannot be unpacked") from None
        return b"".join(pieces)


def _fold(name: str) -> str:
    return unicodedata.normalize("NFC", name).casefold()


def office(
    data: bytes,
    folder: str,
    kind: str,
    change: Callable[[str, bytes], bytes] = lambda _, body: body,
) -> bytes:
    """Return a new Office file of checked and changed members, of a kind that has the folder."""
    archive = Archive(data)
    if "[Content_Types].xml" not in archive.names:
        raise UnreadableError("broken: not an Office file")
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as result:
        for name in archive.names:
            low = name.lower()
            if "/media/" in low or low.endswith(_MEDIA):
                # parsers need a member for each relation
                result.writestr(name, b"")
                continue
            body = archive.read(name)
            if low.endswith((".xml", ".rels", ".vml")):
                _check(name, body)
            result.writestr(name, change(name, body))
    safe = target.getvalue()
    if folder.encode() not in safe:
        raise UnreadableError(f"broken: not {kind}")
    return safe


def _check(name: str, body: bytes) -> None:
    """Refuse XML that could define entities, in any charset."""
    declared = _ENCODING.match(body.lstrip(codecs.BOM_UTF8)[:400])
    encoding = declared.group(1).decode("ascii").lower() if declared else "utf-8"
    text = body
    wide = body.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, b"<\x00", b"\x00<"))
    if wide:
        text = body.replace(b"\x00", b"")
    elif encoding not in _PLAIN or not body.lstrip(codecs.BOM_UTF8).lstrip().startswith(b"<"):
        raise UnreadableError(f"{name[:80]} is XML in a charset that Office does not write")
    if _DOCTYPE.search(text):
        raise UnreadableError(f"hostile: {name[:80]} declares XML entities")
