"""Validate, add, delete and summarize ratings."""

from __future__ import annotations

from kbkit.errors import NotFoundError
from kbkit.feedback.judgements import Judgements
from kbkit.models import Rating, Target
from kbkit.models.reports import MAX_QUERY_LENGTH, fold_query
from kbkit.runtime.validation import check_integer, check_text, is_integer
from kbkit.stores.catalog import corpus, knowledge_bases, ratings
from kbkit.stores.catalog.database import Database

_LARGEST_ID = 2**63 - 1
"""Largest integer of SQLite."""


def rate(
    database: Database, kb_id: str, target: Target, score: int, *, query: str, rater: str, note: str
) -> Rating:
    score = check_integer("score", score, 1, 5)
    query = check_text("query", query)[:MAX_QUERY_LENGTH]  # as a search cuts it
    rater, note = check_text("rater", rater), check_text("note", note)
    with database.write() as transaction:
        knowledge_bases.get_by_id(transaction, kb_id)
        return ratings.add(
            transaction, kb_id, target=target, score=score, query=query, rater=rater, note=note
        )


def unrate(database: Database, kb_id: str, rating_id: int) -> None:
    with database.write() as transaction:
        row = knowledge_bases.get_by_id(transaction, kb_id)
        is_id = is_integer(rating_id, 1, _LARGEST_ID)
        removed = ratings.remove(transaction, kb_id, int(rating_id)) if is_id else None
        if removed is None:
            raise NotFoundError(f"{row.name}: has no rating with id {rating_id!r}")
        ratings.forget_question(transaction, kb_id, fold_query(removed))


def judgements_of(database: Database, kb_id: str) -> Judgements:
    with database.read() as transaction:
        all_ratings = ratings.listed(transaction, kb_id)
        seqs = corpus.seqs_by_id(transaction, [rating.target.id for rating in all_ratings])
    return Judgements.from_ratings(all_ratings, seqs)
