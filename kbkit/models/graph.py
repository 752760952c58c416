"""Entities, relations, suggested merges and gaps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from kbkit.models.values import Target, Value


@dataclass(frozen=True, slots=True)
class Entity(Value):
    """A node of the graph: a named thing.

    Attributes:
        id: Id of its subject.
        name: Most frequent spelling.
        type: Type: one of `EntityType`, or a person's word.
        aliases: Aliases: other spellings, merged entities, or names of a recipe.
        description: Description in a sentence, by a document or a person.
        properties: Further properties.
        chunks: Number of chunks that mention it.
        documents: Number of their documents.
        made_by: Last editor; ``""`` if no person edited it.
        by_hand: Whether a person edited it, so that rebuilds keep it.
        updated_at: When that was last done; hand it back as ``expected`` with a change.
    """

    id: str
    name: str
    type: str
    aliases: tuple[str, ...] = ()
    description: str = ""
    properties: Mapping[str, Any] = field(default_factory=dict)
    chunks: int = 0
    documents: int = 0
    made_by: str = ""
    by_hand: bool = False
    updated_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Relation(Value):
    """A directed, named edge between two targets.

    Attributes:
        id: Its number.
        source: Start.
        name: Name of the relation (``depends_on``).
        target: Where it ends.
        weight: How strong it is, above 0 to 1.
        evidence: Ids of supporting chunks.
        made_by: Last editor, or kbkit.
        created_at: When it was first seen.
        seen_at: When it was last seen in a text, or changed by a person; hand it back as
            ``expected`` with a change.
        note: Note of a person.
        by_hand: Whether a person edited it, so that rebuilds keep it.
    """

    id: int
    source: Target
    name: str
    target: Target
    weight: float
    evidence: tuple[str, ...] = ()
    made_by: str = ""
    created_at: datetime | None = None
    seen_at: datetime | None = None
    note: str = ""
    by_hand: bool = False


@dataclass(frozen=True, slots=True)
class Step(Value):
    """One step of a walk through the graph.

    Attributes:
        target: Target of the step.
        name: Its label.
        type: Type of an entity; else the kind of target.
        depth: Number of relations from the start.
        relation: Relation that led there; ``None`` at the start.
        forward: Whether the relation was followed from source to target.
    """

    target: Target
    name: str
    type: str
    depth: int
    relation: Relation | None = None
    forward: bool = True


@dataclass(frozen=True, slots=True)
class GraphEdit(Value):
    """A change of the graph by a person, which `kbkit.graph.graph.Graph.undo` reverts.

    Attributes:
        id: Its number.
        what: The change, in words.
        made_by: Name of the editor.
        made_at: When.
    """

    id: int
    what: str
    made_by: str
    made_at: datetime


class GapKind(StrEnum):
    """Kind of gap."""

    UNDESCRIBED = "undescribed"
    """Named often, described nowhere."""
    UNLINKED = "unlinked"
    """Described, and no other document speaks of it."""
    UNANSWERED = "unanswered"
    """Questions about it were rated badly, or found nothing."""
    UNREACHED = "unreached"
    """A document that names no entity."""
    MISSING = "missing"
    """A note that others link to, and that is not there yet."""
    ORPHAN = "orphan"
    """An entity that nothing relates to."""


@dataclass(frozen=True, slots=True)
class Gap(Value):
    """A gap of the documentation, and where to begin.

    Attributes:
        kind: Kind of gap.
        target: Target with the gap.
        name: Its label.
        reason: Why it is one, with figures, in a sentence.
        weight: Importance; comparable for one kind.
        start: Ids of the chunks to start from.
    """

    kind: GapKind
    target: Target
    name: str
    reason: str
    weight: float
    start: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class MergeSuggestion(Value):
    """Two entities that may be one.

    Attributes:
        keep: Id of the one that would stay.
        merge: Id of the one that would become an alias of it.
        names: Their two names, in that order.
        reason: Reason (``acronym``, ``spelling``, ``definition``).
        evidence: Evidence for a person to judge.
        score: Certainty, 0 to 1.
    """

    keep: str
    merge: str
    names: tuple[str, str]
    reason: str
    evidence: str
    score: float


@dataclass(frozen=True, slots=True)
class LayoutNode(Value):
    """A node of a layout.

    Attributes:
        target: Target of the node.
        name: Its label.
        type: Type of an entity; else the kind of target.
        x: Horizontal offset of its centre.
        y: Vertical offset, downwards.
        radius: Radius, by the number of relations.
    """

    target: Target
    name: str
    type: str
    x: float
    y: float
    radius: float


@dataclass(frozen=True, slots=True)
class LayoutEdge(Value):
    """A relation of a layout.

    Attributes:
        source: Number of its start node, from 0.
        target: Number of its end node.
        name: What it says of the two.
        weight: How strong it is, above 0 to 1.
    """

    source: int
    target: int
    name: str
    weight: float


@dataclass(frozen=True, slots=True)
class GraphLayout(Value):
    """Positions of a graph, or a part of it, for drawing.

    Attributes:
        nodes: Nodes, the most connected first.
        edges: The strongest relations of each node, the strongest first.
        total: Number of nodes to choose from.
    """

    nodes: tuple[LayoutNode, ...] = ()
    edges: tuple[LayoutEdge, ...] = ()
    total: int = 0
