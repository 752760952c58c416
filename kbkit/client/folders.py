"""Local folders that are sent to a server or fetched from one."""

from __future__ import annotations

import os
import shutil
import tempfile
from base64 import b64encode
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import Any
from zipfile import BadZipFile, ZipFile

from kbkit.errors import (
    EntryFormatError,
    FilesError,
    MissingPathError,
    PathExistsError,
    ServerError,
)
from kbkit.files.paths import joined, parts_of

MAX_FILES = 5_000
MAX_BYTES = 100_000_000
_SKILL = "SKILL.md"


def read_folder(folder: Path) -> dict[str, bytes]:
    """The files of a folder, by path within it; hidden ones are left out."""
    if not folder.is_dir():
        raise MissingPathError(f"{folder}: there is no such folder")
    found: dict[str, bytes] = {}
    size = 0
    try:
        for above, folders, files in os.walk(folder):
            folders[:] = sorted(each for each in folders if not each.startswith("."))
            for name in (*folders, *sorted(files)):
                path = Path(above, name)
                if name.startswith("."):
                    continue
                if path.is_symlink():
                    raise EntryFormatError(
                        f"{path}: is a link, and links are not followed; nothing was imported"
                    )
                if not path.is_file():
                    continue
                size += path.stat().st_size
                if size > MAX_BYTES or len(found) >= MAX_FILES:
                    raise EntryFormatError(
                        f"{folder}: has more than {MAX_FILES:,} files or {MAX_BYTES / 1e6:g} MB"
                    )
                found[path.relative_to(folder).as_posix()] = path.read_bytes()
    except OSError as error:
        raise FilesError(f"{folder}: cannot be read ({error.strerror})") from error
    if not found:
        raise MissingPathError(f"{folder}: has no files")
    return found


def knowledge(folder: Path) -> dict[str, bytes]:
    """Read what a task left in ``.knowledge`` of a folder, or in the folder itself."""
    place = folder.expanduser().absolute()
    inner = place / ".knowledge"
    return read_folder(inner if place.name != inner.name and inner.is_dir() else place)


def skills(folder: Path) -> dict[str, bytes]:
    """A skill, or a folder of skills, each in a folder of its name."""
    place = folder.expanduser().absolute()
    found = read_folder(place)
    return (
        {f"{place.name}/{path}": data for path, data in found.items()}
        if (_SKILL in found)
        else found
    )


def as_json(files: Mapping[str, str | bytes | None]) -> dict[str, Any]:
    """Files as JSON: text as it is, other bytes in Base64, ``None`` for one to delete."""
    return {path: _content(content) for path, content in files.items()}


def _content(content: str | bytes | None) -> Any:
    if isinstance(content, bytes):
        try:
            return content.decode()
        except UnicodeDecodeError:
            return {"base64": b64encode(content).decode()}
    return content


def write_skills(folder: Path, packed: bytes) -> tuple[Path, ...]:
    """Unpack skills from a zip into a folder, replacing those of the same name."""
    try:
        with ZipFile(BytesIO(packed)) as archive:
            files = {
                parts_of(each.filename): archive.read(each)
                for each in archive.infolist()
                if not each.is_dir()
            }
    except (BadZipFile, FilesError) as error:
        raise ServerError(f"the skills that were sent cannot be read ({error})") from error
    names = sorted({parts[0] for parts in files})
    for name in names:
        place = folder / name
        if os.path.lexists(place) and (place.is_symlink() or not (place / _SKILL).is_file()):
            raise PathExistsError(f"{place}: is there already and no skill; name another folder")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".kbkit-", dir=folder) as made:
            for parts, data in files.items():
                file = Path(made, joined(parts))
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(data)
            for name in names:
                if (folder / name).exists():
                    shutil.rmtree(folder / name)
                Path(made, name).rename(folder / name)
    except OSError as error:
        raise FilesError(f"{folder}: cannot be written ({error.strerror})") from error
    return tuple(folder / name for name in names)
