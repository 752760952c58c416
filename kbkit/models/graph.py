"""Entities, relations, suggested merges and gaps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from kbkit.models.targets import Target
from kbkit.models.values import Value


@dataclass(frozen=True, slots=True)
class Entity(Value):
    """A node of the graph: something that has a name.

    Attributes:
        id: That of its subject.
        name: As it is mostly written.
        type: What it is; one of `EntityType`, or what a person calls it.
        aliases: Other names for it: spelled otherwise, merged into it, or given by a recipe.
        description: What it is, in a sentence, as a document says it or a person wrote.
        properties: Further properties.
        chunks: How many chunks name it.
        documents: How many documents those are of.
        made_by: Who made or last changed it; ``""`` where no person did.
        by_hand: Whether a person made or changed it, so that no rebuild does.
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
        source: Where it begins.
        name: What it says of the two (``depends_on``).
        target: Where it ends.
        weight: How strong it is, above 0 to 1.
        evidence: Ids of chunks that say so.
        made_by: Who made or last changed it; what found it where no person did.
        created_at: When it was first seen.
        seen_at: When it was last seen in a text, or changed by a person; hand it back as
            ``expected`` with a change.
        note: What a person said of it.
        by_hand: Whether a person made or changed it, so that no rebuild does.
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
        target: What it is.
        name: What that is called.
        type: Of an entity, what it is; else the kind of the target.
        depth: How many relations away from the start.
        relation: What led there; ``None`` at the start.
        forward: Whether that relation was walked from its source to its target.
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
        made_by: Who made it.
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
        kind: What is missing.
        target: What it is missing of.
        name: What that is called.
        reason: Why it is one, with figures, in a sentence.
        weight: How much it matters; compares gaps of one kind.
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
        names: What the two are called, in that order.
        reason: What speaks for it (``acronym``, ``spelling``, ``definition``).
        evidence: What that is, for a person to judge by.
        score: How sure it is, 0 to 1.
    """

    keep: str
    merge: str
    names: tuple[str, str]
    reason: str
    evidence: str
    score: float


@dataclass(frozen=True, slots=True)
class LayoutNode(Value):
    """A node of a graph that is drawn.

    Attributes:
        target: What it stands for.
        name: What that is called.
        type: Of an entity, what it is; else the kind of the target.
        x: How far right of the middle of the picture its own middle is.
        y: How far below.
        radius: How large it is drawn, by how much is related to it.
    """

    target: Target
    name: str
    type: str
    x: float
    y: float
    radius: float


@dataclass(frozen=True, slots=True)
class LayoutEdge(Value):
    """A relation that is drawn.

    Attributes:
        source: The number of the node where it begins, from 0.
        target: The number of the node where it ends.
        name: What it says of the two.
        weight: How strong it is, above 0 to 1.
    """

    source: int
    target: int
    name: str
    weight: float


@dataclass(frozen=True, slots=True)
class GraphLayout(Value):
    """A graph, or a part of it, laid out for drawing.

    Attributes:
        nodes: Those first to which most is related.
        edges: The strongest relations of each node, the strongest first.
        total: How many nodes there were to choose from.
    """

    nodes: tuple[LayoutNode, ...] = ()
    edges: tuple[LayoutEdge, ...] = ()
    total: int = 0
