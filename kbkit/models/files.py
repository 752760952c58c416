"""Files and entries of a workspace."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import ClassVar

from kbkit.models.values import Problem, Several, Value


class FileKind(StrEnum):
    """Kind of path."""

    FILE = "file"
    FOLDER = "folder"


@dataclass(frozen=True, slots=True)
class FileInfo(Value):
    """A file or a folder.

    Attributes:
        path: Path from the root.
        size: Bytes; 0 for a folder.
        created_at: Creation time.
        version: Version of a file's content, for ``if_match``.
        read_only: Whether it mirrors a knowledge base.
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
    """A file, or a folder with its children, folders first; ``str`` draws the tree."""

    info: FileInfo
    children: tuple[FileTree, ...] = ()

    def __str__(self) -> str:
        return "\n".join([self.info.path or ".", *self._draw("")])

    def _draw(self, indent: str) -> Iterator[str]:
        for number, child in enumerate(self.children, 1):
            is_last = number == len(self.children)
            slash = "/" if child.info.is_folder else ""
            yield f"{indent}{'└── ' if is_last else '├── '}{child.info.name}{slash}"
            yield from child._draw(indent + ("    " if is_last else "│   "))


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
    """A file or folder in the trash; ``id`` tells items of one path apart."""

    id: str
    path: str
    kind: FileKind
    deleted_at: datetime


@dataclass(frozen=True, slots=True, repr=False)
class SyncReport(Value):
    """Result of importing outside changes of files.

    Attributes:
        skipped: Files that are left out of searches, with the reason.
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


MAX_STARS = 5


class EntryStatus(StrEnum):
    """Whether an entry is in use."""

    ACTIVE = "active"
    DRAFT = "draft"
    DEPRECATED = "deprecated"


class EntrySource(StrEnum):
    """Author of an entry: an agent that finished a task, or a person."""

    AUTO = "auto"
    MANUAL = "manual"


@dataclass(frozen=True, slots=True, order=True)
class Vote(Value):
    """A vote for an entry, identified by all of its fields.

    Attributes:
        score: 1 (useless) to 5 (exactly right).
    """

    timestamp: datetime
    rater: str
    score: int


@dataclass(frozen=True, slots=True)
class EntryRating(Value):
    """Summary of the votes for an entry.

    Attributes:
        average: Mean score, to two places; 0 without votes.
        votes: Oldest first; only for a single entry.
    """

    average: float = 0.0
    count: int = 0
    votes: tuple[Vote, ...] = ()

    @classmethod
    def of(cls, votes: tuple[Vote, ...]) -> EntryRating:
        """Summarize votes."""
        if not votes:
            return cls()
        mean = sum(vote.score for vote in votes) / len(votes)
        return cls(round(mean, 2), len(votes), votes)

    @property
    def stars(self) -> str:
        """Average as five stars; ``""`` without votes."""
        rounded = int(self.average + 0.5)
        return "★" * rounded + "☆" * (MAX_STARS - rounded) if self.count else ""


@dataclass(frozen=True, slots=True)
class EntryFile(Value):
    """A file of an entry.

    Attributes:
        path: Path within the entry, such as ``code/run.py``.
        size: Bytes.
    """

    path: str
    size: int


@dataclass(frozen=True, slots=True)
class EntryInfo(Value):
    """An entry without its text.

    Attributes:
        slug: Name of its folder.
        id: Unchanged by a rename.
        origin_task_id: Task that it was learned from, or ``""``.
        updated_at: Last change of anything but the votes.
        version: Version of the content without votes; for ``if_match``.
        problem: Why its ``skill.yaml`` cannot be read, with line and column; the other fields are
            those of the last version that could be read.
    """

    slug: str
    id: str
    title: str
    description: str
    tags: tuple[str, ...]
    category: str
    status: EntryStatus
    rating: EntryRating
    source: EntrySource
    origin_task_id: str
    created_at: datetime
    updated_at: datetime
    version: str
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Entry(EntryInfo):
    """An entry with its text.

    Attributes:
        prompt: Instructions for an agent (``prompt.md``).
        readme: Readme for people (``README.md``).
    """

    prompt: str = ""
    readme: str = ""
    files: tuple[EntryFile, ...] = ()

    @property
    def code(self) -> tuple[EntryFile, ...]:
        """The files in ``code/``."""
        return tuple(file for file in self.files if file.path.startswith("code/"))

    @property
    def artifacts(self) -> tuple[EntryFile, ...]:
        """The files in ``artifacts/``."""
        return tuple(file for file in self.files if file.path.startswith("artifacts/"))


@dataclass(frozen=True, slots=True)
class EntryPage(Several[EntryInfo], Value):
    """A page of ``total`` entries, after the first ``offset`` ones."""

    _items: ClassVar = "entries"
    entries: tuple[EntryInfo, ...]
    total: int
    offset: int = 0


@dataclass(frozen=True, slots=True, repr=False)
class EntrySyncReport(SyncReport):
    """Result of importing outside changes of entries, by slug.

    Attributes:
        synced: Number of entries without a problem.
    """

    synced: int = 0
