"""Sources with their runs and pages."""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import sqlalchemy as sa

from kbkit.errors import ConflictError, NotFoundError
from kbkit.models import PageRecord
from kbkit.models.values import check_match
from kbkit.stores.catalog.database import Database, Transaction, alive
from kbkit.stores.catalog.schema import documents, pages, runs, sources


@dataclass(frozen=True, slots=True)
class SourceRow:
    """A row of ``sources``; `name` replaces a local path in URIs."""

    id: str
    kb_id: str
    key: str
    type: str
    spec: Mapping[str, Any]
    base: str
    from_recipe: bool
    created_at: datetime
    name: str
    enabled: bool

    @property
    def location(self) -> str:
        return location_of(self.spec)

    @property
    def version(self) -> str:
        fields = [self.id, self.spec, self.base, self.from_recipe, self.name, self.enabled]
        text = json.dumps(fields, sort_keys=True)
        return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()

    @property
    def lock(self) -> str:
        return f"source-{self.id}"

    @property
    def place(self) -> str:
        return (self.name or ".") if self.spec.get("path") else self.location


def location_of(spec: Mapping[str, Any]) -> str:
    names = (spec.get(name) for name in ("url", "path", "name"))
    return next((str(value) for value in names if value), spec["type"])


def source_key(spec: Mapping[str, Any]) -> str:
    """Identify a source by its type and place, so that its pages stay known if options change."""
    place = (name for name in ("url", "path", "base_url", "name", "options") if name in spec)
    text = json.dumps([spec["type"], *map(spec.get, place)])
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def save_source(
    transaction: Transaction,
    kb_id: str,
    key: str,
    spec: Mapping[str, Any],
    *,
    base: str,
    from_recipe: bool,
    name: str = "",
) -> SourceRow:
    """Add a source, or change the options (not the name) of the one with this key."""
    options = {"spec": dict(spec), "base": base, "from_recipe": from_recipe}
    is_source = (sources.c.kb_id == kb_id) & (sources.c.key == key)
    if not transaction.execute(sources.update().where(is_source).values(options)).rowcount:
        values = {"id": uuid4().hex, "kb_id": kb_id, "key": key, "type": spec["type"], "name": name}
        values |= options
        transaction.insert_one(sources, created_at=datetime.now(UTC), **values)
    row = transaction.execute(sa.select(sources).where(is_source)).one()
    return SourceRow(**row._mapping)


def change_source(
    transaction: Transaction,
    row: SourceRow,
    *,
    key: str | None = None,
    spec: Mapping[str, Any] | None = None,
    name: str | None = None,
    enabled: bool | None = None,
) -> None:
    changes = {"key": key, "spec": spec and dict(spec), "name": name, "enabled": enabled}
    values = {column: value for column, value in changes.items() if value is not None}
    same_key = sources.c.kb_id == row.kb_id, sources.c.key == key, sources.c.id != row.id
    if key is not None and transaction.first([sources.c.id], *same_key):
        raise ConflictError("another source already reads that; remove one of the two")
    transaction.execute(sources.update().where(sources.c.id == row.id).values(values))


def check_version(transaction: Transaction, source_id: str, expected: str | None) -> None:
    if expected is None:
        return
    row = transaction.execute(sa.select(sources).where(sources.c.id == source_id)).first()
    if row is None:
        raise NotFoundError(f"no source {source_id!r}: it was removed meanwhile")
    check_match(f"the source {source_id}", expected, SourceRow(**row._mapping).version)


def document_counts(transaction: Transaction, kb_id: str) -> dict[str, int]:
    """Count documents that are not gone, by source id."""
    column = documents.c.source_id
    query = sa.select(column, sa.func.count()).where(*alive(kb_id)).group_by(column)
    return {row[0]: row[1] for row in transaction.execute(query) if row[0] is not None}


def list_sources(transaction: Transaction, kb_id: str | None = None) -> list[SourceRow]:
    """List sources, oldest first; of all knowledge bases by default."""
    query = sa.select(sources)
    if kb_id is not None:
        query = query.where(sources.c.kb_id == kb_id)
    rows = transaction.execute(query.order_by(sources.c.created_at, sources.c.id))
    return [SourceRow(**row._mapping) for row in rows]


def delete_source(transaction: Transaction, source_id: str) -> None:
    transaction.delete(sources, sources.c.id == source_id)


def begin_run(transaction: Transaction, source: SourceRow) -> int:
    """Start a run, or continue the last unfinished one; return its id."""
    query = sa.select(runs.c.id, runs.c.finished_at).where(runs.c.source_id == source.id)
    last = transaction.execute(query.order_by(runs.c.id.desc()).limit(1)).first()
    if last is not None and last.finished_at is None:
        return int(last.id)
    values = {"kb_id": source.kb_id, "source_id": source.id, "started_at": datetime.now(UTC)}
    return int(transaction.insert_one(runs, **values))


def end_run(transaction: Transaction, run_id: int, report: Mapping[str, Any]) -> None:
    transaction.update(
        runs, runs.c.id == run_id, finished_at=datetime.now(UTC), report=dict(report)
    )


def history(
    transaction: Transaction, kb_id: str
) -> list[tuple[str, datetime, datetime | None, Mapping[str, Any]]]:
    """Return source, start, end and report of each run, newest first."""
    query = sa.select(runs.c.source_id, runs.c.started_at, runs.c.finished_at, runs.c.report)
    rows = transaction.execute(query.where(runs.c.kb_id == kb_id).order_by(runs.c.id.desc()))
    return [(row.source_id, row.started_at, row.finished_at, row.report or {}) for row in rows]


_VISIT = [each.name for each in fields(PageRecord)]


Visit = tuple[PageRecord, str, str, datetime]
"""A page with the outcome of its visit, the reason, and the time."""


def record_visits(
    transaction: Transaction, source_id: str, run_id: int, visits: Sequence[Visit]
) -> None:
    rows = [
        {name: getattr(page, name) for name in _VISIT}
        | {"source_id": source_id, "run_id": run_id}
        | {"outcome": outcome, "reason": reason, "visited_at": at}
        for page, outcome, reason, at in visits
    ]
    transaction.put(pages, rows)


class RunMemory:
    """Page records of a source, the `CrawlMemory` of its reader."""

    def __init__(self, database: Database, source_id: str, run_id: int) -> None:
        self._database = database
        self._source_id = source_id
        self._run_id = run_id

    def visited(self) -> Iterable[PageRecord]:
        """Return pages that this run has already visited, in an earlier process."""
        return self._visits(pages.c.run_id == self._run_id)

    def page(self, url: str) -> PageRecord | None:
        return next(iter(self._visits(pages.c.url == url)), None)

    def known(self) -> Iterable[PageRecord]:
        return self._visits(pages.c.outcome != "gone")

    def _visits(self, condition: sa.ColumnElement[bool]) -> list[PageRecord]:
        with self._database.read() as transaction:
            query = sa.select(*(pages.c[name] for name in _VISIT))
            query = query.where(pages.c.source_id == self._source_id, condition)
            rows = transaction.execute(query.order_by(pages.c.visited_at, pages.c.url))
            return [PageRecord(**{**row._mapping, "links": tuple(row.links)}) for row in rows]
