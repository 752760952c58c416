"""Locks, vectors and pictures of a backend, and those of a folder.

Locks between processes are files in the workspace's ``locks`` folder, which the operating system
frees when a process ends. `kbkit.stores.postgres_vectors` has locks between machines. Vector stores
pass `VectorStoreConformance` of the tests. Pictures of documents are named by their content.
"""

import os
import re
import sys
import tempfile
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from kbkit.errors import ConflictError, WorkspaceError
from kbkit.models import Image
from kbkit.paths import replacing


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


@contextmanager
def unwritable(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise WorkspaceError(
            f"{folder}: {error.strerror}; name a folder that you may write to"
        ) from error


class FolderLocks(Locks):
    """`Locks` as files in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._turns: dict[str, threading.Lock] = {}
        with unwritable(folder):
            folder.mkdir(parents=True, exist_ok=True)

    @contextmanager
    def hold(self, name: str, *, wait: float, task: str = "", poll: float = 0.05) -> Iterator[None]:
        from filelock import FileLock, Timeout  # no search needs it

        path = self._folder / f"{name}.lock"
        deadline = time.monotonic() + wait
        # threads of this process wake each other, so only one of them polls the file
        turn = self._turns.setdefault(name, threading.Lock())
        acquired = turn.acquire(timeout=wait)
        lock = FileLock(path)
        try:
            try:
                if not acquired:
                    raise Timeout(str(path))
                lock.acquire(timeout=max(0.0, deadline - time.monotonic()), poll_interval=poll)
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
            if acquired:
                turn.release()


@dataclass(frozen=True, slots=True)
class VectorPayload:
    """Text and metadata of a vector, for other readers of the store."""

    text: str
    metadata: Mapping[str, Any]


class VectorStore:
    """Named collections of vectors, by id, searched by cosine.

    It is rebuilt from the catalog if lost. Calls are serialised. This base class stores nothing:
    then searches score all vectors.

    Attributes:
        suffix: End of its collection names, after a dot; others belong to another store.

    Raises:
        StoreUnreachableError: The server is unreachable.
        CollectionError: The caller opens the store again or rebuilds the collection.
    """

    suffix = ""

    def reopen(self) -> None:
        """Show writes of other processes; the caller holds the write lock."""

    def settle(self) -> None:
        """Record that writes are complete, before others open the store."""

    def damage(self) -> str:
        """Return why `reopen` would drop all (``has a file not as it was written``), or ``""``.

        The caller holds the write lock.
        """
        return ""

    def close(self) -> None:
        """Close the store; the next call opens it again."""

    def create(self, name: str, dimensions: int) -> None:
        """Create an empty collection."""

    def drop(self, name: str) -> None:
        """Delete a collection, if it exists."""

    def count(self, name: str) -> int:
        """Return the number of vectors in a collection."""
        return sys.maxsize

    def items(self, name: str) -> Iterator[tuple[list[str], NDArray[np.float32]]]:
        """Yield ids and vectors (not necessarily of the stored length) in batches."""
        return iter(())

    def upsert(
        self,
        name: str,
        ids: Sequence[str],
        vectors: NDArray[np.float32],
        payloads: Sequence[VectorPayload] | None = None,
    ) -> None:
        """Store vectors, replacing those with the same ids."""

    def delete(self, name: str, ids: Sequence[str]) -> None:
        """Delete vectors; unknown ids are ignored."""

    def nearest(self, name: str, query: NDArray[np.float32], k: int) -> list[str]:
        """Return the ids of the at most ``k`` vectors nearest to a unit vector, nearest first."""
        return []


class CollectionError(WorkspaceError):
    """A collection is missing, damaged, or has other dimensions."""


def suffix_of(collection: str) -> str:
    """Return the suffix of a collection name ``NAME.ID.SUFFIX``."""
    return collection.partition(".")[2].partition(".")[2]


_IMAGE_NAME = re.compile(r"[0-9a-f]{32}\.(?:png|jpg|gif|webp|svg)")


class ImageStore(Protocol):
    """Pictures of all knowledge bases of a workspace."""

    def add(self, image: Image) -> None:
        """Store a picture atomically."""

    def names(self) -> set[str]:
        """Return the names of all stored pictures."""

    def now(self) -> float:
        """Return the storage's time, possibly of another machine, in seconds since the epoch."""

    def sweep(self, used: Collection[str], before: float) -> tuple[int, int]:
        """Remove unused pictures stored before a time; return their number and bytes."""

    def read(self, name: str) -> bytes | None:
        """Return the bytes of a picture; ``None`` if it is missing."""


def require_name(name: str) -> str:
    if not _IMAGE_NAME.fullmatch(name):
        raise ValueError(f"{name!r} is not the name of an image")
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
        with replacing(self.folder / image.name) as draft:
            draft.write_bytes(image.data)

    def names(self) -> set[str]:
        return {path.name for path in self.folder.glob("*") if _IMAGE_NAME.fullmatch(path.name)}

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
            if path.name in used or not (drafted or _IMAGE_NAME.fullmatch(path.name)):
                continue
            with suppress(OSError):
                status = path.stat()
                if status.st_mtime < before:
                    path.unlink()
                    count, size = count + (not drafted), size + status.st_size
        return count, size

    def read(self, name: str) -> bytes | None:
        if not _IMAGE_NAME.fullmatch(name):
            return None
        try:
            return (self.folder / name).read_bytes()
        except OSError:
            return None
