"""The published part of the graph.

It has the knowledge base's names and documents of entities, and descriptions by people or these
documents, but no authors, notes of relations and questions of people.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from kbkit.export.facts import GraphEdge, GraphFacts, GraphGap, GraphNode, GraphPlace
from kbkit.export.index_packing import Integers
from kbkit.graph.building import first_sentence
from kbkit.graph.graph import MAX_DRAWN, Graph
from kbkit.models import Entity, Gap, GapKind, GraphLayout, LayoutNode, SubjectKind, TargetKind
from kbkit.models.values import plain
from kbkit.retrieval.candidates import places_in
from kbkit.stores.catalog import entities, graph, reading, relations
from kbkit.stores.catalog.database import Transaction
from kbkit.stores.catalog.subjects import entity_id
from kbkit.stores.snapshots.snapshot import Snapshot
from kbkit.stores.stores import Stores

MAIN = 5
"""Maximum main subjects of a page."""
_MIN_MENTIONS = 2  # passages and pages that mention a main subject


@dataclass(frozen=True, slots=True, eq=False)
class Mentions:
    """Mentions of entities by id, in this knowledge base only; merged entities count as one.

    Attributes:
        names: Most frequent names.
        documents: Numbers of documents in the snapshot, and of their mentioning passages, the most
            first.
    """

    names: Mapping[str, str]
    aliases: Mapping[str, tuple[str, ...]]
    documents: Mapping[str, tuple[Integers, Integers]]

    def main_subjects(self) -> dict[int, tuple[str, ...]]:
        """Map documents to their main subjects, ranked by ``n / sqrt(N)`` of ``N`` mentions."""
        scores: dict[int, list[tuple[float, str]]] = {}
        for id_, (owners, counts) in self.documents.items():
            if len(owners) < _MIN_MENTIONS:
                continue
            everywhere = float(counts.sum()) ** 0.5
            for owner, count in zip(owners.tolist(), counts.tolist(), strict=True):
                if count >= _MIN_MENTIONS:
                    # rounded, so that small changes elsewhere do not change a page
                    score = round(count / everywhere, 1)
                    scores.setdefault(owner, []).append((-score, self.names[id_]))
        return {
            owner: tuple(name for _, name in sorted(scored)[:MAIN])
            for owner, scored in scores.items()
        }


def entity_mentions(transaction: Transaction, kb_id: str, snapshot: Snapshot) -> Mentions:
    seqs_of = reading.mentions(transaction, kb_id)
    subjects = reading.names(transaction) if seqs_of else {}
    groups: dict[str, list[str]] = {}
    for subject_id in seqs_of:
        subject = subjects.get(subject_id)
        if subject and subject.kind is SubjectKind.ENTITY and plain(subject.name):
            groups.setdefault(subject.root, []).append(subject_id)
    names, aliases, documents = {}, {}, {}
    for root, members in groups.items():
        main, *minor = sorted(members, key=lambda id_: (-len(seqs_of[id_]), id_ != root, id_))
        if root in members and 2 * len(seqs_of[root]) >= len(seqs_of[main]):
            main, minor = root, [subject_id for subject_id in members if subject_id != root]
        names[root] = plain(subjects[main].name)
        aliases[root] = tuple(sorted({plain(subjects[subject_id].name) for subject_id in minor}))
        seqs = np.unique([seq for subject_id in members for seq in seqs_of[subject_id]])
        rows = places_in(snapshot.seqs, seqs)[1]
        owners, counts = np.unique(snapshot.owners[rows], return_counts=True)
        order = np.argsort(-counts, kind="stable")
        documents[root] = owners[order].astype(np.int64), counts[order].astype(np.int64)
    return Mentions(names, aliases, documents)


GAPS = 20
"""Maximum gaps of each kind."""
PLACES = 4
"""Maximum documents of an entity."""
ALIASES = 8
"""Maximum aliases of an entity."""
EDGES = 10_000
"""Maximum relations in the picture, the strongest."""
FURTHER = 100_000
"""Maximum relations outside the picture."""
_MAX_LENGTH = 200  # characters of a property's value

_Definitions = Mapping[str, Sequence[tuple[str, str]]]
"""Defining documents and anchors of entities, by id."""


@dataclass(frozen=True, slots=True)
class GraphView:
    """A graph for drawing, with its gaps; `state` identifies the version."""

    layout: GraphLayout
    gaps: Sequence[Gap]
    state: str = ""


def look_at_graph(stores: Stores, name: str, state: str = "") -> GraphView | None:
    """Return a knowledge base's graph for drawing, after updating it."""
    graph_of_all = Graph(stores, "")
    layout = graph_of_all.layout(kbs=[name], limit=MAX_DRAWN)
    if not layout.edges:
        return None
    gaps = graph_of_all.gaps(kbs=[name], limit=GAPS)
    # questions of people are private
    return GraphView(layout, [gap for gap in gaps if gap.kind != GapKind.UNANSWERED], state)


def graph_facts(
    transaction: Transaction, kb_id: str, snapshot: Snapshot, view: GraphView, mentions: Mentions
) -> GraphFacts:
    drawn = [node for node in view.layout.nodes if node.target.id in mentions.names]
    numbers = {node.target: number for number, node in enumerate(drawn)}
    drawn_ids = [node.target.id for node in drawn]
    entity_of = {e.id: e for e in entities.entities_of(transaction, drawn_ids, counted=False)}
    definitions = _definitions(transaction, kb_id, mentions.names.keys())
    descriptions = _descriptions(
        transaction, kb_id, {id_: definitions[id_] for id_ in entity_of if id_ in definitions}
    )
    uris = reading.uris_of(transaction, snapshot.document_ids)
    places = _Places(uris, snapshot, mentions, definitions)
    nodes = [_node(node, entity_of.get(node.target.id), places, descriptions) for node in drawn]
    pictured = {
        (view.layout.nodes[edge.source].target, edge.name, view.layout.nodes[edge.target].target)
        for edge in view.layout.edges
    }
    edges = [
        edge
        for edge in relations.edges(transaction, kb_ids=[kb_id])
        if edge.source.id in mentions.names and edge.target.id in mentions.names
    ]
    edges.sort(key=lambda e: ((e.source, e.name, e.target) not in pictured, -e.weight, e.id))
    inside = [edge for edge in edges if edge.source in numbers and edge.target in numbers]
    outside = [edge for edge in edges if not (edge.source in numbers and edge.target in numbers)]
    ends = {end for edge in outside[:FURTHER] for end in (edge.source, edge.target)}
    labels = relations.labels(transaction, list(ends - numbers.keys()))
    for target in sorted(labels, key=lambda end: (mentions.names[end.id], end.id)):
        numbers[target] = len(nodes)
        nodes.append(places.node(target.id, labels[target][1]))
    published_edges = tuple(
        GraphEdge(
            numbers[edge.source],
            numbers[edge.target],
            plain(edge.name),
            round(edge.weight, 2),
            drawn=(edge.source, edge.name, edge.target) in pictured,
        )
        for edge in (*inside[:EDGES], *outside[:FURTHER])
    )
    gaps, total = list(_gaps(view.gaps, places)), max(view.layout.total, len(drawn))
    return GraphFacts(nodes, len(drawn), published_edges, gaps, total, view.state)


def _node(
    node: LayoutNode, entity: Entity | None, places: _Places, descriptions: Mapping[str, str]
) -> GraphNode:
    id_ = node.target.id
    by_hand = entity is not None and entity.by_hand
    description = entity.description if entity and by_hand else descriptions.get(id_, "")
    properties = entity.properties if entity else {}
    return replace(
        places.node(id_, node.type),
        x=round(node.x, 1),
        y=round(node.y, 1),
        radius=node.radius,
        description=plain(description),
        aliases=places.mentions.aliases[id_][:ALIASES],
        properties=tuple(
            (plain(label), plain(str(value))[:_MAX_LENGTH]) for label, value in properties.items()
        ),
    )


def _definitions(transaction: Transaction, kb_id: str, ids: Collection[str]) -> _Definitions:
    aliases = entities.aliases_of(transaction)
    definitions: dict[str, list[tuple[str, str]]] = {}
    for name in graph.given_names(transaction, kb_id):
        if name.defines:
            id_ = entity_id(name.name)
            id_ = aliases.get(id_, id_)
            if id_ in ids:
                definitions.setdefault(id_, []).append((name.document_id, name.anchor))
    return definitions


def _descriptions(transaction: Transaction, kb_id: str, places: _Definitions) -> dict[str, str]:
    """Return the first sentence of each entity's first defining section."""
    anchored = {
        place: id_
        for id_, id_places in reversed(list(places.items()))
        for place in reversed(id_places)
        if place[1]
    }
    seqs: dict[str, int] = {}
    for chunk in graph.places(transaction, kb_id):
        id_ = anchored.get((chunk.document_id, chunk.anchor))
        if id_ is not None:
            seqs.setdefault(id_, chunk.seq)
    texts = graph.texts(transaction, sorted(seqs.values()))
    return {id_: first_sentence(texts[seq]) for id_, seq in seqs.items() if seq in texts}


class _Places(NamedTuple):
    uris: Mapping[str, str]
    snapshot: Snapshot
    mentions: Mentions
    definitions: _Definitions

    def node(self, id_: str, type_: str) -> GraphNode:
        counts = self.mentions.documents[id_][1]
        return GraphNode(
            name=self.mentions.names[id_],
            type=plain(type_),
            chunks=int(counts.sum()),
            documents=len(counts),
            places=self.of_entity(id_),
        )

    def of_entity(self, id_: str) -> tuple[GraphPlace, ...]:
        anchors: dict[str, str] = {}
        for document, anchor in self.definitions.get(id_, ()):
            anchors.setdefault(document, anchor)
        defining = set(anchors)
        owners = self.mentions.documents[id_][0][: PLACES + len(anchors)].tolist()
        for owner in owners:
            anchors.setdefault(self.snapshot.document_ids[owner], "")
        chosen = [place for place in anchors.items() if place[0] in self.uris][:PLACES]
        return tuple(
            GraphPlace(self.uris[document], anchor, document in defining)
            for document, anchor in chosen
        )


def _gaps(gaps: Sequence[Gap], places: _Places) -> Iterator[GraphGap]:
    for gap in gaps:
        id_ = gap.target.id
        if gap.target.kind is TargetKind.DOCUMENT:
            if id_ in places.uris:
                place = GraphPlace(places.uris[id_])
                yield GraphGap(plain(gap.name), gap.kind.value, gap.reason, (place,))
        elif name := places.mentions.names.get(id_):
            yield GraphGap(name, gap.kind.value, gap.reason, places.of_entity(id_))
