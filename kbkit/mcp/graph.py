"""Tools for the knowledge graph."""

from __future__ import annotations

from typing import Annotated

from mcp_types import CallToolResult
from pydantic import Field
from typing_extensions import TypedDict

from kbkit.mcp import listings
from kbkit.mcp.core import KbName
from kbkit.mcp.tools import Cursor, Limit, MaxTokens, Tools, result

EndName = Annotated[
    str, Field(description="Name or id of an entity, source of a document, file:PATH, entry:SLUG.")
]


class EntityValues(TypedDict):
    """An entity."""

    id: str
    name: str
    type: str
    description: str
    aliases: str
    chunks: int


class EntityRows(TypedDict):
    """Entities."""

    note: str
    entities: list[EntityValues]
    next_cursor: str


class NeighborRow(TypedDict):
    """Target of a relation."""

    id: str
    kind: str
    name: str
    type: str
    relation: str
    forward: bool
    depth: int


class NeighborRows(TypedDict):
    """Related things."""

    note: str
    neighbors: list[NeighborRow]
    next_cursor: str


class MadeRelation(TypedDict):
    """A stored relation."""

    note: str
    source: str
    relation: str
    target: str
    weight: float


class AboutRow(TypedDict):
    """A subject, document, statement, or a name mentioned with the subject."""

    kind: str
    said: str
    text: str
    kb: str


class AboutRows(TypedDict):
    """Mentions of a subject."""

    note: str
    found: list[AboutRow]
    next_cursor: str


def add(tools: Tools) -> None:
    @tools.read
    def graph_entities(
        *,
        query: Annotated[str, Field(description="Part of a name; empty for any.")] = "",
        type: Annotated[str, Field(description="Such as symbol, setting, term.")] = "",
        limit: Limit = 10,
        max_tokens: MaxTokens = 0,
        cursor: Cursor = "",
    ) -> Annotated[CallToolResult, EntityRows]:
        """List things that documents mention, most mentioned first."""
        budget = tools.budget(max_tokens, cursor)
        matches = tools.workspace.graph.entities(
            query, type=type or (), kbs=tools.kbs(""), limit=budget.start + limit + 1
        )
        return result(listings.rows_reply("entities", matches, limit=limit, budget=budget))

    @tools.read
    def graph_neighbors(
        *,
        entity: EndName,
        depth: Annotated[int, Field(ge=1, le=5)] = 1,
        relation: Annotated[str, Field(description="Only with this name.")] = "",
        limit: Limit = 10,
        max_tokens: MaxTokens = 0,
        cursor: Cursor = "",
    ) -> Annotated[CallToolResult, NeighborRows]:
        """List things related to a thing, nearest and strongest first."""
        budget = tools.budget(max_tokens, cursor)
        walk = tools.workspace.graph.neighbors(
            entity, depth=depth, relation=relation or (), limit=budget.start + limit + 2
        )
        steps = [step for step in walk if step.relation is not None]  # skip the start
        return result(listings.rows_reply("neighbors", steps, limit=limit, budget=budget))

    @tools.read
    def about(
        *,
        query: Annotated[str, Field(description="Name of a subject, in any form.")],
        kb_name: KbName = "",
        limit: Limit = 5,
        max_tokens: MaxTokens = 0,
        cursor: Cursor = "",
    ) -> Annotated[CallToolResult, AboutRows]:
        """Find documents and statements about a subject, and names mentioned with it."""
        budget = tools.budget(max_tokens, cursor)
        facts = tools.workspace.about(query, kbs=tools.kbs(kb_name), limit=limit)
        return result(listings.about_reply(facts, limit=limit, budget=budget))

    @tools.write(destructive=False, idempotent=True)
    def graph_relate(
        *,
        source: EndName,
        relation: Annotated[str, Field(description="Its name, such as depends_on.")],
        target: EndName,
        note: str = "",
    ) -> Annotated[CallToolResult, MadeRelation]:
        """Store a relation between two things."""
        graph = tools.workspace.graph
        stored = graph.relate(source, relation, target, note=note)
        return result(listings.relation_reply(stored, graph.names([stored.source, stored.target])))
