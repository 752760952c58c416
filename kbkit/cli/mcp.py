"""The command that serves agents over the Model Context Protocol."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kbkit.cli.app import app
from kbkit.mcp.options import SET_NAMES, USUAL_TOKENS, check_sets
from kbkit.mcp.stdio import serve
from kbkit.replies import LEAST_TOKENS


@app.command()
def mcp(
    context: typer.Context,
    tools: Annotated[
        str,
        typer.Option(
            metavar="SETS", help=f"Tool sets, separated by commas: {', '.join(SET_NAMES)}, all."
        ),
    ] = "core",
    allow_write: Annotated[
        bool, typer.Option("--allow-write", help="Include tools that write.")
    ] = False,
    max_tokens: Annotated[
        int,
        typer.Option(min=LEAST_TOKENS, help="Maximum tokens of an answer."),
    ] = USUAL_TOKENS,
    roots: Annotated[
        list[Path] | None,
        typer.Option(
            "--root",
            help="Folder that tools may read files from. Repeatable.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Serve agents over MCP on standard input and output."""
    sets = check_sets([name.strip() for name in tools.split(",") if name.strip()])
    serve(context.obj, sets, allow_write=allow_write, max_tokens=max_tokens, roots=roots or ())
