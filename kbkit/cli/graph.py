"""Commands for the knowledge graph, and for subjects, its names."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kbkit.cli import AsJson, Within, app, open_workspace
from kbkit.cli.terminal import print_done, print_listing, print_pairs, print_table, printed, say
from kbkit.errors import ConfigError
from kbkit.models.values import plain, pluralize

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kbkit.models import Step


graph = typer.Typer(no_args_is_help=True, help="Show and edit the knowledge graph.")
app.add_typer(graph, name="graph")

Entity = Annotated[str, typer.Argument(help="An entity, by its name or id.")]
AnyTarget = Annotated[
    str,
    typer.Argument(
        help="An entity by its name, a chunk or document by its id, a URI, file:PATH or entry:ID."
    ),
]
Limit = Annotated[int, typer.Option(min=1, help="Maximum number to show.")]


@graph.command()
def entities(
    query: Annotated[str, typer.Argument(help="Part of the name (default: all).")] = "",
    type: Annotated[
        list[str] | None, typer.Option("--type", help="Only this type, such as symbol or flag.")
    ] = None,
    kb: Within = None,
    limit: Limit = 50,
    as_json: AsJson = False,
) -> None:
    """List entities, the most mentioned first."""
    with open_workspace() as workspace:
        matches = workspace.graph.entities(query, type=type or (), kbs=kb or None, limit=limit)
    print_listing(
        matches,
        as_json,
        "name type chunks documents description",
        empty="no entities; `kbkit improve NAME` annotates the remaining chunks",
    )


@graph.command()
def show(entity: Entity, as_json: AsJson = False) -> None:
    """Show an entity and its strongest relations."""
    with open_workspace() as workspace:
        node = workspace.graph.entity(entity)
        near = workspace.graph.neighbors(node, limit=20)
    if printed({**node.to_dict(), "neighbors": near}, as_json):
        return
    print_pairs(node.lines())
    _print_steps(near)


@graph.command()
def neighbors(
    target: AnyTarget,
    depth: Annotated[
        int, typer.Option(min=1, max=5, help="Maximum number of relations to follow.")
    ] = 1,
    relation: Annotated[
        list[str] | None, typer.Option(help="Only relations with this name, such as raises.")
    ] = None,
    limit: Limit = 50,
    as_json: AsJson = False,
) -> None:
    """List related things, the nearest first."""
    with open_workspace() as workspace:
        steps = workspace.graph.neighbors(target, depth=depth, relation=relation or (), limit=limit)
    if not printed(steps, as_json):
        _print_steps(steps)


@graph.command()
def path(source: AnyTarget, target: AnyTarget, as_json: AsJson = False) -> None:
    """Show how two things are related."""
    with open_workspace() as workspace:
        steps = workspace.graph.path(source, target)
    if printed(steps, as_json):
        return
    if not steps:
        say("nothing connects the two")
    _print_steps(steps)


@graph.command("relations")
def list_relations(
    target: Annotated[
        str | None, typer.Argument(help="Only relations of this thing (default: all).")
    ] = None,
    name: Annotated[
        str | None, typer.Option(help="Only relations with this name, such as raises.")
    ] = None,
    by: Annotated[str | None, typer.Option(help="Only changes by this person.")] = None,
    limit: Limit = 50,
    as_json: AsJson = False,
) -> None:
    """List relations, the strongest first."""
    with open_workspace() as workspace:
        relations = workspace.graph.relations(target, name=name, by=by, limit=limit)
        ends = [end for each in relations for end in (each.source, each.target)]
        names = workspace.graph.names(ends)
    print_listing(
        relations,
        as_json,
        "source name target weight made_by evidence note",
        source=lambda each: names[each.source],
        target=lambda each: names[each.target],
        evidence=lambda each: each.evidence[:1],
    )


@graph.command()
def gaps(
    kind: Annotated[
        str | None,
        typer.Option(
            help="Only this kind: undescribed, unlinked, unanswered, unreached, missing or orphan."
        ),
    ] = None,
    kb: Within = None,
    limit: Annotated[int, typer.Option(min=1, help="Maximum number of each kind.")] = 10,
    as_json: AsJson = False,
) -> None:
    """List gaps in the documentation."""
    with open_workspace() as workspace:
        listed = workspace.graph.gaps(kind=kind, kbs=kb or None, limit=limit)
    print_listing(listed, as_json, "name kind reason start", start=lambda gap: gap.start[:1])


@graph.command()
def suggestions(limit: Limit = 20, as_json: AsJson = False) -> None:
    """List entities that may be duplicates."""
    with open_workspace() as workspace:
        pairs = workspace.graph.suggestions(limit=limit)
    print_listing(
        pairs,
        as_json,
        "keep merge score evidence",
        keep=lambda each: each.names[0],
        merge=lambda each: each.names[1],
    )


@graph.command()
def export(
    file: Annotated[Path, typer.Argument(help="GraphML (.graphml) or JSON (.json).")],
    as_json: AsJson = False,
) -> None:
    """Export all relations to a file."""
    with open_workspace() as workspace:
        written = workspace.graph.export(file)
    print_done({"file": written}, as_json, f"wrote {written}")


def _print_steps(steps: Sequence[Step]) -> None:
    print_table(
        ("to", "type", "by", "depth", "weight", "evidence"),
        (
            (
                plain(step.name),
                step.type,
                ""
                if step.relation is None
                else step.relation.name
                if step.forward
                else f"< {step.relation.name}",
                str(step.depth),
                "" if step.relation is None else f"{step.relation.weight:.2f}",
                "" if step.relation is None else " ".join(step.relation.evidence[:1]),
            )
            for step in steps
        ),
    )


Type = Annotated[str | None, typer.Option(help="Its type, such as term or symbol.")]
Description = Annotated[str | None, typer.Option(help="Its description, in a sentence.")]
Aliases = Annotated[list[str] | None, typer.Option("--alias", help="Another name. Repeatable.")]
Properties = Annotated[
    list[str] | None,
    typer.Option("--property", help="NAME=VALUE, with JSON or text as the value. Repeatable."),
]
RelationName = Annotated[str, typer.Argument(help="Name of the relation, such as depends_on.")]


@graph.command()
def create(
    name: Annotated[str, typer.Argument(help="Its name.")],
    type: Type = None,
    description: Description = None,
    alias: Aliases = None,
    properties: Properties = None,
    as_json: AsJson = False,
) -> None:
    """Create an entity."""
    with open_workspace() as workspace:
        entity = workspace.graph.create(
            name,
            type=type or "name",
            description=description or "",
            aliases=alias or (),
            properties=_properties(properties),
        )
    print_done(entity, as_json, f"created {plain(entity.name)}")


@graph.command()
def update(
    entity: Entity,
    name: Annotated[
        str | None, typer.Option(help="Its new name; the old one stays as an alias.")
    ] = None,
    type: Type = None,
    description: Description = None,
    alias: Aliases = None,
    properties: Properties = None,
    as_json: AsJson = False,
) -> None:
    """Change an entity."""
    with open_workspace() as workspace:
        changed = workspace.graph.update(
            entity,
            name=name,
            type=type,
            description=description,
            aliases=alias,
            properties=_properties(properties),
        )
    print_done(changed, as_json, f"changed {plain(changed.name)}")


@graph.command()
def delete(entity: Entity, as_json: AsJson = False) -> None:
    """Delete an entity; `kbkit graph undo` restores it."""
    with open_workspace() as workspace:
        node = workspace.graph.entity(entity)
        workspace.graph.delete(node)
    print_done(node, as_json, f"deleted {plain(node.name)}")


@graph.command()
def relate(
    source: AnyTarget,
    name: RelationName,
    target: AnyTarget,
    weight: Annotated[float, typer.Option(help="Its weight, above 0 and at most 1.")] = 1.0,
    note: Annotated[str, typer.Option(help="A note.")] = "",
    as_json: AsJson = False,
) -> None:
    """Create a relation between two things."""
    with open_workspace() as workspace:
        relation = workspace.graph.relate(source, name, target, weight=weight, note=note)
    print_done(relation, as_json, f"related {plain(source)} to {plain(target)}: {relation.name}")


@graph.command()
def unrelate(
    source: AnyTarget, name: RelationName, target: AnyTarget, as_json: AsJson = False
) -> None:
    """Delete a relation; `kbkit graph undo` restores it."""
    with open_workspace() as workspace:
        relation = workspace.graph.relation(source, name, target)
        workspace.graph.delete(relation)
    print_done(relation, as_json, f"{plain(source)} and {plain(target)}: deleted {relation.name}")


@graph.command()
def merge(keep: Entity, other: Entity, as_json: AsJson = False) -> None:
    """Merge two entities; `kbkit graph undo` splits them."""
    with open_workspace() as workspace:
        merged = workspace.graph.merge(keep, other)
    aliases = ", ".join(map(plain, merged.aliases))
    print_done(merged, as_json, f"{plain(merged.name)} is also called {aliases}")


@graph.command()
def refuse(keep: Entity, other: Entity, as_json: AsJson = False) -> None:
    """Mark two entities as different."""
    with open_workspace() as workspace:
        pair = [workspace.graph.entity(each) for each in (keep, other)]
        workspace.graph.refuse(*pair)
    print_done(
        {"refused": [each.name for each in pair]},
        as_json,
        f"{plain(pair[0].name)} and {plain(pair[1].name)} are not suggested again",
    )


@graph.command()
def edits(
    by: Annotated[str | None, typer.Option(help="Only changes by this person.")] = None,
    limit: Limit = 20,
    as_json: AsJson = False,
) -> None:
    """List edits of the graph, the latest first."""
    with open_workspace() as workspace:
        listed = workspace.graph.edits(by=by, limit=limit)
    print_listing(listed, as_json, "id made_by made_at what", id=lambda each: str(each.id))


@graph.command()
def undo(
    edit: Annotated[
        int | None,
        typer.Argument(help="Its number in `kbkit graph edits` (default: your last edit)."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Undo an edit of the graph."""
    with open_workspace() as workspace:
        undone = workspace.graph.undo(edit)
    print_done(undone, as_json, f"undone: {plain(undone.what)}")


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


MAX_STATEMENT_LENGTH = 300


@app.command("subjects")
def list_subjects(
    kind: Annotated[
        str | None,
        typer.Option(help="Only this kind: domain, entity, problem, resolution or context."),
    ] = None,
    like: Annotated[str, typer.Option(help="Only names that contain this.")] = "",
    kb: Within = None,
    limit: Annotated[int, typer.Option(min=1, help="Maximum number of subjects.")] = 50,
    as_json: AsJson = False,
) -> None:
    """List subjects and how many chunks mention them."""
    with open_workspace() as workspace:
        listed = workspace.subjects(kind=kind, like=like, kbs=kb or None, limit=limit)
    print_listing(
        listed,
        as_json,
        "name kind type chunks documents aliases",
        empty="no subjects; `kbkit improve NAME` annotates the remaining chunks",
    )


@app.command()
def about(
    query: Annotated[str, typer.Argument(help="A name, such as an option, a term or a function.")],
    kb: Within = None,
    limit: Annotated[int, typer.Option(min=1, help="Maximum number of each.")] = 10,
    as_json: AsJson = False,
) -> None:
    """Show documents and chunks about a subject."""
    with open_workspace() as workspace:
        answer = workspace.about(query, kbs=kb or None, limit=limit)
    if printed(answer, as_json):
        return
    for subject in answer.subjects:
        also = f", also {', '.join(map(plain, subject.aliases))}" if subject.aliases else ""
        typer.echo(
            f"{plain(subject.name)} ({plain(subject.type) or subject.kind}{also}): "
            f"in {pluralize(subject.chunks, 'passage')} of "
            f"{pluralize(subject.documents)}"
        )
    typer.echo()
    print_table(
        ("document", "passages", "", "URI"),
        (
            (plain(each.title), f"{each.chunks:,}", "defines it" if each.defines else "", each.uri)
            for each in answer.documents
        ),
    )
    for chunk in answer.chunks:
        place = plain(" > ".join(filter(None, (chunk.title, chunk.section))))
        kind = f" ({chunk.frame.value})" if chunk.frame else ""
        statement = textwrap.shorten(plain(chunk.statement), MAX_STATEMENT_LENGTH, placeholder=" …")
        typer.echo(f"\n{place}{kind}\n    {statement}")
    if answer.entities:
        typer.echo(f"\nrelated: {', '.join(plain(each.name) for each in answer.entities)}")
