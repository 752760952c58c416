"""Knowledge bases of a workspace. All functions use the caller's transaction."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeVar
from uuid import NAMESPACE_URL, uuid5

import sqlalchemy as sa
from pydantic import ValidationError

from kbkit import models
from kbkit.errors import ConflictError, NotFoundError, WorkspaceVersionError
from kbkit.models import DocumentState
from kbkit.models.values import did_you_mean, fault_reason, valid
from kbkit.recipes import KnowledgeBaseSpec
from kbkit.stores.catalog import corpus, graph_writing, ratings
from kbkit.stores.catalog.database import Condition, Database, Transaction
from kbkit.stores.catalog.schema import (
    chunks,
    documents,
    dropped_collections,
    embedded,
    knowledge_bases,
    name_uses,
    outbox,
    sources,
    summaries,
    summary_vectors,
)
from kbkit.stores.catalog.workspace_schema import annotations as annotation_rows
from kbkit.text.analysis import REVISION

MAX_DIMENSIONS = 100_000
"""Greater numbers mean that the catalog is damaged."""


@dataclass(frozen=True, slots=True)
class KnowledgeBaseRow:
    """A row of ``knowledge_bases``; `config` has the parts of the recipe that shape the content."""

    id: str
    name: str
    description: str
    config: Mapping[str, Any]
    embedder: str
    dimensions: int
    collection: str
    created_at: datetime
    updated_at: datetime
    version: int
    applied_seq: int
    analyzer: int
    summary_embedder: str
    summary_model: str
    summaries_version: int
    deleted_at: datetime | None = None

    def __post_init__(self) -> None:
        if not 0 < self.dimensions <= MAX_DIMENSIONS:
            raise ValueError(f"{self.name}: impossible vectors of {self.dimensions:,} numbers")

    @property
    def embedded_text(self) -> str:
        return str(self.config.get("embedding", {}).get("text", corpus.CHUNK))

    @property
    def revision(self) -> str:
        fields = [self.id, self.name, self.description, self.config, self.version]
        text = json.dumps(fields, sort_keys=True)
        return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()

    @property
    def waits(self) -> bool:
        """Whether static vectors are used until another embedder has finished."""
        embedding = self.config.get("embedding", {})
        model = embedding.get("model" if embedding.get("type") == "auto" else "type", "static")
        return model != "static" and self.embedder.startswith("static:")


def create(
    transaction: Transaction,
    name: str,
    *,
    description: str,
    config: Mapping[str, Any],
    embedder: str,
    dimensions: int,
    given_id: str = "",
) -> KnowledgeBaseRow:
    """Add a knowledge base."""
    if transaction.existing(knowledge_bases.c.name, [name]):
        raise ConflictError(
            f"a knowledge base named {name!r} exists; choose another name, or delete it first"
        )
    now = datetime.now(UTC)
    kb_id = given_id or new_id(transaction, name)
    transaction.insert_one(
        knowledge_bases,
        id=kb_id,
        name=name,
        description=description,
        config=dict(config),
        embedder=embedder,
        dimensions=dimensions,
        # unique, because the collection of a deleted namesake may not be dropped yet
        collection=f"{name}.{kb_id[:8]}",
        created_at=now,
        updated_at=now,
        analyzer=REVISION,
    )
    return get(transaction, name)


def new_id(transaction: Transaction, name: str) -> str:
    """Return an unused id that depends only on the name and its number of uses.

    Ids of documents and chunks are derived from it, so a recipe gives the same ids everywhere.
    """
    of_name = name_uses.c.name == name
    times = transaction.execute(sa.select(name_uses.c.times).where(of_name)).scalar() or 0
    transaction.put(name_uses, [{"name": name, "times": times + 1}])
    return uuid5(NAMESPACE_URL, f"urn:kbkit:{name}:{times + 1}").hex


def get(transaction: Transaction, name: str) -> KnowledgeBaseRow:
    is_named = knowledge_bases.c.name == valid(name)
    row = transaction.first([knowledge_bases], is_named, _NOT_DELETED)
    if row is None:
        kb_names = names(transaction)
        hint = did_you_mean(name, kb_names) if kb_names else "the workspace is empty"
        raise NotFoundError(f"no knowledge base named {name!r}; {hint}")
    return KnowledgeBaseRow(**row._mapping)


def get_by_id(transaction: Transaction, kb_id: str) -> KnowledgeBaseRow:
    row = transaction.execute(_BY_ID, {"kb": kb_id}).first()
    if row is None:
        raise NotFoundError("this knowledge base was deleted; open another one")
    return KnowledgeBaseRow(**row._mapping)


# built once, because every search uses it
_NOT_DELETED = knowledge_bases.c.deleted_at.is_(None)
_BY_ID = sa.select(knowledge_bases).where(knowledge_bases.c.id == sa.bindparam("kb"), _NOT_DELETED)


def rows(transaction: Transaction) -> list[KnowledgeBaseRow]:
    """List all knowledge bases by name."""
    query = sa.select(knowledge_bases).where(_NOT_DELETED).order_by(knowledge_bases.c.name)
    return [KnowledgeBaseRow(**row._mapping) for row in transaction.execute(query)]


def ids(transaction: Transaction) -> set[str]:
    return set(transaction.scalars(sa.select(knowledge_bases.c.id).where(_NOT_DELETED)))


def names(transaction: Transaction) -> list[str]:
    query = sa.select(knowledge_bases.c.name).where(_NOT_DELETED).order_by(knowledge_bases.c.name)
    return transaction.scalars(query)


def state(transaction: Transaction, name: str) -> str:
    existing = names(transaction)
    parts: tuple[int, ...] = ()
    if name in existing:
        row = get(transaction, name)
        parts = (row.version, *ratings.extent(transaction, row.id))
    digest = hashlib.sha256("\n".join(existing).encode()).hexdigest()
    return "-".join([*map(str, parts), digest[:16]])


def update(
    transaction: Transaction, kb_id: str, *, description: str, config: Mapping[str, Any]
) -> None:
    now = datetime.now(UTC)
    change(transaction, kb_id, description=description, config=dict(config), updated_at=now)


def set_spec(transaction: Transaction, kb_id: str, spec: KnowledgeBaseSpec) -> None:
    description = get_by_id(transaction, kb_id).description
    update(transaction, kb_id, description=description, config=spec.model_dump(mode="json"))


def rename(transaction: Transaction, kb_id: str, name: str) -> None:
    if get_by_id(transaction, kb_id).name == name:
        return
    if name in names(transaction):
        raise ConflictError(f"a knowledge base named {name!r} exists; choose another name")
    change(transaction, kb_id, name=name)
    touch(transaction, kb_id)


def touch(transaction: Transaction, kb_id: str) -> None:
    version = knowledge_bases.c.version + 1
    change(transaction, kb_id, version=version, updated_at=datetime.now(UTC))


def change(transaction: Transaction, /, kb_id: str, **values: Any) -> None:
    transaction.update(knowledge_bases, knowledge_bases.c.id == kb_id, **values)


def set_embedder(transaction: Transaction, kb_id: str, embedder: str, dimensions: int) -> None:
    change(transaction, kb_id, embedder=embedder, dimensions=dimensions)
    touch(transaction, kb_id)


def delete(transaction: Transaction, kb_id: str) -> None:
    """Delete a knowledge base with its rows, and mark its collection to be dropped."""
    row = get_by_id(transaction, kb_id)
    transaction.insert_one(dropped_collections, name=row.collection)
    transaction.delete(knowledge_bases, knowledge_bases.c.id == kb_id)
    graph_writing.settle(transaction)


_SHOWN = ["id", "name", "description", "embedder", "dimensions", "collection"]
_SHOWN += ["created_at", "updated_at", "summary_embedder"]


def _described(*counts: sa.ColumnElement[int]) -> sa.Select[Any]:
    kb = sa.bindparam("kb", type_=sa.String)
    is_wanted = (kb == "") | (kb == knowledge_bases.c.id)
    return sa.select(knowledge_bases.c.id, *counts).where(_NOT_DELETED, is_wanted)


def _count(table: sa.Table, *conditions: Condition, of: Any = "*") -> sa.ColumnElement[int]:
    query = sa.select(sa.func.count(of)).where(table.c.kb_id == knowledge_bases.c.id, *conditions)
    return query.scalar_subquery()


_COUNTS = _described(
    _count(chunks).label("chunks"),
    _count(outbox).label("pending"),
    _count(annotation_rows, of=annotation_rows.c.chunk_seq.distinct()).label("annotated"),
    _count(embedded, embedded.c.embedder != knowledge_bases.c.embedder).label("embedded"),
    _count(
        summaries,
        summary_vectors.c.kb_id == summaries.c.kb_id,
        summary_vectors.c.embed_hash == summaries.c.embed_hash,
        summary_vectors.c.embedder == knowledge_bases.c.summary_model,
    ).label("summarized"),
)
_KINDS = sa.select(sources.c.kb_id, sources.c.type).where(sources.c.kb_id.in_(_described()))
_KINDS = _KINDS.order_by(sources.c.type).distinct()
_TYPES = [documents.c.kb_id, documents.c.state, documents.c.document_type]
_STATES = sa.select(*_TYPES, sa.func.count()).where(documents.c.kb_id.in_(_described()))
_STATES = _STATES.group_by(*_TYPES).order_by(documents.c.document_type)


def describe(transaction: Transaction, kb_id: str) -> models.KnowledgeBaseInfo:
    return describe_all(transaction, kb_id)[0]


def describe_all(transaction: Transaction, only: str = "") -> list[models.KnowledgeBaseInfo]:
    """Describe all knowledge bases, or one; many take no more statements."""
    kbs = [get_by_id(transaction, only)] if only else rows(transaction)
    states = {row.id: dict.fromkeys((state.value for state in DocumentState), 0) for row in kbs}
    types: dict[str, Counter[str]] = {row.id: Counter() for row in kbs}
    for kb_id, state, kind, number in transaction.execute(_STATES, {"kb": only}):
        states[kb_id][state] += number
        if state != DocumentState.GONE:
            types[kb_id][kind] += number
    source_types = transaction.grouped(_KINDS, kb=only)
    counts = {row.id: row for row in transaction.execute(_COUNTS, {"kb": only})}
    lacking = {}
    for text in {row.embedded_text for row in kbs}:
        count = corpus.lacking(knowledge_bases.c.id, text).with_only_columns(sa.func.count())
        lacking[text] = transaction.mapping(_described(count.scalar_subquery()), kb=only)

    def info(row: KnowledgeBaseRow) -> models.KnowledgeBaseInfo:
        of_kb, searched = counts[row.id], types[row.id].total()
        chunks_waiting = lacking[row.embedded_text][row.id]
        if row.waits:  # at least 1 until the vectors are replaced
            chunks_waiting = max(0, of_kb.chunks - of_kb.embedded) or min(1, of_kb.chunks)
        return models.KnowledgeBaseInfo(
            **{name: getattr(row, name) for name in _SHOWN},
            source_types=tuple(source_types.get(row.id, ())),
            documents=searched,
            chunks=of_kb.chunks,
            states=states[row.id],
            document_types=dict(types[row.id]),
            pending=of_kb.pending,
            chunks_waiting=chunks_waiting,
            annotations_waiting=of_kb.chunks - of_kb.annotated if _wants_annotations(row) else 0,
            summaries_waiting=max(0, searched - of_kb.summarized) if row.summary_model else 0,
            version=row.revision,
        )

    return list(map(info, kbs))


def some_unannotated(transaction: Transaction, row: KnowledgeBaseRow, limit: int) -> int:
    """Count chunks without annotations up to `limit`, newest first, which lack them most often."""
    if not _wants_annotations(row):
        return 0
    annotated = sa.exists().where(annotation_rows.c.chunk_seq == chunks.c.seq)
    unannotated = sa.select(chunks.c.seq).where(chunks.c.kb_id == row.id, ~annotated)
    return transaction.count(unannotated.order_by(chunks.c.seq.desc()).limit(limit).subquery())


def _wants_annotations(row: KnowledgeBaseRow) -> bool:
    return bool(row.config.get("annotation", {}).get("type") != "none")


def spec_of(row: KnowledgeBaseRow) -> KnowledgeBaseSpec:
    try:
        return KnowledgeBaseSpec.model_validate(row.config)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"])) or "all of it"
        raise WorkspaceVersionError(
            f"{row.name}: its configuration cannot be used ({place}: {fault_reason(first)}), "
            "so a newer kbkit made it, or the catalog is damaged; upgrade kbkit, or restore the "
            "workspace from a backup"
        ) from error


_T = TypeVar("_T")
_AT_ONCE = 1_000
"""Rows per transaction, which takes some hundredths of a second."""


def write_in_batches(
    database: Database,
    kb_id: str,
    items: Sequence[_T],
    put: Callable[[Transaction, Sequence[_T]], object],
) -> None:
    """Write items in short transactions, between which others can write."""
    for start in range(0, len(items), _AT_ONCE):
        with database.write() as transaction:
            get_by_id(transaction, kb_id)
            put(transaction, items[start : start + _AT_ONCE])
