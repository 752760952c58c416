"""Looks whether other programs changed files, by what the system says of them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from threading import Lock

from kbkit.files.paths import parts_of

_MOST = 10_000
"""Places that are remembered."""


class DiskLook:
    """Remembers when places were changed; may be used by several threads."""

    def __init__(self, root: Path) -> None:
        """Remember nothing yet.

        Args:
            root: Folder that paths start from.
        """
        self._root = root
        self._known: dict[str, tuple[int, int]] = {}
        self._lock = Lock()

    def changed(self, paths: Iterable[str]) -> bool:
        """Whether one of some places is another one than when it was asked about before.

        Raises:
            InvalidPathError: One of them is no path.
        """
        found = False
        for path in paths:
            now = self._stat(self._root.joinpath(*parts_of(path)))
            with self._lock:
                if len(self._known) >= _MOST:
                    self._known.clear()
                before = self._known.setdefault(path, now)
                self._known[path] = now
            found = found or before != now
        return found

    @staticmethod
    def _stat(place: Path) -> tuple[int, int]:
        try:
            about = place.lstat()
        except (OSError, ValueError):
            return 0, 0
        return about.st_mtime_ns, about.st_size
