"""Facts about the entities of a question, for an agent's context."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from kbkit.models import Chunk, Document, DocumentState, Entity, Hit, ScoreParts, Target, TargetKind
from kbkit.retrieval.context import SAID, ContextFact, Findings
from kbkit.retrieval.query import entities_in
from kbkit.retrieval.retriever import Retriever
from kbkit.stores.catalog import entities, graph, names, reading
from kbkit.stores.catalog.database import Database, Transaction
from kbkit.stores.catalog.graph_tables import EntityRow, GraphTable
from kbkit.text.markdown.structure import plain_text

RELATIONS = 4
"""Maximum relations and aliases of an entity."""

_CANDIDATES = 2
"""Candidates per result, because some entities have no facts."""
_PLACES = 10
"""Passages read per entity, to find its definition."""
_LENGTH = 300
"""Maximum characters of a description."""
_MIN_SHARE = 0.3
"""Minimum share of chunks in which a common word is a name."""


class _Match(NamedTuple):
    kb: str
    graph: GraphTable
    row: int

    @property
    def entity(self) -> EntityRow:
        return self.graph.entities[self.row]


@dataclass(frozen=True, slots=True)
class EntityFacts:
    """A finder of context: entities that a question names, with relations and definition.

    Attributes:
        retrievers: By name of their knowledge base.
    """

    database: Database
    retrievers: Mapping[str, Retriever]
    limit: int

    def is_at_hand(self) -> bool:
        return all(each.stores.graphs.is_held(each.kb_id) for each in self.retrievers.values())

    def find(self, query: str) -> Findings:
        """Return facts about the entities that a question names, of long and rare names first.

        Leave out entities without definition, aliases, description and relations.
        """
        by_entity: dict[str, list[_Match]] = {}
        lengths: dict[str, int] = {}
        for kb, retriever in self.retrievers.items():
            graph = retriever.graph()
            for named in entities_in(query, graph, retriever.frequency):
                entity = graph.entities[named.row]
                if named.share >= _MIN_SHARE and entity.chunks:
                    lengths.setdefault(entity.id, named.words)
                    by_entity.setdefault(entity.id, []).append(_Match(kb, graph, named.row))
        counts = {id_: sum(each.entity.chunks for each in of) for id_, of in by_entity.items()}
        order = sorted(by_entity, key=lambda id_: (-lengths[id_], counts[id_], id_))
        chosen = [by_entity[id_] for id_ in order[: _CANDIDATES * self.limit]]
        facts = [_fact(of, place) for of, place in zip(chosen, self._defined(chosen), strict=True)]
        informative = [fact for fact in facts if fact.hit is not None or len(fact.lines) > 1]
        return Findings(facts=informative[: self.limit])

    def _defined(self, chosen: Sequence[Sequence[_Match]]) -> Iterator[Hit | None]:
        places = [
            [
                (seq, each.kb)
                for each in of
                for seq in each.graph.definitions.get(each.row, ())[:_PLACES]
            ]
            for of in chosen
        ]
        chunks = self.database.chunks(sorted({seq for each in places for seq, _ in each}))
        for of, each in zip(chosen, places, strict=True):
            pairs = [(kb, *chunks[seq]) for seq, kb in each if seq in chunks]
            pairs = [
                (kb, chunk, document)
                for kb, chunk, document in pairs
                if document.state is not DocumentState.GONE
            ]
            spellings = {s for match in of for s in (match.entity.name, *match.entity.aliases)}
            best = min(pairs, key=lambda place: _distance(place[1], spellings), default=None)
            yield None if best is None else _hit(*best)


def passages(
    transaction: Transaction, kbs: Mapping[str, str], target: Target, limit: int
) -> list[Hit]:
    hits: list[Hit] = []
    ids = [target.id]
    if target.kind is TargetKind.ENTITY:
        hits += _defined(transaction, kbs, [entities.get(transaction, target.id)]).values()
    if target.kind is not TargetKind.CHUNK:
        ids = graph.first_chunks(transaction, target.kind, target.id, limit)
    places = reading.places_by_id(transaction, ids)
    chunks = reading.get_chunks(transaction, [seq for seq, _ in places.values()])
    hits += [_hit(kbs[kb_id], *chunks[seq]) for seq, kb_id in places.values() if kb_id in kbs]
    return list({hit.chunk.id: hit for hit in hits}.values())[:limit]


def _defined(
    transaction: Transaction, kbs: Mapping[str, str], matches: Sequence[Entity]
) -> dict[str, Hit]:
    id_of = {name: each.id for each in matches for name in (each.name, *each.aliases)}
    rows = names.defined_in(transaction, list(kbs), id_of, _PLACES * len(matches))
    chunks = reading.get_chunks(transaction, [seq for _, seq, _ in rows])
    best: dict[str, tuple[tuple[int, int], Hit]] = {}
    for name, seq, kb_id in rows:
        chunk, document = chunks[seq]
        near = _distance(chunk, {name})
        if id_of[name] not in best or near < best[id_of[name]][0]:
            best[id_of[name]] = near, _hit(kbs[kb_id], chunk, document)
    return {entity_id: hit for entity_id, (_, hit) in best.items()}


def _fact(of: Sequence[_Match], place: Hit | None) -> ContextFact:
    entity = of[0].entity
    beginning = "" if place is None else _beginning(place.chunk.text)
    description = next(
        (each.entity.description for each in of if each.entity.description), beginning
    )
    aliases = dict.fromkeys(name for each in of for name in each.entity.aliases)
    lines = {
        "entity: ": f"{entity.name} ({entity.type})" if entity.type else entity.name,
        "also: ": ", ".join(list(aliases)[:RELATIONS]),
        SAID: description,
        "relations: ": "; ".join(_relations(of)),
    }
    shown = tuple(f"{name}{value}" for name, value in lines.items() if value)
    return ContextFact(entity.name, shown, place)


def _relations(of: Sequence[_Match]) -> list[str]:
    pairs = {
        relation.id: (relation, each.graph)
        for each in of
        for relation in each.graph.related.get(each.row, ())[:RELATIONS]
    }
    best = sorted(pairs.values(), key=lambda pair: (-pair[0].weight, pair[0].id))[:RELATIONS]
    return [
        f"{graph.entities[relation.source].name} {relation.name} "
        f"{graph.entities[relation.target].name}"
        for relation, graph in best
    ]


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
        version=document.version,
        description=document.description,
    )


def _distance(chunk: Chunk, names: Collection[str]) -> tuple[int, int]:
    last = chunk.heading_path[-1] if chunk.heading_path else ""
    near = [len(last) - len(name) for name in names if name in last]
    return min(near, default=1_000), chunk.position


def _beginning(text: str) -> str:
    line = " ".join(plain_text(text).split())
    if len(line) <= _LENGTH:
        return line
    ends = [match.end() for match in re.finditer(r"[.!?](?= )", line[:_LENGTH])]
    return line[: ends[-1]] if ends else f"{line[:_LENGTH].rsplit(' ', 1)[0]} ..."
