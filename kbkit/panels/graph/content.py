"""The graph as JSON values for the view; outside text is escaped and shortened."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from kbkit.graph.exporting import node_id
from kbkit.markdown.plain_text import plain_text
from kbkit.models import Entity, Gap, GraphLayout, Hit, MergeSuggestion, Step, Target, TargetKind
from kbkit.models.plain import pluralize
from kbkit.panels import passages, render

_NAME = 160
_DESCRIPTION = 2_000
_PASSAGE = 400
_PROPERTY = 240
_MAX_ALIASES = 40
_MAX_PROPERTIES = 40


def target_of(node: str) -> Target:
    """Return a node's target; the page's message is untrusted."""
    kind, _, known = node.partition(":")
    return Target(TargetKind(kind), known)


def item(target: Target, name: str, type_: str) -> dict[str, str]:
    return {
        "id": node_id(target),
        "name": render.plain(name, _NAME) or "(no visible name)",
        "type": render.plain(type_, 80) or "entity",
    }


def entity_item(entity: Entity) -> dict[str, str]:
    return item(Target(TargetKind.ENTITY, entity.id), entity.name, entity.type)


def picture(layout: GraphLayout) -> dict[str, Any]:
    return {
        "nodes": [
            {
                **item(node.target, node.name, node.type),
                "x": node.x,
                "y": node.y,
                "radius": node.radius,
            }
            for node in layout.nodes
        ],
        "edges": [dict(edge.to_dict()) for edge in layout.edges],
        "total": layout.total,
    }


def gap(found: Gap) -> dict[str, str]:
    return {
        "id": node_id(found.target),
        "kind": found.kind.value,
        "name": render.plain(found.name, _NAME) or "(no visible name)",
        "reason": render.plain(found.reason, _DESCRIPTION),
    }


def suggestion(found: MergeSuggestion) -> dict[str, Any]:
    keep, other = found.names
    return {
        "keep": item(Target(TargetKind.ENTITY, found.keep), keep, ""),
        "merge": item(Target(TargetKind.ENTITY, found.merge), other, ""),
        "reason": found.reason,
        "evidence": render.plain(found.evidence, _DESCRIPTION),
        "score": round(found.score, 2),
    }


def fields(entity: Entity) -> dict[str, Any]:
    return {
        "name": entity.name,
        "type": entity.type,
        "description": entity.description,
        "aliases": list(entity.aliases),
    }


def details(
    entity: Entity | None, title: dict[str, str], steps: Sequence[Step], found: Sequence[Hit]
) -> dict[str, Any]:
    return {
        "item": title,
        "description": "" if entity is None else render.lines(entity.description, _DESCRIPTION),
        "aliases": [] if entity is None else _aliases(entity),
        "facts": [] if entity is None else _facts(entity),
        "neighbors": [_neighbor(step) for step in steps],
        "documents": [
            {"name": render.plain(step.name, _NAME) or "Untitled", "document": step.target.id}
            for step in steps
            if step.target.kind is TargetKind.DOCUMENT
        ],
        "passages": [_passage(hit) for hit in found],
        "fields": None if entity is None else fields(entity),
    }


def _aliases(entity: Entity) -> list[str]:
    shown = [render.plain(alias, _NAME) for alias in entity.aliases[:_MAX_ALIASES]]
    more = len(entity.aliases) - len(shown)
    return [*shown, f"{more:,} more"] if more else shown


def _facts(entity: Entity) -> list[tuple[str, str]]:
    named = f"{pluralize(entity.chunks, 'passage')} of {pluralize(entity.documents)}"
    told = [("Named in", named)]
    if entity.made_by and entity.updated_at:
        who = render.plain(entity.made_by, _NAME)
        told.append(("Changed", f"{entity.updated_at:%Y-%m-%d %H:%M} by {who}"))
    for name, value in list(entity.properties.items())[:_MAX_PROPERTIES]:
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        told.append((render.plain(name, 80), render.plain(text, _PROPERTY)))
    return told


def _neighbor(step: Step) -> dict[str, Any]:
    relation = step.relation
    assert relation is not None  # only the start of a path has none
    return {
        **item(step.target, step.name, step.type),
        "relation": relation.name,
        "forward": step.forward,
        "weight": round(relation.weight, 2),
        "number": relation.id,
        "note": render.plain(relation.note, _PROPERTY),
    }


def _passage(hit: Hit) -> dict[str, Any]:
    above = passages.heading(hit)
    return {
        "name": above["path"] or above["title"],
        "title": above["title"],
        "link": above["link"],
        "chunk": hit.chunk.id,
        "text": render.lines(plain_text(hit.chunk.text[: 4 * _PASSAGE]).strip(), _PASSAGE),
    }
