"""Sources, their runs, and page records. Functions of the caller's transaction."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import sqlalchemy as sa

from kbkit.errors import ConflictError, NotFoundError, VersionConflictError
from kbkit.models import PageRecord
from kbkit.stores.catalog.database import Database, Transaction, alive
from kbkit.stores.catalog.schema import documents, pages, runs, sources


@dataclass(frozen=True, slots=True)
class SourceRow:
    """A row of ``sources``; `name` stands for a local path in URIs."""

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
        names = (self.spec.get(name) for name in ("url", "path", "name"))
        return next((str(one) for one in names if one), self.type)

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


def source_key(spec: Mapping[str, Any], place: tuple[str, ...]) -> str:
    """Identify a source by its type and place, so that changed options keep its memory."""
    text = json.dumps([spec["type"], *(spec.get(name) for name in place)])
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
    renewed = transaction.execute(
        sources.update().where(sources.c.kb_id == kb_id, sources.c.key == key).values(options)
    )
    if not renewed.rowcount:
        values = {"id": uuid4().hex, "kb_id": kb_id, "key": key, "type": spec["type"], "name": name}
        values |= options
        transaction.insert_one(sources, created_at=datetime.now(UTC), **values)
    row = transaction.execute(
        sa.select(sources).where(sources.c.kb_id == kb_id, sources.c.key == key)
    ).one()
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
    given = {"key": key, "spec": spec and dict(spec), "name": name, "enabled": enabled}
    values = {column: value for column, value in given.items() if value is not None}
    others = sa.select(sources.c.id).where(
        sources.c.kb_id == row.kb_id, sources.c.key == key, sources.c.id != row.id
    )
    if key is not None and transaction.execute(others).first():
        raise ConflictError("another source reads that already; remove one of the two")
    transaction.execute(sources.update().where(sources.c.id == row.id).values(values))


def check_version(transaction: Transaction, source_id: str, expected: str | None) -> None:
    if expected is None:
        return
    row = transaction.execute(sa.select(sources).where(sources.c.id == source_id)).first()
    if row is None:
        raise NotFoundError(f"no source {source_id!r}: it was removed meanwhile")
    now = SourceRow(**row._mapping).version
    if expected != now:
        raise VersionConflictError(
            f"the source {source_id} was changed since you read it; read it again, and change "
            f"that (if_match={expected[:80]!r}, and its version is {now!r} now)"
        )


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


def begin_run(transaction: Transaction, source: SourceRow) -> tuple[int, bool]:
    """Start a run, or continue the last unfinished one; return its id and whether it continues."""
    last = transaction.execute(
        sa.select(runs.c.id, runs.c.finished_at)
        .where(runs.c.source_id == source.id)
        .order_by(runs.c.id.desc())
        .limit(1)
    ).first()
    if last is not None and last.finished_at is None:
        return last.id, True
    run_id = transaction.execute(
        runs.insert()
        .values(kb_id=source.kb_id, source_id=source.id, started_at=datetime.now(UTC))
        .returning(runs.c.id)
    ).scalar_one()
    return run_id, False


def end_run(transaction: Transaction, run_id: int, report: Mapping[str, Any]) -> None:
    transaction.update(
        runs, runs.c.id == run_id, finished_at=datetime.now(UTC), report=dict(report)
    )


def history(
    transaction: Transaction, kb_id: str
) -> list[tuple[str, datetime, datetime | None, Mapping[str, Any]]]:
    query = sa.select(runs.c.source_id, runs.c.started_at, runs.c.finished_at, runs.c.report)
    rows = transaction.execute(query.where(runs.c.kb_id == kb_id).order_by(runs.c.id.desc()))
    return [(row.source_id, row.started_at, row.finished_at, row.report or {}) for row in rows]


def finished_runs(
    transaction: Transaction, source_id: str
) -> list[tuple[datetime, Mapping[str, Any]]]:
    """Return end time and report of each finished run, last first."""
    query = (
        sa.select(runs.c.finished_at, runs.c.report)
        .where(runs.c.source_id == source_id, runs.c.finished_at.is_not(None))
        .order_by(runs.c.id.desc())
    )
    return [(row.finished_at, row.report or {}) for row in transaction.execute(query)]


_VISIT = [each.name for each in fields(PageRecord)]


@dataclass(frozen=True, slots=True)
class Visited:
    """A visit with its outcome and time."""

    visit: PageRecord
    outcome: str
    reason: str
    at: datetime


def record_visits(
    transaction: Transaction, source_id: str, run_id: int, visits: Sequence[Visited]
) -> None:
    rows = {  # one row per page, which may have been visited twice
        visited.visit.url: {
            **{name: getattr(visited.visit, name) for name in _VISIT},
            "source_id": source_id,
            "run_id": run_id,
            "outcome": visited.outcome,
            "reason": visited.reason,
            "visited_at": visited.at,
        }
        for visited in visits
    }
    transaction.delete(pages, pages.c.source_id == source_id, transaction.is_in(pages.c.url, rows))
    transaction.insert(pages, list(rows.values()))


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
            rows = transaction.execute(
                sa.select(*(pages.c[name] for name in _VISIT))
                .where(pages.c.source_id == self._source_id, condition)
                .order_by(pages.c.visited_at, pages.c.url)
            )
            return [PageRecord(**{**row._mapping, "links": tuple(row.links)}) for row in rows]
