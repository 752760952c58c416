"""The pictures of documents: files of a folder, named after what they hold."""

from __future__ import annotations

import os
import re
import tempfile
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
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        handle, draft = tempfile.mkstemp(dir=self.folder, suffix=".part")
        with os.fdopen(handle, "wb") as stream:
            stream.write(image.data)
        Path(draft).chmod(0o644)
        Path(draft).replace(self.folder / image.name)

    def read(self, name: str) -> bytes | None:
        """A picture by its name, if it is there."""
        if not _NAME.fullmatch(name):
            return None
        try:
            return (self.folder / name).read_bytes()
        except OSError:
            return None
