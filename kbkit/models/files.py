"""Files, folders and their trash."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from kbkit.models.problems import Problem
from kbkit.models.values import Value


class FileKind(StrEnum):
    """Kind of path."""

    FILE = "file"
    FOLDER = "folder"


@dataclass(frozen=True, slots=True)
class FileInfo(Value):
    """A file or a folder.

    Attributes:
        path: Path from the root.
        kind: Kind of path.
        size: Size in bytes; 0 for a folder.
        created_at: When it was made; of a folder, when the oldest file in it was.
        changed_at: When it was last written.
        version: Version of a file's content; for ``if_match``.
        read_only: Whether it shows a knowledge base.
    """

    path: str
    kind: FileKind
    size: int
    created_at: datetime
    changed_at: datetime
    version: str = ""
    read_only: bool = False

    @property
    def name(self) -> str:
        """The last name of its path."""
        return self.path.rpartition("/")[2]

    @property
    def is_folder(self) -> bool:
        """Whether it is a folder."""
        return self.kind is FileKind.FOLDER


@dataclass(frozen=True, slots=True)
class FileTree(Value):
    """A folder with all that is in it, or a file; as text, a drawing.

    Attributes:
        info: Its facts.
        children: Children of a folder, folders first.
    """

    info: FileInfo
    children: tuple[FileTree, ...] = ()

    def __str__(self) -> str:
        return "\n".join([self.info.path or ".", *self._drawn("")])

    def _drawn(self, indent: str) -> Iterator[str]:
        for number, child in enumerate(self.children, 1):
            last = number == len(self.children)
            slash = "/" if child.info.is_folder else ""
            yield f"{indent}{'└── ' if last else '├── '}{child.info.name}{slash}"
            yield from child._drawn(indent + ("    " if last else "│   "))


@dataclass(frozen=True, slots=True)
class FileLink(Value):
    """A link of one file to another.

    Attributes:
        target: Target as written: a name or a path.
        path: Target file; ``""`` if it does not exist.
    """

    target: str
    path: str


@dataclass(frozen=True, slots=True)
class DeletedFile(Value):
    """A file or folder in the trash.

    Attributes:
        id: Distinguishes items of one path.
        path: Former path.
        kind: Kind of path.
        deleted_at: When it was deleted.
    """

    id: str
    path: str
    kind: FileKind
    deleted_at: datetime


@dataclass(frozen=True, slots=True, repr=False)
class SyncReport(Value):
    """Result of importing outside changes of files.

    Attributes:
        added: Files that are new.
        updated: Files that changed.
        removed: Files that are gone.
        skipped: Files that are not searched, with the reason.
    """

    added: tuple[str, ...] = ()
    updated: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    skipped: tuple[Problem, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.added or self.updated or self.removed)

    def __str__(self) -> str:
        counts = ("added", self.added), ("updated", self.updated), ("removed", self.removed)
        return ", ".join(f"{len(paths):,} {name}" for name, paths in counts)

    def __repr__(self) -> str:  # there may be thousands of names
        skipped = f", {len(self.skipped):,} skipped" if self.skipped else ""
        return f"{type(self).__name__}({self}{skipped})"
