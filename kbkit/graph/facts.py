"""What the graph knows of the entities that a question names, for the context of an agent."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from kbkit.graph.keys import entity_id
from kbkit.markdown.plain_text import plain_text
from kbkit.models import (
    Chunk,
    Document,
    Entity,
    Hit,
    ScoreParts,
    Target,
    TargetKind,
)
from kbkit.retrieval.context import SAID, Fact, Findings
from kbkit.stores.catalog import entities, gaps, names, reading, relations, subjects
from kbkit.stores.catalog.database import Database, Transaction
from kbkit.stores.catalog.relations import Edge
from kbkit.text.stopwords import stop_words

RELATIONS = 4
"""Relations that are told of an entity, the strongest."""

_NAMED = {TargetKind.ENTITY}
_MOST_WORDS = 5
_WORDS = 60
"""Words of a question that are looked at."""
_EDGES = ".,:;!?\"'`“”‘’«»()[]{}<>"
_SPARE = 2
"""Entities that are looked at for each that is wanted: some have nothing to tell."""
_PLACES = 10
"""Passages that are looked at for each."""
_LENGTH = 300
"""Characters that say what an entity is."""


@dataclass(frozen=True, slots=True)
class EntityFacts:
    """A leg of context: entities that a question names, their relations, where they are defined.

    Attributes:
        database: The catalog.
        kbs: Names of the knowledge bases that are asked, by id.
        limit: Most entities.
    """

    database: Database
    kbs: Mapping[str, str]
    limit: int

    def find(self, query: str) -> Findings:
        """Facts of the entities that a question names: of long names first, then of rare ones.

        An entity that no document defines, and nothing relates to, is left out.
        """
        with self.database.read() as transaction:
            found = self._named_in(transaction, query)
            if not found:
                return Findings()
            targets = {Target(TargetKind.ENTITY, each.id): each for each in found}
            near = relations.strongest(transaction, targets, 2 * RELATIONS)
            # where it is defined is told as its source
            of = {
                target: [edge for edge in edges if {edge.source.kind, edge.target.kind} == _NAMED]
                for target, edges in near.items()
            }
            of = {target: edges[:RELATIONS] for target, edges in of.items()}
            ends = {
                end for told in of.values() for edge in told for end in (edge.source, edge.target)
            }
            labels = relations.labels(transaction, ends)
            places = _defined(transaction, self.kbs, found)
        facts = [
            _fact(entity, places.get(entity.id), [_said(edge, labels) for edge in of[target]])
            for target, entity in targets.items()
        ]
        told = [fact for fact in facts if fact.hit is not None or len(fact.lines) > 1]
        return Findings(facts=told[: self.limit])

    def _named_in(self, transaction: Transaction, query: str) -> list[Entity]:
        words = query.split()[:_WORDS]
        ids = {span: entity_id(text) for span, text in _spans(words)}
        there = subjects.existing(transaction, set(ids.values()))
        if not there:
            return []
        taken: set[int] = set()
        lengths: dict[str, int] = {}
        for (start, end), known in ids.items():
            if known in there and taken.isdisjoint(range(start, end)):
                taken.update(range(start, end))  # of names within one another the longest
                lengths.setdefault(known, end - start)
        counts = subjects.mentions(
            transaction, subjects.ids_of(transaction, lengths), list(self.kbs)
        )
        order = sorted(counts, key=lambda known: (-lengths.get(known, 0), counts[known], known))
        aliases = entities.aliases_of(transaction)
        roots = dict.fromkeys(aliases.get(known, known) for known in order)
        return entities.of(transaction, list(roots)[: _SPARE * self.limit], counted=False)


def passages(
    transaction: Transaction, kbs: Mapping[str, str], target: Target, limit: int
) -> list[Hit]:
    """Passages that say what something is, and those that name it most plainly.

    Args:
        transaction: Reads.
        kbs: Names of the knowledge bases that are asked, by id.
        target: An entity, a document or a chunk.
        limit: Most passages.
    """
    found: list[Hit] = []
    ids = [target.id]
    if target.kind is TargetKind.ENTITY:
        found += _defined(transaction, kbs, [entities.get(transaction, target.id)]).values()
    if target.kind is not TargetKind.CHUNK:
        ids = gaps.first_chunks(transaction, target.kind, target.id, limit)
    places = reading.places_by_id(transaction, ids)
    there = reading.get_chunks(transaction, [seq for seq, _ in places.values()])
    found += [_hit(kbs[kb_id], *there[seq]) for seq, kb_id in places.values() if kb_id in kbs]
    return list({hit.chunk.id: hit for hit in found}.values())[:limit]


def _defined(
    transaction: Transaction, kbs: Mapping[str, str], found: Sequence[Entity]
) -> dict[str, Hit]:
    """The passages with which documents begin to say what entities are, by entity."""
    known = {name: each.id for each in found for name in (each.name, *each.aliases)}
    rows = names.defined_in(transaction, list(kbs), known, _PLACES * len(found))
    chunks = reading.get_chunks(transaction, [seq for _, seq, _ in rows])
    best: dict[str, tuple[tuple[int, int], Hit]] = {}
    for name, seq, kb_id in rows:
        chunk, document = chunks[seq]
        near = _distance(chunk, name)
        if known[name] not in best or near < best[known[name]][0]:
            best[known[name]] = near, _hit(kbs[kb_id], chunk, document)
    return {entity_id: hit for entity_id, (_, hit) in best.items()}


def _fact(entity: Entity, place: Hit | None, related: Sequence[str]) -> Fact:
    # what is found to describe it may be of a knowledge base that is not asked
    found = "" if place is None else _beginning(place.chunk.text)
    told = entity.description if entity.by_hand else found
    lines = {
        "entity: ": f"{entity.name} ({entity.type})" if entity.type else entity.name,
        "also: ": ", ".join(entity.aliases[:RELATIONS]),
        SAID: told,
        "relations: ": "; ".join(related),
    }
    shown = tuple(f"{name}{value}" for name, value in lines.items() if value)
    return Fact(entity.name, shown, place)


def _hit(kb: str, chunk: Chunk, document: Document) -> Hit:
    return Hit(
        kb=kb,
        score=0.0,
        parts=ScoreParts(0.0, 0.0, 0.0, 0.0),
        chunk=chunk,
        uri=document.uri,
        title=document.title,
        document_type=document.document_type,
        tags=document.tags,
        fetched_at=document.fetched_at,
        cut=str,
        state=document.state,
        description=document.description,
    )


def _spans(words: Sequence[str]) -> Iterator[tuple[tuple[int, int], str]]:
    """What may be a name among some words, long ones first."""
    for length in range(min(_MOST_WORDS, len(words)), 0, -1):
        for start in range(len(words) - length + 1):
            text = " ".join(words[start : start + length])
            bare = text.strip(_EDGES)
            common = length == 1 and bare.lower() in stop_words("english")
            if bare and not (common and bare == text.rstrip(".,:;!?")):
                yield (start, start + length), bare


def _distance(chunk: Chunk, name: str) -> tuple[int, int]:
    """How far the heading above a chunk is from a name, and where the chunk stands."""
    last = chunk.heading_path[-1] if chunk.heading_path else ""
    return len(last) - len(name) if name in last else 1_000, chunk.position


def _beginning(text: str) -> str:
    """The first sentences of a passage, on a line."""
    line = " ".join(plain_text(text).split())
    if len(line) <= _LENGTH:
        return line
    ends = [match.end() for match in re.finditer(r"[.!?](?= )", line[:_LENGTH])]
    return line[: ends[-1]] if ends else f"{line[:_LENGTH].rsplit(' ', 1)[0]} ..."


def _said(edge: Edge, labels: Mapping[Target, tuple[str, str]]) -> str:
    return f"{labels[edge.source][0]} {edge.name} {labels[edge.target][0]}"
