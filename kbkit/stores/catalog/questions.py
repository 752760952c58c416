"""Learned questions with vectors. Functions of a transaction.

The questions themselves are read from the ratings each time, so that there is no second truth; only
their vectors are kept, since a model takes milliseconds for each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray

from kbkit.models import TargetKind
from kbkit.models.scores import fold_query, latest_of
from kbkit.stores.catalog import corpus
from kbkit.stores.catalog import ratings as rating_log
from kbkit.stores.catalog.database import Transaction
from kbkit.stores.catalog.packing import pack, unpack
from kbkit.stores.catalog.schema import question_vectors, ratings

MIN_SCORE = 4
"""Stars from which a question is learned, on average of its raters."""
MAX = 5_000
"""Maximum learned questions, the latest ones."""


@dataclass(frozen=True, slots=True)
class QuestionVectors:
    """The vectors of learned questions.

    Attributes:
        embedder: Fingerprint of the embedder; ``""`` without vectors.
        vectors: Unit vectors of shape ``(dimensions,)``, by question as `fold_query` returns it.
    """

    embedder: str
    vectors: Mapping[str, NDArray[np.float32]]


def learned(transaction: Transaction, kb_id: str) -> dict[str, tuple[int, ...]]:
    """The questions that are learned, as `fold_query` gives them, and ``seq`` of their chunks.

    Of each rater the last rating of a chunk for a question counts, and the average of all has to be
    4 or better. Chunks that are gone are left out, and come back with them.
    """
    given = rating_log.chunk_scores(transaction, kb_id)
    if not any(said.score >= MIN_SCORE for said in given):
        return {}
    good = {
        fold_query(query): [
            chunk
            for chunk, scores in chunks.items()
            if sum(scores.values()) >= MIN_SCORE * len(scores)
        ]
        for query, chunks in latest_of(given).items()
    }
    there = corpus.seqs_by_id(transaction, sorted({each for ids in good.values() for each in ids}))
    found = {
        query: tuple(sorted(there[chunk] for chunk in ids if chunk in there))
        for query, ids in list(good.items())[-MAX:]
    }
    return {query: seqs for query, seqs in found.items() if seqs}


def lacking(transaction: Transaction, kb_id: str, embedder: str) -> list[str]:
    asked = sa.select(ratings.c.query).where(
        ratings.c.kb_id == kb_id,
        ratings.c.target_type == TargetKind.CHUNK.value,
        ratings.c.score >= MIN_SCORE,
    )
    wanted = {fold_query(query) for query in transaction.execute(asked.distinct()).scalars()}
    held = sa.select(question_vectors.c.question).where(
        question_vectors.c.kb_id == kb_id, question_vectors.c.embedder == embedder
    )
    return sorted(wanted - {""} - set(transaction.execute(held).scalars()))


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
    query = sa.select(sa.func.count()).where(question_vectors.c.kb_id == kb_id)
    return int(transaction.execute(query).scalar_one())


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
