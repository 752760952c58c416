"""Entities, relations, suggested merges and gaps."""

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
        type: One of `EntityType`, or a person's word.
        aliases: Other spellings, merged entities, or names from a recipe.
        description: One sentence, from a document or a person.
        chunks: Number of chunks that mention it.
        made_by: Last editor; ``""`` if no person edited it.
        by_hand: Whether a person edited it, so that rebuilds keep it.
        updated_at: Time of the last edit.
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
        name: Such as ``depends_on``.
        weight: Strength, above 0 to 1.
        evidence: Ids of supporting chunks.
        made_by: Last editor, or kbkit.
        created_at: When it was first seen.
        seen_at: When it was last seen in a text or changed by a person.
        by_hand: Whether a person edited it, so that rebuilds keep it.
        source_name: Label of the source: an entity's name, a title, or headings of a chunk.
        target_name: Label of the target.
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
    source_name: str = ""
    target_name: str = ""


@dataclass(frozen=True, slots=True)
class Step(Value):
    """One step of a walk through the graph.

    Attributes:
        name: Label of the target.
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
        what: The change, in words.
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
    """Described, but mentioned in no other document."""
    UNANSWERED = "unanswered"
    """Questions about it have only bad ratings."""
    UNREACHED = "unreached"
    """A document that names no entity."""
    MISSING = "missing"
    """A note that others link to, but that does not exist."""
    ORPHAN = "orphan"
    """An entity without relations."""


@dataclass(frozen=True, slots=True)
class Gap(Value):
    """A gap in the documentation, and where to start closing it.

    Attributes:
        name: Label of the target.
        reason: One sentence with figures.
        weight: Importance; comparable within one kind.
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
        keep: Id of the entity that would stay.
        merge: Id of the entity that would become its alias.
        names: Names of both, in that order.
        reason: ``acronym``, ``spelling`` or ``definition``.
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
        name: Label of the target.
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
        source: Index of its start node, from 0.
        target: Index of its end node.
        weight: Strength, above 0 to 1.
    """

    source: int
    target: int
    name: str
    weight: float


@dataclass(frozen=True, slots=True)
class GraphLayout(Value):
    """Positions of a graph, or a part of it, for drawing.

    Attributes:
        nodes: The most connected first.
        edges: The strongest relations of each node, the strongest first.
        total: Number of nodes to choose from.
    """

    nodes: tuple[LayoutNode, ...] = ()
    edges: tuple[LayoutEdge, ...] = ()
    total: int = 0
