"""Files that belong to a transaction.

The transaction records them, so that a process can tell after a kill whether they count.
"""

from __future__ import annotations

import sqlalchemy as sa

from kbkit.stores.catalog.database import Transaction
from kbkit.stores.catalog.schema import name_uses

JOURNAL = "restoring.json"
"""Journal of a workspace: files that belong to a note."""
_MARK = ".restored."
"""Prefix of notes; no knowledge base has such a name."""


def note(transaction: Transaction, token: str) -> None:
    """Record that a token counts once this transaction is committed."""
    transaction.execute(name_uses.insert().values(name=_MARK + token, times=1))


def counts(transaction: Transaction, token: str) -> bool:
    query = sa.select(name_uses.c.times).where(name_uses.c.name == _MARK + token)
    return transaction.execute(query).first() is not None


def forget(transaction: Transaction, token: str) -> None:
    transaction.execute(name_uses.delete().where(name_uses.c.name == _MARK + token))
