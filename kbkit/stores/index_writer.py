"""Update the vector index in a child process while documents are stored.

Chroma holds the GIL while it adds vectors, so a thread would not help. The child is
``python -m kbkit.stores.index_writer ADDRESS KB_ID`` and ends with its parent.
"""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
from collections.abc import Callable
from typing import Self

from kbkit.runtime.processes import run_module
from kbkit.stores.stores import StoresAddress

_MIN_CHUNKS = 2_000
"""New chunks for which a child is started, which takes about a second."""
_STEP = 1_000
"""Chunks between two messages to the child."""


class IndexWriter:
    """Updates the index of a knowledge base while a block runs.

    The caller applies the rest, and everything if there was little to do or the child failed.
    """

    def __init__(
        self, meanwhile: Callable[[], object], address: StoresAddress | None, kb_id: str
    ) -> None:
        self._meanwhile = meanwhile
        self._arguments = None if address is None else (address.to_json(), kb_id)
        self._stored = 0
        self._reported = _MIN_CHUNKS - _STEP
        self._child: subprocess.Popen[bytes] | None = None

    def stored(self, chunks: int) -> None:
        self._stored += chunks
        if self._arguments is None or self._stored - self._reported < _STEP:
            return
        self._reported = self._stored
        with contextlib.suppress(OSError):  # the caller then applies all changes
            if self._child is None:
                self._child = run_module("kbkit.stores.index_writer", *self._arguments)
            assert self._child.stdin is not None
            self._child.stdin.write(b"\n")
            self._child.stdin.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
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


def main(address: str, kb_id: str) -> None:
    """Update the index for each line of input, and once at the end."""
    # Ctrl-C reaches the whole process group; the parent handles it
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    stores = StoresAddress.from_json(address).open()
    for _ in sys.stdin.buffer:
        stores.vectors.apply(kb_id)
    stores.vectors.apply(kb_id)
    stores.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
