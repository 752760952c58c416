"""Warming up: what makes searches fast is made ready beside them.

The first search of a process answers from what lies on disk, without importing chromadb; who
searches once should not wait for what only the next search needs.
"""

from __future__ import annotations

import contextlib
import threading
from dataclasses import dataclass, field

from kbkit.stores.snapshots import Snapshots
from kbkit.stores.vectors import VectorIndex


@dataclass(slots=True)
class Warmer:
    """Makes snapshots and opens collections in the background, one at a time."""

    snapshots: Snapshots
    vectors: VectorIndex
    _seen: set[str] = field(default_factory=set)
    _thread: threading.Thread | None = None
    _mutex: threading.Lock = field(default_factory=threading.Lock)

    def searched(self, kb_id: str, *, ready: bool) -> None:
        """Note a search; the second one that found something not ready has it made ready."""
        if ready:
            return
        with self._mutex:
            first = kb_id not in self._seen
            self._seen.add(kb_id)
            if first or (self._thread is not None and self._thread.is_alive()):
                return
            # no daemon: importing chromadb must not be cut off by the end of the process
            self._thread = threading.Thread(target=self._warm, args=(kb_id,), name="kbkit-warmer")
            self._thread.start()

    def close(self) -> None:
        """Wait for what is under way."""
        with self._mutex:
            thread = self._thread
        if thread is not None:
            thread.join()

    def _warm(self, kb_id: str) -> None:
        # Whatever is in the way (the knowledge base was deleted, the interpreter is about to end
        # and lets chromadb start nothing any more): searches do without, or say so themselves.
        with contextlib.suppress(Exception):
            self.snapshots.renew(kb_id)
            self.vectors.open(kb_id)
