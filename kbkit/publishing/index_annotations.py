"""What the search index of a published knowledge base says of annotations."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kbkit.export.index import IndexedAnnotations, IndexedSubject
from kbkit.export.index.packing import Integers
from kbkit.models import Frame, SubjectKind
from kbkit.models.plain import plain
from kbkit.stores.catalog import annotated_chunks
from kbkit.stores.catalog.database import Transaction

ENTITIES = 3
"""Most entities that a hit shows."""


def indexed_annotations(
    transaction: Transaction, kb_id: str, seqs: Sequence[int]
) -> IndexedAnnotations | None:
    """What the annotations of some chunks say.

    Args:
        transaction: Reads.
        kb_id: The knowledge base.
        seqs: ``chunks.seq`` of the chunks, in the order of the index.

    Returns:
        ``None`` where none of them is annotated.
    """
    numbers = {seq: number for number, seq in enumerate(seqs)}
    masks = np.zeros(len(seqs), np.int64)
    first: list[Frame | None] = [None] * len(seqs)
    bits = {frame: 1 << place for place, frame in enumerate(Frame)}
    for seq, position, frame in annotated_chunks.iter_frames(transaction, kb_id):
        if seq in numbers:
            masks[numbers[seq]] |= bits[frame]
            if position == 0:
                first[numbers[seq]] = frame
    subjects, entities = _subjects(transaction, kb_id, numbers)
    if not masks.any() and not subjects:
        return None
    return IndexedAnnotations(masks, first, entities, subjects)


def _subjects(
    transaction: Transaction, kb_id: str, numbers: dict[int, int]
) -> tuple[list[IndexedSubject], list[tuple[str, ...]]]:
    """All subjects by each of their names, and the entities that each chunk shows.

    Those are the ones that the fewest other chunks name, as in
    `kbkit.stores.catalog.chunk_annotations.summaries`.
    """
    said = annotated_chunks.mentions(transaction, kb_id)
    names = annotated_chunks.names(transaction)
    rows: dict[str, Integers] = {}
    for known, found in said.items():
        there = [numbers[seq] for seq in found if seq in numbers]
        if there and known in names:
            rows[known] = np.sort(np.array(there, np.int64))
    shown: list[list[tuple[int, str]]] = [[] for _ in numbers]
    groups: dict[str, list[str]] = {}
    for known, own in rows.items():
        subject = names[known]
        groups.setdefault(subject.root, []).append(known)
        if subject.kind is SubjectKind.ENTITY:
            for number in own.tolist():
                shown[number].append((len(own), plain(subject.name)))
    members = _members(names, groups)
    found_subjects = []
    for root, held in groups.items():
        own = rows[held[0]]
        if len(held) > 1:
            own = np.unique(np.concatenate([rows[known] for known in held]))
        for known in members[root]:
            subject = names[known]
            if name := plain(subject.name):
                found_subjects.append(IndexedSubject(subject.key, subject.kind, name, own))
    entities = [tuple(name for _, name in sorted(each)[:ENTITIES] if name) for each in shown]
    return found_subjects, entities


def _members(
    names: dict[str, annotated_chunks.NamedSubject], groups: dict[str, list[str]]
) -> dict[str, list[str]]:
    """Ids of all names of some subjects, also of those that no chunk has, by the subject's id."""
    found: dict[str, list[str]] = {root: [root] for root in groups if root in names}
    for known, subject in names.items():
        if subject.root != known and subject.root in groups:
            found.setdefault(subject.root, []).append(known)
    return found
