"""Finds what documentation lacks in a catalog, each kind by what that needs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

from kbkit.graph import gaps
from kbkit.models import EntityType, Gap, GapKind, TargetKind
from kbkit.stores.catalog import edges as edge_rows
from kbkit.stores.catalog import entities, files
from kbkit.stores.catalog import gaps as rows
from kbkit.stores.catalog.built_in import FILES
from kbkit.stores.catalog.database import Transaction
from kbkit.stores.catalog.files import MissingNote

_CHUNKS = 3
"""Chunks to start from that a gap names."""
_BADLY = 2
"""Best rating of a question that counts as answered badly."""


def find_gaps(
    transaction: Transaction, kb_ids: Sequence[str], kinds: Sequence[GapKind], limit: int
) -> list[Gap]:
    """What some knowledge bases lack, of each kind in turn, what matters most first.

    Args:
        transaction: Reads.
        kb_ids: The knowledge bases.
        kinds: Only gaps of these kinds.
        limit: Most gaps of each kind.
    """
    finder, found = _Finder(transaction, kb_ids), list[Gap]()
    for kind in kinds:
        ranked = sorted(finder.of(kind), key=lambda gap: (-gap.weight, gap.name))
        for gap in ranked[:limit]:
            target = gap.target
            start = gap.start or rows.first_chunks(transaction, target.kind, target.id, _CHUNKS)
            found.append(replace(gap, start=tuple(start)))
    return found


class _Finder:
    """What several kinds of gaps need, read once."""

    def __init__(self, transaction: Transaction, kb_ids: Sequence[str]) -> None:
        self._transaction = transaction
        self._kb_ids = kb_ids
        self._aliases = entities.aliases_of(transaction)

    def of(self, kind: GapKind) -> Iterator[Gap]:
        """The gaps of a kind, in any order."""
        transaction, kb_ids = self._transaction, self._kb_ids
        if kind is GapKind.MISSING:
            return gaps.missing(self._missing() if FILES in kb_ids else ())
        if kind is GapKind.UNREACHED:
            return gaps.unreached(rows.nameless_documents(transaction, kb_ids))
        if kind is GapKind.UNANSWERED:
            by_id = {each.id: each for each in self._named}
            by_id |= {name: by_id[own] for name, own in self._aliases.items() if own in by_id}
            return gaps.unanswered(rows.bad_queries(transaction, kb_ids, _BADLY), by_id)
        if kind is GapKind.ORPHAN:
            ends = edge_rows.pairs(transaction)
            reached = {known for pair in ends for what, known in pair if what == TargetKind.ENTITY}
            return gaps.orphans(self._named, reached)
        if kind is GapKind.UNDESCRIBED:
            headings = rows.headings(transaction, kb_ids)
            return gaps.undescribed(self._named, self._defined, headings)
        terms = {each.id for each in self._named if each.type == EntityType.TERM}
        contained = edge_rows.pairs(transaction, "contains")
        parts = {target[1] for source, target in contained if source[1] not in terms}
        return gaps.unlinked(self._named, self._defined, self._naming, parts)

    @cached_property
    def _counted(self) -> tuple[list[rows.NamedEntity], Mapping[str, set[str]]]:
        return rows.named_entities(self._transaction, self._kb_ids)

    @property
    def _named(self) -> list[rows.NamedEntity]:
        return self._counted[0]

    @property
    def _naming(self) -> Mapping[str, set[str]]:
        return self._counted[1]

    @cached_property
    def _defined(self) -> dict[str, set[str]]:
        """The documents that say what an entity is, by its id."""
        found: dict[str, set[str]] = {}
        for known, documents in rows.defining_documents(self._transaction).items():
            found.setdefault(self._aliases.get(known, known), set()).update(documents)
        return found

    def _missing(self) -> Iterator[tuple[MissingNote, list[str]]]:
        """Notes that are linked to and are not there, each with chunks that link to it."""
        for note in files.missing(self._transaction):
            name = note.target.rpartition("/")[2] if note.target[:1] == "/" else note.target
            for text in (f"[[{name}", name, "]("):  # as it may be written
                found = files.chunks_with(self._transaction, FILES, note.sources, text, _CHUNKS)
                if found:
                    break
            yield note, found
