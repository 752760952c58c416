"""What the search index of a published knowledge base says of annotations."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet

import numpy as np

from kbkit.export.index import IndexedAnnotations, IndexedSubject
from kbkit.export.index.packing import Integers
from kbkit.models import Frame, SubjectKind
from kbkit.models.plain import plain
from kbkit.recipes import NameSpec
from kbkit.stores.catalog import annotated_chunks
from kbkit.stores.catalog.database import Transaction
from kbkit.stores.catalog.subjects import entity_id

ENTITIES = 3
"""Most entities that a hit shows."""


def indexed_annotations(
    transaction: Transaction, kb_id: str, seqs: Sequence[int], curated: Sequence[NameSpec] = ()
) -> IndexedAnnotations | None:
    """What the annotations of some chunks say.

    Args:
        transaction: Reads.
        kb_id: The knowledge base.
        seqs: ``chunks.seq`` of the chunks, in the order of the index.
        curated: Names that its recipe gives. Other names for what the chunks name are those of
            other knowledge bases, or of people, and are not published.

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
    given = {entity_id(name) for spec in curated for name in (spec.name, *spec.aliases)}
    subjects, entities = _subjects(transaction, kb_id, numbers, given)
    if not masks.any() and not subjects:
        return None
    return IndexedAnnotations(masks, first, entities, subjects)


def _subjects(
    transaction: Transaction, kb_id: str, numbers: dict[int, int], given: AbstractSet[str]
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
    for known in (given & names.keys()) - rows.keys():
        if names[known].root in groups:
            groups[names[known].root].append(known)
    found_subjects = []
    for held in groups.values():
        named = [rows[known] for known in held if known in rows]
        own = named[0] if len(named) == 1 else np.unique(np.concatenate(named))
        for known in held:
            subject = names[known]
            if name := plain(subject.name):
                found_subjects.append(IndexedSubject(subject.key, subject.kind, name, own))
    entities = [tuple(name for _, name in sorted(each)[:ENTITIES] if name) for each in shown]
    return found_subjects, entities
