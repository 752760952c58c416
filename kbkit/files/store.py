"""The files of a workspace on disk: confined to their folder, written atomically.

One process writes at a time, under a lock; readers see the old or the new state.
"""

from __future__ import annotations

import builtins
import shutil
import stat as modes
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import blake2b
from itertools import filterfalse
from operator import itemgetter
from os import stat_result
from pathlib import Path
from typing import BinaryIO, NamedTuple

from kbkit.errors import (
    FilesError,
    InvalidPathError,
    IsFolderError,
    MissingPathError,
    NotFolderError,
    PathExistsError,
    ReadOnlyPathError,
    VersionConflictError,
)
from kbkit.files.directory import MAX_BYTES, TRASH, Directory, Trash, refuse_link
from kbkit.files.paths import MAX_DEPTH, collision_key, fault, join_parts, parts_of
from kbkit.models import DeletedFile, FileKind
from kbkit.stores.backend import Locks

_POLL = 0.005
_ROOM = 8_000_000  # free bytes required before a change; the catalog writes its changes twice
_TIMES = 16  # further bytes required for each byte of a file


class Item(NamedTuple):
    """A file or folder on disk, with its status."""

    path: str
    about: stat_result
    is_folder: bool

    @classmethod
    def of(cls, path: str, about: stat_result) -> Item:
        return cls(path, about, modes.S_ISDIR(about.st_mode))

    @property
    def kind(self) -> FileKind:
        return FileKind.FOLDER if self.is_folder else FileKind.FILE


class Stored(NamedTuple):
    """A file as it was read or written."""

    path: str
    data: bytes
    about: stat_result


class FileStore:
    """A folder of files."""

    LOCK = "files"
    """Lock of writers."""
    WAIT = 60.0
    """Seconds to wait for other writers."""

    def __init__(self, root: Path, locks: Locks, reserved: frozenset[str] = frozenset()) -> None:
        self.root = root
        self.locks = locks
        self._reserved = reserved
        self._held = threading.local()

    # ---- reading

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
            raise IsFolderError("the root is a folder; list it, or read a file in it")
        with self._folder(parts[:-1]) as folder:
            data, about = folder.read(self._name(folder, parts), join_parts(parts))
        return Stored(join_parts(parts), data, about)

    def open(self, path: str) -> BinaryIO:
        parts = self._parts(path)
        if not parts:
            raise IsFolderError("the root is a folder; list it, or open a file in it")
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
        except MissingPathError:
            return

    def _walk(
        self, folder: Directory, parts: tuple[str, ...], skipped: Callable[[str, str], None]
    ) -> Iterator[Item]:
        for item in _folders_first(self._items(folder, parts, skipped)):
            yield item
            if not item.is_folder:
                continue
            below = tuple(item.path.split("/"))
            if len(below) >= MAX_DEPTH:
                skipped(item.path, f"has more than {MAX_DEPTH} folders above")
                continue
            name, _ = folder.find(below[-1], exact=self._exact)
            if name is not None:
                try:
                    child = folder.child(name, item.path)
                except FilesError:  # moved, or no longer a folder
                    continue
                with child:
                    yield from self._walk(child, below, skipped)

    def _items(
        self,
        folder: Directory,
        parts: tuple[str, ...],
        skipped: Callable[[str, str], None] = lambda path, why: None,
    ) -> Iterator[Item]:
        above = f"{join_parts(parts)}/" if parts else ""
        for entry in folder.scan():
            name = entry.name
            if name.startswith("."):
                continue
            if why := fault(name):
                skipped(above + ascii(name)[1:-1], why)
                continue
            path = above + (name if name.isascii() else parts_of(name)[0])
            if not parts and collision_key(name) in self._reserved:
                skipped(path, "this name is reserved for the knowledge bases")
                continue
            if entry.is_symlink():
                skipped(path, "is a link, and links are not followed")
                continue
            try:
                about = entry.stat(follow_symlinks=False)
            except OSError:
                continue  # deleted meanwhile
            mode = about.st_mode
            if modes.S_ISREG(mode):
                yield Item(path, about, False)
            elif modes.S_ISDIR(mode):
                yield Item(path, about, True)

    # ---- writing

    def write(
        self, path: str, data: bytes, *, new: bool = False, if_match: str | None = None
    ) -> Stored:
        """Write a file atomically; create parent folders unless a version is expected."""
        try:
            return self.change(
                path, lambda before: data, new=new, old=bool(if_match), if_match=if_match
            )
        except MissingPathError:
            raise VersionConflictError(
                f"{path}: does not exist, and was at version {if_match}: it was deleted or moved"
            ) from None

    def change(
        self,
        path: str,
        edit: Callable[[bytes | None], bytes],
        *,
        new: bool = False,
        old: bool = False,
        if_match: str | None = None,
    ) -> Stored:
        """Apply a function to the content of a file, under a lock."""
        parts = self._writable(path)
        shown = join_parts(parts)
        with self.hold_lock(), self._folder(parts[:-1], make=not old) as folder:
            existing, alike = folder.find(parts[-1], exact=self._exact)
            before = None
            if existing is None and old:
                raise _missing(shown, alike)
            if existing is not None:
                if folder.is_directory(existing):
                    raise IsFolderError(f"{shown}: is a folder; name a file")
                if new:
                    raise PathExistsError(f"{shown}: already exists; choose another path")
                before, _ = folder.read(existing, shown)
            elif alike is not None:
                raise PathExistsError(_alike(shown, alike))
            if if_match is not None:
                _check_version(shown, before, if_match)
            data = edit(before)
            if len(data) > MAX_BYTES:
                raise FilesError(f"{shown}: a file may have {MAX_BYTES / 1e6:g} MB at most")
            self._require_room(shown, len(data))
            about = folder.write(existing or parts[-1], data, new=existing is None, shown=shown)
        return Stored(shown, data, about)

    def mkdir(self, path: str) -> Item:
        """Create a folder and its parents; an existing one stays."""
        parts = self._writable(path)
        try:
            with self.hold_lock(), self._folder(parts, make=True):
                pass
        except NotFolderError as error:
            raise PathExistsError(str(error)) from None
        return self.stat(path)

    def move(self, source: str, target: str) -> Item:
        """Move a file or folder to a free path; creates parent folders."""
        old, new = self._writable(source), self._writable(target)
        shown = f"{join_parts(old)} -> {join_parts(new)}"
        if new[: len(old)] == old and new != old:
            raise InvalidPathError(f"{shown}: a folder cannot go into itself")
        self._require_room(shown)
        with self.hold_lock(), self._folder(old[:-1]) as folder:
            name, _ = self._find(folder, old)
            with self._folder(new[:-1], make=True) as into:
                existing, alike = into.find(new[-1], exact=self._exact)
                itself = old[:-1] == new[:-1] and name in (existing, alike)
                if (existing or alike) is not None and not itself:
                    raise PathExistsError(_alike(join_parts(new), existing or alike or ""))
                into_name = new[-1]
                if old[:-1] != new[:-1] or name != into_name:
                    folder.move(name, into, into_name, shown)
        return self.stat(target)

    def delete(
        self, path: str, created: Callable[[str], dict[str, int]], *, if_match: str | None = None
    ) -> DeletedFile:
        parts = self._writable(path)
        with self.hold_lock(), self._folder(parts[:-1]) as folder:
            name, item = self._find(folder, parts)
            if if_match is not None and not item.is_folder:
                _check_version(item.path, folder.read(name, item.path)[0], if_match)
            self._require_room(item.path)
            with self._root() as root, self._trash(root, make=True) as trash:
                return trash.put(folder, name, item.path, item.kind, created(item.path))

    def undelete(self, path: str, to: str = "") -> tuple[Item, dict[str, int]]:
        """Restore what was last deleted at a path."""
        with self.hold_lock(), self._root(make=True) as root, self._trash(root) as trash:
            item = trash.find(join_parts(parts_of(path)))
            parts = self._writable(to or item.deleted.path)
            self._require_room(join_parts(parts))
            with self._folder(parts[:-1], make=True) as folder:
                existing, alike = folder.find(parts[-1], exact=self._exact)
                if (taken := existing or alike) is not None:
                    raise PathExistsError(
                        f"{_alike(join_parts(parts), taken)}; restore it under another path"
                    )
                trash.take(item.deleted.id, folder, parts[-1])
        return self.stat(join_parts(parts)), item.created

    def trash(self) -> builtins.list[DeletedFile]:
        try:
            with self.hold_lock(), self._root(make=True) as root, self._trash(root) as trash:
                return [kept.deleted for kept in trash.list_items()]
        except MissingPathError:
            return []

    def empty_trash(self) -> int:
        """Delete trashed items for good; return their number."""
        try:
            with self.hold_lock(), self._root(make=True) as root, self._trash(root) as trash:
                return trash.empty()
        except MissingPathError:
            return 0

    def sweep(self) -> None:
        folders = ["", *(item.path for item in self.walk() if item.is_folder)]
        if not self.root.exists():
            return
        with self.hold_lock():
            for path in folders:
                try:
                    with self._folder(tuple(filter(None, path.split("/")))) as folder:
                        folder.sweep()
                except FilesError:
                    continue  # deleted meanwhile

    # ---- how

    @property
    def _exact(self) -> bool:
        return not (self.root.parent / self.root.name.swapcase()).exists()

    def _parts(self, path: str) -> tuple[str, ...]:
        parts = parts_of(path)
        if parts and collision_key(parts[0]) in self._reserved:
            raise ReadOnlyPathError(
                f"{join_parts(parts)}: shows a knowledge base and is not a file"
            )
        return parts

    def _writable(self, path: str) -> tuple[str, ...]:
        try:
            parts = self._parts(path)
        except ReadOnlyPathError as error:
            raise ReadOnlyPathError(
                f"{path}: everything below {parts_of(path)[0]} shows knowledge bases and is "
                "read-only; write elsewhere, and change a knowledge base by its own methods"
            ) from error
        if not parts:
            raise InvalidPathError("this is the root of the files; name a path in it")
        return parts

    def _require_room(self, shown: str, size: int = 0) -> None:
        """Check for space on disk, also for the catalog, so that a change can be indexed."""
        required = _ROOM + _TIMES * size
        place = self.root if self.root.is_dir() else self.root.parent
        try:
            usage = shutil.disk_usage(place)
        except OSError:
            return  # the following write reports the cause
        if usage.total and usage.free < required:
            raise FilesError(
                f"{shown}: the disk has too little room, {usage.free / 1e6:,.1f} MB of "
                f"{required / 1e6:,.1f} that this may take; nothing was changed: free some space"
            )

    def _find(self, folder: Directory, parts: tuple[str, ...]) -> tuple[str, Item]:
        name = self._name(folder, parts)
        about = folder.stat(name)
        refuse_link(about, join_parts(parts))
        if about is None:
            raise _missing(join_parts(parts), None)
        return name, Item.of(join_parts(parts), about)

    def _name(self, folder: Directory, parts: tuple[str, ...]) -> str:
        """Return the last name of a path as spelled on disk."""
        existing, alike = folder.find(parts[-1], exact=self._exact)
        if existing is None:
            raise _missing(join_parts(parts), alike)
        return existing

    @contextmanager
    def hold_lock(self, *, wait: float | None = None) -> Iterator[None]:
        """Exclude other writers; reentrant."""
        if getattr(self._held, "now", False):
            yield
            return
        waited = self.WAIT if wait is None else wait
        with self.locks.hold(self.LOCK, wait=waited, task=f"writing {self.LOCK}", poll=_POLL):
            self._held.now = True
            try:
                yield
            finally:
                self._held.now = False

    @contextmanager
    def _root(self, *, make: bool = False) -> Iterator[Directory]:
        if make:
            try:
                self.root.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise FilesError(f"{self.root}: cannot be made ({error.strerror})") from error
        try:
            folder = Directory.open(self.root)
        except MissingPathError:
            raise MissingPathError("there are no files yet; write one") from None
        with folder:
            yield folder

    @contextmanager
    def _folder(self, parts: tuple[str, ...], *, make: bool = False) -> Iterator[Directory]:
        opened: list[Directory] = []
        created: list[tuple[Directory, str]] = []
        with self._root(make=make) as root:
            current = root
            try:
                for number, name in enumerate(parts, 1):
                    shown = join_parts(parts[:number])
                    existing, alike = current.find(name, exact=self._exact)
                    if existing is None:
                        if not make:
                            raise _missing(shown, alike)
                        if alike is not None:
                            raise PathExistsError(_alike(shown, alike))
                        current.make(name)
                        created.append((current, name))
                    current = current.child(existing or name, shown)
                    opened.append(current)
                yield current
            except BaseException:
                for above, name in reversed(created):
                    above.remove_empty(name)
                raise
            finally:
                for each in opened:
                    each.close()

    @contextmanager
    def _trash(self, root: Directory, *, make: bool = False) -> Iterator[Trash]:
        if make and root.stat(TRASH) is None:
            root.make(TRASH)
        try:
            folder = root.child(TRASH, TRASH)
        except MissingPathError:
            raise MissingPathError("the trash is empty") from None
        with folder:
            yield Trash(folder)


def version(data: bytes | None) -> str:
    """Return the version of a file's content; ``""`` if there is no file."""
    return "" if data is None else blake2b(data, digest_size=8).hexdigest()


def _check_version(shown: str, data: bytes | None, wanted: str) -> None:
    if wanted != (now := version(data)):
        if not wanted:
            raise VersionConflictError(
                f"{shown}: already exists, at version {now}; write with "
                "that version, or choose another path"
            )
        was = "does not exist" if data is None else f"is now at version {now}"
        raise VersionConflictError(
            f"{shown}: {was}, not {wanted}: it was changed meanwhile; read it again, and repeat "
            "your change"
        )


def _folders_first(items: Iterator[Item]) -> list[Item]:
    by_name = sorted(items, key=itemgetter(0))  # three passes are faster than one
    return [*filter(itemgetter(2), by_name), *filterfalse(itemgetter(2), by_name)]


def _missing(shown: str, alike: str | None) -> MissingPathError:
    hint = f"; did you mean {alike!r}?" if alike else ""
    return MissingPathError(f"{shown}: no such file or folder{hint}")


def _alike(shown: str, name: str) -> str:
    if shown.rpartition("/")[2] == name:
        return f"{shown}: already exists"
    return f"{shown}: {name!r} already exists, which some systems treat as the same name"
