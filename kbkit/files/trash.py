"""The trash of the files: a hidden folder beside them, so that what goes there is moved at once."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import NamedTuple

from kbkit.errors import FilesError, MissingPathError
from kbkit.files.directory import Directory
from kbkit.models import DeletedFile, FileKind

TRASH = ".trash"
"""Its name. Tools take names with a dot in front for hidden, and git is told to pass it over."""
_IGNORE = ".gitignore"
_ABOUT = "about.json"
_ITEM = "item"


class Kept(NamedTuple):
    """Something in the trash.

    Attributes:
        deleted: What it is.
        created: When the files in it were made, in nanoseconds, by their paths within it (``""``
            for a file by itself).
    """

    deleted: DeletedFile
    created: dict[str, int]


class Trash:
    """What was deleted, each in a folder of its own with a note of what it was.

    Args:
        folder: The trash, open; nobody else writes meanwhile.
    """

    def __init__(self, folder: Directory) -> None:
        self._folder = folder

    def put(
        self, source: Directory, name: str, path: str, kind: FileKind, created: dict[str, int]
    ) -> DeletedFile:
        """Move something here."""
        if self._folder.stat(_IGNORE) is None:
            self._folder.write(_IGNORE, b"*\n", new=False, shown=f"{TRASH}/{_IGNORE}")
        now = datetime.now(UTC)
        known = f"{now:%Y%m%dT%H%M%S%f}-{secrets.token_hex(4)}"
        self._folder.make(known)
        note = {
            "path": path,
            "kind": kind.value,
            "deleted_at": now.isoformat(),
            "created": created,
        }
        try:
            with self._folder.child(known, known) as place:
                text = json.dumps(note, ensure_ascii=False)
                place.write(_ABOUT, text.encode(), new=True, shown=f"{TRASH}/{known}")
                source.move(name, place, _ITEM, path)
        except BaseException:
            self._folder.remove(known)
            raise
        return DeletedFile(known, path, kind, now)

    def listed(self) -> list[Kept]:
        """What is here, the last first; what a kill left half done is left out."""
        return sorted(self._kept(), key=lambda kept: kept.deleted.id, reverse=True)

    def find(self, path: str) -> Kept:
        """What was deleted last at a path, or has an id.

        Raises:
            MissingPathError: Nothing was; the message names what is here.
        """
        there = self.listed()
        for kept in there:
            if path in (kept.deleted.path, kept.deleted.id):
                return kept
        names = ", ".join(dict.fromkeys(kept.deleted.path for kept in there[:5]))
        raise MissingPathError(
            f"{path}: is not in the trash, which has {names}" if names else "the trash is empty"
        )

    def take(self, known: str, target: Directory, name: str) -> None:
        """Move something out of here."""
        with self._folder.child(known, known) as place:
            place.move(_ITEM, target, name, name)
        self._folder.remove(known)

    def empty(self) -> int:
        """Remove all for good; gives how many things that were."""
        count = len(self.listed())
        for name in self._folder.names():
            if name != _IGNORE:
                self._folder.remove(name)
        return count

    def _kept(self) -> Iterator[Kept]:
        for name in self._folder.names():
            if name.startswith("."):
                continue
            try:
                with self._folder.child(name, name) as place:
                    if place.stat(_ITEM) is None:
                        continue
                    note = json.loads(place.read(_ABOUT, name)[0])
                deleted = DeletedFile(
                    name,
                    str(note["path"]),
                    FileKind(note["kind"]),
                    datetime.fromisoformat(note["deleted_at"]),
                )
                yield Kept(deleted, {str(key): int(at) for key, at in note["created"].items()})
            except (FilesError, ValueError, KeyError, TypeError, AttributeError):
                continue  # nothing that this module put here
