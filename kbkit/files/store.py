"""The files of a workspace on disk: confined to their folder, written atomically.

One process writes at a time, under a lock; readers see the old or the new state.
"""

from __future__ import annotations

import builtins
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

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
from kbkit.files.directory import MAX_BYTES, TRASH, Directory, Trash
from kbkit.files.folder import Folder, Item, Stored, missing, name_taken, version
from kbkit.files.paths import join_parts, parts_of
from kbkit.models import DeletedFile
from kbkit.stores.backend import Locks

_POLL = 0.005
_ROOM = 8_000_000  # free bytes required before a change; the catalog writes its changes twice
_TIMES = 16  # further bytes required for each byte of a file


class FileStore(Folder):
    """A folder whose files are changed."""

    LOCK = "files"
    """Lock of writers."""
    WAIT = 60.0
    """Seconds to wait for other writers."""

    def __init__(self, root: Path, locks: Locks, reserved: frozenset[str] = frozenset()) -> None:
        super().__init__(root, reserved)
        self.locks = locks
        self._held = threading.local()

    def write(self, path: str, data: bytes, *, if_match: str | None = None) -> Stored:
        """Write a file atomically; create parent folders unless a version is expected."""
        try:
            return self.change(path, lambda before: data, old=bool(if_match), if_match=if_match)
        except MissingPathError:
            raise VersionConflictError(
                f"{path}: does not exist, and was at version {if_match}: it was deleted or moved"
            ) from None

    def change(
        self,
        path: str,
        edit: Callable[[bytes | None], bytes],
        *,
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
                raise missing(shown, alike)
            if existing is not None:
                if folder.is_directory(existing):
                    raise IsFolderError(f"{shown}: is a folder; name a file")
                before, _ = folder.read(existing, shown)
            elif alike is not None:
                raise PathExistsError(name_taken(shown, alike))
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
                    raise PathExistsError(name_taken(join_parts(new), existing or alike or ""))
                folder.move(name, into, new[-1], shown)
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
                        f"{name_taken(join_parts(parts), taken)}; restore it under another path"
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
    def _trash(self, root: Directory, *, make: bool = False) -> Iterator[Trash]:
        if make and root.stat(TRASH) is None:
            root.make(TRASH)
        try:
            folder = root.child(TRASH, TRASH)
        except MissingPathError:
            raise MissingPathError("the trash is empty") from None
        with folder:
            yield Trash(folder)


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
