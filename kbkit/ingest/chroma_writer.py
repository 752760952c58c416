"""Brings Chroma level in a process of its own while documents are cut, embedded and stored.

Chroma holds the interpreter's lock while it adds vectors, so a thread would only get in the way.
The child opens the catalog as any other process does, and ends when its parent does.
"""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

from kbkit.stores.database import Database
from kbkit.stores.locks import FolderLocks
from kbkit.stores.vectors import VectorIndex

_WORTH = 2_000
"""New chunks after which a child is worth its start, which takes about a second."""
_STEP = 1_000
"""New chunks after which it is told."""


class Follower:
    """Has the index of a knowledge base follow its catalog; used as a ``with`` block.

    At the end of the block the index is level, unless there was little to do or the child failed:
    the caller applies what is left.

    Args:
        meanwhile: What else there is to do, while the child does the rest at the end of the block.
        database: The catalog.
        vectors: Its indexes.
        locks: The workspace's.
        kb_id: The knowledge base.
    """

    def __init__(
        self,
        meanwhile: Callable[[], object],
        database: Database,
        vectors: VectorIndex,
        locks: FolderLocks,
        kb_id: str,
    ) -> None:
        self._meanwhile = meanwhile
        self._arguments = [str(database.path), str(locks.folder), str(vectors.folder), kb_id]
        self._stored = 0
        self._told = _WORTH - _STEP
        self._child: subprocess.Popen[bytes] | None = None

    def stored(self, chunks: int) -> None:
        """Hear of new chunks."""
        self._stored += chunks
        if self._stored - self._told < _STEP:
            return
        self._told = self._stored
        with contextlib.suppress(OSError):  # then the caller does it all, at the end
            if self._child is None:
                from kbkit.processes import python  # loads lxml, which no search needs

                code = f"from kbkit.ingest.chroma_writer import main; main({self._arguments!r})"
                self._child = python(code)
            assert self._child.stdin is not None
            self._child.stdin.write(b"\n")
            self._child.stdin.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._child is not None:
            for stream in (self._child.stdin, self._child.stdout):
                assert stream is not None
                with contextlib.suppress(OSError):
                    stream.close()
            try:
                if kind is None:
                    self._meanwhile()
            finally:
                self._child.wait()


def main(arguments: list[str]) -> None:
    """Apply what comes in to the index whenever the parent says so, and once at the end.

    Args:
        arguments: Paths of the catalog, the locks and the indexes, and the knowledge base's id.
    """
    # Ctrl-C reaches the whole group of processes; the parent decides what it means
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    catalog, folder, indexes, kb_id = arguments
    locks = FolderLocks(Path(folder))
    database = Database(Path(catalog), locks)
    vectors = VectorIndex(Path(indexes), database, locks)
    for _ in sys.stdin.buffer:
        vectors.apply(kb_id)
    vectors.apply(kb_id)
    vectors.close()
    database.close()
