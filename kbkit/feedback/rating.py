"""Gives, takes back and adds up ratings, after a look at what somebody hands in."""

from __future__ import annotations

from kbkit.errors import NotFoundError
from kbkit.feedback.judgements import Judgements
from kbkit.models import Rating
from kbkit.retrieval.query import MAX_QUERY_LENGTH
from kbkit.stores.catalog import corpus, knowledge_bases, ratings, reading
from kbkit.stores.catalog.database import Database
from kbkit.stores.catalog.ratings import Total
from kbkit.validation import check_integer, check_text, is_integer

_LARGEST_ID = 2**63 - 1
"""What SQLite can hold."""


def rate(
    database: Database,
    kb_id: str,
    target: str,
    score: int,
    *,
    query: str,
    rater: str,
    note: str,
) -> Rating:
    """Append a rating of a chunk or a document.

    Raises:
        ConfigError: The score is not a whole number from 1 to 5, or something else is no text.
        NotFoundError: There is no such chunk or document.
    """
    score = check_integer("score", score, 1, 5)
    target = check_text("target", target)
    query = check_text("query", query)[:MAX_QUERY_LENGTH]  # as search reads it
    rater, note = check_text("rater", rater), check_text("note", note)
    with database.write() as transaction:
        row = knowledge_bases.get_by_id(transaction, kb_id)
        kind = reading.kind_of(transaction, kb_id, target)
        if kind is None:
            raise _unknown(row.name, target)
        return ratings.add(
            transaction,
            kb_id,
            target=target,
            target_type=kind,
            score=score,
            query=query,
            rater=rater,
            note=note,
        )


def unrate(database: Database, kb_id: str, rating_id: int) -> None:
    """Take back a rating.

    Raises:
        NotFoundError: There is no such rating.
    """
    with database.write() as transaction:
        row = knowledge_bases.get_by_id(transaction, kb_id)
        known = is_integer(rating_id, 1, _LARGEST_ID)
        if not known or not ratings.remove(transaction, kb_id, int(rating_id)):
            raise NotFoundError(f"{row.name}: has no rating with id {rating_id!r}")


def rating_of(database: Database, kb_id: str, target: str) -> Total | None:
    """What the ratings of a chunk or a document come to; ``None`` where nobody rated it.

    Raises:
        NotFoundError: There is and was no such chunk or document.
    """
    target = check_text("target", target)
    with database.read() as transaction:
        row = knowledge_bases.get_by_id(transaction, kb_id)
        total = ratings.total(transaction, kb_id, target)
        if total is None and reading.kind_of(transaction, kb_id, target) is None:
            raise _unknown(row.name, target)
        return total


def judgements_of(database: Database, kb_id: str) -> Judgements:
    """What a knowledge base's ratings say of its chunks."""
    with database.read() as transaction:
        given = ratings.listed(transaction, kb_id)
        there = corpus.seqs_by_id(transaction, [rating.target for rating in given])
    return Judgements.from_ratings(given, there)


def _unknown(name: str, target: str) -> NotFoundError:
    return NotFoundError(
        f"{name}: has no chunk or document with id {target!r}; take an id from a hit "
        "(`hit.chunk.id`), `kb.chunks` or `kb.documents`"
    )
