"""Ratings, an append-only log. Functions of the caller's transaction.

`remove` lets raters undo a rating by mistake.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import sqlalchemy as sa

from kbkit.models import Rating, RatingTotal, Target, TargetKind, Vote
from kbkit.models.reports import ChunkScore
from kbkit.stores.catalog.database import Transaction
from kbkit.stores.catalog.schema import chunks, knowledge_bases, rating_totals, ratings
from kbkit.stores.catalog.workspace_schema import entries

_TICK = timedelta(microseconds=1)
"""Resolution of stored times."""


def add(
    transaction: Transaction,
    kb_id: str,
    *,
    target: Target,
    score: int,
    query: str,
    rater: str,
    note: str,
) -> Rating:
    """Append a rating, dated after the rater's other ones of the target even by a slow clock."""
    last = transaction.execute(
        sa.select(sa.func.max(ratings.c.created_at)).where(
            ratings.c.kb_id == kb_id, ratings.c.target == target.id, ratings.c.rater == rater
        )
    ).scalar_one()
    now = datetime.now(UTC)
    rating_id = transaction.execute(
        ratings.insert()
        .values(
            kb_id=kb_id,
            target=target.id,
            target_type=target.kind.value,
            score=score,
            query=query,
            rater=rater,
            note=note,
            created_at=now if last is None else max(now, last + _TICK),
        )
        .returning(ratings.c.id)
    ).scalar_one()
    add_up(transaction, kb_id, target.id)
    row = transaction.execute(_RATINGS.where(ratings.c.id == rating_id)).one()
    return _rating(row)


def add_votes(transaction: Transaction, kb_id: str, target: Target, votes: Sequence[Vote]) -> None:
    """Append ratings with their own times, oldest first."""
    rows = [
        {
            "kb_id": kb_id,
            "target": target.id,
            "target_type": target.kind.value,
            "score": vote.score,
            "query": "",
            "rater": vote.rater,
            "note": "",
            "created_at": vote.timestamp,
        }
        for vote in votes
    ]
    transaction.insert(ratings, rows)
    add_up(transaction, kb_id, target.id)


def listed(
    transaction: Transaction, kb_id: str, targets: Collection[str] | None = None
) -> list[Rating]:
    """List ratings, oldest first; `targets` are ids of chunks and documents."""
    query = _RATINGS.where(ratings.c.kb_id == kb_id)
    if targets is not None:
        query = query.where(transaction.is_in(ratings.c.target, targets))
    return [_rating(row) for row in transaction.execute(query)]


def _rating(row: sa.Row[Any]) -> Rating:
    values = dict(row._mapping)
    target = Target(TargetKind(values.pop("target_type")), values.pop("target"))
    return Rating(target=target, **values)


_RATINGS = (
    sa.select(knowledge_bases.c.name.label("kb"), *(c for c in ratings.c if c.name != "kb_id"))
    .join(knowledge_bases, knowledge_bases.c.id == ratings.c.kb_id)
    .order_by(ratings.c.created_at, ratings.c.id)
)


def chunk_scores(transaction: Transaction, kb_id: str) -> list[ChunkScore]:
    """List chunk ratings that name a query, oldest first."""
    return [ChunkScore(*row) for row in transaction.execute(_CHUNK_SCORES, {"kb": kb_id})]


_CHUNK_SCORES = (
    sa.select(ratings.c.query, ratings.c.target, ratings.c.rater, ratings.c.score)
    .where(
        ratings.c.kb_id == sa.bindparam("kb"),
        ratings.c.target_type == TargetKind.CHUNK.value,
        ratings.c.query != "",
    )
    .order_by(ratings.c.created_at, ratings.c.id)
)


def extent(transaction: Transaction, kb_id: str) -> tuple[int, int]:
    last, count = transaction.execute(
        sa.select(sa.func.coalesce(sa.func.max(ratings.c.id), 0), sa.func.count()).where(
            ratings.c.kb_id == kb_id
        )
    ).one()
    return last, count


def remove(transaction: Transaction, kb_id: str, rating_id: int) -> str | None:
    """Delete a rating; return its query, ``None`` if there was no such rating."""
    removed = transaction.execute(
        ratings.delete()
        .where(ratings.c.kb_id == kb_id, ratings.c.id == rating_id)
        .returning(ratings.c.target, ratings.c.query)
    ).one_or_none()
    if removed is None:
        return None
    add_up(transaction, kb_id, removed.target)
    return str(removed.query)


@dataclass(frozen=True, slots=True)
class Totals:
    """Totals of a knowledge base: chunks by ``seq``, documents by id."""

    chunks: Mapping[int, RatingTotal]
    documents: Mapping[str, RatingTotal]


def totals(transaction: Transaction, kb_id: str) -> Totals:
    of_chunks: dict[int, RatingTotal] = {}
    of_documents: dict[str, RatingTotal] = {}
    for target, raters, average, seq, document in transaction.execute(_TOTALS, {"kb": kb_id}):
        if seq is not None:
            of_chunks[seq] = RatingTotal(raters, average)
        else:
            of_documents[document or target] = RatingTotal(raters, average)
    return Totals(of_chunks, of_documents)


_TOTALS = (
    sa.select(
        rating_totals.c.target,
        rating_totals.c.raters,
        rating_totals.c.average,
        chunks.c.seq,
        entries.c.document_id,
    )
    .outerjoin(chunks, chunks.c.id == rating_totals.c.target)
    .outerjoin(entries, entries.c.id == rating_totals.c.target)
    .where(rating_totals.c.kb_id == sa.bindparam("kb"))
)


def total(transaction: Transaction, kb_id: str, target: str) -> RatingTotal | None:
    row = transaction.execute(
        sa.select(rating_totals.c.raters, rating_totals.c.average).where(
            rating_totals.c.kb_id == kb_id, rating_totals.c.target == target
        )
    ).first()
    return None if row is None else RatingTotal(*row)


def add_up(transaction: Transaction, kb_id: str, target: str) -> None:
    of_target = (ratings.c.kb_id == kb_id, ratings.c.target == target)
    newest = (ratings.c.created_at.desc(), ratings.c.id.desc())
    place = sa.func.row_number().over(partition_by=ratings.c.rater, order_by=newest)
    each = sa.select(ratings.c.score, place.label("place")).where(*of_target).subquery()
    raters, average = transaction.execute(
        sa.select(sa.func.count(), sa.func.avg(each.c.score)).where(each.c.place == 1)
    ).one()
    transaction.execute(
        rating_totals.delete().where(
            rating_totals.c.kb_id == kb_id, rating_totals.c.target == target
        )
    )
    if raters:
        transaction.execute(
            rating_totals.insert().values(
                kb_id=kb_id, target=target, raters=raters, average=float(average)
            )
        )
