"""Commands for the knowledge graph, and for subjects, its names."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kbkit.cli import Count, Done, app, command
from kbkit.cli.terminal import listing, print_table, say
from kbkit.errors import ConfigError
from kbkit.models.values import plain, pluralize

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kbkit.models import About, Entity, Gap, GraphEdit, MergeSuggestion, Relation, Step, Subject
    from kbkit.workspace import Workspace


graph = typer.Typer(no_args_is_help=True, help="Show and edit the knowledge graph.")
app.add_typer(graph, name="graph")

TARGET = "An entity by its name, a chunk or document by its id, a URI, file:PATH or entry:ID."
AnyTarget = Annotated[str, typer.Argument(help=TARGET)]
Aliases = Annotated[list[str] | None, typer.Option("--alias")]
Properties = Annotated[list[str] | None, typer.Option("--property")]
NOTHING = "no {}; `kbkit improve NAME` annotates the remaining chunks"


@command(
    graph,
    show=listing("name type chunks documents aliases description", NOTHING.format("entities")),
)
def entities(
    ws: Workspace,
    query: str = "",
    *,
    type: list[str] | None = None,
    kbs: list[str] | None = None,
    limit: Count = 50,
) -> list[Entity]:
    """List entities, the most mentioned first.

    Args:
        query: Part of the name (default: all).
        type: Only this type, such as symbol or flag.
    """
    return ws.graph.entities(query, type=type or (), kbs=kbs, limit=limit)


def _print_steps(steps: Sequence[Step]) -> None:
    rows = []
    for step in steps:
        name = weight = evidence = ""
        if (relation := step.relation) is not None:
            name = relation.name if step.forward else f"< {relation.name}"
            weight, evidence = f"{relation.weight:.2f}", " ".join(relation.evidence[:1])
        rows.append((plain(step.name), step.type, name, str(step.depth), weight, evidence))
    print_table(("to", "type", "by", "depth", "weight", "evidence"), rows)


@command(graph, show=_print_steps)
def neighbors(
    ws: Workspace,
    target: AnyTarget,
    *,
    depth: Annotated[int, typer.Option(min=1, max=5)] = 1,
    relation: list[str] | None = None,
    limit: Count = 50,
) -> list[Step]:
    """List related things, the nearest first.

    Args:
        depth: Maximum number of relations to follow.
        relation: Only relations with this name, such as raises.
    """
    return ws.graph.neighbors(target, depth=depth, relation=relation or (), limit=limit)


@command(graph, show=_print_steps)
def path(ws: Workspace, source: AnyTarget, target: AnyTarget) -> list[Step]:
    """Show how two things are related."""
    steps = ws.graph.path(source, target)
    if not steps:
        say("nothing connects the two")
    return steps


@command(
    graph,
    "relations",
    show=listing(
        "source name target weight made_by evidence note",
        source=lambda each: each.source_name,
        target=lambda each: each.target_name,
        evidence=lambda each: each.evidence[:1],
    ),
)
def list_relations(
    ws: Workspace,
    target: str | None = None,
    *,
    name: str | None = None,
    by: str | None = None,
    limit: Count = 50,
) -> list[Relation]:
    """List relations, the strongest first.

    Args:
        target: Only relations of this thing (default: all).
        name: Only relations with this name, such as raises.
    """
    return ws.graph.relations(target, name=name, by=by, limit=limit)


@command(graph, show=listing("name kind reason start", start=lambda gap: gap.start[:1]))
def gaps(
    ws: Workspace, *, kind: str | None = None, kbs: list[str] | None = None, limit: Count = 10
) -> list[Gap]:
    """List gaps in the documentation.

    Args:
        kind: Only this kind: undescribed, unlinked, unanswered, unreached, missing or orphan.
        limit: Maximum number of each kind.
    """
    return ws.graph.gaps(kind=kind, kbs=kbs, limit=limit)


@command(
    graph,
    show=listing(
        "keep merge score evidence",
        keep=lambda each: each.names[0],
        merge=lambda each: each.names[1],
    ),
)
def suggestions(ws: Workspace, *, limit: Count = 20) -> list[MergeSuggestion]:
    """List entities that may be duplicates."""
    return ws.graph.suggestions(limit=limit)


@command(graph)
def export(ws: Workspace, file: Path) -> Done:
    """Export all relations to a file.

    Args:
        file: GraphML (.graphml) or JSON (.json).
    """
    target = ws.graph.export(file)
    return Done({"file": target}, f"wrote {target}")


@command(graph)
def create(
    ws: Workspace,
    name: str,
    *,
    type: str = "name",
    description: str = "",
    aliases: Aliases = None,
    properties: Properties = None,
) -> Done:
    """Create an entity.

    Args:
        name: Its name.
        type: Its type, such as term or symbol.
        description: Its description, in a sentence.
        aliases: Another name. Repeatable.
        properties: NAME=VALUE, with JSON or text as the value. Repeatable.
    """
    values = _properties(properties)
    entity = ws.graph.create(
        name, type=type, description=description, aliases=aliases or (), properties=values
    )
    return Done(entity, f"created {plain(entity.name)}")


@command(graph)
def update(
    ws: Workspace,
    entity: str,
    *,
    name: str | None = None,
    type: str | None = None,
    description: str | None = None,
    aliases: Aliases = None,
    properties: Properties = None,
) -> Done:
    """Change an entity.

    Args:
        name: Its new name; the old one stays as an alias.
        type: Its type, such as term or symbol.
        description: Its description, in a sentence.
        aliases: Another name, instead of those before. Repeatable.
        properties: NAME=VALUE, with JSON or text as the value. Repeatable.
    """
    values = _properties(properties)
    changed = ws.graph.update(
        entity, name=name, type=type, description=description, aliases=aliases, properties=values
    )
    return Done(changed, f"changed {plain(changed.name)}")


@command(graph)
def delete(ws: Workspace, entity: str) -> Done:
    """Delete an entity; `kbkit graph undo` restores it."""
    node = ws.graph.entity(entity)
    ws.graph.delete(node)
    return Done(node, f"deleted {plain(node.name)}")


@command(graph)
def relate(
    ws: Workspace,
    source: AnyTarget,
    name: str,
    target: AnyTarget,
    *,
    weight: float = 1.0,
    note: str = "",
) -> Done:
    """Create a relation between two things.

    Args:
        name: Name of the relation, such as depends_on.
        weight: Its weight, above 0 and at most 1.
        note: A note.
    """
    relation = ws.graph.relate(source, name, target, weight=weight, note=note)
    return Done(relation, f"related {plain(source)} to {plain(target)}: {relation.name}")


@command(graph)
def unrelate(ws: Workspace, source: AnyTarget, name: str, target: AnyTarget) -> Done:
    """Delete a relation; `kbkit graph undo` restores it.

    Args:
        name: Name of the relation, such as depends_on.
    """
    relation = ws.graph.relation(source, name, target)
    ws.graph.delete(relation)
    return Done(relation, f"{plain(source)} and {plain(target)}: deleted {relation.name}")


@command(graph)
def merge(ws: Workspace, keep: str, other: str) -> Done:
    """Merge two entities; `kbkit graph undo` splits them.

    Args:
        keep: The entity that stays, by its name or id.
        other: The entity whose names become its aliases.
    """
    merged = ws.graph.merge(keep, other)
    aliases = ", ".join(map(plain, merged.aliases))
    return Done(merged, f"{plain(merged.name)} is also called {aliases}")


@command(graph)
def refuse(ws: Workspace, keep: str, other: str) -> Done:
    """Mark two entities as different.

    Args:
        keep: An entity, by its name or id.
        other: The other entity.
    """
    first, second = (ws.graph.entity(each) for each in (keep, other))
    ws.graph.refuse(first, second)
    names = first.name, second.name
    return Done({"refused": names}, f"{' and '.join(map(plain, names))} are not suggested again")


@command(graph, show=listing("id made_by made_at what", id=lambda each: str(each.id)))
def edits(ws: Workspace, *, by: str | None = None, limit: Count = 20) -> list[GraphEdit]:
    """List edits of the graph, the latest first."""
    return ws.graph.edits(by=by, limit=limit)


@command(graph)
def undo(ws: Workspace, edit: int | None = None) -> Done:
    """Undo an edit of the graph.

    Args:
        edit: Its number in `kbkit graph edits` (default: your last edit).
    """
    undone = ws.graph.undo(edit)
    return Done(undone, f"undone: {plain(undone.what)}")


def _properties(pairs: Sequence[str] | None) -> dict[str, Any] | None:
    if pairs is None:
        return None
    properties: dict[str, Any] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name.strip():
            raise ConfigError(f"--property {pair}: give NAME=VALUE")
        try:
            properties[name.strip()] = json.loads(value)
        except ValueError:
            properties[name.strip()] = value
    return properties


@command(
    app,
    "subjects",
    show=listing("name kind type chunks documents aliases", NOTHING.format("subjects")),
)
def list_subjects(
    ws: Workspace,
    *,
    kind: str | None = None,
    like: str = "",
    kbs: list[str] | None = None,
    limit: Count = 50,
) -> list[Subject]:
    """List subjects and how many chunks mention them.

    Args:
        kind: Only this kind: domain, entity, problem, resolution or context.
        like: Only names that contain this.
    """
    return ws.subjects(kind=kind, like=like, kbs=kbs, limit=limit)


MAX_STATEMENT_LENGTH = 300


def _print_about(answer: About) -> None:
    for subject in answer.subjects:
        also = f", also {', '.join(map(plain, subject.aliases))}" if subject.aliases else ""
        typer.echo(
            f"{plain(subject.name)} ({plain(subject.type) or subject.kind}{also}): "
            f"in {pluralize(subject.chunks, 'passage')} of "
            f"{pluralize(subject.documents)}"
        )
    typer.echo()
    listing("title chunks defines uri", defines=lambda each: "defines it" if each.defines else "")(
        answer.documents
    )
    for chunk in answer.chunks:
        heading = plain(" > ".join(filter(None, (chunk.title, chunk.section))))
        kind = f" ({chunk.frame.value})" if chunk.frame else ""
        statement = textwrap.shorten(plain(chunk.statement), MAX_STATEMENT_LENGTH, placeholder=" …")
        typer.echo(f"\n{heading}{kind}\n    {statement}")
    if answer.entities:
        typer.echo(f"\nrelated: {', '.join(plain(each.name) for each in answer.entities)}")


@command(app, show=_print_about)
def about(ws: Workspace, query: str, *, kbs: list[str] | None = None, limit: Count = 10) -> About:
    """Show documents and chunks about a subject.

    Args:
        query: A name, such as an option, a term or a function.
        limit: Maximum number of each.
    """
    return ws.about(query, kbs=kbs, limit=limit)
