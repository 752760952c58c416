"""Mentions of entities in documents, and their main subjects."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np

from kbkit.export.index.packing import Integers
from kbkit.models import SubjectKind
from kbkit.models.plain import plain
from kbkit.stores.catalog import reading
from kbkit.stores.catalog.database import Transaction
from kbkit.stores.snapshots.snapshot import Snapshot

MAIN = 5
"""Maximum main subjects of a page."""
_OFTEN = 2
"""Minimum passages and pages that mention a main subject."""


@dataclass(frozen=True, slots=True, eq=False)
class EntityMentions:
    """Mentions of entities by id; merged ones count as one.

    Only names that stand in the knowledge base are in it: others of the workspace's are not to be
    published with it.

    Attributes:
        names: Most frequent names.
        documents: Documents that mention it, by number in the snapshot, with the number of
            passages; the most first.
    """

    names: Mapping[str, str]
    aliases: Mapping[str, tuple[str, ...]]
    documents: Mapping[str, tuple[Integers, Integers]]

    def main_subjects(self, without: Collection[int] = ()) -> dict[int, tuple[str, ...]]:
        """Map documents to main subjects: entities that they mention more than others do.

        By ``n / sqrt(N)``, where so many of a document's passages name it, and so many of all.
        """
        scores: dict[int, list[tuple[float, str]]] = {}
        for known, (owners, counts) in self.documents.items():
            if len(owners) < _OFTEN:
                continue
            everywhere = float(counts.sum()) ** 0.5
            for owner, count in zip(owners.tolist(), counts.tolist(), strict=True):
                if count >= _OFTEN and owner not in without:
                    # rounded, so that a page stays as it is where little has changed elsewhere
                    score = round(count / everywhere, 1)
                    scores.setdefault(owner, []).append((-score, self.names[known]))
        return {
            owner: tuple(name for _, name in sorted(found)[:MAIN])
            for owner, found in scores.items()
        }


def entity_mentions(transaction: Transaction, kb_id: str, snapshot: Snapshot) -> EntityMentions:
    said = reading.mentions(transaction, kb_id)
    subjects = reading.names(transaction) if said else {}
    groups: dict[str, list[str]] = {}
    for known in said:
        subject = subjects.get(known)
        if subject and subject.kind is SubjectKind.ENTITY and plain(subject.name):
            groups.setdefault(subject.root, []).append(known)
    names, aliases, documents = {}, {}, {}
    for root, held in groups.items():
        called, *others = sorted(held, key=lambda known: (-len(said[known]), known != root, known))
        if root in held and 2 * len(said[root]) >= len(said[called]):
            called, others = root, [known for known in held if known != root]
        names[root] = plain(subjects[called].name)
        aliases[root] = tuple(sorted({plain(subjects[known].name) for known in others}))
        seqs = np.array(sorted({seq for known in held for seq in said[known]}), np.int64)
        rows = np.minimum(np.searchsorted(snapshot.seqs, seqs), max(len(snapshot.seqs) - 1, 0))
        there = rows[snapshot.seqs[rows] == seqs] if len(snapshot.seqs) else rows[:0]
        owners, counts = np.unique(snapshot.owners[there], return_counts=True)
        order = np.argsort(-counts, kind="stable")
        documents[root] = owners[order].astype(np.int64), counts[order].astype(np.int64)
    return EntityMentions(names, aliases, documents)
