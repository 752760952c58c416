"""Commands about settings."""

from __future__ import annotations

import typer

from kbkit.cli.app import AsJson, app
from kbkit.terminal import print_json, print_table, say

config = typer.Typer(help="Show settings and where they come from.", no_args_is_help=True)
app.add_typer(config, name="config")

_SECRETS = ("panel_token", "database_url", "chroma_url", "chroma_token")


@config.command("show")
def show(context: typer.Context, as_json: AsJson = False) -> None:
    """Show every setting, its value, and who says so: an option, a variable, a file or nobody."""
    from rich.table import Table

    from kbkit.config import setting_values, unknown_variables

    rows = []
    for each in setting_values():
        value, origin = each.value, each.origin
        if each.name == "workspace" and context.obj is not None:
            value, origin = context.obj, "--workspace"
        if each.name in _SECRETS and value:
            value = "(set)"
        rows.append((each.name, str(value), origin))
    if as_json:
        print_json([dict(zip(("name", "value", "origin"), row, strict=True)) for row in rows])
    else:
        table = Table("setting", "value", "from", box=None)
        for row in rows:
            table.add_row(*row)
        print_table(table)
    for problem in unknown_variables():
        say(f"note: {problem}")
