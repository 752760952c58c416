"""Commands that serve a workspace to agents and programs, and that say who may."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from kbkit.cli.app import AsJson, UntilClosed, app, open_workspace
from kbkit.mcp.options import USUAL_TOKENS
from kbkit.replies import LEAST_TOKENS
from kbkit.terminal import print_figures, print_json, say

token_app = typer.Typer(
    help="Tokens that a server lets somebody in with.", no_args_is_help=True, rich_markup_mode=None
)
app.add_typer(token_app, name="token")


@app.command()
def serve(
    context: typer.Context,
    host: Annotated[
        str,
        typer.Option(
            help="Address to listen at; others than this machine's own need a token, see "
            "`kbkit token create`."
        ),
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port; 0 takes any free one.")
    ] = 8765,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(
            help="Another name that the server goes by, such as a proxy's. Repeatable.",
            show_default=False,
        ),
    ] = None,
    allow_origin: Annotated[
        list[str] | None,
        typer.Option(
            help="Web pages that may use it, such as https://app.example (default: none but its "
            "own). Repeatable.",
            show_default=False,
        ),
    ] = None,
    public_url: Annotated[
        str,
        typer.Option(
            metavar="URL", help="Address that clients know it by, where a proxy stands before it."
        ),
    ] = "",
    tools: Annotated[
        str,
        typer.Option(help="Tool sets of MCP, with commas between; `none` for no MCP."),
    ] = "core",
    allow_write: Annotated[
        bool,
        typer.Option(
            "--allow-write",
            help="MCP has tools that change something, for those who may (REST always has).",
        ),
    ] = False,
    max_tokens: Annotated[
        int, typer.Option(min=LEAST_TOKENS, help="Most tokens of an answer of MCP.")
    ] = USUAL_TOKENS,
    max_body: Annotated[
        int, typer.Option(min=1, help="Megabytes of the longest request.")
    ] = 100,
    rate: Annotated[
        float,
        typer.Option(min=0, help="Requests a second of one caller, in the long run; 0 for any."),
    ] = 1000.0,
    burst: Annotated[
        int, typer.Option(min=1, help="Requests that one caller may make at once.")
    ] = 2000,
    search_processes: Annotated[
        int | None,
        typer.Option(
            min=0, max=64,
            help="Processes beside the one that serves, which make the searches (default: one for "
            "each processor but one, 4 at most).",
            show_default=False,
        ),
    ] = None,
    until_closed: UntilClosed = False,
) -> None:  # fmt: skip
    """Serve a workspace to programs (REST) and agents (MCP), and its sites, until interrupted."""
    from kbkit.processes import end_with_input
    from kbkit.server import ServerSettings, serve

    if until_closed:
        end_with_input()
    settings = ServerSettings(
        host=host, port=port, allow_hosts=tuple(allow_host or ()), public_url=public_url,
        allow_origins=tuple(allow_origin or ()), max_body=max_body * 1_000_000, rate=rate,
        burst=burst, allow_write=allow_write, max_tokens=max_tokens,
        tools=() if tools == "none" else tuple(name.strip() for name in tools.split(",")),
        search_processes=_spare_processors() if search_processes is None else search_processes,
    )  # fmt: skip
    with open_workspace(context) as workspace:
        serve(workspace, settings, say=say)


def _spare_processors() -> int:
    return min(4, (os.cpu_count() or 1) - 1)


@token_app.command("create")
def create_token(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="What to call it, such as whom it is for.")],
    scope: Annotated[
        str, typer.Option(help="read, write or admin; each takes in those before it.")
    ] = "read",
    kb: Annotated[
        list[str] | None,
        typer.Option(
            help="Only for this knowledge base, `files` or `entries` (default: all). Repeatable.",
            show_default=False,
        ),
    ] = None,
    days: Annotated[
        int | None, typer.Option(min=1, help="After which it ends (default: never).",
                                 show_default=False),
    ] = None,
    as_json: AsJson = False,
) -> None:  # fmt: skip
    """Make a token, which is shown this once: a server keeps a digest of it only."""
    from kbkit.access import Tokens

    with open_workspace(context) as workspace:
        made = Tokens(workspace).create(name, scope=scope, kbs=kb or (), days=days)
    if as_json:
        print_json({"token": made.token, **made.info.to_dict()})
        return
    typer.echo(made.token)
    say(f"keep it: it is not shown again; `kbkit token revoke '{name}'` takes it back")


@token_app.command("list")
def list_tokens(context: typer.Context, as_json: AsJson = False) -> None:
    """List tokens: what they are for, until when, and when they were last used."""
    from kbkit.access import Tokens

    with open_workspace(context) as workspace:
        found = Tokens(workspace).list()
    if as_json:
        print_json([info.to_dict() for info in found])
        return
    if not found:
        say("no token; make one with `kbkit token create NAME`")
        return
    print_figures(
        ("name", "id", "scope", "for", "created", "ends", "last used (UTC)"),
        (
            (
                info.name, info.id, info.scope, ", ".join(info.kbs) or "all",
                f"{info.created_at:%Y-%m-%d}",
                f"{info.expires_at:%Y-%m-%d}" if info.expires_at else "never",
                f"{info.used_at:%Y-%m-%d %H:%M}" if info.used_at else "never",
            )
            for info in found
        ),
    )  # fmt: skip


@token_app.command("revoke")
def revoke_token(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="Its name, or its id.")],
) -> None:
    """Take a token back: servers that run refuse it from now on."""
    from kbkit.access import Tokens

    with open_workspace(context) as workspace:
        info = Tokens(workspace).revoke(name)
    say(f"revoked {info.name}")
