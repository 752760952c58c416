"""An open directory: operations stay inside, whatever others move or link meanwhile.

On POSIX, names are resolved relative to the open directory without following links. So a folder
cannot be swapped for a link between check and use. Elsewhere each name is checked before use.
"""

from __future__ import annotations

import errno
import json
import os
import secrets
import shutil
import stat as modes
from collections.abc import Iterator
from contextlib import AbstractContextManager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from kbkit import errors
from kbkit.files.paths import collision_key, same_name
from kbkit.models import DeletedFile, FileKind

RELATIVE = (
    {os.open, os.stat, os.mkdir, os.unlink, os.rmdir, os.rename} <= os.supports_dir_fd
    and os.scandir in os.supports_fd
    and hasattr(os, "O_NOFOLLOW")
)
PART = ".kbkit-"
"""Prefix of unfinished files."""
MAX_BYTES = 50_000_000

_DIRECTORY = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0)
# without O_NONBLOCK, opening a pipe would block
_READ = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
_READ |= getattr(os, "O_BINARY", 0)
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
_NEW |= getattr(os, "O_BINARY", 0)


class Directory(AbstractContextManager["Directory"]):
    """A directory, used as a ``with`` block."""

    def __init__(self, path: Path, fd: int | None) -> None:
        self._path = path
        self._fd = fd
        self._dir_fd_option: dict[str, Any] = {} if fd is None else {"dir_fd": fd}

    @classmethod
    def open(cls, path: Path) -> Directory:
        return cls(path, _open(path, path.as_posix(), {}))

    def child(self, name: str, label: str) -> Directory:
        path = self._path / name
        return Directory(path, _open(self._at(name), label, self._dir_fd_option))

    def __exit__(self, *_: object) -> None:
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def _at(self, name: str) -> Path | str:
        return name if self._fd is not None else self._path / name

    def scan(self) -> Iterator[os.DirEntry[str]]:
        """Iterate over entries, including symbolic links, in any order."""
        with os.scandir(self._path if self._fd is None else self._fd) as entries:
            yield from entries

    def names(self) -> list[str]:
        return os.listdir(self._path if self._fd is None else self._fd)

    def stat(self, name: str) -> os.stat_result | None:
        """Return the status of a name without following links; ``None`` if it does not exist."""
        try:
            return os.stat(self._at(name), follow_symlinks=False, **self._dir_fd_option)
        except (FileNotFoundError, NotADirectoryError):
            return None

    def find(self, name: str, *, exact: bool) -> tuple[str | None, str | None]:
        if exact and name.isascii() and self.stat(name) is not None:
            return name, None
        alike, key = None, collision_key(name)
        for existing in self.names():
            if same_name(name, existing):
                return existing, None
            if collision_key(existing) == key:
                alike = existing
        return None, alike

    def read(self, name: str, label: str) -> tuple[bytes, os.stat_result]:
        with self.open_file(name, label) as file:
            status = os.fstat(file.fileno())
            data = file.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise errors.FilesError(f"{label}: is larger than {MAX_BYTES / 1e6:g} MB")
        return data, status

    def open_file(self, name: str, label: str) -> BinaryIO:
        """Open a regular file for reading; raises the errors of `read`."""
        if self._fd is None:
            refuse_link(self.stat(name), label)
        try:
            fd = os.open(self._at(name), _READ, **self._dir_fd_option)
        except FileNotFoundError:
            raise errors.MissingPathError(f"{label}: no such file or folder") from None
        except OSError as error:
            refuse_link(self.stat(name), label)
            if isinstance(error, IsADirectoryError) or self.is_directory(name):
                raise errors.IsFolderError(_is_folder(label)) from None
            raise errors.FilesError(f"{label}: cannot be read ({error.strerror})") from None
        try:
            status = os.fstat(fd)
            if modes.S_ISDIR(status.st_mode):
                raise errors.IsFolderError(_is_folder(label))
            if not modes.S_ISREG(status.st_mode):
                raise errors.FilesError(f"{label}: is not a regular file")
            return os.fdopen(fd, "rb")
        except BaseException:
            os.close(fd)
            raise

    def is_directory(self, name: str) -> bool:
        status = self.stat(name)
        return status is not None and modes.S_ISDIR(status.st_mode)

    def make(self, name: str) -> None:
        try:
            os.mkdir(self._at(name), **self._dir_fd_option)
            self._sync()
        except FileExistsError:
            pass
        except OSError as error:
            raise errors.FilesError(f"{name}: cannot be made ({error.strerror})") from error

    def remove_empty(self, name: str) -> None:
        with suppress(OSError):
            os.rmdir(self._at(name), **self._dir_fd_option)

    def write(self, name: str, data: bytes, *, new: bool, label: str) -> os.stat_result:
        """Write a file atomically and durably: readers see the old or the new content."""
        part = f"{PART}{secrets.token_hex(8)}"
        before = self.stat(name)
        try:
            fd = os.open(self._at(part), _NEW, 0o666, **self._dir_fd_option)
            try:
                with os.fdopen(fd, "wb") as file:
                    file.write(data)
                    file.flush()
                    if before is not None and hasattr(os, "fchmod"):
                        os.fchmod(fd, modes.S_IMODE(before.st_mode))
                    os.fsync(fd)
                    status = os.fstat(fd)
                if new:
                    self._link(part, name, label)
                else:
                    self._rename(part, self, name)
            except BaseException:
                with suppress(OSError):
                    os.unlink(self._at(part), **self._dir_fd_option)
                raise
            self._sync()
        except OSError as error:
            raise errors.FilesError(f"{label}: cannot be written ({error.strerror})") from error
        return status

    def move(self, name: str, target: Directory, new_name: str, label: str) -> None:
        """Move a file or directory; the new name must be free."""
        try:
            self._rename(name, target, new_name)
            self._sync()
            target._sync()
        except OSError as error:
            raise errors.FilesError(f"{label}: cannot be moved ({error.strerror})") from error

    def remove(self, name: str) -> None:
        if not self.is_directory(name):
            with suppress(FileNotFoundError):
                os.unlink(self._at(name), **self._dir_fd_option)
        elif self._fd is not None:
            shutil.rmtree(name, dir_fd=self._fd)
        else:
            shutil.rmtree(self._path / name)

    def sweep(self) -> None:
        """Remove unfinished files of a killed process; the caller holds the lock."""
        for name in self.names():
            if name.startswith(PART):
                with suppress(OSError):
                    self.remove(name)

    def _rename(self, name: str, target: Directory, new_name: str) -> None:
        if self._fd is None or target._fd is None:
            (self._path / name).replace(target._path / new_name)
        else:
            os.replace(name, new_name, src_dir_fd=self._fd, dst_dir_fd=target._fd)

    def _link(self, part: str, name: str, label: str) -> None:
        """Give a file its name, unless it is taken."""
        try:
            if self._fd is None:
                (self._path / part).rename(self._path / name)  # fails on Windows if taken
                return
            os.link(part, name, src_dir_fd=self._fd, dst_dir_fd=self._fd, follow_symlinks=False)
        except FileExistsError:
            raise errors.PathExistsError(f"{label}: already exists") from None
        except OSError as error:
            if error.errno not in (errno.EPERM, errno.ENOTSUP, errno.EMLINK, errno.ENOSYS):
                raise
            self._rename(part, self, name)  # a file system without links
            return
        os.unlink(part, dir_fd=self._fd)

    def _sync(self) -> None:
        if self._fd is not None:
            with suppress(OSError):
                os.fsync(self._fd)


def refuse_link(status: os.stat_result | None, label: str) -> None:
    if status is None:
        return
    # junctions of Windows are not symbolic links, but lead elsewhere, too
    tag, junction = "st_reparse_tag", getattr(modes, "IO_REPARSE_TAG_MOUNT_POINT", -1)
    if modes.S_ISLNK(status.st_mode) or getattr(status, tag, 0) == junction:
        raise errors.PathOutsideError(f"{label}: is a link, and links are not followed")


def _is_folder(label: str) -> str:
    return f"{label}: is a folder; list it, or name a file in it"


def _open(path: Path | str, label: str, options: dict[str, Any]) -> int | None:
    try:
        if RELATIVE:
            return os.open(path, _DIRECTORY, **options)
        status = os.stat(path, follow_symlinks=False)
    except FileNotFoundError:
        raise errors.MissingPathError(f"{label}: no such file or folder") from None
    except OSError as error:
        with suppress(OSError):
            refuse_link(os.stat(path, follow_symlinks=False, **options), label)
        if error.errno == errno.ENOTDIR:
            raise errors.NotFolderError(f"{label}: is a file, not a folder") from None
        raise errors.FilesError(f"{label}: cannot be opened ({error.strerror})") from None
    refuse_link(status, label)
    if not modes.S_ISDIR(status.st_mode):
        raise errors.NotFolderError(f"{label}: is a file, not a folder")
    return None


TRASH = ".trash"
"""Name of the trash; the leading dot hides it from tools, and git ignores it."""
_IGNORE = ".gitignore"
_ABOUT = "about.json"
_ITEM = "item"


class Kept(NamedTuple):
    """An item in the trash.

    Attributes:
        created: Creation times of its files in nanoseconds, by path within it (``""`` for a single
            file).
    """

    deleted: DeletedFile
    created: dict[str, int]


class Trash:
    """Deleted items, each in a folder with a note of its origin."""

    def __init__(self, folder: Directory) -> None:
        self._folder = folder

    def put(
        self, source: Directory, name: str, path: str, kind: FileKind, created: dict[str, int]
    ) -> DeletedFile:
        if self._folder.stat(_IGNORE) is None:
            self._folder.write(_IGNORE, b"*\n", new=False, label=f"{TRASH}/{_IGNORE}")
        now = datetime.now(UTC)
        id_ = f"{now:%Y%m%dT%H%M%S%f}-{secrets.token_hex(4)}"
        self._folder.make(id_)
        note = {"path": path, "kind": kind.value, "deleted_at": now.isoformat(), "created": created}
        try:
            with self._folder.child(id_, id_) as item_folder:
                text = json.dumps(note, ensure_ascii=False)
                item_folder.write(_ABOUT, text.encode(), new=True, label=f"{TRASH}/{id_}")
                source.move(name, item_folder, _ITEM, path)
        except BaseException:
            self._folder.remove(id_)
            raise
        return DeletedFile(id_, path, kind, now)

    def list_items(self) -> list[Kept]:
        """List items, the last first; incomplete ones are left out."""
        items = []
        for name in sorted(self._folder.names(), reverse=True):
            if name.startswith("."):
                continue
            try:
                with self._folder.child(name, name) as item_folder:
                    if item_folder.stat(_ITEM) is None:
                        continue
                    note = json.loads(item_folder.read(_ABOUT, name)[0])
                time = datetime.fromisoformat(note["deleted_at"])
                deleted = DeletedFile(name, str(note["path"]), FileKind(note["kind"]), time)
                created = {str(key): int(at) for key, at in note["created"].items()}
            except (errors.FilesError, ValueError, KeyError, TypeError, AttributeError):
                continue  # not written by this module
            items.append(Kept(deleted, created))
        return items

    def find(self, path: str) -> Kept:
        """Find the item last deleted at a path, or of an id."""
        items = self.list_items()
        for item in items:
            if path in (item.deleted.path, item.deleted.id):
                return item
        names = ", ".join(dict.fromkeys(item.deleted.path for item in items[:5]))
        raise errors.MissingPathError(
            f"{path}: is not in the trash, which has {names}" if names else "the trash is empty"
        )

    def take(self, id_: str, target: Directory, name: str) -> None:
        with self._folder.child(id_, id_) as item_folder:
            item_folder.move(_ITEM, target, name, name)
        self._folder.remove(id_)

    def empty(self) -> int:
        """Delete all items for good; return their number."""
        count = len(self.list_items())
        for name in self._folder.names():
            if name != _IGNORE:
                self._folder.remove(name)
        return count
