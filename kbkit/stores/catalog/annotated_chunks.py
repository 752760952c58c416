"""What the chunks of a knowledge base are said to speak of, all of them at once: for its site.

Functions of the caller's transaction.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import NamedTuple

import sqlalchemy as sa

from kbkit.models import Frame, SubjectKind
from kbkit.stores.catalog import knowledge_schema
from kbkit.stores.catalog.database import Transaction
from kbkit.stores.catalog.knowledge_schema import annotation_subjects, subjects
from kbkit.stores.catalog.schema import chunks, knowledge_bases

_rows = knowledge_schema.annotations


class NamedSubject(NamedTuple):
    """A subject by one of its names.

    Attributes:
        id: Of the name.
        kind: What the subject is to those that speak of it.
        key: The name in its normal form.
        name: As it is written.
        root: Id of the name that this one is another one of; its own where it is none.
    """

    id: str
    kind: SubjectKind
    key: str
    name: str
    root: str


def state(transaction: Transaction, kb_id: str) -> str:
    """Stands for all that the others give; is another one when any of it changes."""
    own = _rows.c.kb_id == kb_id
    seq, place = _rows.c.chunk_seq, _rows.c.position + 1
    total = sa.cast(sa.func.sum(seq * place), sa.BigInteger)
    made = sa.select(_rows.c.annotator, _rows.c.frame, sa.func.count(), total).where(own)
    gazetteer = knowledge_schema.gazetteers
    named = sa.select(gazetteer.c.names).where(gazetteer.c.kb_id == kb_id)
    other = sa.select(subjects.c.id, subjects.c.alias_of).where(subjects.c.alias_of > "")
    changed = knowledge_schema.entities
    by_hand = sa.select(changed.c.subject_id, changed.c.updated_at).where(changed.c.by_hand)
    parts = [
        sorted(map(tuple, transaction.execute(made.group_by(_rows.c.annotator, _rows.c.frame)))),
        list(transaction.execute(named).scalars()),
        sorted(map(tuple, transaction.execute(other))),
        sorted((row[0], row[1].isoformat()) for row in transaction.execute(by_hand)),
    ]
    return hashlib.blake2b(repr(parts).encode(), digest_size=16).hexdigest()


def graph_state(transaction: Transaction, kb_id: str) -> str:
    """Stands for the graph of a knowledge base; is another one when any of it changes.

    That other knowledge bases say more of a relation, which only changes its weight, is no change.
    """
    table = knowledge_schema.relations.c
    version = sa.select(knowledge_bases.c.version).where(knowledge_bases.c.id == kb_id)
    by_hand = sa.select(table.id, table.seen_at).where(table.by_hand).order_by(table.id)
    parts = [
        state(transaction, kb_id),
        transaction.execute(version).scalar(),
        [(row[0], row[1].isoformat()) for row in transaction.execute(by_hand)],
    ]
    return hashlib.blake2b(repr(parts).encode(), digest_size=16).hexdigest()


def iter_frames(transaction: Transaction, kb_id: str) -> Iterator[tuple[int, int, Frame]]:
    """``chunks.seq``, place among the chunk's annotations, and frame, of those that have one."""
    query = (
        sa.select(_rows.c.chunk_seq, _rows.c.position, _rows.c.frame)
        .where(_rows.c.kb_id == kb_id, _rows.c.frame != "")
        .order_by(_rows.c.chunk_seq, _rows.c.position)
    )
    for seq, position, frame in transaction.execute(query):
        yield seq, position, Frame(frame)


def mentions(transaction: Transaction, kb_id: str) -> dict[str, list[int]]:
    """``chunks.seq`` of the chunks that speak of each subject, ascending, by the subject's id."""
    query = (
        sa.select(annotation_subjects.c.subject_id, annotation_subjects.c.chunk_seq)
        .join(chunks, chunks.c.seq == annotation_subjects.c.chunk_seq)
        .where(chunks.c.kb_id == kb_id)
        .distinct()
    )
    found: dict[str, list[int]] = {}
    for known, seq in transaction.execute(query):
        found.setdefault(known, []).append(seq)
    for seqs in found.values():
        seqs.sort()
    return found


def names(transaction: Transaction) -> dict[str, NamedSubject]:
    """All names of subjects of a workspace by their ids."""
    table = subjects.c
    query = sa.select(table.id, table.kind, table.key, table.name, table.alias_of)
    kinds = {kind.value: kind for kind in SubjectKind}
    return {
        row.id: NamedSubject(row.id, kinds[row.kind], row.key, row.name, row.alias_of or row.id)
        for row in transaction.execute(query)
    }
