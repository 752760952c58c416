"""Warming up: what makes searches fast is made ready beside them.

The first search of a process answers from what lies on disk, without importing chromadb; who
searches once should not wait for what only the next search needs.
"""

from __future__ import annotations

import contextlib
import threading
import time
from dataclasses import dataclass, field

from kbkit.stores.snapshots.snapshots import Snapshots
from kbkit.stores.vector_index import VectorIndex

_WORN_PAUSE = 20
"""Seconds until the next one is begun where the last one still answers quickly."""
_PAUSE = 9
"""How many times as long as making a snapshot took, until the next one is begun."""


@dataclass(slots=True)
class Warmer:
    """Makes snapshots and opens collections in the background, one at a time.

    While documents keep coming in, a snapshot is old as soon as it is made; making the next one
    waits, so that it takes no more than a tenth of the time.
    """

    snapshots: Snapshots
    vectors: VectorIndex
    _seen: set[str] = field(default_factory=set)
    _thread: threading.Thread | None = None
    _again: float = 0.0
    _mutex: threading.Lock = field(default_factory=threading.Lock)

    def searched(self, kb_id: str, *, ready: bool, worn: bool = False) -> None:
        """Note a search; the second one that found something not ready has it made ready.

        The first one does where the snapshot on disk cannot be used, as after kbkit was upgraded:
        else each process that searches once would do without.

        Args:
            kb_id: Id of the knowledge base.
            ready: Whether nothing would have made it faster.
            worn: Whether it was answered by a snapshot in many segments.
        """
        if ready and not worn:
            return
        useless = self.snapshots.is_useless(kb_id)
        with self._mutex:
            first = kb_id not in self._seen
            self._seen.add(kb_id)
            busy = self._thread is not None and self._thread.is_alive()
            wait = self._again + (_WORN_PAUSE if ready else 0)
            if (first and not useless) or busy or time.monotonic() < wait:
                return
            # no daemon: importing chromadb must not be cut off by the end of the process
            self._thread = threading.Thread(
                target=self._warm, args=(kb_id, not first), name="kbkit-warmer"
            )
            self._thread.start()

    def close(self) -> None:
        """Wait for what is under way."""
        with self._mutex:
            thread = self._thread
        if thread is not None:
            thread.join()

    def _warm(self, kb_id: str, opening: bool) -> None:
        # Whatever is in the way (the knowledge base was deleted, the interpreter is about to end
        # and lets chromadb start nothing any more): searches do without, or say so themselves.
        with contextlib.suppress(Exception):
            began = time.monotonic()
            self.snapshots.save(kb_id, merging=True)
            self._again = time.monotonic() + _PAUSE * (time.monotonic() - began)
            if opening and not self.snapshots.is_coded(kb_id):
                self.vectors.open(kb_id)
