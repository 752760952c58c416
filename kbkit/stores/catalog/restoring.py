"""Restore the rows of a bundle, in one transaction.

A new knowledge base keeps all its ids. An existing one gets only missing ratings. Restoring twice
changes nothing.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Table

from kbkit.errors import BundleError, ConflictError
from kbkit.models import DocumentState, DocumentType, RestoredKnowledgeBase, TargetKind
from kbkit.models.values import BUILT_IN
from kbkit.recipes import check_name
from kbkit.stores.catalog import (
    bundled,
    copying,
    graph_writing,
    knowledge_bases,
    outbox,
    ratings,
    workspace_schema,
)
from kbkit.stores.catalog.bundled import Values
from kbkit.stores.catalog.database import Row, Transaction
from kbkit.stores.catalog.knowledge_bases import MAX_DIMENSIONS, KnowledgeBaseRow
from kbkit.stores.catalog.schema import chunks, deleted_documents, documents, name_uses
from kbkit.stores.catalog.schema import knowledge_bases as bases
from kbkit.stores.catalog.schema import ratings as all_ratings

_MAX_USES = 100_000
"""Maximum knowledge bases of one name, whose ids a bundle computes."""
_ID = re.compile(r"[0-9a-f]{32}")
_TYPES = frozenset(kind.value for kind in DocumentType)
_STATES = frozenset(state.value for state in DocumentState)
_TARGETS = frozenset(kind.value for kind in TargetKind)


# name of the columns that refer to a table
_REFERRING = {
    "sources": "source_id",
    "documents": "document_id",
    "chunks": "chunk_seq",
    "runs": "run_id",
    "relations": "relation_id",
}


@dataclass
class Restorer:
    """Stores the rows of one bundle."""

    transaction: Transaction
    rows: Callable[[str], Iterable[Values]]
    name: str
    trust: bool
    _existing: dict[str, KnowledgeBaseRow | None] = field(default_factory=dict)  # None if new
    _counts: Counter[tuple[str, str]] = field(default_factory=Counter)  # by table and kb_id
    _keys: dict[str, dict[Any, Any]] = field(default_factory=lambda: defaultdict(dict))
    _dimensions: dict[Any, int] = field(default_factory=dict)
    _rated: set[tuple[str, str]] = field(default_factory=set)
    _numbers: dict[Table, int] = field(default_factory=dict)

    @cached_property
    def _subjects(self) -> dict[str, str | None]:
        """Main names of the catalog's subjects; ``None`` for main names."""
        subjects = workspace_schema.subjects.c
        return self.transaction.mapping(sa.select(subjects.id, subjects.alias_of))

    @cached_property
    def _shift(self) -> int:
        """Number to add to versions: other processes may still cache those of a namesake."""
        return self.transaction.last_number(chunks.c.seq) + 1

    def run(self) -> tuple[RestoredKnowledgeBase, ...]:
        steps: dict[str, Callable[[Values], Values | None]] = {
            "name_uses": self._name_use,
            "ratings": self._rating,
            "relations": self._relation,
            "subjects": self._subject,
        }
        for table in bundled.tables():
            if table is bases:
                for values in list(self._check_rows(bases)):
                    self._place(values)
                continue
            self._store(table, steps.get(table.name) or self._step(table))
            if table.name == "vectors":
                count = self._counts["vectors", ""]
                if count != sum(self._counts["chunks", kb_id] for kb_id in self._existing):
                    raise _bad(table, count, "chunks lack their vectors")
        if self._keys["relation_id"]:
            graph_writing.settle(self.transaction)
        return tuple(map(self._finish, self._existing))

    def _store(self, table: Table, step: Callable[[Values], Values | None]) -> None:
        referring: list[Row] = []
        converted = (step(values) for values in self._check_rows(table))
        for batch in copying.batches(values for values in converted if values is not None):
            self._counts.update((table.name, row.get("kb_id", "")) for row in batch)
            try:
                copying.insert(self.transaction, table, batch)
            except sa.exc.IntegrityError as error:
                raise BundleError(
                    f"the rows of {table.name} do not fit together, or with the workspace "
                    f"({error.orig}); nothing was changed"
                ) from None
            if copying.self_references(table):
                referring += batch
        copying.set_self_references(self.transaction, table, referring)
        if table in self._numbers:
            (column,) = table.primary_key
            self.transaction.number_after(column, self._numbers[table])

    def _check_rows(self, table: Table) -> Iterator[Values]:
        for number, values in enumerate(self.rows(table.name), 1):
            try:
                row = bundled.row_of(table, values)
            except ValueError as error:
                raise _bad(table, number, str(error)) from None
            if fault := self._fault(table, row):
                raise _bad(table, number, fault)
            if table is all_ratings or self._existing.get(row.get("kb_id", "")) is None:
                yield row

    def _fault(self, table: Table, values: Values) -> str:
        if table is bases:
            return _fault_of_base(values)
        if "kb_id" in values and values["kb_id"] not in self._existing:
            return "kb_id names no knowledge base of the bundle"
        if table is name_uses and not 0 < values["times"] <= _MAX_USES:
            return "times is impossible"
        if table is all_ratings:
            is_valid = values["target_type"] in _TARGETS and 1 <= values["score"] <= 5
            return "" if is_valid else "score or target_type is invalid for a rating"
        if table in (documents, deleted_documents) and values["document_type"] not in _TYPES:
            return "document_type is unknown"
        if table is documents and values["state"] not in _STATES:
            return "state is unknown"
        if table.name == "chunks":
            self._dimensions[values["seq"]] = self._dimensions[values["kb_id"]]
        if table.name == "vectors":
            if values["chunk_seq"] not in self._dimensions:
                return "chunk_seq names no chunk of the bundle"
            return self._fault_of_vector(values["chunk_seq"], values["vector"])
        if table.name in ("embedded", "summary_vectors", "question_vectors"):
            return self._fault_of_vector((table, values["embedder"]), values["vector"])
        return ""

    def _fault_of_vector(self, kind: Any, packed: bytes) -> str:
        length = len(packed) // 2
        expected = self._dimensions.setdefault(kind, length)
        return "" if length and length == expected else "vector differs in length from the others"

    def _place(self, values: Values) -> None:
        kb_id, name = values["id"], self.name or values["name"]
        existing = self.transaction.first([bases], bases.c.id == kb_id)
        row = KnowledgeBaseRow(**existing._mapping) if existing else None
        if row and row.deleted_at:
            raise ConflictError(
                f"{values['name']}: this knowledge base is in the trash of the workspace; bring it "
                "back with `kbkit undelete`, or empty the trash with `kbkit compact`, and run "
                "this again"
            )
        if row and self.name not in ("", row.name):
            raise ConflictError(
                f"this knowledge base already exists, as {row.name!r}; leave out --as to add "
                "missing ratings, or restore a copy in another workspace"
            )
        if row is None and name in knowledge_bases.names(self.transaction):
            raise ConflictError(
                f"another knowledge base named {name!r} exists; choose a name for the one in "
                "the bundle with --as"
            )
        self._existing[kb_id], self._dimensions[kb_id] = row, values["dimensions"]
        if row is None:
            new_row = values | {"name": name, "collection": f"{name}.{kb_id[:8]}"}
            new_row["version"] += self._shift
            copying.insert(self.transaction, bases, [new_row])

    def _name_use(self, values: Values) -> Values:
        of_name = name_uses.c.name == values["name"]
        times = self.transaction.execute(sa.select(name_uses.c.times).where(of_name)).scalar()
        self.transaction.delete(name_uses, of_name)
        return values | {"times": max(times or 0, values["times"])}

    def _rating(self, values: Values) -> Values | None:
        if self._existing[values["kb_id"]] is not None:
            conditions = (
                column == values[column.name] for column in all_ratings.c if column.name != "id"
            )
            if self.transaction.first([all_ratings.c.id], *conditions):
                return None
        self._rated.add((values["kb_id"], values["target"]))
        return values | {"id": self._next(all_ratings.c.id)}

    def _relation(self, values: Values) -> Values | None:
        relations = workspace_schema.relations.c
        conditions = (relations[name] == values[name] for name in workspace_schema.ENDS)
        existing = self.transaction.execute(sa.select(relations.id).where(*conditions)).scalar()
        number = self._next(relations.id) if existing is None else existing
        self._keys["relation_id"][values["id"]] = number
        return values | {"id": number} if existing is None else None

    def _subject(self, values: Values) -> Values | None:
        if values["id"] in self._subjects:
            return None
        main_id = values["alias_of"]  # may be an alias in this catalog
        return values | {"alias_of": self._subjects.get(main_id) or main_id}

    def _step(self, table: Table) -> Callable[[Values], Values | None]:
        """Return a function that gives rows of new knowledge bases their new keys.

        It leaves out rows that refer to a row which was left out, unless they need not.
        """
        key, *others = table.primary_key
        existing = set[tuple[Any, ...]]()
        if table.name in ("entities", "merges"):  # shared by all knowledge bases
            existing = {tuple(r) for r in self.transaction.execute(sa.select(key, *others))}
        referring = [column for column in table.c if column.name in _REFERRING.values()]

        def step(values: Values) -> Values | None:
            row = values.copy()
            for column in referring:
                row[column.name] = self._keys[column.name].get(values[column.name])
                if row[column.name] is None and not column.nullable:
                    return None
            if "version" in row and table.name not in ("summaries", "summary_vectors"):
                row["version"] += self._shift
            if table.name == "sources":
                row["enabled"] = row["enabled"] and self.trust
            if key.autoincrement is True:
                row[key.name] = self._next(key)
            if table.name in _REFERRING:
                self._keys[_REFERRING[table.name]][values[key.name]] = row[key.name]
            return None if tuple(row[each.name] for each in (key, *others)) in existing else row

        return step

    def _next(self, column: sa.Column[int]) -> int:
        table = column.table
        last = self._numbers.get(table)
        self._numbers[table] = (self.transaction.last_number(column) if last is None else last) + 1
        return self._numbers[table]

    def _finish(self, kb_id: str) -> RestoredKnowledgeBase:
        for of_kb, target in self._rated:
            if of_kb == kb_id:
                ratings.add_up(self.transaction, kb_id, target)
        row = knowledge_bases.get_by_id(self.transaction, kb_id)
        is_new = self._existing[kb_id] is None
        if is_new:
            outbox.begin(self.transaction, row)
        counts = (self._counts[name, kb_id] for name in ("documents", "chunks", "ratings"))
        return RestoredKnowledgeBase(row.name, is_new, *counts)


def _fault_of_base(values: Values) -> str:
    kb_id, name = values["id"], values["name"]
    if kb_id in BUILT_IN or name in BUILT_IN:
        return "" if kb_id == name else "its name is reserved"
    if not _ID.fullmatch(kb_id):  # becomes part of a table name
        return "id is invalid for a knowledge base"
    try:
        check_name(name)
    except ValueError as error:
        return str(error)
    valid = values["deleted_at"] is None and values["version"] >= 0
    return "" if valid and 0 < values["dimensions"] <= MAX_DIMENSIONS else "its figures are invalid"


def _bad(table: Table, number: int, reason: str) -> BundleError:
    return BundleError(
        f"row {number:,} of {table.name}: {reason}; the bundle is damaged, or not from kbkit; "
        "nothing was changed"
    )
