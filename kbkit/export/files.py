"""Files that an export writes: whole or not at all, and one error for a folder that takes none."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kbkit.errors import ExportError


def write_file(path: Path, data: bytes) -> None:
    """Write a file so that readers see the old one or the new one, never a half.

    Raises:
        OSError: It cannot be written.
    """
    draft = path.with_name(f".{path.name[:40]}.part")
    try:
        draft.write_bytes(data)
    except FileNotFoundError:  # of a new folder, which few are
        path.parent.mkdir(parents=True, exist_ok=True)
        draft.write_bytes(data)
    draft.replace(path)


@contextmanager
def writing(folder: Path, content: str) -> Iterator[None]:
    """Around what writes into a folder.

    Args:
        folder: The folder.
        content: What is written, for the message.

    Raises:
        ExportError: It cannot be written.
    """
    try:
        yield
    except OSError as error:
        raise ExportError(
            f"{folder}: cannot write {content} ({error.strerror or error}); "
            "free the place or choose another folder"
        ) from error
