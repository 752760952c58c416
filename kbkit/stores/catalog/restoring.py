"""Restore the rows of a bundle, in one transaction.

A new knowledge base keeps all its ids. An existing one gets only missing ratings. Restoring twice
changes nothing.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Table

from kbkit.errors import BundleError, ConflictError
from kbkit.models import DocumentState, DocumentType, RestoredKnowledgeBase, TargetKind
from kbkit.models.files import BUILT_IN
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
from kbkit.stores.catalog.schema import chunks, deleted_documents, documents, name_uses, runs
from kbkit.stores.catalog.schema import knowledge_bases as bases
from kbkit.stores.catalog.schema import ratings as all_ratings

_MAX_USES = 100_000
"""Maximum knowledge bases of one name, whose ids a bundle computes."""
_ID = re.compile(r"[0-9a-f]{32}")
_TYPES = frozenset(kind.value for kind in DocumentType)
_STATES = frozenset(state.value for state in DocumentState)
_TARGETS = frozenset(kind.value for kind in TargetKind)


@dataclass
class _Base:
    """A knowledge base of the bundle and its place in the catalog."""

    id: str
    row: KnowledgeBaseRow | None  # the existing one; None for a new one
    values: Values
    shift: int = 0  # added to the versions of a new one
    documents: int = 0
    chunks: int = 0
    ratings: int = 0
    rated: set[str] = field(default_factory=set)


@dataclass
class Restorer:
    """Stores the rows of one bundle."""

    transaction: Transaction
    rows: Callable[[str], Iterable[Values]]
    name: str
    trust: bool
    _bases: dict[str, _Base] = field(default_factory=dict)
    _sources: set[str] = field(default_factory=set)
    _runs: dict[int, int] = field(default_factory=dict)
    _documents: set[str] = field(default_factory=set)
    _seqs: dict[int, int] = field(default_factory=dict)
    _dimensions: dict[Any, int] = field(default_factory=dict)
    _relations: dict[int, int] = field(default_factory=dict)
    _numbers: dict[Table, int] = field(default_factory=dict)

    @cached_property
    def _subjects(self) -> dict[str, str | None]:
        """Main names of the catalog's subjects; ``None`` for main names."""
        subjects = workspace_schema.subjects.c
        return self.transaction.mapping(sa.select(subjects.id, subjects.alias_of))

    def run(self) -> tuple[RestoredKnowledgeBase, ...]:
        steps: dict[str, Callable[[Values], Values | None]] = {
            "name_uses": self._name_use,
            "sources": self._source,
            "documents": self._document,
            "deleted_documents": self._of_source,
            "chunks": self._chunk,
            "ratings": self._rating,
            "relations": self._relation,
            "subjects": self._subject,
        }
        for table in bundled.tables():
            if table is bases:
                checked = list(self._check_rows(bases))
                self._bases = {values["id"]: self._place(values) for values in checked}
                continue
            count = self._store(table, steps.get(table.name) or self._step(table))
            if table.name == "vectors" and count != sum(b.chunks for b in self._bases.values()):
                raise _bad(table, count, "chunks lack their vectors")
        if self._relations:
            graph_writing.settle(self.transaction)
        return tuple(self._finish(base) for base in self._bases.values())

    def _store(self, table: Table, step: Callable[[Values], Values | None]) -> int:
        referring: list[Row] = []
        count = 0
        converted = (step(values) for values in self._check_rows(table))
        for batch in copying.batches(values for values in converted if values is not None):
            count += len(batch)
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
        for column in copying.numbered_columns():
            if column.table is table and table in self._numbers:
                self.transaction.number_after(column, self._numbers[table])
        return count

    def _check_rows(self, table: Table) -> Iterator[Values]:
        for number, values in enumerate(self.rows(table.name), 1):
            try:
                row = bundled.row_of(table, values)
            except ValueError as error:
                raise _bad(table, number, str(error)) from None
            if fault := self._fault(table, row):
                raise _bad(table, number, fault)
            base = self._bases.get(row.get("kb_id", ""))
            if base is None or base.row is None or table is all_ratings:
                yield row

    def _fault(self, table: Table, values: Values) -> str:
        if table is bases:
            return _fault_of_base(values)
        if "kb_id" in values and values["kb_id"] not in self._bases:
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
            self._dimensions[values["seq"]] = self._bases[values["kb_id"]].values["dimensions"]
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

    # ---- knowledge bases

    def _place(self, values: Values) -> _Base:
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
        if row:
            return _Base(kb_id, row, values)
        if name in knowledge_bases.names(self.transaction):
            raise ConflictError(
                f"another knowledge base named {name!r} exists; choose a name for the one in "
                "the bundle with --as"
            )
        # other processes may still cache versions of a deleted namesake
        shift = self.transaction.last_number(chunks.c.seq) + 1
        base = _Base(kb_id, None, values, shift=shift)
        new_row = values | {"name": name, "collection": f"{name}.{kb_id[:8]}"}
        new_row["version"] += base.shift
        copying.insert(self.transaction, bases, [new_row])
        return base

    def _name_use(self, values: Values) -> Values:
        of_name = name_uses.c.name == values["name"]
        times = self.transaction.execute(sa.select(name_uses.c.times).where(of_name)).scalar()
        self.transaction.delete(name_uses, of_name)
        return values | {"times": max(times or 0, values["times"])}

    # ---- sources and documents

    def _source(self, values: Values) -> Values:
        self._sources.add(values["id"])
        return values | {"enabled": values["enabled"] and self.trust}

    def _document(self, values: Values) -> Values:
        self._documents.add(values["id"])
        self._bases[values["kb_id"]].documents += 1
        return self._of_source(values) | {"run_id": self._runs.get(values["run_id"])}

    def _of_source(self, values: Values) -> Values:
        source_id = values["source_id"]
        return values | {"source_id": source_id if source_id in self._sources else None}

    def _chunk(self, values: Values) -> Values | None:
        if values["document_id"] not in self._documents:
            return None
        seq = self._seqs[values["seq"]] = self._next(chunks.c.seq)
        self._bases[values["kb_id"]].chunks += 1
        return values | {"seq": seq}

    # ---- ratings, the graph and other tables

    def _rating(self, values: Values) -> Values | None:
        base = self._bases[values["kb_id"]]
        if base.row is not None:
            conditions = (
                column == values[column.name] for column in all_ratings.c if column.name != "id"
            )
            if self.transaction.first([all_ratings.c.id], *conditions):
                return None
        base.ratings += 1
        base.rated.add(values["target"])
        return values | {"id": self._next(all_ratings.c.id)}

    def _relation(self, values: Values) -> Values | None:
        relations = workspace_schema.relations.c
        conditions = (relations[name] == values[name] for name in workspace_schema.ENDS)
        existing = self.transaction.execute(sa.select(relations.id).where(*conditions)).scalar()
        if existing is not None:
            self._relations[values["id"]] = existing
            return None
        number = self._relations[values["id"]] = self._next(relations.id)
        return values | {"id": number}

    def _subject(self, values: Values) -> Values | None:
        if values["id"] in self._subjects:
            return None
        main_id = values["alias_of"]  # may be an alias in this catalog
        return values | {"alias_of": self._subjects.get(main_id) or main_id}

    def _step(self, table: Table) -> Callable[[Values], Values | None]:
        keys = tuple(table.primary_key)
        existing = set[tuple[Any, ...]]()
        if table.name in ("entities", "merges"):  # shared by all knowledge bases
            existing = {tuple(row) for row in self.transaction.execute(sa.select(*keys))}
        numbers = {"chunk_seq": self._seqs, "run_id": self._runs, "relation_id": self._relations}
        numbers = {name: number_of for name, number_of in numbers.items() if name in table.c}
        texts = {"document_id": self._documents, "source_id": self._sources}
        known_ids: dict[str, Collection[Any]] = {
            **numbers,
            **{name: ids for name, ids in texts.items() if name in table.c},
        }

        def step(values: Values) -> Values | None:
            if any(values[name] not in ids for name, ids in known_ids.items()):
                return None
            row = values | {name: ids[values[name]] for name, ids in numbers.items()}
            if "version" in row and table.name not in ("summaries", "summary_vectors"):
                row["version"] += self._bases[row["kb_id"]].shift
            if table is runs:
                row["id"] = self._runs[values["id"]] = self._next(runs.c.id)
            return None if tuple(row[key.name] for key in keys) in existing else row

        return step

    def _next(self, column: sa.Column[int]) -> int:
        table = column.table
        last = self._numbers.get(table)
        self._numbers[table] = (self.transaction.last_number(column) if last is None else last) + 1
        return self._numbers[table]

    def _finish(self, base: _Base) -> RestoredKnowledgeBase:
        for target in base.rated:
            ratings.add_up(self.transaction, base.id, target)
        row = knowledge_bases.get_by_id(self.transaction, base.id)
        if base.row is None:
            outbox.begin(self.transaction, row)
        return RestoredKnowledgeBase(
            row.name, base.row is None, base.documents, base.chunks, base.ratings
        )


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
