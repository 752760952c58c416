"""Pictures of documents, named by their content."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from kbkit.models import Image

_NAME = re.compile(r"[0-9a-f]{32}\.(?:png|jpg|gif|webp|svg)")


class ImageStore(Protocol):
    """Pictures of all knowledge bases of a workspace."""

    def add(self, image: Image) -> None:
        """Store a picture atomically."""

    def names(self) -> set[str]:
        """Return the names of all stored pictures."""

    def now(self) -> float:
        """Return the storage's time, perhaps of another machine, in seconds since the epoch."""

    def sweep(self, used: Collection[str], before: float) -> tuple[int, int]:
        """Remove unused pictures stored before a time; return their number and bytes."""

    def read(self, name: str) -> bytes | None:
        """Return the bytes of a picture; ``None`` if it is missing."""


def require_name(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise ValueError(f"{name!r} names no picture")
    return name


def take_images(images: ImageStore, others: ImageStore) -> int:
    """Copy missing pictures from another store; return their number."""
    copied = 0
    for name in sorted(others.names() - images.names()):
        data = others.read(name)
        if data is not None:
            images.add(Image(name, data))
            copied += 1
    return copied


class FolderImages:
    """An `ImageStore` of files."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def add(self, image: Image) -> None:
        require_name(image.name)
        if (self.folder / image.name).exists():
            with suppress(FileNotFoundError):  # `sweep` just removed it
                os.utime(self.folder / image.name)  # `sweep` keeps recent pictures
                return
        self.folder.mkdir(parents=True, exist_ok=True)
        handle, draft = tempfile.mkstemp(dir=self.folder, suffix=".part")
        with os.fdopen(handle, "wb") as stream:
            stream.write(image.data)
        Path(draft).chmod(0o644)
        Path(draft).replace(self.folder / image.name)

    def names(self) -> set[str]:
        return {path.name for path in self.folder.glob("*") if _NAME.fullmatch(path.name)}

    def now(self) -> float:
        """Return the time of the folder's file system; 0 without a folder."""
        if not self.folder.is_dir():
            return 0.0
        with tempfile.TemporaryFile(dir=self.folder) as probe:
            return os.fstat(probe.fileno()).st_mtime

    def sweep(self, used: Collection[str], before: float) -> tuple[int, int]:
        count = size = 0
        for path in self.folder.glob("*"):
            drafted = path.suffix == ".part"  # left by a killed process
            if path.name in used or not (drafted or _NAME.fullmatch(path.name)):
                continue
            with suppress(OSError):
                status = path.stat()
                if status.st_mtime < before:
                    path.unlink()
                    count, size = count + (not drafted), size + status.st_size
        return count, size

    def read(self, name: str) -> bytes | None:
        if not _NAME.fullmatch(name):
            return None
        try:
            return (self.folder / name).read_bytes()
        except OSError:
            return None
