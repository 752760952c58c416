"""Subjects of a workspace: which there are, and what speaks of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from difflib import get_close_matches

from kbkit.errors import ConfigError, NotFoundError
from kbkit.knowledge_base.handle import Handle
from kbkit.models import (
    About,
    Annotation,
    Chunk,
    Document,
    SpeakingChunk,
    SpeakingDocument,
    Subject,
    SubjectKind,
)
from kbkit.stores.catalog import chunk_annotations, names, reading, subjects
from kbkit.stores.catalog.database import Transaction
from kbkit.stores.catalog.subjects import SubjectName
from kbkit.stores.stores import Stores
from kbkit.text.subject_keys import subject_key
from kbkit.validation import check_integer, check_text

_NEAR = 5
_WEIGHED = 2_000
"""Chunks that are weighed at most."""


def list_subjects(
    stores: Stores,
    handles: Sequence[Handle],
    *,
    kind: str | SubjectKind | None,
    like: str,
    limit: int | None,
) -> list[Subject]:
    """See `Workspace.subjects`."""
    if limit is not None:
        check_integer("limit", limit, 1)
    with stores.database.read() as transaction:
        return subjects.listed(
            transaction,
            kinds=[_kind(kind)] if kind is not None else (),
            like=check_text("like", like),
            kb_ids=[handle.id for handle in handles],
            limit=limit,
        )


def about(stores: Stores, handles: Sequence[Handle], query: str, *, limit: int) -> About:
    """See `Workspace.about`."""
    check_integer("limit", limit, 1)
    asked = " ".join(check_text("query", query).split())
    if not asked:
        raise ConfigError("the query is empty: say what to look for")
    kb_ids = [handle.id for handle in handles]
    with stores.database.read() as transaction:
        known = _named(transaction, asked)
        found = subjects.listed(transaction, ids=known, kb_ids=kb_ids) if known else []
        if not found:
            raise _nothing(transaction, asked, kb_ids)
        ids = subjects.ids_of(transaction, [subject.id for subject in found])
        words = {name.casefold() for each in found for name in (each.name, *each.aliases)}
        chunks: list[SpeakingChunk] = []
        documents: list[SpeakingDocument] = []
        seqs: set[int] = set()
        for handle in handles:
            own = subjects.chunk_seqs(transaction, ids, kb_id=handle.id)[:_WEIGHED]
            there = reading.get_chunks(transaction, own)
            made = chunk_annotations.of(transaction, own)
            chunks += [
                _speaking(handle.name, *there[seq], made[seq], words)
                for seq in own
                if seq in there and seq in made
            ]
            documents += _documents(transaction, handle, there, words)
            seqs.update(own)
        telling = subjects.beside(transaction, seqs, without=ids, limit=limit)
        beside = {each.id: each for each in subjects.listed(transaction, ids=telling)}
    chunks.sort(key=lambda each: -each.weight)
    documents.sort(key=lambda each: (not each.defines, -each.chunks))
    return About(
        asked,
        tuple(found),
        tuple(chunks[:limit]),
        tuple(documents[:limit]),
        tuple(beside[known] for known in telling if known in beside),
    )


def _kind(kind: str | SubjectKind) -> SubjectKind:
    try:
        return SubjectKind(kind)
    except ValueError:
        raise ConfigError(f"kind={kind!r}: choose from {', '.join(SubjectKind)}") from None


def _named(transaction: Transaction, query: str) -> set[str]:
    """Ids of the subjects of any kind that are called so, and of their aliases."""
    keys = {kind: subject_key(kind, query) for kind in SubjectKind}
    ids = [SubjectName(kind, key, query).id for kind, key in keys.items() if key]
    return subjects.ids_of(transaction, ids)


def _nothing(transaction: Transaction, query: str, kb_ids: Collection[str]) -> NotFoundError:
    word = max(query.split(), key=len)
    near = [each.name for each in subjects.listed(
        transaction, like=word, kb_ids=kb_ids, limit=_NEAR
    )]  # fmt: skip
    if not near:
        often = subjects.listed(transaction, kb_ids=kb_ids, limit=1_000)
        near = get_close_matches(query, [each.name for each in often], _NEAR)
    meant = f"; near it are {', '.join(map(repr, near))}" if near else ""
    return NotFoundError(
        f"no subject is called {query!r}{meant}; list the subjects to see those there are "
        "(what has not been annotated yet brings none)"
    )


def _speaking(
    kb: str,
    chunk: Chunk,
    document: Document,
    made: Sequence[Annotation],
    words: Collection[str],
) -> SpeakingChunk:
    """A chunk that speaks of a subject; weighed by what else it speaks of."""
    others = {name for each in made for name in each.entities}
    in_heading = any(word in heading.casefold() for heading in chunk.heading_path for word in words)
    best = max(made, key=lambda each: each.confidence)
    return SpeakingChunk(
        kb=kb,
        chunk_id=chunk.id,
        title=document.title,
        section=reading.heading_text(document.title, chunk.heading_path),
        uri=document.uri,
        anchor=chunk.anchor,
        statement=best.normalized_text,
        frame=best.frame,
        weight=1.0 if in_heading else round(1 / (1 + len(others)) ** 0.5, 3),
    )


def _documents(
    transaction: Transaction,
    handle: Handle,
    there: Mapping[int, tuple[Chunk, Document]],
    words: Collection[str],
) -> list[SpeakingDocument]:
    counts = Counter(document.id for _, document in there.values())
    by_id = {document.id: document for _, document in there.values()}
    defining = names.defining(transaction, handle.id, words)
    return [
        SpeakingDocument(
            kb=handle.name,
            id=known,
            title=by_id[known].title,
            uri=by_id[known].uri,
            description=by_id[known].description,
            chunks=count,
            defines=known in defining,
        )
        for known, count in counts.items()
    ]
