"""Subjects, shared by all knowledge bases of a workspace, and names in documents."""

import hashlib
import zlib
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict
from functools import lru_cache
from math import log
from typing import NamedTuple

import sqlalchemy as sa

from kbkit.models import Document, EntityType, Name, Subject, SubjectKind
from kbkit.stores.catalog.database import (
    DOCUMENT_COLUMNS,
    Condition,
    Transaction,
    alive,
    containing,
)
from kbkit.stores.catalog.reading import document_of
from kbkit.stores.catalog.schema import chunks, documents, knowledge_bases
from kbkit.stores.catalog.workspace_schema import (
    annotation_subjects,
    document_names,
    entities,
    gazetteers,
    merges,
    named_documents,
    relations,
    subjects,
)
from kbkit.text import subject_key


class SubjectName(NamedTuple):
    """A name of a subject; `key` is its normalized form."""

    kind: SubjectKind
    key: str
    name: str

    @property
    def id(self) -> str:
        text = f"{self.kind.value}\0{self.key}"
        return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=10).hexdigest()


@lru_cache(maxsize=200_000)
def entity_id(name: str) -> str:
    return SubjectName(SubjectKind.ENTITY, subject_key(SubjectKind.ENTITY, name), name).id


def add(transaction: Transaction, names: Iterable[SubjectName]) -> None:
    """Add missing subjects."""
    rows = [
        {"id": name.id, "kind": name.kind.value, "key": name.key, "name": name.name}
        for name in names
    ]
    transaction.put(subjects, rows, replace=False)


def unused_ids(transaction: Transaction) -> list[str]:
    return transaction.scalars(sa.select(subjects.c.id).where(_is_unused()))


def sweep(transaction: Transaction, ids: Sequence[str]) -> None:
    transaction.delete(subjects, transaction.is_in(subjects.c.id, ids), _is_unused(ids))


def _is_unused(ids: Sequence[str] | None = None) -> sa.ColumnElement[bool]:
    id_, other = subjects.c.id, subjects.alias("other")
    return sa.and_(
        subjects.c.alias_of.is_(None),
        ~sa.exists().where(annotation_subjects.c.subject_id == id_),
        ~sa.exists().where(entities.c.subject_id == id_),
        ~sa.exists().where(other.c.alias_of == id_),
        ~sa.exists().where((merges.c.kept_id == id_) | (merges.c.merged_id == id_)),
        id_.not_in(ends_by_hand(ids)),
    )


def ends_by_hand(ids: Sequence[str] | None = None) -> sa.CompoundSelect[tuple[str]]:
    kind, table = SubjectKind.ENTITY.value, relations.c
    by_person = table.by_hand & table.deleted_at.is_(None)
    ends = (table.source_kind, table.source_id), (table.target_kind, table.target_id)
    source, target = (
        sa.select(id_column).where(
            kinds == kind, by_person, sa.true() if ids is None else id_column.in_(ids)
        )
        for kinds, id_column in ends
    )
    return source.union(target)


OWN = subjects.alias("own")
# the cast lets SQLite build an automatic index for joins
CANONICAL = sa.cast(sa.func.coalesce(OWN.c.alias_of, OWN.c.id), sa.String).label("canonical")
COUNTED = (
    sa.select(
        CANONICAL,
        sa.func.count(sa.distinct(annotation_subjects.c.chunk_seq)).label("chunks"),
        sa.func.count(sa.distinct(chunks.c.document_id)).label("documents"),
    )
    .join(annotation_subjects, annotation_subjects.c.subject_id == OWN.c.id)
    .join(chunks, chunks.c.seq == annotation_subjects.c.chunk_seq)
    .join(knowledge_bases, knowledge_bases.c.id == chunks.c.kb_id)
    .where(knowledge_bases.c.deleted_at.is_(None))
    .group_by(CANONICAL)
)
"""Query: numbers of chunks and documents by subject; aliases (`OWN`) count for their subject."""


def list_subjects(
    transaction: Transaction,
    *,
    kinds: Collection[SubjectKind] = (),
    like: str = "",
    ids: Collection[str] | None = None,
    kb_ids: Collection[str] | None = None,
    limit: int | None = None,
) -> list[Subject]:
    """List subjects, most mentioned first; aliases count for their subject."""
    own, canonical, counted = OWN, CANONICAL, COUNTED
    if kinds:
        counted = counted.where(own.c.kind.in_([kind.value for kind in kinds]))
    if kb_ids is not None:
        counted = counted.where(chunks.c.kb_id.in_(list(kb_ids)))
    if like:
        matches = containing(subjects.c.name, like)
        roots = sa.select(sa.func.coalesce(subjects.c.alias_of, subjects.c.id)).where(matches)
        counted = counted.where(canonical.in_(roots))
    if ids is not None:
        counted = counted.where(transaction.is_in(own.c.id, ids) | own.c.alias_of.in_(list(ids)))
    totals = counted.subquery()
    columns = subjects.c.id, subjects.c.kind, subjects.c.name, totals.c.chunks, totals.c.documents
    query = (
        sa.select(*columns, sa.func.coalesce(entities.c.type, "").label("type"))
        .join(totals, totals.c.canonical == subjects.c.id)
        .outerjoin(entities, entities.c.subject_id == subjects.c.id)
        .order_by(totals.c.chunks.desc(), subjects.c.name)
    )
    rows = transaction.execute(query.limit(limit)).all()
    names = aliases(transaction, [row.id for row in rows])
    return [
        Subject(**{**row._mapping, "kind": SubjectKind(row.kind), "aliases": names.get(row.id, ())})
        for row in rows
    ]


def beside(
    transaction: Transaction, seqs: Collection[int], *, without: Collection[str], limit: int
) -> list[str]:
    """Return the ids of entities that are typical of some chunks, best first.

    The score is ``n / sqrt(N)``: n of these chunks and N of all chunks mention the entity.
    """
    table = annotation_subjects.c
    mentioned = transaction.is_in(table.chunk_seq, seqs)
    in_chunks = Counter(chunk_counts(transaction, IS_ENTITY, mentioned))
    for id_ in without:
        in_chunks.pop(id_, None)
    frequent = [id_ for id_, _ in in_chunks.most_common(20 * limit)]
    in_all = chunk_counts(transaction, transaction.is_in(table.subject_id, frequent))
    scores = {id_: in_chunks[id_] / in_all[id_] ** 0.5 for id_ in frequent}
    return sorted(scores, key=lambda id_: (-scores[id_], id_))[:limit]


IS_ENTITY = subjects.c.kind == SubjectKind.ENTITY.value


def chunk_counts(transaction: Transaction, *mentions: Condition) -> dict[str, int]:
    """Count the chunks that mention each subject; conditions select the mentions."""
    table = annotation_subjects.c
    query = (
        sa.select(table.subject_id, sa.func.count(sa.distinct(table.chunk_seq)))
        .join(chunks, chunks.c.seq == table.chunk_seq)
        .join(subjects, subjects.c.id == table.subject_id)
        .where(*mentions)
        .group_by(table.subject_id)
    )
    return transaction.mapping(query)


_ALIASES = sa.select(subjects.c.alias_of, subjects.c.name).order_by(subjects.c.name)


def aliases(transaction: Transaction, ids: Sequence[str]) -> dict[str, tuple[str, ...]]:
    names_of: dict[str, tuple[str, ...]] = {}
    for id_, name in transaction.rows_in(_ALIASES, subjects.c.alias_of, ids):
        names_of[id_] = (*names_of.get(id_, ()), name)
    return names_of


def ids_of(transaction: Transaction, ids: Collection[str]) -> set[str]:
    all_ids = set(ids)
    query = sa.select(subjects.c.id, subjects.c.alias_of)
    rows = transaction.execute(query.where(transaction.is_in(subjects.c.id, all_ids)))
    roots = {row.alias_of or row.id for row in rows}
    members = query.where(transaction.is_in(subjects.c.alias_of, roots))
    return roots | {row.id for row in transaction.execute(members)}


def chunk_seqs(
    transaction: Transaction, ids: Collection[str], *, kb_id: str | None = None
) -> list[int]:
    table = annotation_subjects.c
    query = sa.select(table.chunk_seq).where(
        transaction.is_in(table.subject_id, ids_of(transaction, ids))
    )
    if kb_id is not None:
        query = query.join(chunks, chunks.c.seq == table.chunk_seq).where(chunks.c.kb_id == kb_id)
    return transaction.scalars(query.distinct().order_by(table.chunk_seq))


_COMMON = 0.02
"""Subjects in a greater share of a knowledge base's chunks are ignored."""
_FEW = 20
"""Subjects with at most this many chunks always count."""


def related_chunks(
    transaction: Transaction, kb_id: str, chunk_id: str, limit: int
) -> list[tuple[int, float, tuple[str, ...]]]:
    """Return the chunks that share the rarest subjects with a chunk.

    The score is the sum of ``ln(N / n)`` over shared subjects: N chunks in all, n with the subject.
    In chunks of the same document a subject counts half.
    """
    table = annotation_subjects.c
    columns = chunks.c.seq, chunks.c.document_id
    chunk = transaction.first(columns, chunks.c.kb_id == kb_id, chunks.c.id == chunk_id)
    if chunk is None:
        return []
    total = transaction.count(chunks, chunks.c.kb_id == kb_id)
    subject_ids = sa.select(table.subject_id).where(table.chunk_seq == chunk.seq)
    query = (
        sa.select(table.subject_id, subjects.c.name, chunks.c.seq, chunks.c.document_id)
        .join(chunks, chunks.c.seq == table.chunk_seq)
        .join(subjects, subjects.c.id == table.subject_id)
        .where(table.subject_id.in_(subject_ids), chunks.c.kb_id == kb_id)
        .distinct()
    )
    places_of: dict[tuple[str, str], list[tuple[int, str]]] = {}
    for subject_id, name, seq, document_id in transaction.execute(query):
        places_of.setdefault((subject_id, name), []).append((seq, document_id))
    scores: dict[int, float] = defaultdict(float)
    shared: dict[int, list[str]] = {}
    for (_, name), places in sorted(places_of.items(), key=lambda pair: (len(pair[1]), pair[0])):
        if len(places) > max(_FEW, _COMMON * total):
            break
        for seq, document_id in places:
            share = 0.5 if document_id == chunk.document_id else 1.0
            scores[seq] += share * log(total / len(places))
            shared.setdefault(seq, []).append(name)
    scores.pop(chunk.seq, None)
    ranked = sorted(scores.items(), key=lambda pair: (-pair[1], pair[0]))
    best = [(seq, score) for seq, score in ranked if score > 0][:limit]
    return [(seq, score, tuple(dict.fromkeys(shared[seq]))) for seq, score in best]


_ROWS, _FIELDS = "\x1e", "\x1f"
"""Separators of spellings and names, which contain no control characters."""


class GivenName(NamedTuple):
    """A name in documents with its most frequent type.

    Attributes:
        confirmed: Whether at least one document marks or defines it.
        defined: Number of definitions.
    """

    name: str
    type: EntityType = EntityType.NAME
    confirmed: bool = True
    documents: int = 1
    defined: int = 0


def unread(transaction: Transaction, kb_id: str, revision: int, limit: int) -> list[Document]:
    current = sa.select(named_documents.c.document_id).where(
        named_documents.c.document_id == documents.c.id, named_documents.c.revision == revision
    )
    rows = transaction.execute(
        sa.select(*DOCUMENT_COLUMNS).where(*alive(kb_id), ~current.exists()).limit(limit)
    )
    return [document_of(row) for row in rows]


def put_names(
    transaction: Transaction,
    kb_id: str,
    revision: int,
    read: Iterable[tuple[Document, Sequence[Name]]],
) -> None:
    by_id = {document.id: (document.content_hash, names_found) for document, names_found in read}
    query = sa.select(documents.c.id, documents.c.content_hash)
    hashes = transaction.mapping(query.where(transaction.is_in(documents.c.id, by_id)))
    unchanged_ids = [id_ for id_, hash_ in hashes.items() if by_id[id_][0] == hash_]
    remove_names(transaction, unchanged_ids)
    names = [
        {"document_id": document_id, "kb_id": kb_id, **asdict(name), "type": name.type.value}
        for document_id in unchanged_ids
        for name in {name.name: name for name in by_id[document_id][1]}.values()
    ]
    rows = [{"document_id": id_, "kb_id": kb_id, "revision": revision} for id_ in unchanged_ids]
    transaction.insert(document_names, names)
    transaction.insert(named_documents, rows)


def remove_names(transaction: Transaction, document_ids: Collection[str]) -> None:
    if document_ids:
        for table in (document_names, named_documents):
            transaction.delete(table, transaction.is_in(table.c.document_id, document_ids))


def given_names(transaction: Transaction, kb_id: str) -> list[GivenName]:
    """List the names in a knowledge base, sorted."""
    table, count = document_names.c, sa.func.count()
    confirmed, defined = (
        sa.func.sum(sa.cast(column, sa.Integer)) for column in (table.confirmed, table.defines)
    )
    query = sa.select(table.name, table.type, confirmed, count, defined)
    query = query.where(table.kb_id == kb_id).group_by(table.name, table.type)
    by_name: dict[str, GivenName] = {}
    for name, kind, *counts in transaction.execute(
        query.order_by(table.name, defined, count, table.type)
    ):
        confirmations, documents_, definitions = map(int, counts)
        before = by_name.get(name) or GivenName(name, confirmed=False, documents=0)
        by_name[name] = GivenName(
            name,
            EntityType(kind),
            before.confirmed or confirmations > 0,
            before.documents + documents_,
            before.defined + definitions,
        )
    return list(by_name.values())


def defining(transaction: Transaction, kb_id: str, names: Collection[str]) -> set[str]:
    table = document_names.c
    lowered = [name.lower() for name in names]
    query = sa.select(table.document_id).where(
        table.kb_id == kb_id, table.defines, sa.func.lower(table.name).in_(lowered)
    )
    return set(transaction.scalars(query))


def annotated_with(transaction: Transaction, kb_id: str) -> dict[str, tuple[str, ...]]:
    """Map spellings to the names that chunks were last searched for."""
    query = sa.select(gazetteers.c.names).where(gazetteers.c.kb_id == kb_id)
    packed = transaction.execute(query).scalar()
    text = zlib.decompress(packed).decode("utf-8", "surrogatepass") if packed else ""
    rows = (row.split(_FIELDS) for row in text.split(_ROWS) if row)
    return {spelling: tuple(names) for spelling, *names in rows}


def pack_surfaces(surfaces: Mapping[str, Sequence[str]]) -> bytes:
    text = _ROWS.join(_FIELDS.join((spelling, *names)) for spelling, names in surfaces.items())
    return zlib.compress(text.encode("utf-8", "surrogatepass"), 1)


def note_annotated(transaction: Transaction, kb_id: str, surfaces: bytes) -> None:
    transaction.put(gazetteers, [{"kb_id": kb_id, "names": surfaces}])
