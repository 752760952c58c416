"""Exports of a server, unpacked into folders of this machine."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import BinaryIO
from zipfile import BadZipFile, ZipFile

from kbkit.errors import ExportError, ServerError

_RECORD = ".kbkit-files.json"
"""Names the files of a folder that came out of an archive; MkDocs does not publish it."""
_MOST_BYTES = 4_000_000_000


def unpack(archive: BinaryIO, folder: Path) -> tuple[int, int, int]:
    """Write the files of an archive into a folder, in place of those of the one before.

    Args:
        archive: A ZIP.
        folder: Missing, empty, or written by this.

    Returns:
        How many files were written, were there like this, and were removed.

    Raises:
        ExportError: The folder holds files of somebody else, or cannot be written.
        ServerError: That is no archive.
    """
    record = folder / _RECORD
    written = unchanged = removed = 0
    try:
        before = set(json.loads(record.read_text("utf-8"))) if record.is_file() else set()
        if not record.is_file() and folder.is_dir() and any(folder.iterdir()):
            raise ExportError(
                f"{folder}: holds files of somebody else; choose an empty folder for the export"
            )
        folder.mkdir(parents=True, exist_ok=True)
        names = []
        with ZipFile(archive) as packed:
            for name in _safe_names(packed):
                names.append(name)
                data, place = packed.read(name), folder / name
                if place.is_file() and place.read_bytes() == data:
                    unchanged += 1
                    continue
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(data)
                written += 1
        for name in sorted(before - set(names)):
            if _is_safe(name) and (folder / name).is_file():
                (folder / name).unlink()
                removed += 1
        record.write_text(json.dumps(sorted(names)), "utf-8")
    except (BadZipFile, EOFError) as error:
        raise ServerError(f"the archive that was sent cannot be read ({error})") from error
    except (ValueError, TypeError) as error:
        raise ExportError(f"{record}: damaged ({error}); choose another folder") from error
    except OSError as error:
        raise ExportError(f"{folder}: cannot be written ({error.strerror})") from error
    return written, unchanged, removed


def _safe_names(packed: ZipFile) -> Iterator[str]:
    """The names of the files of an archive, none of which leads out of a folder."""
    files = [each for each in packed.infolist() if not each.is_dir()]
    if sum(each.file_size for each in files) > _MOST_BYTES:
        raise ServerError("the archive that was sent is larger than any site")
    for each in files:
        if not _is_safe(each.filename):
            raise ServerError(f"the archive that was sent names {each.filename!r:.80}")
        yield each.filename


def _is_safe(name: str) -> bool:
    path = PurePosixPath(name)
    unsafe = path.is_absolute() or ".." in path.parts or any(sign in name for sign in "\\:\0")
    return not unsafe
