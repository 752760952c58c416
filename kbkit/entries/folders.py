"""Folders of entries: their names, and the files that entries are made of."""

import re
import unicodedata
from collections.abc import Container, Mapping
from pathlib import Path

from kbkit.errors import EntryFormatError, FilesError, InvalidPathError, MissingPathError
from kbkit.files.folder import Folder
from kbkit.files.paths import collision_key, fault, join_parts, parts_of
from kbkit.runtime.validation import check_text

FOLDER = ".knowledge"
"""Folder of a task's result."""
NAME = "skill.yaml"
MAX_FILES = 500
MAX_BYTES = 20_000_000  # of all files


def read_knowledge(folder: Path) -> tuple[Path, dict[str, bytes]]:
    """Read the ``.knowledge`` of a task's folder, or the folder itself."""
    path = folder.expanduser().absolute()
    if path.name != FOLDER and (path / FOLDER).is_dir():
        path /= FOLDER
    if not path.is_dir():
        raise MissingPathError(f"{folder}: there is no such folder")
    if not (path / NAME).exists():
        raise MissingPathError(
            f"{path}: has no {NAME}; name a folder `{FOLDER}` that a task left, or one with it"
        )
    return path, read_folder(path)


def read_folder(folder: Path) -> dict[str, bytes]:
    """Read the files of a folder, by path within it, without hidden ones."""

    def refuse(path: str, why: str) -> None:
        raise EntryFormatError(f"{folder / path}: {why}; nothing was imported")

    source = Folder(folder)
    files: dict[str, bytes] = {}
    size = 0
    source.stat("")  # raises errors of the folder itself
    for item in source.walk("", refuse):
        if item.is_folder:
            continue
        size += item.status.st_size
        _check_size(folder, len(files) + 1, size)
        try:
            files[item.path] = source.read(item.path).data
        except FilesError as error:
            raise type(error)(f"{folder}: {error}") from None
    return check_paths(folder, files)


def check_paths(folder: Path, files: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return the files of a folder, by path within it, if they can be stored on any system."""
    _check_size(folder, len(files), sum(map(len, files.values())))
    spellings: dict[str, str] = {}
    checked: dict[str, bytes] = {}
    for path, data in files.items():
        parts = parts_of(path)
        for end in range(1, len(parts) + 1):
            name = join_parts(parts[:end])
            if spellings.setdefault(collision_key(name), name) != name:
                raise EntryFormatError(
                    f"{folder / name}: differs from another only in capitals, which some systems "
                    "treat as the same name; nothing was imported"
                )
        if not parts or join_parts(parts) in checked:
            raise InvalidPathError(f"{folder / path}: give each file a path of its own")
        checked[join_parts(parts)] = data
    return checked


def _check_size(folder: Path, count: int, size: int) -> None:
    if size > MAX_BYTES or count > MAX_FILES:
        raise EntryFormatError(
            f"{folder}: has more than {MAX_FILES} files or {MAX_BYTES / 1e6:g} MB; leave out "
            "files that the task does not need"
        )


MAX_LENGTH = 64
_SLUG = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")


def slug_fault(slug: str) -> str:
    """Return why a name cannot be a slug; ``""`` if it can."""
    if len(slug) > MAX_LENGTH:
        return f"is longer than {MAX_LENGTH} characters"
    if not _SLUG.fullmatch(slug):
        return "is not a valid slug; use lower-case letters, digits and single hyphens between them"
    return fault(slug)


def check_slug(slug: str) -> str:
    if reason := slug_fault(check_text("slug", slug)):
        raise InvalidPathError(f"{ascii(slug)[:80]}: {reason}, such as 'parse-logs'")
    return slug


def slug_of(title: str, used: Container[str] = ()) -> str:
    plain = unicodedata.normalize("NFKD", title.casefold())
    letters = "".join(each for each in plain if not unicodedata.combining(each))
    words = re.sub(r"[^a-z0-9]+", "-", letters).strip("-")[:MAX_LENGTH].strip("-")
    slug = words if words and not slug_fault(words) else f"entry-{words}".strip("-")[:MAX_LENGTH]
    return unique(slug.strip("-"), used)


def unique(slug: str, used: Container[str]) -> str:
    """Return a slug, with the first free number if it is taken."""
    name, number = slug, 2
    while name in used:
        suffix = f"-{number}"
        name, number = slug[: MAX_LENGTH - len(suffix)].strip("-") + suffix, number + 1
    return name
