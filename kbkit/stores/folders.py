"""Folders of files that go with a workspace to another place."""

from __future__ import annotations

import filecmp
import os
import shutil
import tempfile
from pathlib import Path

from kbkit.errors import WorkspaceError


def copy_folder(source: Path, destination: Path) -> None:
    """Copy a folder with all in it; what an earlier copy has left is passed over.

    Raises:
        WorkspaceError: Another file is there, or one cannot be read or written.
    """
    try:
        destination.mkdir(parents=True, exist_ok=True)
        for entry in sorted(source.iterdir()):
            target = destination / entry.name
            if entry.is_dir() and not entry.is_symlink():
                copy_folder(entry, target)
            elif not os.path.lexists(target):
                _copy_file(entry, target)
            elif not _is_same(entry, target):
                raise WorkspaceError(
                    f"{target}: another file than {entry} is there; move it away, and run this "
                    "again"
                )
    except OSError as error:
        raise WorkspaceError(
            f"{error.filename or destination}: {error.strerror}; mend that, and run this again"
        ) from error


def _copy_file(source: Path, target: Path) -> None:
    """Copy a file whole, or not at all."""
    if source.is_symlink():
        target.symlink_to(source.readlink())
        return
    handle, draft = tempfile.mkstemp(dir=target.parent, prefix=".kbkit-", suffix=".part")
    os.close(handle)
    try:
        shutil.copy2(source, draft)
        Path(draft).replace(target)
    finally:
        Path(draft).unlink(missing_ok=True)


def _is_same(one: Path, other: Path) -> bool:
    if one.is_symlink() or other.is_symlink():
        return one.is_symlink() and other.is_symlink() and one.readlink() == other.readlink()
    return other.is_file() and filecmp.cmp(one, other, shallow=False)
