"""Store documents together, in one transaction, or not at all."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType

from kbkit.errors import ConflictError
from kbkit.ingest.document_writer import DocumentWriter
from kbkit.ingest.embedding import Destination, Prepared, RunCounters
from kbkit.stores.catalog.database import Transaction
from kbkit.stores.index_writer import IndexWriter

_CHARACTERS = 20_000
"""Characters split together for each process."""


def _nothing(_: Transaction) -> None:
    """Store nothing beside."""


class WholeWriter(DocumentWriter):
    """Cuts and embeds documents as they come, and stores all at the end of the ``with`` block.

    Where that was stopped, or the block failed, nothing is stored, not for a moment.
    """

    keeps_vectors = False

    def __init__(
        self,
        destination: Destination,
        counters: RunCounters,
        follower: IndexWriter,
        *,
        stop: Callable[[], bool],
        first: Callable[[Transaction], object] = _nothing,
    ) -> None:
        super().__init__(destination, counters, follower)
        self._limit = _CHARACTERS * destination.engine.count
        self._stop = stop
        self._first = first
        self._prepared: list[Prepared] = []

    def _keep(self, prepared: Prepared) -> bool:
        self._prepared.append(prepared)
        return True

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is not None:
            return
        if not (self._counters.interrupted or self._stop()):
            self.flush()  # which may take a while
        self._counters.interrupted |= self._stop()
        if not self._counters.interrupted and not self._store(self._prepared, self._first):
            raise ConflictError(
                "another writer changed the same meanwhile; nothing was stored: try again"
            )
