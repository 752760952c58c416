"""The graphs of knowledge bases in memory, as far as this process has use for them."""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from kbkit.stores.catalog import graph_tables
from kbkit.stores.catalog.database import Database
from kbkit.stores.catalog.graph_tables import GraphTable


@dataclass(slots=True)
class GraphTables:
    """Gives the graph of a knowledge base as the catalog has it now.

    It is read when it is first asked for, and again where it changed; a commit that changed
    something else costs some milliseconds, and a question after no commit nothing.
    """

    database: Database
    _held: dict[str, tuple[int, GraphTable]] = field(default_factory=dict)
    _reading: threading.Lock = field(default_factory=threading.Lock)

    def get(self, kb_id: str) -> GraphTable:
        """The graph of a knowledge base."""
        changes = self.database.changes()  # first: what comes meanwhile is looked at next time
        held = self._held.get(kb_id)
        if held is not None and held[0] == changes:
            return held[1]
        with self._reading:
            held = self._held.get(kb_id)
            if held is None or held[0] != changes:
                with self.database.read() as transaction:
                    found = held[1] if held else None
                    if found is None or found.signature != graph_tables.signature(
                        transaction, kb_id
                    ):
                        found = graph_tables.read(transaction, kb_id)
                held = self._held[kb_id] = changes, found
            return held[1]

    def naming(self, graph: GraphTable, rows: Collection[int]) -> Mapping[int, Sequence[int]]:
        """``chunks.seq`` of the chunks that name some entities of a graph, by row."""
        if not graph.naming.keys() >= set(rows):
            with self.database.read() as transaction:
                graph_tables.name_chunks(transaction, graph, rows)
        return graph.naming
