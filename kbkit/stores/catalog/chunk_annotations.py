"""Annotations of chunks. All functions use the caller's transaction.

Answers of a language model cost money: they stay when annotations are renewed, or a chunk is
removed and returns.
"""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from kbkit import models
from kbkit.stores.catalog import corpus, knowledge_bases, reading, subjects, workspace_schema
from kbkit.stores.catalog.database import Transaction
from kbkit.stores.catalog.schema import chunks, documents
from kbkit.stores.catalog.subjects import SubjectName
from kbkit.stores.catalog.workspace_schema import annotation_subjects, annotator_answers
from kbkit.text import subject_key

_FIELDS = {
    models.SubjectKind.DOMAIN: "domains",
    models.SubjectKind.ENTITY: "entities",
    models.SubjectKind.PROBLEM: "problems",
    models.SubjectKind.RESOLUTION: "resolutions",
    models.SubjectKind.CONTEXT: "contexts",
}
_PLAIN = ("start", "end", "normalized_text", "confidence", "annotator")
_AT_ONCE = 5_000
_rows = workspace_schema.annotations


def count_lacking(transaction: Transaction, kb_id: str, annotator: str) -> int:
    return transaction.count(chunks, _lacks(kb_id, annotator))


def lacking(
    transaction: Transaction, kb_id: str, annotator: str, limit: int | None = None
) -> list[int]:
    query = sa.select(chunks.c.seq).where(_lacks(kb_id, annotator)).order_by(chunks.c.seq)
    return transaction.scalars(query.limit(limit))


def iter_texts(transaction: Transaction, kb_id: str, annotator: str) -> Iterator[tuple[int, str]]:
    annotated = chunks.c.kb_id == kb_id, ~_lacks(kb_id, annotator)
    query = sa.select(chunks.c.seq, chunks.c.text).where(*annotated).order_by(chunks.c.seq)
    for row in transaction.execute(query).yield_per(500):
        yield row.seq, row.text


def put(
    transaction: Transaction, kb_id: str, annotations: Mapping[int, Sequence[models.Annotation]]
) -> int:
    existing = sorted(transaction.existing(chunks.c.seq, annotations))
    remove(transaction, existing)
    rows: list[dict[str, Any]] = []
    links: list[dict[str, Any]] = []
    names: dict[str, SubjectName] = {}
    for seq in existing:
        for position, annotation in enumerate(annotations[seq]):
            place = {"chunk_seq": seq, "position": position}
            rows.append({**place, "kb_id": kb_id, **_values(annotation)})
            by_id = dict(_subjects_of(annotation))
            links += [{**place, "subject_id": subject_id} for subject_id in by_id]
            names |= by_id
    subjects.add(transaction, names.values())
    transaction.insert(_rows, rows)
    transaction.insert(annotation_subjects, links)
    return len(existing)


def summaries(
    transaction: Transaction, chunk_ids: Sequence[str], limit: int = 3
) -> dict[str, models.ChunkSummary]:
    links, names = annotation_subjects.c, workspace_schema.subjects.c
    query = sa.select(chunks.c.id, chunks.c.seq, _rows.c.frame)
    query = query.join(_rows, _rows.c.chunk_seq == chunks.c.seq).where(_rows.c.position == 0)
    frames = transaction.execute(query.where(chunks.c.id.in_(chunk_ids))).all()
    entities = transaction.execute(
        sa.select(links.chunk_seq, names.id, names.name)
        .join(workspace_schema.subjects, names.id == links.subject_id)
        .where(
            links.chunk_seq.in_([row.seq for row in frames]),
            names.kind == models.SubjectKind.ENTITY.value,
        )
        .distinct()
    ).all()
    is_mention = transaction.is_in(links.subject_id, {row.id for row in entities})
    counts = subjects.chunk_counts(transaction, is_mention)
    rarest = sorted(entities, key=lambda row: (counts[row.id], row.name))
    return {
        row.id: models.ChunkSummary(
            models.StatementType(row.frame) if row.frame else None,
            tuple([each.name for each in rarest if each.chunk_seq == row.seq][:limit]),
        )
        for row in frames
    }


def remove(transaction: Transaction, seqs: Collection[int]) -> None:
    for table in (annotation_subjects, _rows, workspace_schema.related_chunks):
        transaction.delete(table, transaction.is_in(table.c.chunk_seq, seqs))
    corpus.outdate_vectors(transaction, seqs)


def remove_of_documents(transaction: Transaction, document_ids: Collection[str]) -> None:
    if document_ids:
        query = sa.select(chunks.c.seq).where(transaction.is_in(chunks.c.document_id, document_ids))
        remove(transaction, transaction.scalars(query))


def annotations_of(
    transaction: Transaction, seqs: Sequence[int]
) -> dict[int, tuple[models.Annotation, ...]]:
    """Return the annotations of chunks by ``seq``, in order."""
    by_chunk: dict[int, tuple[models.Annotation, ...]] = {}
    names = _names(transaction, seqs)
    query = sa.select(*_rows.c, chunks.c.text).join(chunks, chunks.c.seq == _rows.c.chunk_seq)
    query = query.where(transaction.is_in(_rows.c.chunk_seq, seqs))
    for row in transaction.execute(query.order_by(_rows.c.chunk_seq, _rows.c.position)):
        annotation = _annotation(row, names.get((row.chunk_seq, row.position), {}))
        by_chunk[row.chunk_seq] = (*by_chunk.get(row.chunk_seq, ()), annotation)
    return by_chunk


def stated_relations(
    transaction: Transaction, kb_id: str
) -> dict[int, list[models.StatedRelation]]:
    query = sa.select(_rows.c.chunk_seq, _rows.c.relations).where(
        _rows.c.kb_id == kb_id, _rows.c.relations != ""
    )
    by_chunk: dict[int, list[models.StatedRelation]] = {}
    for row in transaction.execute(query.order_by(_rows.c.chunk_seq, _rows.c.position)):
        relations = (models.StatedRelation(*each) for each in json.loads(row.relations))
        by_chunk.setdefault(row.chunk_seq, []).extend(relations)
    return by_chunk


def iter_all(
    transaction: Transaction, kb_id: str, *, after: tuple[str, int] = ("", -1)
) -> Iterator[models.AnnotatedChunk]:
    """Iterate over annotated chunks by document URI and position."""
    query = (
        sa.select(chunks.c.seq)
        .join(documents, documents.c.id == chunks.c.document_id)
        .where(chunks.c.kb_id == kb_id, reading.later_than(after))
        .where(sa.exists().where(_rows.c.chunk_seq == chunks.c.seq))
        .order_by(documents.c.uri, chunks.c.position)
    )
    seqs = transaction.scalars(query)
    for start in range(0, len(seqs), _AT_ONCE):
        part = seqs[start : start + _AT_ONCE]
        by_chunk = annotations_of(transaction, part)
        passages = reading.get_chunks(transaction, part)
        for seq in part:
            if seq in by_chunk and seq in passages:
                chunk, document = passages[seq]
                yield models.AnnotatedChunk(
                    chunk_id=chunk.id,
                    title=document.title,
                    uri=document.uri,
                    position=chunk.position,
                    heading_path=chunk.heading_path,
                    annotations=by_chunk[seq],
                )


def count(transaction: Transaction, kb_id: str) -> int:
    return transaction.count(_rows, _rows.c.kb_id == kb_id)


def statement_type_counts(transaction: Transaction, kb_id: str) -> dict[models.StatementType, int]:
    """Count annotations by statement type, most frequent first."""
    frame, number = _rows.c.frame, sa.func.count()
    query = sa.select(frame, number).where(_rows.c.kb_id == kb_id, frame != "").group_by(frame)
    rows = transaction.execute(query.order_by(number.desc(), frame))
    return {models.StatementType(name): int(count) for name, count in rows}


def seqs_with_frame(
    transaction: Transaction, kb_id: str, frames: Collection[models.StatementType]
) -> list[int]:
    query = sa.select(_rows.c.chunk_seq).where(
        _rows.c.kb_id == kb_id, _rows.c.frame.in_([frame.value for frame in frames])
    )
    return transaction.scalars(query.distinct().order_by(_rows.c.chunk_seq))


def _lacks(kb_id: str, annotator: str) -> sa.ColumnElement[bool]:
    has = sa.exists().where(_rows.c.chunk_seq == chunks.c.seq, _rows.c.annotator == annotator)
    return sa.and_(chunks.c.kb_id == kb_id, ~has)


def _values(annotation: models.Annotation) -> dict[str, Any]:
    relations = [[each.source, each.name, each.target] for each in annotation.relations]
    return {
        **{name: getattr(annotation, name) for name in _PLAIN},
        "frame": annotation.frame.value if annotation.frame else "",
        "relations": json.dumps(relations, ensure_ascii=False) if relations else "",
    }


def _subjects_of(annotation: models.Annotation) -> Iterator[tuple[str, SubjectName]]:
    for kind, field in _FIELDS.items():
        for name in getattr(annotation, field):
            if key := subject_key(kind, name):
                subject = SubjectName(kind, key, name)
                yield subject.id, subject


def _names(
    transaction: Transaction, seqs: Sequence[int]
) -> dict[tuple[int, int], dict[str, list[str]]]:
    table, subject = annotation_subjects.c, workspace_schema.subjects
    columns = table.chunk_seq, table.position, subject.c.kind, subject.c.name
    query = sa.select(*columns).join(subject, subject.c.id == table.subject_id)
    query = query.where(transaction.is_in(table.chunk_seq, seqs)).order_by(subject.c.name)
    names_of: dict[tuple[int, int], dict[str, list[str]]] = {}
    for row in transaction.execute(query):
        kinds = names_of.setdefault((row.chunk_seq, row.position), {})
        kinds.setdefault(row.kind, []).append(row.name)
    return names_of


def _annotation(row: Any, names: Mapping[str, Sequence[str]]) -> models.Annotation:
    values: dict[str, Any] = {name: getattr(row, name) for name in _PLAIN}
    values |= {field: tuple(names.get(kind.value, ())) for kind, field in _FIELDS.items()}
    return models.Annotation(
        text=row.text[row.start : row.end],
        frame=models.StatementType(row.frame) if row.frame else None,
        relations=tuple(models.StatedRelation(*each) for each in json.loads(row.relations or "[]")),
        **values,
    )


def put_answers(
    transaction: Transaction, kb_id: str, answers: Mapping[str, tuple[str, Sequence[Any]]]
) -> None:
    knowledge_bases.get_by_id(transaction, kb_id)
    rows = [
        {"kb_id": kb_id, "key": key, "chunk_id": chunk_id, "statements": list(statements)}
        for key, (chunk_id, statements) in answers.items()
    ]
    transaction.put(annotator_answers, rows, replace=False)


def answers_of(transaction: Transaction, kb_id: str, keys: Collection[str]) -> dict[str, list[Any]]:
    query = sa.select(annotator_answers.c.key, annotator_answers.c.statements).where(
        annotator_answers.c.kb_id == kb_id, transaction.is_in(annotator_answers.c.key, list(keys))
    )
    return transaction.mapping(query)


def remove_unused_answers(transaction: Transaction) -> int:
    """Delete answers about removed chunks; return their number."""
    used = sa.exists().where(chunks.c.id == annotator_answers.c.chunk_id)
    return transaction.execute(annotator_answers.delete().where(~used)).rowcount
