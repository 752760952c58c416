"""The pictures of documents: files of a folder, named after what they hold."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

from kbkit.models import Image

_NAME = re.compile(r"[0-9a-f]{32}\.(?:png|jpg|gif|webp|svg)")


class ImageStore:
    """Pictures of all knowledge bases of a workspace.

    Args:
        folder: Where they lie; made when there is one.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def add(self, image: Image) -> None:
        """Keep a picture, whole or not at all.

        Raises:
            OSError: It cannot be written.
            ValueError: Its name is none that pictures have.
        """
        if not _NAME.fullmatch(image.name):
            raise ValueError(f"{image.name!r} names no picture")
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

    def sweep(self, used: Collection[str], before: float) -> tuple[int, int]:
        """Remove what no document shows.

        Args:
            used: Names of pictures that stay.
            before: Seconds since the epoch; what was added after that stays, since its document may
                be about to be stored.

        Returns:
            Number of pictures, and of bytes.
        """
        count = size = 0
        for path in self.folder.glob("*"):
            drafted = path.suffix == ".part"  # of a process that was killed
            if path.name in used or not (drafted or _NAME.fullmatch(path.name)):
                continue
            with suppress(OSError):
                found = path.stat()
                if found.st_mtime < before:
                    path.unlink()
                    count, size = count + (not drafted), size + found.st_size
        return count, size

    def read(self, name: str) -> bytes | None:
        """A picture by its name, if it is there."""
        if not _NAME.fullmatch(name):
            return None
        try:
            return (self.folder / name).read_bytes()
        except OSError:
            return None
