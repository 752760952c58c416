"""Edits of the graph by people, for undo.

An edit stores the changed rows before and after. Undo restores the former unless they were changed
since.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa

from kbkit.errors import ConflictError, NotFoundError
from kbkit.models import GraphEdit
from kbkit.stores.catalog import graph_writing, names
from kbkit.stores.catalog.database import Transaction
from kbkit.stores.catalog.subjects import ends_by_hand
from kbkit.stores.catalog.workspace_schema import (
    ENDS,
    annotation_subjects,
    built_graphs,
    entities,
    graph_edits,
    relations,
    subjects,
)

_LIMIT = 1_000
_TIMES = frozenset({"updated_at", "deleted_at", "created_at", "seen_at", "decided_at"})

Rows = Mapping[str, Any]
"""Rows as JSON values; ``None`` for missing rows."""


@contextmanager
def noted(
    transaction: Transaction,
    what: str,
    made_by: str,
    *,
    entity: str = "",
    names: Collection[str] = (),
    relation: tuple[str, ...] = (),
    pair: tuple[str, str] | None = None,
) -> Iterator[None]:
    """Record changes within the block, so that `undo` can revert them."""
    about = {
        "entity": entity,
        "names": sorted({entity, *names}) if entity else [],
        "relation": list(relation),
        "pair": list(pair or ()),
    }
    before = _rows(transaction, about)
    yield
    values = {
        "what": what,
        "made_by": made_by,
        "made_at": datetime.now(UTC),
        "before": about | before,
        "after": _rows(transaction, about),
        "built": _built(transaction),
    }
    made = transaction.execute(graph_edits.insert().values(**values).returning(graph_edits.c.id))
    transaction.delete(graph_edits, graph_edits.c.id <= made.scalar_one() - _LIMIT)


def listed(
    transaction: Transaction, *, made_by: str | None = None, limit: int | None = None
) -> list[GraphEdit]:
    """List edits that can be undone, last first."""
    query = sa.select(*graph_edits.c).order_by(graph_edits.c.id.desc())
    if made_by is not None:
        query = query.where(graph_edits.c.made_by == made_by)
    return [_edit(row) for row in transaction.execute(query.limit(limit))]


def undo(transaction: Transaction, made_by: str, edit_id: int | None = None) -> GraphEdit:
    query = sa.select(*graph_edits.c).order_by(graph_edits.c.id.desc()).limit(1)
    own = graph_edits.c.made_by == made_by if edit_id is None else graph_edits.c.id == edit_id
    row = transaction.execute(query.where(own)).first()
    if row is None:
        raise NotFoundError(
            f"{made_by} changed nothing in the graph that could be taken back"
            if edit_id is None
            else f"no edit {edit_id} of the graph that could be taken back"
        )
    _check_unchanged(transaction, row)
    before = row.before
    if before["pair"]:
        names.undo(transaction, (before["pair"][0], before["pair"][1]))
        names.put_back(transaction, [_from_json(each) for each in before["decisions"]])
    if before["relation"]:
        _restore_relation(transaction, before)
    if before["entity"]:
        _restore_entity(transaction, before)
        # entities of knowledge bases that were built since the edit are described again
        _forget_builds_since(transaction, row.built)
    transaction.delete(graph_edits, graph_edits.c.id == row.id)
    return _edit(row)


def _rows(transaction: Transaction, about: Rows) -> dict[str, Any]:
    values: dict[str, Any] = {}
    if about["entity"]:
        own = sa.select(*entities.c).where(entities.c.subject_id == about["entity"])
        values["entity_row"] = _to_json(transaction.execute(own).first())
        named = sa.select(*subjects.c).where(transaction.is_in(subjects.c.id, about["names"]))
        values["subjects"] = {row.id: _to_json(row) for row in transaction.execute(named)}
    if about["relation"]:
        same = _same(about["relation"])
        row = transaction.execute(sa.select(*relations.c).where(same)).first()
        values["relation_row"] = _to_json(row)
    if about["pair"]:
        rows = names.of_pair(transaction, about["pair"])
        values["decisions"] = [_to_json(row) for row in rows]
    return values


def _check_unchanged(transaction: Transaction, row: Any) -> None:
    now, after = _rows(transaction, row.before), row.after
    entity, relation = now.get("entity_row"), now.get("relation_row")
    by = ""
    if _time(entity, "updated_at") != _time(after.get("entity_row"), "updated_at"):
        by = (entity or {}).get("made_by", "")
    elif _time(relation, "seen_at") != _time(after.get("relation_row"), "seen_at"):
        by = (relation or {}).get("made_by", "")
    elif now.get("decisions") == after.get("decisions") and all(
        (subject["name"], subject["alias_of"])
        == (after["subjects"][id_]["name"], after["subjects"][id_]["alias_of"])
        for id_, subject in now.get("subjects", {}).items()
        if id_ in after["subjects"]
    ):
        return
    raise ConflictError(
        f"{row.what}: that was changed again{f' by {by}' if by else ''} since; take that back "
        "first, or change it by hand"
    )


def _restore_entity(transaction: Transaction, before: Rows) -> None:
    entity_id, old = before["entity"], before["subjects"]
    present = set(
        transaction.scalars(
            sa.select(subjects.c.id).where(transaction.is_in(subjects.c.id, before["names"]))
        )
    )
    missing = [old[each] | {"alias_of": None} for each in old if each not in present]
    transaction.insert(subjects, missing)
    for each in before["names"]:  # aliases added by the edit lose their entity
        values = {key: old[each][key] for key in ("name", "alias_of")} if each in old else {}
        own = subjects.c.id == each
        transaction.update(subjects, own, **{"alias_of": None} | values)
    transaction.delete(entities, entities.c.subject_id == entity_id)
    if before["entity_row"] is not None:
        transaction.insert_one(entities, **_from_json(before["entity_row"]))
    own = subjects.alias("own")
    transaction.delete(
        subjects,
        subjects.c.id.in_([each for each in before["names"] if each not in old]),
        ~sa.exists().where(annotation_subjects.c.subject_id == subjects.c.id),
        ~sa.exists().where(entities.c.subject_id == subjects.c.id),
        ~sa.exists().where(own.c.alias_of == subjects.c.id),
        subjects.c.id.not_in(ends_by_hand()),
    )


def _restore_relation(transaction: Transaction, before: Rows) -> None:
    same = _same(before["relation"])
    row = before["relation_row"]
    if row is not None and row["by_hand"]:
        values = _from_json(row)
        transaction.update(relations, same, **values)
        return
    values = {"by_hand": False, "made_by": graph_writing.BUILDER, "note": "", "deleted_at": None}
    relation_id = transaction.execute(
        relations.update().where(same).values(**values).returning(relations.c.id)
    ).scalar_one()
    graph_writing.settle(transaction, [relation_id])


def _forget_builds_since(transaction: Transaction, built: Mapping[str, int]) -> None:
    for kb_id, version in _built(transaction).items():
        if built.get(kb_id) != version:
            transaction.delete(built_graphs, built_graphs.c.kb_id == kb_id)


def _built(transaction: Transaction) -> dict[str, int]:
    return transaction.mapping(sa.select(built_graphs.c.kb_id, built_graphs.c.version))


def _same(ends: Collection[str]) -> sa.ColumnElement[bool]:
    return sa.and_(*(relations.c[name] == end for name, end in zip(ENDS, ends, strict=True)))


def _edit(row: Any) -> GraphEdit:
    return GraphEdit(row.id, row.what, row.made_by, row.made_at)


def _time(row: Rows | None, column: str) -> str | None:
    return None if row is None else row[column]


def _to_json(row: Any) -> dict[str, Any] | None:
    if row is None:
        return None
    return {
        name: value.isoformat() if isinstance(value, datetime) else value
        for name, value in row._mapping.items()
    }


def _from_json(values: Rows) -> dict[str, Any]:
    return {
        name: datetime.fromisoformat(value) if name in _TIMES and value else value
        for name, value in values.items()
    }
