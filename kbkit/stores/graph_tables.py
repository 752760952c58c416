"""The graphs of knowledge bases in memory, as far as this process has use for them."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from kbkit.stores.catalog import graph_tables
from kbkit.stores.catalog.database import Database, Transaction
from kbkit.stores.catalog.graph_tables import GraphTable, Signature, edits

_LONG = 0.3
"""Seconds of reading a graph that a question does not wait for since documents came."""
_BEHIND = -1
"""Stands for no number of changes."""
_PAUSE = 9
"""How many times as long as reading a graph took, until it is read again for that."""


@dataclass(slots=True)
class GraphTables:
    """Gives the graph of a knowledge base as the catalog has it now.

    It is read when it is first asked for, and again where it changed; a commit that changed
    something else costs some milliseconds, and a question after no commit nothing. Where reading
    takes long, what documents bring is read behind the questions, in a tenth of the time; what
    people change is there at once.
    """

    database: Database
    _held: dict[str, tuple[int, GraphTable]] = field(default_factory=dict)
    _took: dict[str, tuple[float, float]] = field(default_factory=dict)
    _renewing: set[str] = field(default_factory=set)
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
                    now = graph_tables.signature(transaction, kb_id)
                    if found is None or found.signature != now:
                        if found is not None and self._is_enough(kb_id, found.signature, now):
                            self._renew_behind(kb_id)
                        else:
                            found = self._read(transaction, kb_id)
                    level = found.signature == now
                # an older one is looked at again by the next question
                held = self._held[kb_id] = changes if level else _BEHIND, found
            return held[1]

    def is_held(self, kb_id: str) -> bool:
        """Whether the graph of a knowledge base is in memory as it is now."""
        held = self._held.get(kb_id)
        return held is not None and held[0] == self.database.changes()

    def _read(self, transaction: Transaction, kb_id: str) -> GraphTable:
        began = time.monotonic()
        found = graph_tables.read(transaction, kb_id)
        self._took[kb_id] = time.monotonic() - began, time.monotonic()
        return found

    def _is_enough(self, kb_id: str, seen: Signature, now: Signature) -> bool:
        """Whether an older graph serves for the moment: people have changed nothing since."""
        return self._took[kb_id][0] > _LONG and edits(seen) == edits(now)

    def _renew_behind(self, kb_id: str) -> None:
        took, when = self._took[kb_id]
        if kb_id in self._renewing or time.monotonic() < when + _PAUSE * took:
            return
        self._renewing.add(kb_id)
        threading.Thread(target=self._renew, args=(kb_id,), name="kbkit-graph", daemon=True).start()

    def _renew(self, kb_id: str) -> None:
        try:
            changes = self.database.changes()
            with contextlib.suppress(Exception):  # it is gone, or the process is about to end
                with self.database.read() as transaction:
                    found = self._read(transaction, kb_id)
                self._held[kb_id] = changes, found
        finally:
            self._renewing.discard(kb_id)

    def naming(self, graph: GraphTable, rows: Collection[int]) -> Mapping[int, Sequence[int]]:
        """``chunks.seq`` of the chunks that name some entities of a graph, by row."""
        if not graph.naming.keys() >= set(rows):
            with self.database.read() as transaction:
                graph_tables.name_chunks(transaction, graph, rows)
        return graph.naming
