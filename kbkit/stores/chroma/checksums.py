"""Checksums of a Chroma folder, checked before its native code reads it.

hnswlib, which Chroma uses, believes what it reads: one byte that flipped ends the process. So
whoever has written notes what the files held, and whoever opens them compares. What was cut off
while it was written is told the same way: which collections are written is noted before.

CRC-32 finds all damage that does not aim at it, at some gigabytes a second: opening the files costs
more.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
import zlib
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

_LIST = "checksums.json"
_WRITING = "checksums.writing"
"""Names of collections being written, one a line."""
_DATABASE = "chroma.sqlite3"
_SAVED = "index_metadata.pickle"
"""Beside a graph that was saved, which Chroma does for each thousand vectors."""
_FORMAT = 1
_AT_ONCE = 1 << 20
_COUNTERS = ((24, 28), (92, 100))
"""Counters in SQLite's header, which change with each commit."""
_OPENED = "acquire_write"
"""The table of Chroma's database that has a row for each time it was opened, by anybody."""
_FOLDERS = """
    SELECT segments.id, collections.name FROM segments
    JOIN collections ON collections.id = segments.collection WHERE segments.scope = 'VECTOR'
"""

Span = tuple[int, int]
_Stamp = tuple[int, ...]


@dataclass(slots=True)
class FolderChecksums:
    """Checksums of the files in a folder since kbkit's last write.

    Calls come one at a time, while no other process of kbkit opens or writes the folder.
    """

    folder: Path
    _read: dict[str, tuple[_Stamp, tuple[Span, ...], int]] = field(default_factory=dict)

    def fault(self) -> str:
        """Return a fault of the files in words; empty if they match.

        A file that this process has read, and that has not been touched since, is not read again.
        """
        files = self._files()
        if not files:
            return ""
        known = self._known()
        if known is None:
            return "has no checksums that can be read"
        for name in sorted(known.keys() | set(files)):
            if name not in files:
                return f"lacks {name}"
            if name not in known:
                return f"has {name}, which kbkit did not write"
            if not self._is_as_left(name, known[name]):
                return f"has {name} not as it was written"
        return ""

    def harmed(self) -> frozenset[str] | None:
        """Names of the collections that are not as they were left, or were being written.

        ``None`` where more than some collections may be harmed, or it cannot be told which.
        """
        known, writing = self._known(), self.being_written()
        if known is None:
            return None
        files = set(self._files())
        changed = {
            name
            for name in known.keys() | files
            if name not in files or name not in known or not self._is_as_left(name, known[name])
        }
        beside = {name for name in changed if "/" not in name}
        if beside and not (writing and all(name.startswith(_DATABASE) for name in beside)):
            return None
        of_folder = self._collections()
        if of_folder is None:
            return None
        folders = {name.partition("/")[0] for name in changed - beside}
        return writing | {of_folder[folder] for folder in folders if folder in of_folder}

    def discard(self, names: frozenset[str]) -> None:
        of_folder = self._collections() or {}
        for path in self.folder.iterdir():
            if path.is_dir() and of_folder.get(path.name) in {None, *names}:
                shutil.rmtree(path)

    def begin(self, name: str) -> None:
        with (self.folder / _WRITING).open("a", encoding="utf-8") as file:
            file.write(f"{name}\n")

    def being_written(self) -> frozenset[str]:
        try:
            return frozenset((self.folder / _WRITING).read_text(encoding="utf-8").split())
        except (FileNotFoundError, UnicodeDecodeError):
            return frozenset()

    def _known(self) -> dict[str, tuple[int, tuple[Span, ...]]] | None:
        """Return CRC-32 and ignored spans of each file; ``None`` if unreadable."""
        try:
            values = json.loads((self.folder / _LIST).read_bytes())
            if values["format"] != _FORMAT:
                return None
            return {
                str(name): (int(crc), tuple((int(start), int(end)) for start, end in left_out))
                for name, (crc, left_out) in values["files"].items()
            }
        except (OSError, KeyError, TypeError, ValueError, RecursionError):
            return None

    def _is_as_left(self, name: str, known: tuple[int, tuple[Span, ...]]) -> bool:
        crc, left_out = known
        return self._crc(name, left_out) == crc

    def _collections(self) -> dict[str, str] | None:
        """The collection of each folder of a graph; ``None`` where the database is damaged.

        SQLite takes back what a kill has left half written in it.
        """
        uri = f"{(self.folder / _DATABASE).absolute().as_uri()}?mode=rw"
        try:
            with closing(sqlite3.connect(uri, uri=True)) as connection:
                if connection.execute("PRAGMA quick_check(1)").fetchall() != [("ok",)]:
                    return None
                return dict(connection.execute(_FOLDERS).fetchall())
        except (sqlite3.Error, UnicodeDecodeError):
            return None

    def keep(self) -> None:
        values = {}
        for name in self._files():
            left_out = _left_out(self.folder / name) if name == _DATABASE else ()
            values[name] = (self._crc(name, left_out), left_out)
        for name in self._read.keys() - values.keys():
            del self._read[name]
        text = json.dumps({"format": _FORMAT, "files": values})
        path = self.folder / _LIST
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            part = path.with_suffix(f".{uuid4().hex}.part")
            try:
                part.write_text(text, encoding="utf-8")
                part.replace(path)
            finally:
                part.unlink(missing_ok=True)
        (self.folder / _WRITING).unlink(missing_ok=True)

    def _files(self) -> list[str]:
        """Paths in the folder of all files that are Chroma's, and read.

        Those of a graph that was never saved are written anew each time it is opened.
        """
        saved = {path.parent for path in self.folder.glob(f"*/{_SAVED}")}
        return [
            path.relative_to(self.folder).as_posix()
            for path in self.folder.rglob("*")
            if not path.is_dir()
            and not path.name.startswith(_LIST.partition(".")[0])
            and (path.parent == self.folder or path.parent in saved)
        ]

    def _crc(self, name: str, left_out: Sequence[Span]) -> int:
        path = self.folder / name
        stamp = _stamp(path)
        spans = tuple(left_out)
        known = self._read.get(name)
        if known is not None and known[:2] == (stamp, spans):
            return known[2]
        crc = start = 0
        with path.open("rb") as file:
            while data := file.read(_AT_ONCE):
                crc = zlib.crc32(_blanked(data, start, spans), crc)
                start += len(data)
        self._read[name] = stamp, spans, crc
        return crc


def _blanked(data: bytes, start: int, spans: Sequence[Span]) -> bytes | bytearray:
    inside = [
        (max(0, low - start), min(len(data), high - start))
        for low, high in spans
        if low < start + len(data) and high > start
    ]
    if not inside:
        return data
    blanked = bytearray(data)
    for low, high in inside:
        blanked[low:high] = bytes(high - low)
    return blanked


def _stamp(path: Path) -> _Stamp:
    found = path.stat()
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def _left_out(path: Path) -> tuple[Span, ...]:
    """Return the spans that opening the database changes, so that Chroma itself may open it."""
    query = "SELECT rootpage FROM sqlite_master WHERE name = ?"
    uri = f"{path.absolute().as_uri()}?mode=ro&immutable=1"
    try:
        with closing(sqlite3.connect(uri, uri=True)) as connection:
            found = connection.execute(query, (_OPENED,)).fetchone()
            size = connection.execute("PRAGMA page_size").fetchone()[0]
    except sqlite3.Error as error:
        raise OSError(f"{path}: {error}") from error
    opened = ((size * (found[0] - 1), size * found[0]),) if found else ()
    return (*_COUNTERS, *opened)
