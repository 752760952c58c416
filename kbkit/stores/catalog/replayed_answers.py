"""Stored responses of idempotent requests. Functions of a transaction."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import sqlalchemy as sa

from kbkit.stores.catalog.database import Transaction
from kbkit.stores.catalog.workspace_schema import replayed_answers as table

KEPT = timedelta(hours=24)


class ReplayedAnswer(NamedTuple):
    """A stored response; `digest` is of the request."""

    digest: str
    status: int
    headers: Mapping[str, str]
    body: bytes
    media_type: str


def find(transaction: Transaction, key: str) -> ReplayedAnswer | None:
    columns = [table.c[name] for name in ReplayedAnswer._fields]
    query = sa.select(*columns).where(
        table.c.key == key, table.c.created_at > datetime.now(UTC) - KEPT
    )
    row = transaction.execute(query).first()
    return None if row is None else ReplayedAnswer(*row)


def keep(transaction: Transaction, key: str, answer: ReplayedAnswer) -> None:
    now = datetime.now(UTC)
    transaction.execute(
        table.delete().where(sa.or_(table.c.key == key, table.c.created_at <= now - KEPT))
    )
    values = {**answer._asdict(), "headers": dict(answer.headers)}
    transaction.execute(table.insert().values(key=key, created_at=now, **values))
