"""The command that moves a workspace between a folder and a server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from kbkit.cli.app import AsJson, app, resumable
from kbkit.terminal import print_figures, print_json, progress, say

if TYPE_CHECKING:
    from kbkit.models import Migration


@app.command()
def migrate(
    context: typer.Context,
    to: Annotated[
        str,
        typer.Option(
            metavar="URL",
            help="Where to: postgresql+psycopg://USER@HOST:PORT/DATABASE (an empty one; the "
            "password may be in PGPASSWORD or ~/.pgpass), or a folder without a catalog.",
            show_default=False,
        ),
    ],
    as_json: AsJson = False,
) -> None:
    """Move the workspace to PostgreSQL or to a folder."""
    from kbkit.migration import migrate as move

    with resumable("kbkit migrate"), progress() as on_progress:
        done = move(context.obj, to=to, on_progress=on_progress)
    if as_json:
        print_json(done.to_dict())
        return
    rows = ((table.name, f"{table.rows:,}", table.digest) for table in done.tables if table.rows)
    print_figures(("table", "rows", "BLAKE2 here and there"), rows)
    _say_what_is_where(done)


def _say_what_is_where(done: Migration) -> None:
    say(
        f"moved {done.rows:,} rows in {done.seconds:,.0f} s"
        + (f", {done.kept:,} of them before it was cut off" if done.kept else "")
        + "; all tables are the same here and there"
    )
    say(f"the catalog is in {done.destination} now; the one in {done.source} stays as it was")
    if "://" in done.destination:
        say("set KBKIT_DATABASE_URL to that address; files, entries and pictures stay in the "
            "folder of the workspace; its catalog.db and chroma are not read any more")  # fmt: skip
        return
    say("unset KBKIT_DATABASE_URL, and name that folder as the workspace; "
        f"copied into it: {', '.join(done.folders) or 'nothing else'}; "
        "chroma was made anew, and snapshots are when they are wanted")  # fmt: skip
