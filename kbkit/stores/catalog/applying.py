"""Write the results of a reading transaction in short batches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from kbkit.stores.catalog import knowledge_bases
from kbkit.stores.catalog.database import Database, Transaction

_T = TypeVar("_T")

_AT_ONCE = 1_000
"""Rows that are written in some hundredths of a second."""


def apply(
    database: Database,
    kb_id: str,
    items: Sequence[_T],
    put: Callable[[Transaction, Sequence[_T]], object],
) -> None:
    """Write results in separate transactions; write nothing if there are none."""
    for start in range(0, len(items), _AT_ONCE):
        with database.write() as transaction:
            knowledge_bases.get_by_id(transaction, kb_id)
            put(transaction, items[start : start + _AT_ONCE])
