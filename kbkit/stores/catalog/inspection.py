"""Check the catalog's content: tables, rows, vectors and terms. All in one transaction."""

import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import sqlalchemy as sa

from kbkit import models
from kbkit.errors import KbkitError
from kbkit.models import DocumentState, DocumentType, TargetKind
from kbkit.stores.catalog import knowledge_bases
from kbkit.stores.catalog.database import Transaction, unpack
from kbkit.stores.catalog.knowledge_bases import MAX_DIMENSIONS, KnowledgeBaseRow, spec_of
from kbkit.stores.catalog.schema import chunks, documents, metadata, rating_totals, ratings, vectors
from kbkit.stores.catalog.schema import knowledge_bases as knowledge_base_table
from kbkit.stores.catalog.workspace_schema import jobs
from kbkit.text.analysis import analyzer

_AT_ONCE = 2_000
_TEXTS = 100
_TOLERANCE = 0.01
"""Tolerance of a 16-bit unit vector's length."""


def unreadable(transaction: Transaction) -> Iterator[str]:
    """Find tables that are missing, unreadable, or have impossible values."""
    existing = set(sa.inspect(transaction._connection).get_table_names())
    for table in metadata.sorted_tables:
        if table.name not in existing:
            yield f"the table {table.name} is missing"
            continue
        try:
            # a savepoint, because a failed statement ends the transaction in PostgreSQL
            with transaction._connection.begin_nested():
                query = sa.select(table).execution_options(yield_per=_AT_ONCE)
                for _ in transaction.execute(query):
                    pass
        except KbkitError:
            raise
        except Exception as error:
            existing.remove(table.name)
            yield f"the table {table.name} cannot be read ({_message(error)})"
    for column, is_impossible in _impossible_values():
        if column.table.name in existing:
            for value in transaction.scalars(sa.select(column).where(is_impossible).limit(1)):
                where = f"the table {column.table.name}"
                yield f"{where} has an impossible {column.name}: {str(value)[:40]!r}"


def _impossible_values() -> Iterator[tuple[sa.Column[Any], sa.ColumnElement[bool]]]:
    """Yield columns and the condition of their impossible values."""
    for column, kind in (
        (documents.c.state, DocumentState),
        (documents.c.document_type, DocumentType),
        (ratings.c.target_type, TargetKind),
        (jobs.c.state, models.JobState),
    ):
        yield column, column.not_in([each.value for each in kind])
    for number, minimum, maximum in (
        (ratings.c.score, 1, 5),
        (rating_totals.c.average, 1, 5),
        (rating_totals.c.raters, 1, None),
        (knowledge_base_table.c.dimensions, 1, MAX_DIMENSIONS),
        (knowledge_base_table.c.applied_seq, 0, None),
        (chunks.c.start, 0, None),
        (chunks.c.length, 0, (1 << 31) - 1),
    ):
        is_impossible = number < minimum
        yield number, is_impossible if maximum is None else sa.or_(is_impossible, number > maximum)
    yield chunks.c.end, chunks.c.end < chunks.c.start


def _message(error: Exception) -> str:
    return " ".join(str(getattr(error, "orig", None) or error).split())[:120]


def misfits(transaction: Transaction) -> Iterator[str]:
    """Find values that are readable, but impossible."""
    for row in knowledge_bases.rows(transaction):
        for problem in (*wrong_config(row), *wrong_vectors(transaction, row)):
            yield f"{row.name}: {problem}"


def wrong_vectors(transaction: Transaction, row: KnowledgeBaseRow) -> Iterator[str]:
    joined = chunks.outerjoin(vectors, vectors.c.chunk_seq == chunks.c.seq)
    query = sa.select(chunks.c.seq, vectors.c.vector).select_from(joined)
    query = query.where(chunks.c.kb_id == row.id).order_by(chunks.c.seq)
    missing = short = wrong = 0
    rows = transaction.execute(query.execution_options(yield_per=_AT_ONCE))
    for batch in rows.partitions(_AT_ONCE):
        packed = [each.vector for each in batch if isinstance(each.vector, bytes)]
        missing += len(batch) - len(packed)
        complete = [each for each in packed if len(each) == 2 * row.dimensions]
        short += len(packed) - len(complete)
        if complete:
            lengths = np.linalg.norm(unpack(complete, row.dimensions), axis=1)
            # text without a known word has a zero vector
            wrong += int(np.count_nonzero(~((np.abs(lengths - 1) <= _TOLERANCE) | (lengths == 0))))
    if missing:
        yield f"{missing:,} chunks have no vector"
    if short:
        yield f"{short:,} vectors do not have {row.dimensions:,} numbers"
    if wrong:
        yield f"{wrong:,} vectors are not finite, or not of length 1"


def wrong_places(transaction: Transaction, row: KnowledgeBaseRow) -> Iterator[str]:
    wrong = 0
    texts = sa.select(documents.c.id, documents.c.content).where(documents.c.kb_id == row.id)
    for batch in transaction.execute(texts.execution_options(yield_per=_TEXTS)).partitions(_TEXTS):
        contents = {each.id: each.content for each in batch}
        columns = (chunks.c.document_id, chunks.c.start, chunks.c.end, chunks.c.text)
        query = sa.select(*columns).where(chunks.c.document_id.in_(contents))
        rows = transaction.execute(query)
        wrong += sum(contents[id_][start:end] != text for id_, start, end, text in rows)
    if wrong:
        yield f"{wrong:,} chunks differ from the text at their place in their document"


def wrong_config(row: KnowledgeBaseRow) -> Iterator[str]:
    """Find settings of a knowledge base that this version does not support."""
    try:
        analyzer(spec_of(row).language)
    except KbkitError as error:
        yield str(error).removeprefix(f"{row.name}: ")


def file_faults(path: Path) -> list[str]:
    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
        connection.text_factory = lambda data: data.decode(errors="replace")
        rows = connection.execute("PRAGMA integrity_check(20)")
        reported = [row[0].removeprefix("*** in database main ***\n") for row in rows]
        faults = ("; ".join(message.splitlines()) for message in reported if message != "ok")
        problems = [f"the file is damaged ({fault})" for fault in faults]
        if problems:
            return problems
        lost = Counter(row[0] for row in connection.execute("PRAGMA foreign_key_check"))
        return [
            f"{count:,} rows of the table {table} have no parent" for table, count in lost.items()
        ]
