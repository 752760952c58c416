"""Folders that others wrote, read whole and checked before anything of them becomes an entry."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from kbkit.entries.credentials import find_credential
from kbkit.errors import EntryFormatError, FilesError, SecretsError
from kbkit.files.store import FileStore
from kbkit.stores.locks import Locks

MOST_FILES = 500
"""Files of a folder that is taken in."""
MOST_BYTES = 20_000_000
"""Bytes of all of them."""


def read_folder(folder: Path, locks: Locks) -> dict[str, bytes]:
    """The files of a folder, by path within it; hidden ones are left out.

    Args:
        folder: Where it is.
        locks: Of the workspace; none of them is held.

    Raises:
        MissingPathError: It is not there.
        PathOutsideError: It is a link, or has one in it.
        EntryFormatError: It is too large, or has names that cannot be one on every system.
        FilesError: It cannot be read.
    """
    store = FileStore(folder, locks)
    wrong: list[str] = []
    found: dict[str, bytes] = {}
    names: dict[str, str] = {}
    size = 0
    store.stat("")  # says what is wrong with the folder itself
    for item in store.walk("", lambda path, why: wrong.append(f"{folder / path}: {why}")):
        if wrong:
            raise EntryFormatError(f"{wrong[0]}; nothing was taken over")
        if names.setdefault(item.path.casefold(), item.path) != item.path:
            raise EntryFormatError(
                f"{folder / item.path}: differs from another only in capitals, which some systems "
                "take for the same name; nothing was taken over"
            )
        if item.is_folder:
            continue
        size += item.about.st_size
        if size > MOST_BYTES or len(found) >= MOST_FILES:
            raise EntryFormatError(
                f"{folder}: has more than {MOST_FILES} files or {MOST_BYTES / 1e6:g} MB; leave out "
                "what is not needed to do the task again"
            )
        try:
            found[item.path] = store.read(item.path).data
        except FilesError as error:
            raise type(error)(f"{folder}: {error}") from None
    if wrong:
        raise EntryFormatError(f"{wrong[0]}; nothing was taken over")
    return found


def refuse_credentials(folder: Path, files: Mapping[str, bytes]) -> None:
    """Refuse files that hold keys or passwords.

    Raises:
        SecretsError: One does; names the file and the line, and does not repeat it.
    """
    for path, data in sorted(files.items()):
        if (found := find_credential(data)) is not None:
            raise SecretsError(
                f"{folder / path}: line {found.line} has what looks like {found.kind}; take it "
                "out, have it read from the environment, and learn the folder again"
            )
