"""Ratings, an append-only log, and the encoders and questions learned from them.

Query encoders are fitted for chunks and summaries; learned questions have vectors. `remove` lets
raters undo a mistake.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from statistics import mode
from typing import Any, Literal

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray

from kbkit import models
from kbkit.errors import WorkspaceError
from kbkit.models import Rating, RatingTotal, Target, TargetKind
from kbkit.models.ratings import ChunkScore, fold_query, latest_of
from kbkit.stores.catalog import corpus
from kbkit.stores.catalog.database import Transaction, pack, unpack
from kbkit.stores.catalog.schema import (
    chunks,
    knowledge_bases,
    query_encoders,
    question_vectors,
    rating_totals,
    ratings,
    summary_encoders,
)
from kbkit.stores.catalog.workspace_schema import entries

_TICK = timedelta(microseconds=1)
"""Resolution of stored times."""
_OLDEST_FIRST = ratings.c.created_at, ratings.c.id


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
    """Append a rating, dated after the rater's earlier ones, even if the clock is slow."""
    by_rater = ratings.c.target == target.id, ratings.c.rater == rater
    latest = sa.select(sa.func.max(ratings.c.created_at))
    last = transaction.execute(latest.where(ratings.c.kb_id == kb_id, *by_rater)).scalar_one()
    now = datetime.now(UTC)
    vote = models.Vote(now if last is None else max(now, last + _TICK), rater, score)
    values = _values(kb_id, target, vote) | {"query": query, "note": note}
    rating_id = transaction.insert_one(ratings, **values)
    add_up(transaction, kb_id, target.id)
    row = transaction.execute(_RATINGS.where(ratings.c.id == rating_id)).one()
    return _rating(row)


def add_votes(
    transaction: Transaction, kb_id: str, target: Target, votes: Sequence[models.Vote]
) -> None:
    """Append ratings with their own times, oldest first."""
    transaction.insert(ratings, [_values(kb_id, target, vote) for vote in votes])
    add_up(transaction, kb_id, target.id)


def _values(kb_id: str, target: Target, vote: models.Vote) -> dict[str, Any]:
    of_target = {"kb_id": kb_id, "target": target.id, "target_type": target.kind.value}
    of_vote = {"score": vote.score, "rater": vote.rater, "created_at": vote.timestamp}
    return {**of_target, **of_vote, "query": "", "note": ""}


def list_ratings(
    transaction: Transaction, kb_id: str, targets: Collection[str] | None = None
) -> list[Rating]:
    """List ratings, oldest first; `targets` are ids of chunks and documents."""
    query = _RATINGS.where(ratings.c.kb_id == kb_id)
    if targets is not None:
        query = query.where(transaction.is_in(ratings.c.target, targets))
    return [_rating(row) for row in transaction.execute(query)]


def votes(
    transaction: Transaction, kb_id: str, kind: TargetKind, targets: Collection[str]
) -> dict[str, dict[int, models.Vote]]:
    """Return ratings of a kind that name no query, by target and id, oldest first."""
    columns = (ratings.c[name] for name in ("target", "id", "created_at", "rater", "score"))
    query = sa.select(*columns).where(
        ratings.c.kb_id == kb_id,
        ratings.c.target_type == kind.value,
        ratings.c.query == "",
        transaction.is_in(ratings.c.target, targets),
    )
    votes_of: dict[str, dict[int, models.Vote]] = {}
    for target, rating_id, *vote in transaction.execute(query.order_by(*_OLDEST_FIRST)):
        votes_of.setdefault(target, {})[rating_id] = models.Vote(*vote)
    return votes_of


def _rating(row: sa.Row[Any]) -> Rating:
    values = dict(row._mapping)
    target = Target(TargetKind(values.pop("target_type")), values.pop("target"))
    return Rating(target=target, **values)


_RATINGS = (
    sa.select(knowledge_bases.c.name.label("kb"), *(c for c in ratings.c if c.name != "kb_id"))
    .join(knowledge_bases, knowledge_bases.c.id == ratings.c.kb_id)
    .order_by(*_OLDEST_FIRST)
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
    .order_by(*_OLDEST_FIRST)
)


def extent(transaction: Transaction, kb_id: str) -> tuple[int, int]:
    columns = sa.func.coalesce(sa.func.max(ratings.c.id), 0), sa.func.count()
    last, count = transaction.execute(sa.select(*columns).where(ratings.c.kb_id == kb_id)).one()
    return last, count


def remove(transaction: Transaction, kb_id: str, rating_id: int) -> str | None:
    """Delete a rating; return its query, ``None`` if there was no such rating."""
    statement = ratings.delete().where(ratings.c.kb_id == kb_id, ratings.c.id == rating_id)
    returning = statement.returning(ratings.c.target, ratings.c.query)
    removed = transaction.execute(returning).one_or_none()
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


_total = rating_totals.c
_TOTALS = (
    sa.select(_total.target, _total.raters, _total.average, chunks.c.seq, entries.c.document_id)
    .outerjoin(chunks, chunks.c.id == rating_totals.c.target)
    .outerjoin(entries, entries.c.id == rating_totals.c.target)
    .where(rating_totals.c.kb_id == sa.bindparam("kb"))
)


def total(transaction: Transaction, kb_id: str, target: str) -> RatingTotal | None:
    of_target = _total.kb_id == kb_id, _total.target == target
    row = transaction.first([_total.raters, _total.average], *of_target)
    return None if row is None else RatingTotal(*row)


def add_up(transaction: Transaction, kb_id: str, target: str) -> None:
    of_target = (ratings.c.kb_id == kb_id, ratings.c.target == target)
    newest = (ratings.c.created_at.desc(), ratings.c.id.desc())
    place = sa.func.row_number().over(partition_by=ratings.c.rater, order_by=newest)
    ranked = sa.select(ratings.c.score, place.label("place")).where(*of_target).subquery()
    raters, average = transaction.execute(
        sa.select(sa.func.count(), sa.func.avg(ranked.c.score)).where(ranked.c.place == 1)
    ).one()
    transaction.delete(rating_totals, _total.kb_id == kb_id, _total.target == target)
    if raters:
        transaction.insert_one(
            rating_totals, kb_id=kb_id, target=target, raters=raters, average=float(average)
        )


EncoderTarget = Literal["chunks", "summaries"]

_TABLES: Mapping[EncoderTarget, sa.Table] = {
    "chunks": query_encoders,
    "summaries": summary_encoders,
}
_STATE = ("embedder", "fitted_at", "version", "chunks", "report")


@dataclass(frozen=True, slots=True)
class EncoderState:
    """Origin of a fitted query encoder; `report` has choice and quality of the fit."""

    embedder: str
    fitted_at: datetime
    version: int
    chunks: int
    report: Mapping[str, Any]


@dataclass(frozen=True, slots=True, eq=False)
class EncoderRow:
    """A stored query encoder; `vectors` is float32, shape ``(len(terms), dimensions)``."""

    state: EncoderState
    terms: tuple[str, ...]
    vectors: NDArray[np.float32]


def encoder_state(
    transaction: Transaction, kb_id: str, target: EncoderTarget = "chunks"
) -> EncoderState | None:
    table = _TABLES[target]
    columns = [table.c[name] for name in _STATE]
    row = transaction.execute(sa.select(*columns).where(table.c.kb_id == kb_id)).one_or_none()
    return None if row is None else EncoderState(**row._mapping)


def fitted_embedder(transaction: Transaction, kb_id: str) -> tuple[str, datetime] | None:
    """Return the fingerprint of the encoder's embedder, and when it was fitted."""
    row = transaction.execute(_FITTED_TO, {"kb": kb_id}).one_or_none()
    return None if row is None else (row.embedder, row.fitted_at)


# built once, and only of columns before the large ones, which SQLite would have to read
_FITTED_TO = sa.select(query_encoders.c.embedder, query_encoders.c.fitted_at).where(
    query_encoders.c.kb_id == sa.bindparam("kb")
)


def load_encoder(
    transaction: Transaction, kb_id: str, target: EncoderTarget = "chunks"
) -> EncoderRow | None:
    table = _TABLES[target]
    row = transaction.execute(sa.select(table).where(table.c.kb_id == kb_id)).one_or_none()
    if row is None:
        return None
    terms = tuple(row.terms.split(" ")) if row.terms else ()
    try:
        vectors = np.frombuffer(row.vectors, "<f2").reshape(len(terms), -1).astype(np.float32)
    except ValueError:
        raise WorkspaceError(
            f"the stored query encoder is damaged ({len(terms)} terms, {len(row.vectors)} bytes); "
            "fit it again"
        ) from None
    return EncoderRow(EncoderState(**{name: row._mapping[name] for name in _STATE}), terms, vectors)


def save_encoder(
    transaction: Transaction, kb_id: str, encoder: EncoderRow, target: EncoderTarget = "chunks"
) -> None:
    count, joined = len(encoder.terms), " ".join(encoder.terms)
    if len(joined.split(" ")) != len(encoder.vectors) or count != len(encoder.vectors):
        raise WorkspaceError(
            f"a query encoder of {count} terms and {len(encoder.vectors)} rows cannot be stored; "
            "each term, which has no space in it, needs one row"
        )
    remove_encoder(transaction, kb_id, target)
    state = {name: getattr(encoder.state, name) for name in _STATE}
    vectors = np.ascontiguousarray(encoder.vectors, "<f2").tobytes()
    transaction.insert_one(_TABLES[target], kb_id=kb_id, terms=joined, vectors=vectors, **state)


def remove_encoder(transaction: Transaction, kb_id: str, target: EncoderTarget = "chunks") -> None:
    table = _TABLES[target]
    transaction.delete(table, table.c.kb_id == kb_id)


MIN_SCORE = 4
"""Minimum average score of a chunk for a learned question."""
MAX_QUESTIONS = 5_000
"""Maximum learned questions; the latest count."""


@dataclass(frozen=True, slots=True)
class QuestionVectors:
    """Unit vectors of learned questions, by question as `fold_query` returns it."""

    embedder: str
    vectors: Mapping[str, NDArray[np.float32]]


def learned_questions(transaction: Transaction, kb_id: str) -> dict[str, tuple[int, ...]]:
    """Map learned questions, folded by `fold_query`, to the ``seq`` of their chunks.

    Each rater's last rating of a chunk counts; the average must be at least `MIN_SCORE`.
    """
    ratings_of_chunks = chunk_scores(transaction, kb_id)
    if not any(rating.score >= MIN_SCORE for rating in ratings_of_chunks):
        return {}
    good = {
        fold_query(query): [
            chunk
            for chunk, scores in scores_of.items()
            if sum(scores.values()) >= MIN_SCORE * len(scores)
        ]
        for query, scores_of in latest_of(ratings_of_chunks).items()
    }
    seq_of = corpus.seqs_by_id(transaction, sorted({id_ for ids in good.values() for id_ in ids}))
    by_query = {
        query: tuple(sorted(seq_of[chunk] for chunk in ids if chunk in seq_of))
        for query, ids in list(good.items())[-MAX_QUESTIONS:]
    }
    return {query: seqs for query, seqs in by_query.items() if seqs}


def unembedded_questions(transaction: Transaction, kb_id: str, embedder: str) -> list[str]:
    of_chunks = ratings.c.kb_id == kb_id, ratings.c.target_type == TargetKind.CHUNK.value
    rated = sa.select(ratings.c.query).where(*of_chunks, ratings.c.score >= MIN_SCORE)
    questions = {fold_query(query) for query in transaction.scalars(rated.distinct())}
    embedded = sa.select(question_vectors.c.question).where(
        question_vectors.c.kb_id == kb_id, question_vectors.c.embedder == embedder
    )
    return sorted(questions - {""} - set(transaction.scalars(embedded)))


def put_questions(
    transaction: Transaction,
    kb_id: str,
    embedder: str,
    questions: Sequence[str],
    vectors: NDArray[np.float32],
) -> None:
    rows = [
        {"kb_id": kb_id, "question": question, "embedder": embedder, "vector": vector}
        for question, vector in zip(questions, pack(vectors), strict=True)
    ]
    transaction.put(question_vectors, rows)


def forget_question(transaction: Transaction, kb_id: str, question: str) -> None:
    transaction.delete(
        question_vectors, question_vectors.c.kb_id == kb_id, question_vectors.c.question == question
    )


def count_questions(transaction: Transaction, kb_id: str) -> int:
    return transaction.count(question_vectors, question_vectors.c.kb_id == kb_id)


def question_vectors_of(transaction: Transaction, kb_id: str) -> QuestionVectors:
    columns = question_vectors.c
    query = sa.select(columns.embedder, columns.question, columns.vector)
    rows = transaction.execute(query.where(columns.kb_id == kb_id)).all()
    if not rows:
        return QuestionVectors("", {})
    main_embedder = mode(row.embedder for row in rows)
    packed = {row.question: row.vector for row in rows if row.embedder == main_embedder}
    vectors = unpack([*packed.values()], len(next(iter(packed.values()))) // 2)
    return QuestionVectors(main_embedder, dict(zip(packed, vectors, strict=True)))
