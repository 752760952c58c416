"""Locks between processes: files in the workspace's ``locks`` folder.

The operating system frees a lock when its process ends. For locks between machines see
`kbkit.stores.postgres.images`.
"""

from __future__ import annotations

import contextlib
import json
import os
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from pathlib import Path

from filelock import FileLock, Timeout

from kbkit.errors import ConflictError, WorkspaceError


class Locks(ABC):
    """The locks of one workspace, by name."""

    @abstractmethod
    def hold(
        self, name: str, *, wait: float, task: str = "", poll: float = 0.05
    ) -> AbstractContextManager[None]:
        """Hold a lock (not reentrant) during a block.

        Raises:
            ConflictError: It was not free within `wait` seconds; `task` is in the message.
        """

    def is_held(self, name: str) -> bool:
        try:
            with self.hold(name, wait=0):
                return False
        except ConflictError:
            return True


class FolderLocks(Locks):
    """`Locks` as files in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._turns: dict[str, threading.Lock] = {}
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise WorkspaceError(
                f"{folder}: {error.strerror}; name a folder that you may write to"
            ) from error

    @contextmanager
    def hold(self, name: str, *, wait: float, task: str = "", poll: float = 0.05) -> Iterator[None]:
        path = self._folder / f"{name}.lock"
        until = time.monotonic() + wait
        # threads of this process wake each other, so only one of them polls the file
        turn = self._turns.setdefault(name, threading.Lock())
        taken = turn.acquire(timeout=wait)
        lock = FileLock(path)
        try:
            try:
                if not taken:
                    raise Timeout(str(path))
                lock.acquire(timeout=max(0.0, until - time.monotonic()), poll_interval=poll)
            except Timeout:
                raise ConflictError(
                    f"another process is {task or f'holding {path.name}'}; wait for it to end, "
                    "and run this again"
                ) from None
            except OSError as error:
                raise WorkspaceError(
                    f"{path}: {error.strerror or os.strerror(error.errno or 0)}; kbkit needs to "
                    "write to its workspace: make the folder writable, or copy it"
                ) from error
            try:
                yield
            finally:
                lock.release()
        finally:
            if taken:
                turn.release()


_NAME = "mended.jsonl"
_MAX_LENGTH = 100_000
"""Bytes after which the file starts over."""


def note(folder: Path, part: str, problem: str) -> None:
    """Record a repair, unless the folder is read-only."""
    path = folder / _NAME
    text = json.dumps([f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC", part, problem]) + "\n"
    with contextlib.suppress(OSError):
        mode = "a" if path.exists() and path.stat().st_size < _MAX_LENGTH else "w"
        with path.open(mode, encoding="utf-8") as file:
            file.write(text)


def notes(folder: Path) -> list[tuple[str, str]]:
    """Return each recorded part and problem once, with the last time."""
    last: dict[tuple[str, str], str] = {}
    with contextlib.suppress(OSError):
        for line in (folder / _NAME).read_bytes().splitlines():
            with contextlib.suppress(ValueError, TypeError, RecursionError):
                at, part, problem = map(str, json.loads(line))
                last[part, problem] = at
    return [(part, f"{problem} (found {at})") for (part, problem), at in last.items()]


def forget(folder: Path) -> None:
    with contextlib.suppress(OSError):
        (folder / _NAME).unlink(missing_ok=True)
