"""What people decided about two entities that may be one. Functions of a transaction.

A merge is a column: the merged entity becomes another name of the kept one, and so do its own other
names. Mentions and relations stay with the name that stands in the text, so undoing it is that
column again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa

from kbkit.errors import ConflictError, NotFoundError
from kbkit.stores.catalog import entities
from kbkit.stores.catalog.database import Transaction
from kbkit.stores.catalog.knowledge_schema import merges, subjects


def merge(transaction: Transaction, kept_id: str, merged_id: str, *, made_by: str) -> None:
    """Make an entity another name of a second one.

    Raises:
        NotFoundError: One of them is not there.
        ConflictError: They are one already.
    """
    _check(transaction, kept_id, merged_id)
    below = sa.select(subjects.c.id).where(subjects.c.alias_of == merged_id)
    moved = sorted(transaction.execute(below).scalars())
    _decide(transaction, kept_id, merged_id, applied=True, moved=moved, made_by=made_by)
    transaction.execute(
        subjects.update().where(subjects.c.id.in_([merged_id, *moved])).values(alias_of=kept_id)
    )


def refuse(transaction: Transaction, kept_id: str, merged_id: str, *, made_by: str) -> None:
    """Note that two entities are not one, so that nobody is asked again.

    Raises:
        NotFoundError: One of them is not there.
        ConflictError: They were merged; undo that first.
    """
    _check(transaction, kept_id, merged_id)
    _decide(transaction, kept_id, merged_id, applied=False, moved=[], made_by=made_by)


def undo(transaction: Transaction, pair: tuple[str, str]) -> None:
    """Take back what was decided about two entities.

    Raises:
        ConflictError: What was kept has itself become part of another entity since.
    """
    for row in of_pair(transaction, pair):
        if row.applied:
            kept = transaction.execute(
                sa.select(subjects.c.alias_of).where(subjects.c.id == row.kept_id)
            ).scalar_one()
            if kept is not None:
                raise ConflictError(
                    "the entity that was kept has been merged into another since; undo that first"
                )
            transaction.execute(
                subjects.update()
                .where(subjects.c.id.in_(row.moved), subjects.c.alias_of == row.kept_id)
                .values(alias_of=row.merged_id)
            )
            transaction.execute(
                subjects.update()
                .where(subjects.c.id == row.merged_id, subjects.c.alias_of == row.kept_id)
                .values(alias_of=None)
            )
        _forget(transaction, row.kept_id, row.merged_id)


def of_pair(transaction: Transaction, pair: Sequence[str]) -> list[Any]:
    """The rows of what was decided about two entities, whichever stayed."""
    both = merges.c.kept_id.in_(pair) & merges.c.merged_id.in_(pair)
    return list(transaction.execute(sa.select(*merges.c).where(both)).all())


def put_back(transaction: Transaction, rows: Sequence[Mapping[str, Any]]) -> None:
    """Have decided again what was decided before."""
    if rows:
        transaction.execute(merges.insert(), list(rows))


def decided(transaction: Transaction) -> set[frozenset[str]]:
    """The pairs of entities that people decided about."""
    rows = transaction.execute(sa.select(merges.c.kept_id, merges.c.merged_id))
    return {frozenset((row.kept_id, row.merged_id)) for row in rows}


def _check(transaction: Transaction, kept_id: str, merged_id: str) -> None:
    aliases = entities.aliases_of(transaction)
    if aliases.get(kept_id, kept_id) == aliases.get(merged_id, merged_id):
        raise ConflictError("the two are one entity already")
    for each in (kept_id, merged_id):
        if each in aliases:
            raise NotFoundError(f"{each!r} is another name of an entity; name that entity itself")
        entities.get(transaction, each)


def _decide(
    transaction: Transaction,
    kept_id: str,
    merged_id: str,
    *,
    applied: bool,
    moved: list[str],
    made_by: str,
) -> None:
    _forget(transaction, kept_id, merged_id)
    _forget(transaction, merged_id, kept_id)
    transaction.execute(
        merges.insert().values(
            kept_id=kept_id,
            merged_id=merged_id,
            applied=applied,
            moved=moved,
            made_by=made_by,
            decided_at=datetime.now(UTC),
        )
    )


def _forget(transaction: Transaction, kept_id: str, merged_id: str) -> None:
    transaction.execute(
        merges.delete().where(merges.c.kept_id == kept_id, merges.c.merged_id == merged_id)
    )
