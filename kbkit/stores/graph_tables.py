"""The graphs of knowledge bases that are in memory."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from kbkit.stores.catalog import graph_tables
from kbkit.stores.catalog.database import Database, Transaction
from kbkit.stores.catalog.graph_tables import GraphTable

_LONG = 0.08
"""Seconds of the processor for reading a graph, which a question does not wait for since documents
came: as many as a few searches take."""
_BEHIND = -1
"""Matches no number of changes, so that the next query checks the graph."""
_PAUSE = 199
"""Pause after reading a graph, as a multiple of the time it took: searches beside it take twice as
long."""


@dataclass(slots=True)
class GraphTables:
    """Gives the current graph of a knowledge base.

    It is read on first use and after changes. What people change shows at once; where reading takes
    long, changes of documents are read in the background.
    """

    database: Database
    _held: dict[str, tuple[int, GraphTable]] = field(default_factory=dict)
    _took: dict[str, tuple[float, float]] = field(default_factory=dict)
    _renewing: set[str] = field(default_factory=set)
    _reading: threading.Lock = field(default_factory=threading.Lock)

    def get(self, kb_id: str) -> GraphTable:
        changes = self.database.changes()  # first: what comes meanwhile is looked at next time
        held = self._held.get(kb_id)
        if held is not None and held[0] == changes:
            return held[1]
        with self._reading:
            held = self._held.get(kb_id)
            if held is None or held[0] != changes:
                with self.database.read() as transaction:
                    graph = self._seen(transaction, kb_id, held[1] if held else None)
                held = self._held[kb_id] = changes, graph
            return held[1]

    def is_held(self, kb_id: str) -> bool:
        held = self._held.get(kb_id)
        return held is not None and held[0] == self.database.changes()

    def _seen(self, transaction: Transaction, kb_id: str, graph: GraphTable | None) -> GraphTable:
        if graph is None:
            return self._read(transaction, kb_id)
        if self._took[kb_id][0] > _LONG:
            if not graph_tables.is_edited(graph.signature, graph_tables.edits(transaction)):
                self._renew_behind(kb_id)
                return graph
        elif graph.signature == graph_tables.signature(transaction, kb_id):
            return graph
        return self._read(transaction, kb_id)

    def _read(self, transaction: Transaction, kb_id: str) -> GraphTable:
        began = time.thread_time()
        graph = graph_tables.read(transaction, kb_id)
        self._took[kb_id] = time.thread_time() - began, time.monotonic()
        return graph

    def _renew_behind(self, kb_id: str) -> None:
        if kb_id in self._renewing:
            return
        self._renewing.add(kb_id)
        took, when = self._took[kb_id]
        later = max(0.0, when + _PAUSE * took - time.monotonic())
        timer = threading.Timer(later, self._renew, (kb_id,))
        timer.daemon, timer.name = True, "kbkit-graph"
        timer.start()

    def _renew(self, kb_id: str) -> None:
        changes, graph = _BEHIND, self._held[kb_id][1]
        try:
            since = self.database.changes()
            with contextlib.suppress(Exception):  # it is gone, or the process is about to end
                with self.database.read() as transaction:
                    if graph.signature != graph_tables.signature(transaction, kb_id):
                        graph = self._read(transaction, kb_id)
                changes = since
        finally:
            self._renewing.discard(kb_id)  # first: a question that comes now has it renewed again
            with self._reading:
                self._held[kb_id] = changes, graph

    def naming(self, graph: GraphTable, rows: Collection[int]) -> Mapping[int, Sequence[int]]:
        if not graph.naming.keys() >= set(rows):
            with self.database.read() as transaction:
                graph_tables.name_chunks(transaction, graph, rows)
        return graph.naming
