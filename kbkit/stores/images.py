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
        """Keep a picture, whole or not at all."""

    def names(self) -> set[str]:
        """Names of all that are kept."""

    def now(self) -> float:
        """Time of the clock that dates pictures, in seconds since the epoch.

        It may be another machine's.
        """

    def sweep(self, used: Collection[str], before: float) -> tuple[int, int]:
        """Remove pictures that no document uses."""

    def read(self, name: str) -> bytes | None:
        """A picture by its name, if it is there."""


def require_name(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise ValueError(f"{name!r} names no picture")
    return name


def take_images(images: ImageStore, others: ImageStore) -> int:
    """Copy the pictures of another store; return their number."""
    came = 0
    for name in sorted(others.names() - images.names()):
        data = others.read(name)
        if data is not None:
            images.add(Image(name, data))
            came += 1
    return came


class FolderImages:
    """An `ImageStore` of files."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def add(self, image: Image) -> None:
        require_name(image.name)
        if (self.folder / image.name).exists():
            with suppress(FileNotFoundError):  # or it is swept away at this instant
                os.utime(self.folder / image.name)  # so that `sweep` knows that it is wanted anew
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
        """Time of the folder's file system; 0 if there is no folder."""
        if not self.folder.is_dir():
            return 0.0
        with tempfile.TemporaryFile(dir=self.folder) as probe:
            return os.fstat(probe.fileno()).st_mtime

    def sweep(self, used: Collection[str], before: float) -> tuple[int, int]:
        count = size = 0
        for path in self.folder.glob("*"):
            drafted = path.suffix == ".part"  # of a process that was killed
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
