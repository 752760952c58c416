"""Fitted query encoders for chunks and summaries, and vectors of learned questions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray

from kbkit.errors import WorkspaceError
from kbkit.models import TargetKind
from kbkit.models.reports import fold_query, latest_of
from kbkit.stores.catalog import corpus
from kbkit.stores.catalog import ratings as rating_log
from kbkit.stores.catalog.database import Transaction, pack, unpack
from kbkit.stores.catalog.schema import query_encoders, question_vectors, ratings, summary_encoders

EncoderTarget = Literal["chunks", "summaries"]

_TABLES: Mapping[EncoderTarget, sa.Table] = {
    "chunks": query_encoders,
    "summaries": summary_encoders,
}
_STATE = ("embedder", "fitted_at", "version", "chunks", "report")


@dataclass(frozen=True, slots=True)
class EncoderState:
    """What a query encoder was fitted to; `report` has choice and quality of the fit."""

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


def state(
    transaction: Transaction, kb_id: str, target: EncoderTarget = "chunks"
) -> EncoderState | None:
    table = _TABLES[target]
    columns = [table.c[name] for name in _STATE]
    row = transaction.execute(sa.select(*columns).where(table.c.kb_id == kb_id)).one_or_none()
    return None if row is None else EncoderState(**row._mapping)


def fitted_to(transaction: Transaction, kb_id: str) -> tuple[str, datetime] | None:
    """Return the fingerprint of the encoder's embedder, and when it was fitted."""
    row = transaction.execute(_FITTED_TO, {"kb": kb_id}).one_or_none()
    return None if row is None else (row.embedder, row.fitted_at)


# built once, and only of columns before the large ones, which SQLite would have to read
_FITTED_TO = sa.select(query_encoders.c.embedder, query_encoders.c.fitted_at).where(
    query_encoders.c.kb_id == sa.bindparam("kb")
)


def load(
    transaction: Transaction, kb_id: str, target: EncoderTarget = "chunks"
) -> EncoderRow | None:
    table = _TABLES[target]
    row = transaction.execute(sa.select(table).where(table.c.kb_id == kb_id)).one_or_none()
    if row is None:
        return None
    terms = tuple(row.terms.split(" ")) if row.terms else ()
    values = np.frombuffer(row.vectors, "<f2") if len(row.vectors) % 2 == 0 else None
    if values is None or not terms or len(values) % len(terms):
        raise WorkspaceError(
            f"the stored query encoder is damaged ({len(terms)} terms, {len(row.vectors)} bytes); "
            "fit it again"
        )
    vectors = values.reshape(len(terms), -1).astype(np.float32)
    return EncoderRow(EncoderState(**{name: row._mapping[name] for name in _STATE}), terms, vectors)


def save(
    transaction: Transaction,
    kb_id: str,
    *,
    embedder: str,
    version: int,
    chunks: int,
    terms: Sequence[str],
    vectors: NDArray[np.float32],
    report: Mapping[str, Any],
    target: EncoderTarget = "chunks",
) -> None:
    joined = " ".join(terms)
    if len(joined.split(" ")) != len(vectors) or len(terms) != len(vectors):
        raise WorkspaceError(
            f"a query encoder of {len(terms)} terms and {len(vectors)} rows cannot be stored; "
            "each term, which has no space in it, needs one row"
        )
    values = {
        "embedder": embedder,
        "fitted_at": datetime.now(UTC),
        "version": version,
        "chunks": chunks,
        "terms": joined,
        "vectors": np.ascontiguousarray(vectors, "<f2").tobytes(),
        "report": dict(report),
    }
    remove(transaction, kb_id, target)
    transaction.execute(_TABLES[target].insert().values(kb_id=kb_id, **values))


def remove(transaction: Transaction, kb_id: str, target: EncoderTarget = "chunks") -> None:
    table = _TABLES[target]
    transaction.execute(table.delete().where(table.c.kb_id == kb_id))


MIN_SCORE = 4
"""Minimum average score of a chunk for a learned question."""
MAX = 5_000
"""Maximum learned questions; the latest count."""


@dataclass(frozen=True, slots=True)
class QuestionVectors:
    """Unit vectors of learned questions, by question as `fold_query` returns it."""

    embedder: str
    vectors: Mapping[str, NDArray[np.float32]]


def learned(transaction: Transaction, kb_id: str) -> dict[str, tuple[int, ...]]:
    """Map learned questions, folded by `fold_query`, to the ``seq`` of their chunks.

    Each rater's last rating of a chunk counts; the average must be at least `MIN_SCORE`.
    """
    ratings_of_chunks = rating_log.chunk_scores(transaction, kb_id)
    if not any(rating.score >= MIN_SCORE for rating in ratings_of_chunks):
        return {}
    good = {
        fold_query(query): [
            chunk
            for chunk, scores in chunks.items()
            if sum(scores.values()) >= MIN_SCORE * len(scores)
        ]
        for query, chunks in latest_of(ratings_of_chunks).items()
    }
    seq_of = corpus.seqs_by_id(transaction, sorted({each for ids in good.values() for each in ids}))
    by_query = {
        query: tuple(sorted(seq_of[chunk] for chunk in ids if chunk in seq_of))
        for query, ids in list(good.items())[-MAX:]
    }
    return {query: seqs for query, seqs in by_query.items() if seqs}


def lacking(transaction: Transaction, kb_id: str, embedder: str) -> list[str]:
    asked = sa.select(ratings.c.query).where(
        ratings.c.kb_id == kb_id,
        ratings.c.target_type == TargetKind.CHUNK.value,
        ratings.c.score >= MIN_SCORE,
    )
    wanted = {fold_query(query) for query in transaction.execute(asked.distinct()).scalars()}
    embedded = sa.select(question_vectors.c.question).where(
        question_vectors.c.kb_id == kb_id, question_vectors.c.embedder == embedder
    )
    return sorted(wanted - {""} - set(transaction.execute(embedded).scalars()))


def put(
    transaction: Transaction,
    kb_id: str,
    embedder: str,
    questions: Sequence[str],
    vectors: NDArray[np.float32],
) -> None:
    for question, vector in zip(questions, pack(vectors), strict=True):
        forget(transaction, kb_id, question)
        transaction.execute(
            question_vectors.insert().values(
                kb_id=kb_id, question=question, embedder=embedder, vector=vector
            )
        )


def forget(transaction: Transaction, kb_id: str, question: str) -> None:
    transaction.execute(
        question_vectors.delete().where(
            question_vectors.c.kb_id == kb_id, question_vectors.c.question == question
        )
    )


def count(transaction: Transaction, kb_id: str) -> int:
    return transaction.count(question_vectors, question_vectors.c.kb_id == kb_id)


def vectors_of(transaction: Transaction, kb_id: str) -> QuestionVectors:
    counted = sa.func.count()
    most = transaction.execute(
        sa.select(question_vectors.c.embedder)
        .where(question_vectors.c.kb_id == kb_id)
        .group_by(question_vectors.c.embedder)
        .order_by(counted.desc(), question_vectors.c.embedder)
        .limit(1)
    ).scalar_one_or_none()
    if most is None:
        return QuestionVectors("", {})
    rows = transaction.execute(
        sa.select(question_vectors.c.question, question_vectors.c.vector).where(
            question_vectors.c.kb_id == kb_id, question_vectors.c.embedder == most
        )
    ).all()
    vectors = unpack([row.vector for row in rows], len(rows[0].vector) // 2)
    return QuestionVectors(
        most, {row.question: vector for row, vector in zip(rows, vectors, strict=True)}
    )
