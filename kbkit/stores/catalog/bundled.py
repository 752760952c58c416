"""Rows of a catalog as JSON values for a bundle. All in the caller's transaction.

`note` records in the transaction that the restored files belong to it, so that after a
kill the next process knows whether to keep them.
"""

import base64
import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any
from uuid import NAMESPACE_URL, uuid5

import sqlalchemy as sa
from sqlalchemy import Column, Table

from kbkit.stores.catalog import copying, schema, workspace_schema
from kbkit.stores.catalog.database import Condition, Row, Transaction

Values = dict[str, Any]
"""A row: JSON values by column; times in ISO 8601, bytes in base64."""

REVISION = schema.HEAD

LEFT_OUT: Mapping[str, str] = {
    "outbox": "belongs to the vector index, which is rebuilt",
    "dropped_collections": "belongs to the vector index, which is rebuilt",
    "removed_chunks": "belongs to snapshots, which are rebuilt",
    "rating_totals": "follows from the ratings",
    "files": "follows from the files",
    "file_names": "follows from the files",
    "file_links": "follows from the files",
    "entries": "follows from the folders of entries",
    "learned_folders": "describes folders of one machine",
    "graph_edits": "a person's undo history in one workspace",
    "tokens": "belongs to one server",
    "jobs": "belongs to one server",
}
"""Tables that bundles leave out, and why."""

_ENTRY = "entry"
_LARGEST = 2**62
"""Limit of integers; a restore adds to some."""


def tables() -> list[Table]:
    first = (
        schema.knowledge_bases,
        schema.name_uses,
        schema.sources,
        schema.runs,
        schema.documents,
        schema.chunks,
    )
    other_tables = (table for table in copying.tables() if table not in first)
    return [*first, *(table for table in other_tables if table.name not in LEFT_OUT)]


def rows(
    transaction: Transaction, kb_ids: Sequence[str], *, whole: bool
) -> Iterator[tuple[str, Iterator[Values]]]:
    """Yield the name of each table and its rows in key order."""
    subjects, relations = _graph(transaction, kb_ids, whole)
    of_chunks = sa.select(schema.chunks.c.seq).where(schema.chunks.c.kb_id.in_(kb_ids))
    of_sources = sa.select(schema.sources.c.id).where(schema.sources.c.kb_id.in_(kb_ids))

    def condition(table: Table) -> Condition:
        columns = table.c
        if table is workspace_schema.relations:
            return transaction.is_in(columns.id, relations)
        if table in _OF_SUBJECTS:
            keys = (transaction.is_in(key, subjects) for key in table.primary_key)
            return sa.and_(*keys)
        if table is schema.knowledge_bases:
            return columns.id.in_(kb_ids)
        if table is schema.pages:
            return columns.source_id.in_(of_sources)
        if "kb_id" not in columns:
            return columns.chunk_seq.in_(of_chunks)
        of_kbs: Condition = columns.kb_id.in_(kb_ids)
        if table is schema.ratings:  # ratings of entries are in their folders
            of_kbs &= columns.target_type != _ENTRY
        if table is schema.deleted_documents:
            of_kbs &= columns.source_id.in_(sa.select(schema.sources.c.id))
        return of_kbs

    for table in tables():
        if table is schema.name_uses:
            yield table.name, _uses(transaction, kb_ids)
        else:
            table_rows = copying.rows(transaction, table, condition(table))
            yield table.name, map(partial(_values, table), table_rows)


_OF_SUBJECTS = (workspace_schema.subjects, workspace_schema.entities, workspace_schema.merges)


def _graph(
    transaction: Transaction, kb_ids: Sequence[str], whole: bool
) -> tuple[set[str], set[int]]:
    """Return the subjects and relations that knowledge bases mention."""
    relations, subjects = workspace_schema.relations.c, workspace_schema.subjects.c
    evidence = workspace_schema.relation_evidence.c
    mentions = workspace_schema.annotation_subjects.c
    chunk_seqs = sa.select(schema.chunks.c.seq).where(schema.chunks.c.kb_id.in_(kb_ids))
    query = sa.select(mentions.subject_id).where(mentions.chunk_seq.in_(chunk_seqs)).distinct()
    entity_ids = set(transaction.scalars(query))
    query = sa.select(evidence.relation_id).where(evidence.chunk_seq.in_(chunk_seqs)).distinct()
    related = set(transaction.scalars(query))
    places = set(kb_ids)
    for table in (schema.documents, schema.chunks):
        query = sa.select(table.c.id).where(table.c.kb_id.in_(kb_ids))
        places.update(transaction.scalars(query))
    ends = (relations[name] for name in workspace_schema.ENDS)
    for row in transaction.execute(sa.select(relations.id, relations.by_hand, *ends)):
        pairs = {(row.source_kind, row.source_id), (row.target_kind, row.target_id)}
        if row.by_hand and (whole or all(end in entity_ids or end in places for _, end in pairs)):
            related.add(row.id)
        if row.id in related:
            entity_ids.update(end for kind, end in pairs if kind == "entity")
    if whole:
        columns = workspace_schema.entities.c
        by_hand = sa.select(columns.subject_id).where(columns.by_hand)
        entity_ids.update(transaction.scalars(by_hand))
    names = sa.select(subjects.id, subjects.alias_of)
    main_of = transaction.mapping(names)
    for id_ in list(entity_ids):
        while (id_ := main_of.get(id_) or "") and id_ not in entity_ids:
            entity_ids.add(id_)
    return entity_ids, related


def _uses(transaction: Transaction, kb_ids: Sequence[str]) -> Iterator[Values]:
    for row in transaction.execute(sa.select(schema.name_uses).order_by(schema.name_uses.c.name)):
        ids = (uuid5(NAMESPACE_URL, f"urn:kbkit:{row.name}:{n + 1}").hex for n in range(row.times))
        numbers = [n for n, id_ in enumerate(ids, 1) if id_ in kb_ids]
        if numbers:
            yield {"name": row.name, "times": numbers[-1]}


def _values(table: Table, row: Row) -> Values:
    values = {name: to_json(value) for name, value in row.items()}
    if table is schema.knowledge_bases:  # state of the vector index
        values |= {"collection": "", "applied_seq": 0}
    if table is schema.deleted_documents:  # as in an empty trash
        values |= {"content": "", "metadata": {}}
    return values


def to_json(value: Any) -> Any:
    if isinstance(value, bytes | memoryview):
        return base64.b64encode(value).decode()
    return value.isoformat() if isinstance(value, datetime) else value


def row_of(table: Table, values: Any) -> dict[str, Any]:
    """Convert a row of a bundle.

    Raises:
        ValueError: A value is invalid.
    """
    if not isinstance(values, dict) or values.keys() != set(table.c.keys()):
        raise ValueError(f"does not have the columns {', '.join(table.c.keys())}")
    return {column.name: _check_value(column, values[column.name]) for column in table.c}


def _check_value(column: Column[Any], value: Any) -> Any:
    if value is None:
        if column.nullable:
            return None
        raise ValueError(f"{column.name} is missing")
    is_valid = True
    kind = column.type
    try:
        if isinstance(kind, schema.Json):
            json.dumps(schema.check_shape(value, kind.shape), allow_nan=False).encode()
        elif isinstance(kind, schema.UtcDateTime):
            value = datetime.fromisoformat(value)
            is_valid = value.tzinfo is not None
        elif kind.python_type is bytes:
            value = base64.b64decode(value, validate=True)
        elif kind.python_type is float:
            is_valid = type(value) in (int, float)
            value = float(value)
        else:
            is_valid = type(value) is kind.python_type
            is_valid &= not isinstance(value, int) or abs(value) < _LARGEST
            str(value).encode()  # lone surrogates cannot be stored
    except (ValueError, TypeError, RecursionError, OverflowError):
        is_valid = False
    if not is_valid:
        raise ValueError(f"{column.name} has an invalid value")
    return value


JOURNAL = "restoring.json"
"""File in a workspace that lists the files of an unfinished restore, with its token."""
_MARK = ".restored."
"""Prefix of notes in `name_uses`; invalid in names of knowledge bases."""


def note(transaction: Transaction, token: str) -> None:
    """Record a token that `counts` finds after this transaction is committed."""
    transaction.insert_one(schema.name_uses, name=_MARK + token, times=1)


def counts(transaction: Transaction, token: str) -> bool:
    return bool(
        transaction.first([schema.name_uses.c.times], schema.name_uses.c.name == _MARK + token)
    )


def forget(transaction: Transaction, token: str) -> None:
    transaction.delete(schema.name_uses, schema.name_uses.c.name == _MARK + token)
