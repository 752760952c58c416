"""Commands that change the knowledge graph by hand."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kbkit.cli.app import AsJson, open_workspace
from kbkit.cli.graph import AnyTarget, Entity, Limit, graph
from kbkit.errors import ConfigError
from kbkit.models.plain import plain
from kbkit.terminal import print_figures, print_json, say

if TYPE_CHECKING:
    from collections.abc import Sequence

Type = Annotated[str | None, typer.Option(help="Its type, such as term or symbol.")]
Description = Annotated[str | None, typer.Option(help="Its description, in a sentence.")]
Aliases = Annotated[
    list[str] | None,
    typer.Option(
        "--alias",
        help="Another name. Repeatable.",
    ),
]
Properties = Annotated[
    list[str] | None,
    typer.Option(
        "--property",
        help="NAME=VALUE, with JSON or text as the value. Repeatable.",
    ),
]
RelationName = Annotated[str, typer.Argument(help="Name of the relation, such as depends_on.")]


@graph.command()
def create(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="Its name.")],
    type: Type = None,
    description: Description = None,
    alias: Aliases = None,
    properties: Properties = None,
    as_json: AsJson = False,
) -> None:
    """Create an entity."""
    with open_workspace(context) as workspace:
        made = workspace.graph.create(
            name,
            type=type or "name",
            description=description or "",
            aliases=alias or (),
            properties=_properties(properties),
        )
    if as_json:
        print_json(made.to_dict())
    else:
        say(f"made {plain(made.name)}")


@graph.command()
def update(
    context: typer.Context,
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
    with open_workspace(context) as workspace:
        changed = workspace.graph.update(
            entity,
            name=name,
            type=type,
            description=description,
            aliases=alias,
            properties=_properties(properties),
        )
    if as_json:
        print_json(changed.to_dict())
    else:
        say(f"changed {plain(changed.name)}")


@graph.command()
def delete(context: typer.Context, entity: Entity, as_json: AsJson = False) -> None:
    """Delete an entity; `kbkit graph undo` restores it."""
    with open_workspace(context) as workspace:
        found = workspace.graph.entity(entity)
        workspace.graph.delete(found)
    if as_json:
        print_json(found.to_dict())
    else:
        say(f"deleted {plain(found.name)}")


@graph.command()
def relate(
    context: typer.Context,
    source: AnyTarget,
    name: RelationName,
    target: AnyTarget,
    weight: Annotated[float, typer.Option(help="Its weight, above 0 and at most 1.")] = 1.0,
    note: Annotated[str, typer.Option(help="A note.")] = "",
    as_json: AsJson = False,
) -> None:
    """Create a relation between two things."""
    with open_workspace(context) as workspace:
        made = workspace.graph.relate(source, name, target, weight=weight, note=note)
    if as_json:
        print_json(made.to_dict())
    else:
        say(f"related {plain(source)} to {plain(target)}: {made.name}")


@graph.command()
def unrelate(
    context: typer.Context,
    source: AnyTarget,
    name: RelationName,
    target: AnyTarget,
    as_json: AsJson = False,
) -> None:
    """Delete a relation; `kbkit graph undo` restores it."""
    with open_workspace(context) as workspace:
        found = workspace.graph.relation(source, name, target)
        workspace.graph.delete(found)
    if as_json:
        print_json(found.to_dict())
    else:
        say(f"{plain(source)} and {plain(target)}: deleted {found.name}")


@graph.command()
def merge(context: typer.Context, keep: Entity, other: Entity, as_json: AsJson = False) -> None:
    """Merge two entities; `kbkit graph undo` splits them."""
    with open_workspace(context) as workspace:
        kept = workspace.graph.merge(keep, other)
    if as_json:
        print_json(kept.to_dict())
    else:
        say(f"{plain(kept.name)} is also called {', '.join(map(plain, kept.aliases))}")


@graph.command()
def refuse(context: typer.Context, keep: Entity, other: Entity, as_json: AsJson = False) -> None:
    """Mark two entities as different."""
    with open_workspace(context) as workspace:
        pair = [workspace.graph.entity(each) for each in (keep, other)]
        workspace.graph.refuse(*pair)
    if as_json:
        print_json({"refused": [each.name for each in pair]})
    else:
        say(f"{plain(pair[0].name)} and {plain(pair[1].name)} are not suggested again")


@graph.command()
def edits(
    context: typer.Context,
    by: Annotated[str | None, typer.Option(help="Only changes by this person.")] = None,
    limit: Limit = 20,
    as_json: AsJson = False,
) -> None:
    """List edits of the graph, the latest first."""
    with open_workspace(context) as workspace:
        found = workspace.graph.edits(by=by, limit=limit)
    if as_json:
        print_json([each.to_dict() for each in found])
        return
    print_figures(
        ("edit", "by", "at", "what"),
        (
            (str(each.id), each.made_by, f"{each.made_at:%Y-%m-%d %H:%M}", each.what)
            for each in found
        ),
    )


@graph.command()
def undo(
    context: typer.Context,
    edit: Annotated[
        int | None,
        typer.Argument(help="Its number in `kbkit graph edits` (default: your last edit)."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Undo an edit of the graph."""
    with open_workspace(context) as workspace:
        undone = workspace.graph.undo(edit)
    if as_json:
        print_json(undone.to_dict())
    else:
        say(f"taken back: {plain(undone.what)}")


def _properties(pairs: Sequence[str] | None) -> dict[str, Any] | None:
    """Properties as they were given on the command line.

    Raises:
        ConfigError: One is no pair.
    """
    if pairs is None:
        return None
    found: dict[str, Any] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name.strip():
            raise ConfigError(f"--property {pair}: give NAME=VALUE")
        try:
            found[name.strip()] = json.loads(value)
        except ValueError:
            found[name.strip()] = value
    return found
