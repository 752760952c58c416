"""Commands that look after a workspace: examine it, make anew what derives, list what was read."""

from __future__ import annotations

from typing import Annotated

import typer

from kbkit.cli.app import EXIT_ERROR, AsJson, app, open_workspace
from kbkit.models.plain import pluralize
from kbkit.terminal import print_json, print_table, say

Names = Annotated[
    list[str] | None,
    typer.Argument(metavar="NAME...", help="Knowledge bases (default: all).", show_default=False),
]


@app.command()
def doctor(
    context: typer.Context,
    repair: Annotated[
        bool, typer.Option("--repair", help="Rebuild damaged indexes from the catalog.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Check a workspace for damage."""
    with open_workspace(context) as workspace:
        found = workspace.doctor(repair=repair)
    if as_json:
        print_json({"sound": found.sound, **found.to_dict()})
    else:
        for finding in found.findings:
            say(str(finding))
        looked = pluralize(found.knowledge_bases, "knowledge base")
        say(f"{looked}: {'sound' if found.sound else 'not sound'}")
    if not found.sound:
        raise typer.Exit(EXIT_ERROR)


@app.command()
def rebuild(context: typer.Context, names: Names = None) -> None:
    """Rebuild all indexes from the catalog."""
    with open_workspace(context) as workspace:
        done = workspace.rebuild(names)
    say(f"made anew: {', '.join(done) or 'nothing'}")


@app.command()
def runs(context: typer.Context, names: Names = None, as_json: AsJson = False) -> None:
    """List past reads of sources, the latest first."""
    from rich.table import Table
    from rich.text import Text

    with open_workspace(context) as workspace:
        found = workspace.runs(names)
    if as_json:
        print_json([one.to_dict() for one in found])
        return
    table = Table("began (UTC)", "seconds", "knowledge base", "came of it", "source", box=None)
    for one in found:
        took = f"{one.seconds:,.1f}" if one.finished_at else "not ended"
        counts = ", ".join(f"{count:,} {name}" for name, count in one.counts.items())
        table.add_row(f"{one.started_at:%Y-%m-%d %H:%M:%S}", took, one.kb, counts, Text(one.source))
    if found:
        print_table(table)
    else:
        say("no source was read yet")
