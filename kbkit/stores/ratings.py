"""Ratings: appended, never changed, and kept when what they rate is gone for a while.

Only who gave a rating may want it gone: `remove` takes back a slip.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, datetime

import sqlalchemy as sa

from kbkit.models import Rating
from kbkit.stores.schema import knowledge_bases, ratings


def add(
    connection: sa.Connection,
    kb_id: str,
    *,
    target: str,
    target_type: str,
    score: int,
    query: str,
    rater: str,
    note: str,
) -> Rating:
    """Append a rating."""
    rating_id = connection.execute(
        ratings.insert()
        .values(
            kb_id=kb_id,
            target=target,
            target_type=target_type,
            score=score,
            query=query,
            rater=rater,
            note=note,
            created_at=datetime.now(UTC),
        )
        .returning(ratings.c.id)
    ).scalar_one()
    return next(r for r in listed(connection, kb_id, ratings.c.id == rating_id))


def listed(
    connection: sa.Connection, kb_id: str, *conditions: sa.ColumnElement[bool]
) -> list[Rating]:
    """Ratings of a knowledge base, oldest first."""
    columns = [c for c in ratings.c if c.name != "kb_id"]
    rows = connection.execute(
        sa.select(knowledge_bases.c.name.label("kb"), *columns)
        .join(knowledge_bases, knowledge_bases.c.id == ratings.c.kb_id)
        .where(ratings.c.kb_id == kb_id, *conditions)
        .order_by(ratings.c.id)
    )
    return [Rating(**row._mapping) for row in rows]


def remove(connection: sa.Connection, kb_id: str, rating_id: int) -> bool:
    """Remove a rating; whether it was there."""
    found = connection.execute(
        ratings.delete().where(ratings.c.kb_id == kb_id, ratings.c.id == rating_id)
    )
    return found.rowcount > 0


def of_targets(targets: Collection[str]) -> sa.ColumnElement[bool]:
    """The condition that a rating is of one of some chunks or documents."""
    return ratings.c.target.in_(targets)
