"""Merges of entities, and edits of the graph by people, for undo.

An edit stores the changed rows before and after. Undo restores the former, unless they changed
since.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa

from kbkit.errors import ConflictError, NotFoundError
from kbkit.models import GraphEdit
from kbkit.stores.catalog import entities as entity_rows
from kbkit.stores.catalog import graph_writing
from kbkit.stores.catalog.bundled import row_of, to_json
from kbkit.stores.catalog.database import Transaction
from kbkit.stores.catalog.relations import has_ends
from kbkit.stores.catalog.subjects import sweep
from kbkit.stores.catalog.workspace_schema import (
    built_graphs,
    entities,
    graph_edits,
    merges,
    relations,
    subjects,
)

_LIMIT = 1_000

Rows = Mapping[str, Any]
"""Rows as JSON values; ``None`` for missing rows."""


@contextmanager
def record_edit(
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
    scope = {
        "entity": entity,
        "names": sorted({entity, *names}) if entity else [],
        "relation": list(relation),
        "pair": list(pair or ()),
    }
    before = _rows(transaction, scope)
    yield
    signed = {"what": what, "made_by": made_by, "made_at": datetime.now(UTC)}
    rows = {"before": scope | before, "after": _rows(transaction, scope)}
    built = _built_versions(transaction)
    edit_id = transaction.insert_one(graph_edits, **signed, **rows, built=built)
    transaction.delete(graph_edits, graph_edits.c.id <= edit_id - _LIMIT)


def list_edits(
    transaction: Transaction, *, made_by: str | None = None, limit: int | None = None
) -> list[GraphEdit]:
    """List edits that can be undone, last first."""
    query = sa.select(*graph_edits.c).order_by(graph_edits.c.id.desc())
    if made_by is not None:
        query = query.where(graph_edits.c.made_by == made_by)
    return [_edit(row) for row in transaction.execute(query.limit(limit))]


def undo(transaction: Transaction, made_by: str, edit_id: int | None = None) -> GraphEdit:
    query = sa.select(*graph_edits.c).order_by(graph_edits.c.id.desc()).limit(1)
    selected = graph_edits.c.made_by == made_by if edit_id is None else graph_edits.c.id == edit_id
    row = transaction.execute(query.where(selected)).first()
    if row is None:
        raise NotFoundError(
            f"{made_by} changed nothing in the graph that can be undone"
            if edit_id is None
            else f"no edit {edit_id} of the graph that can be undone"
        )
    _check_unchanged(transaction, row)
    before = row.before
    if before["pair"]:
        _undo_merge(transaction, (before["pair"][0], before["pair"][1]))
        transaction.insert(merges, [row_of(merges, each) for each in before["decisions"]])
    if before["relation"]:
        _restore_relation(transaction, before)
    if before["entity"]:
        _restore_entity(transaction, before)
        # entities of knowledge bases that were built since the edit are described again
        versions = _built_versions(transaction).items()
        rebuilt = [kb_id for kb_id, version in versions if row.built.get(kb_id) != version]
        transaction.delete(built_graphs, built_graphs.c.kb_id.in_(rebuilt))
    transaction.delete(graph_edits, graph_edits.c.id == row.id)
    return _edit(row)


def _rows(transaction: Transaction, scope: Rows) -> dict[str, Any]:
    values: dict[str, Any] = {}
    if scope["entity"]:
        of_entity = entities.c.subject_id == scope["entity"]
        values["entity_row"] = _to_json(transaction.first(entities.c, of_entity))
        query = sa.select(*subjects.c).where(transaction.is_in(subjects.c.id, scope["names"]))
        values["subjects"] = {row.id: _to_json(row) for row in transaction.execute(query)}
    if scope["relation"]:
        row = transaction.first(relations.c, has_ends(scope["relation"]))
        values["relation_row"] = _to_json(row)
    if scope["pair"]:
        rows = _decisions(transaction, scope["pair"])
        values["decisions"] = [_to_json(row) for row in rows]
    return values


def _check_unchanged(transaction: Transaction, row: Any) -> None:
    current, after = _rows(transaction, row.before), dict(row.after)
    # unused subjects may have been deleted since
    names, names_after = current.pop("subjects", {}), after.pop("subjects", {})
    if current == after and all(names_after.get(id_, each) == each for id_, each in names.items()):
        return
    changed = current.get("entity_row") or current.get("relation_row") or {}
    by = changed.get("made_by") if current != after else ""
    raise ConflictError(
        f"{row.what}: that was changed again{f' by {by}' if by else ''} since; undo that "
        "first, or change it yourself"
    )


def _restore_entity(transaction: Transaction, before: Rows) -> None:
    entity_id, rows = before["entity"], before["subjects"]
    present = transaction.existing(subjects.c.id, before["names"])
    missing = [rows[id_] | {"alias_of": None} for id_ in rows if id_ not in present]
    transaction.insert(subjects, missing)
    for id_ in before["names"]:  # aliases added by the edit lose their entity
        values = {key: rows[id_][key] for key in ("name", "alias_of")} if id_ in rows else {}
        of_subject = subjects.c.id == id_
        transaction.update(subjects, of_subject, **{"alias_of": None} | values)
    transaction.delete(entities, entities.c.subject_id == entity_id)
    if before["entity_row"] is not None:
        transaction.insert_one(entities, **row_of(entities, before["entity_row"]))
    sweep(transaction, [id_ for id_ in before["names"] if id_ not in rows])


def _restore_relation(transaction: Transaction, before: Rows) -> None:
    condition = has_ends(before["relation"])
    row = before["relation_row"]
    if row is not None and row["by_hand"]:
        transaction.update(relations, condition, **row_of(relations, row))
        return
    values = {"by_hand": False, "made_by": graph_writing.BUILDER, "note": "", "deleted_at": None}
    relation_id = transaction.execute(
        relations.update().where(condition).values(**values).returning(relations.c.id)
    ).scalar_one()
    graph_writing.settle(transaction, [relation_id])


def _built_versions(transaction: Transaction) -> dict[str, int]:
    return transaction.mapping(sa.select(built_graphs.c.kb_id, built_graphs.c.version))


def _edit(row: Any) -> GraphEdit:
    return GraphEdit(row.id, row.what, row.made_by, row.made_at)


def _to_json(row: Any) -> dict[str, Any] | None:
    return None if row is None else dict(zip(row._fields, map(to_json, row), strict=True))


def decide(
    transaction: Transaction, kept_id: str, merged_id: str, *, applied: bool, made_by: str
) -> None:
    """Make an entity an alias of another one, or only record that they differ."""
    if kept_id == merged_id:
        raise ConflictError("the two are one entity already")
    query = sa.select(subjects.c.id).where(subjects.c.alias_of == merged_id)
    moved = sorted(transaction.scalars(query)) if applied else []
    transaction.delete(merges, _is_pair((kept_id, merged_id)))
    values = {"moved": moved, "made_by": made_by, "decided_at": datetime.now(UTC)}
    pair = {"kept_id": kept_id, "merged_id": merged_id, "applied": applied}
    transaction.insert_one(merges, **pair, **values)
    if applied:
        transaction.update(subjects, subjects.c.id.in_([merged_id, *moved]), alias_of=kept_id)


def _undo_merge(transaction: Transaction, pair: tuple[str, str]) -> None:
    for row in _decisions(transaction, pair):
        if not row.applied:
            continue
        if row.kept_id in entity_rows.aliases_of(transaction):
            raise ConflictError(
                "the entity that was kept has been merged into another since; undo that first"
            )
        of_kept = subjects.c.alias_of == row.kept_id
        transaction.update(subjects, of_kept, subjects.c.id.in_(row.moved), alias_of=row.merged_id)
        transaction.update(subjects, of_kept, subjects.c.id == row.merged_id, alias_of=None)
    transaction.delete(merges, _is_pair(pair))


def _decisions(transaction: Transaction, pair: Sequence[str]) -> list[Any]:
    return list(transaction.execute(sa.select(*merges.c).where(_is_pair(pair))).all())


def _is_pair(pair: Sequence[str]) -> sa.ColumnElement[bool]:
    return merges.c.kept_id.in_(pair) & merges.c.merged_id.in_(pair)


def decided_pairs(transaction: Transaction) -> set[frozenset[str]]:
    rows = transaction.execute(sa.select(merges.c.kept_id, merges.c.merged_id))
    return {frozenset((row.kept_id, row.merged_id)) for row in rows}
