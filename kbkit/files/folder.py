"""A folder of files: portable names, no links, read while others write."""

from __future__ import annotations

import stat as modes
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from hashlib import blake2b
from itertools import filterfalse
from operator import itemgetter
from os import stat_result
from pathlib import Path
from typing import BinaryIO, NamedTuple

from kbkit import errors
from kbkit.files.directory import Directory, refuse_link
from kbkit.files.paths import MAX_DEPTH, collision_key, fault, join_parts, parts_of
from kbkit.models import FileInfo, FileKind


class Item(NamedTuple):
    """A file or folder on disk, with its status."""

    path: str
    status: stat_result
    is_folder: bool

    @classmethod
    def of(cls, path: str, status: stat_result) -> Item:
        return cls(path, status, modes.S_ISDIR(status.st_mode))

    @property
    def kind(self) -> FileKind:
        return FileKind.FOLDER if self.is_folder else FileKind.FILE

    def info(self, version: str = "", created: int | None = None) -> FileInfo:
        changed_ns = self.status.st_mtime_ns
        created_ns = min(created or getattr(self.status, "st_birthtime_ns", changed_ns), changed_ns)
        size = 0 if self.is_folder else self.status.st_size
        times = time_of(created_ns), time_of(changed_ns)
        return FileInfo(self.path, self.kind, size, *times, version)


class Stored(NamedTuple):
    """A file as it was read or written."""

    path: str
    data: bytes
    status: stat_result

    def info(self, created: int | None) -> FileInfo:
        return Item.of(self.path, self.status).info(version(self.data), created)


class Folder:
    """A folder on disk; ``reserved`` are names at its root that others use."""

    def __init__(self, root: Path, reserved: frozenset[str] = frozenset()) -> None:
        self.root = root
        self._reserved = reserved

    def stat(self, path: str) -> Item:
        parts = self._parts(path)
        if not parts:
            with self._root():
                return Item.of("", self.root.stat())
        with self._folder(parts[:-1]) as folder:
            return self._find(folder, parts)[1]

    def read(self, path: str) -> Stored:
        parts = self._parts(path)
        if not parts:
            raise errors.IsFolderError("the root is a folder; list it, or read a file in it")
        with self._folder(parts[:-1]) as folder:
            data, status = folder.read(self._name(folder, parts), join_parts(parts))
        return Stored(join_parts(parts), data, status)

    def open(self, path: str) -> BinaryIO:
        parts = self._parts(path)
        if not parts:
            raise errors.IsFolderError("the root is a folder; list it, or open a file in it")
        with self._folder(parts[:-1]) as folder:
            return folder.open_file(self._name(folder, parts), join_parts(parts))

    def list(self, path: str = "") -> list[Item]:
        """List a folder, folders first, without hidden names, links and invalid names."""
        parts = self._parts(path)
        if not parts and not self.root.exists():
            return []
        with self._folder(parts) as folder:
            return _folders_first(self._items(folder, parts))

    def walk(
        self, path: str = "", skipped: Callable[[str, str], None] = lambda path, why: None
    ) -> Iterator[Item]:
        """Iterate over everything below a folder, or over a single file."""
        parts = self._parts(path)
        if not self.root.exists():
            return
        try:
            if parts:
                item = self.stat(path)
                yield item
                if not item.is_folder:
                    return
            with self._folder(parts) as folder:
                yield from self._walk(folder, parts, skipped)
        except errors.MissingPathError:
            return

    def _walk(
        self, folder: Directory, parts: tuple[str, ...], skipped: Callable[[str, str], None]
    ) -> Iterator[Item]:
        for item in _folders_first(self._items(folder, parts, skipped)):
            yield item
            if not item.is_folder:
                continue
            child_parts = tuple(item.path.split("/"))
            if len(child_parts) >= MAX_DEPTH:
                skipped(item.path, f"has more than {MAX_DEPTH} folders above")
                continue
            name, _ = folder.find(child_parts[-1], exact=self._exact)
            if name is not None:
                try:
                    child = folder.child(name, item.path)
                except errors.FilesError:  # moved, or no longer a folder
                    continue
                with child:
                    yield from self._walk(child, child_parts, skipped)

    def _items(
        self,
        folder: Directory,
        parts: tuple[str, ...],
        skipped: Callable[[str, str], None] = lambda path, reason: None,
    ) -> Iterator[Item]:
        prefix = f"{join_parts(parts)}/" if parts else ""
        for entry in folder.scan():
            name = entry.name
            if name.startswith("."):
                continue
            if reason := fault(name):
                skipped(prefix + ascii(name)[1:-1], reason)
                continue
            path = prefix + (name if name.isascii() else parts_of(name)[0])
            if not parts and collision_key(name) in self._reserved:
                skipped(path, "this name is reserved for the knowledge bases")
                continue
            if entry.is_symlink():
                skipped(path, "is a link, and links are not followed")
                continue
            try:
                status = entry.stat(follow_symlinks=False)
            except OSError:
                continue  # deleted meanwhile
            mode = status.st_mode
            if modes.S_ISREG(mode):
                yield Item(path, status, False)
            elif modes.S_ISDIR(mode):
                yield Item(path, status, True)

    @property
    def _exact(self) -> bool:
        return not (self.root.parent / self.root.name.swapcase()).exists()

    def _parts(self, path: str) -> tuple[str, ...]:
        parts = parts_of(path)
        if parts and collision_key(parts[0]) in self._reserved:
            raise errors.ReadOnlyPathError(
                f"{join_parts(parts)}: everything below {parts[0]} shows knowledge bases and is "
                "read-only; write elsewhere, and change a knowledge base by its own methods"
            )
        return parts

    def _find(self, folder: Directory, parts: tuple[str, ...]) -> tuple[str, Item]:
        name = self._name(folder, parts)
        status = folder.stat(name)
        refuse_link(status, join_parts(parts))
        if status is None:
            raise missing(join_parts(parts), None)
        return name, Item.of(join_parts(parts), status)

    def _name(self, folder: Directory, parts: tuple[str, ...]) -> str:
        """Return the last name of a path as spelled on disk."""
        existing, alike = folder.find(parts[-1], exact=self._exact)
        if existing is None:
            raise missing(join_parts(parts), alike)
        return existing

    @contextmanager
    def _root(self, *, make: bool = False) -> Iterator[Directory]:
        if make:
            try:
                self.root.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise errors.FilesError(
                    f"{self.root}: cannot be made ({error.strerror})"
                ) from error
        try:
            folder = Directory.open(self.root)
        except errors.MissingPathError:
            raise errors.MissingPathError("there are no files yet; write one") from None
        with folder:
            yield folder

    @contextmanager
    def _folder(self, parts: tuple[str, ...], *, make: bool = False) -> Iterator[Directory]:
        created: list[tuple[Directory, str]] = []
        with self._root(make=make) as root, ExitStack() as opened:
            current = root
            try:
                for number, name in enumerate(parts, 1):
                    path = join_parts(parts[:number])
                    existing, alike = current.find(name, exact=self._exact)
                    if existing is None:
                        if not make:
                            raise missing(path, alike)
                        if alike is not None:
                            raise errors.PathExistsError(name_taken(path, alike))
                        current.make(name)
                        created.append((current, name))
                    current = opened.enter_context(current.child(existing or name, path))
                yield current
            except BaseException:
                for parent, name in reversed(created):
                    parent.remove_empty(name)
                raise


def version(data: bytes | None) -> str:
    """Return the version of a file's content; ``""`` if there is no file."""
    return "" if data is None else blake2b(data, digest_size=8).hexdigest()


def time_of(nanoseconds: int) -> datetime:
    return datetime.fromtimestamp(nanoseconds / 1e9, UTC)


def _folders_first(items: Iterator[Item]) -> list[Item]:
    by_name = sorted(items, key=itemgetter(0))  # three passes are faster than one
    return [*filter(itemgetter(2), by_name), *filterfalse(itemgetter(2), by_name)]


def missing(label: str, alike: str | None) -> errors.MissingPathError:
    hint = f"; did you mean {alike!r}?" if alike else ""
    return errors.MissingPathError(f"{label}: no such file or folder{hint}")


def name_taken(label: str, name: str) -> str:
    if label.rpartition("/")[2] == name:
        return f"{label}: already exists"
    return f"{label}: {name!r} already exists, which some systems treat as the same name"
