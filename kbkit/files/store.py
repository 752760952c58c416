"""The files of a workspace on disk: confined to their folder, written atomically.

One process writes at a time, under a lock; readers see the old or the new state.
"""

import builtins
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from kbkit import errors
from kbkit.files.directory import MAX_BYTES, TRASH, Trash
from kbkit.files.folder import Folder, Item, Stored, missing, name_taken, version
from kbkit.files.memory_tool import decode, encode
from kbkit.files.paths import join_parts, parts_of
from kbkit.models import DeletedFile
from kbkit.models.values import check_match
from kbkit.stores.backend import Locks

_POLL = 0.005
_ROOM = 8_000_000  # free bytes required before a change; the catalog writes its changes twice
_ROOM_FACTOR = 16  # further bytes required for each byte of a file


class FileStore(Folder):
    """A folder whose files are changed."""

    LOCK = "files"
    """Lock of writers."""
    WAIT = 60.0
    """Seconds to wait for other writers."""

    def __init__(self, root: Path, locks: Locks, reserved: frozenset[str] = frozenset()) -> None:
        super().__init__(root, reserved)
        self.locks = locks
        self._lock_state = threading.local()

    def write(self, path: str, data: bytes, *, if_match: str | None = None) -> Stored:
        """Write a file atomically; create parent folders unless a version is expected."""
        try:
            return self.change(path, lambda before: data, old=bool(if_match), if_match=if_match)
        except errors.MissingPathError:
            raise errors.VersionConflictError(
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
        name = join_parts(parts)
        with self.hold_lock(), self._folder(parts[:-1], make=not old) as folder:
            existing, alike = folder.find(parts[-1], exact=self._exact)
            before = None
            if existing is None and old:
                raise missing(name, alike)
            if existing is not None:
                before, _ = folder.read(existing, name)
            elif alike is not None:
                raise errors.PathExistsError(name_taken(name, alike))
            if if_match is not None:
                check_version(name, version(before), if_match)
            data = edit(before)
            if len(data) > MAX_BYTES:
                raise errors.FilesError(f"{name}: a file may have {MAX_BYTES / 1e6:g} MB at most")
            self._require_room(name, len(data))
            status = folder.write(existing or parts[-1], data, new=existing is None, label=name)
        return Stored(name, data, status)

    def read_text(self, path: str) -> str:
        stored = self.read(path)
        return decode(stored.path, stored.data)

    def append(self, path: str, text: str, if_match: str | None) -> Stored:
        """Append text to a file on a new line; create the file if missing."""
        added = encode(path, text)

        def edit(before: bytes | None) -> bytes:
            if not before or before.endswith(b"\n"):
                return (before or b"") + added
            return before + (b"\r\n" if b"\r\n" in before else b"\n") + added

        return self.change(path, edit, if_match=if_match)

    def edit(self, path: str, edit: Callable[[str], str], if_match: str | None) -> Stored:
        def change(before: bytes | None) -> bytes:
            return encode(path, edit(decode(path, before or b"")))

        return self.change(path, change, old=True, if_match=if_match)

    def mkdir(self, path: str) -> Item:
        """Create a folder and its parents; an existing one stays."""
        parts = self._writable(path)
        try:
            with self.hold_lock(), self._folder(parts, make=True):
                pass
        except errors.NotFolderError as error:
            raise errors.PathExistsError(str(error)) from None
        return self.stat(path)

    def move(self, source: str, target: str) -> Item:
        """Move a file or folder to a free path; creates parent folders."""
        src, dst = self._writable(source), self._writable(target)
        label = f"{join_parts(src)} -> {join_parts(dst)}"
        if dst[: len(src)] == src and dst != src:
            raise errors.InvalidPathError(f"{label}: a folder cannot go into itself")
        self._require_room(label)
        with self.hold_lock(), self._folder(src[:-1]) as folder:
            name, _ = self._find(folder, src)
            with self._folder(dst[:-1], make=True) as into:
                existing, alike = into.find(dst[-1], exact=self._exact)
                is_same = src[:-1] == dst[:-1] and name in (existing, alike)
                if (existing or alike) is not None and not is_same:
                    raise errors.PathExistsError(
                        name_taken(join_parts(dst), existing or alike or "")
                    )
                folder.move(name, into, dst[-1], label)
        return self.stat(target)

    def delete(
        self, path: str, created: Callable[[str], dict[str, int]], *, if_match: str | None = None
    ) -> DeletedFile:
        parts = self._writable(path)
        with self.hold_lock(), self._folder(parts[:-1]) as folder:
            name, item = self._find(folder, parts)
            if if_match is not None and not item.is_folder:
                check_version(item.path, version(folder.read(name, item.path)[0]), if_match)
            self._require_room(item.path)
            with self._trash() as trash:
                return trash.put(folder, name, item.path, item.kind, created(item.path))

    def undelete(self, path: str, to: str = "") -> tuple[Item, dict[str, int]]:
        """Restore what was last deleted at a path."""
        with self.hold_lock(), self._trash() as trash:
            item = trash.find(join_parts(parts_of(path)))
            parts = self._writable(to or item.deleted.path)
            self._require_room(join_parts(parts))
            with self._folder(parts[:-1], make=True) as folder:
                existing, alike = folder.find(parts[-1], exact=self._exact)
                if (conflict := existing or alike) is not None:
                    raise errors.PathExistsError(
                        f"{name_taken(join_parts(parts), conflict)}; restore it under another path"
                    )
                trash.take(item.deleted.id, folder, parts[-1])
        return self.stat(join_parts(parts)), item.created

    def trash(self) -> builtins.list[DeletedFile]:
        with self.hold_lock(), self._trash() as trash:
            return [item.deleted for item in trash.list_items()]

    def empty_trash(self) -> int:
        """Delete trashed items for good; return their number."""
        with self.hold_lock(), self._trash() as trash:
            return trash.empty()

    def sweep(self) -> None:
        folders = ["", *(item.path for item in self.walk() if item.is_folder)]
        if not self.root.exists():
            return
        with self.hold_lock():
            for path in folders:
                # it may be deleted meanwhile
                with suppress(errors.FilesError), self._folder(parts_of(path)) as folder:
                    folder.sweep()

    def _writable(self, path: str) -> tuple[str, ...]:
        parts = self._parts(path)
        if not parts:
            raise errors.InvalidPathError("this is the root of the files; name a path in it")
        return parts

    def _require_room(self, label: str, size: int = 0) -> None:
        """Check for space on disk, also for the catalog, so that a change can be indexed."""
        required = _ROOM + _ROOM_FACTOR * size
        folder = self.root if self.root.is_dir() else self.root.parent
        try:
            usage = shutil.disk_usage(folder)
        except OSError:
            return  # the following write reports the cause
        if usage.total and usage.free < required:
            raise errors.FilesError(
                f"{label}: the disk has too little room, {usage.free / 1e6:,.1f} MB of "
                f"{required / 1e6:,.1f} that this may take; nothing was changed: free some space"
            )

    @contextmanager
    def hold_lock(self, *, wait: float | None = None) -> Iterator[None]:
        """Exclude other writers; reentrant."""
        if getattr(self._lock_state, "held", False):
            yield
            return
        timeout = self.WAIT if wait is None else wait
        with self.locks.hold(self.LOCK, wait=timeout, task=f"writing {self.LOCK}", poll=_POLL):
            self._lock_state.held = True
            try:
                yield
            finally:
                self._lock_state.held = False

    @contextmanager
    def _trash(self) -> Iterator[Trash]:
        with self._root(make=True) as root:
            root.make(TRASH)
            with root.child(TRASH, TRASH) as folder:
                yield Trash(folder)


def check_version(path: str, current: str, expected: str | None) -> None:
    """Check a version, unless any will do; ``""`` is that of nothing."""
    if expected == "" and current:
        raise errors.VersionConflictError(
            f"{path}: already exists, at version {current}; write with that version, or choose "
            "another path"
        )
    check_match(path, expected, current)
