"""Tools for the knowledge graph."""

from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

from kbkit.mcp.core import KbName
from kbkit.mcp.replies import Budget, Quotes, Reply, listing, short
from kbkit.mcp.tools import Limit, Tools, page_type
from kbkit.models import About, Entity, Relation, Step
from kbkit.models.values import pluralize
from kbkit.retrieval.delimiting import LINE_TOKENS, cut, one_line

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


class NeighborRow(TypedDict):
    """Target of a relation."""

    id: str
    kind: str
    name: str
    type: str
    relation: str
    forward: bool
    depth: int


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


def add(tools: Tools) -> None:
    @tools.read(page_type("entities", EntityValues))
    def graph_entities(
        *,
        query: Annotated[str, Field(description="Part of a name; empty for any.")] = "",
        type: Annotated[str, Field(description="Such as symbol, setting, term.")] = "",
        limit: Limit = 10,
        budget: Budget,
    ) -> Reply:
        """List things that documents mention, most mentioned first."""
        matches = tools.workspace.graph.entities(
            query, type=type or (), kbs=tools.kbs(""), limit=budget.start + limit + 1
        )
        rows, nothing = map(_entity, matches), "No entity has this name."
        return listing(rows, name="entities", nothing=nothing, limit=limit, budget=budget)

    @tools.read(page_type("neighbors", NeighborRow))
    def graph_neighbors(
        *,
        entity: EndName,
        depth: Annotated[int, Field(ge=1, le=5)] = 1,
        relation: Annotated[str, Field(description="Only with this name.")] = "",
        limit: Limit = 10,
        budget: Budget,
    ) -> Reply:
        """List things related to a thing, nearest and strongest first."""
        walk = tools.workspace.graph.neighbors(
            entity, depth=depth, relation=relation or (), limit=budget.start + limit + 2
        )
        rows = (_step(step) for step in walk if step.relation is not None)  # skip the start
        nothing = "Nothing is related to it."
        return listing(rows, name="neighbors", nothing=nothing, limit=limit, budget=budget)

    @tools.read(page_type("found", AboutRow))
    def about(
        *,
        query: Annotated[str, Field(description="Name of a subject, in any form.")],
        kb_name: KbName = "",
        limit: Limit = 5,
        budget: Budget,
    ) -> Reply:
        """Find documents and statements about a subject, and names mentioned with it."""
        facts = tools.workspace.about(query, kbs=tools.kbs(kb_name), limit=limit)
        return _about(facts, limit=limit, budget=budget)

    @tools.write(MadeRelation, destructive=False, idempotent=True)
    def graph_relate(
        *,
        source: EndName,
        relation: Annotated[str, Field(description="Its name, such as depends_on.")],
        target: EndName,
        note: str = "",
    ) -> Reply:
        """Store a relation between two things."""
        return _relation_reply(tools.workspace.graph.relate(source, relation, target, note=note))


_MAX_ALIASES = 5


def _relation_reply(relation: Relation) -> Reply:
    quotes = Quotes()
    source, target = short(relation.source_name), short(relation.target_name)
    line = f"{source} --{short(relation.name)}--> {target}"
    values = MadeRelation(
        note=quotes.note,
        source=quotes.value(source),
        relation=short(relation.name),
        target=quotes.value(target),
        weight=relation.weight,
    )
    return Reply(f"Related.\n{quotes.note}\n{quotes.value(line)}", values)


def _about(facts: About, *, limit: int, budget: Budget) -> Reply:
    rows: list[tuple[str, AboutRow]] = []
    for subject in facts.subjects[:limit]:
        label = f"{short(subject.name)} ({subject.type or subject.kind.value})"
        chunks = pluralize(subject.chunks, "passage")
        documents = pluralize(subject.documents, "document")
        rows.append(_row("subject", label, f"in {chunks} of {documents}"))
    for document in facts.documents[:limit]:
        defines = " defines it" if document.defines else ""
        label = f"{document.title} <{document.uri}>{defines}"
        rows.append(_row("document", label, document.description, kb=document.kb))
    for chunk in facts.chunks[:limit]:
        label = f"{chunk.title} > {chunk.section}" if chunk.section else chunk.title
        rows.append(_row("statement", label, chunk.statement, kb=chunk.kb))
    for entity in facts.entities[:limit]:
        rows.append(_row("beside", f"{entity.name} ({entity.type or entity.kind.value})", ""))
    return listing(rows, name="found", nothing="Nothing was found about it.", budget=budget)


def _entity(entity: Entity) -> tuple[str, EntityValues]:
    about, name, kind = map(short, (entity.description, entity.name, entity.type))
    aliases = ", ".join(short(alias) for alias in entity.aliases[:_MAX_ALIASES])
    head = f"- {name} ({kind}, {pluralize(entity.chunks, 'passage')})"
    line = head + f": {about}" * bool(about) + f"; also {aliases}" * bool(aliases)
    return line, EntityValues(
        id=entity.id, name=name, type=kind, description=about, aliases=aliases, chunks=entity.chunks
    )


def _step(step: Step) -> tuple[str, NeighborRow]:
    name, kind = short(step.name), short(step.type)
    relation = short(step.relation.name) if step.relation else ""
    arrow = f"--{relation}-->" if step.forward else f"<--{relation}--"
    line = f"{'  ' * (step.depth - 1)}- {arrow} {name} ({kind})"
    return line, NeighborRow(
        id=step.target.id,
        kind=step.target.kind.value,
        name=name,
        type=kind,
        relation=relation,
        forward=step.forward,
        depth=step.depth,
    )


def _row(kind: str, label: str, text: str, kb: str = "") -> tuple[str, AboutRow]:
    label, text = cut(one_line(label), 2 * LINE_TOKENS), cut(one_line(text), 2 * LINE_TOKENS)
    line = f"- {kind}: {label}" + f": {text}" * bool(text) + f" [{kb}]" * bool(kb)
    return line, AboutRow(kind=kind, said=label, text=text, kb=kb)
