"""Commands that serve a workspace, and manage access tokens."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from kbkit.cli import AsJson, UntilClosed, app, open_workspace
from kbkit.cli.terminal import print_listing, printed, say
from kbkit.mcp import MIN_TOKENS, USUAL_TOKENS

token_app = typer.Typer(
    help="Manage the access tokens of a server.", no_args_is_help=True, rich_markup_mode=None
)
app.add_typer(token_app, name="token")


@app.command()
def serve(
    host: Annotated[
        str,
        typer.Option(
            help="Address to listen on; needs tokens unless it is loopback (`kbkit token create`)."
        ),
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 for any free one.")] = 8765,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(help="Another host name of the server, such as a proxy's. Repeatable."),
    ] = None,
    allow_origin: Annotated[
        list[str] | None,
        typer.Option(
            help="Web origin that may call the server, such as https://app.example. Repeatable."
        ),
    ] = None,
    public_url: Annotated[
        str,
        typer.Option(
            metavar="URL", help="Address of the server for clients, if it is behind a proxy."
        ),
    ] = "",
    tools: Annotated[
        str, typer.Option(help="MCP tool sets, separated by commas; `none` turns MCP off.")
    ] = "core",
    allow_write: Annotated[
        bool,
        typer.Option(
            "--allow-write", help="Include MCP tools that write, for tokens with that scope."
        ),
    ] = False,
    max_tokens: Annotated[
        int, typer.Option(min=MIN_TOKENS, help="Maximum tokens of an MCP answer.")
    ] = USUAL_TOKENS,
    max_body: Annotated[int, typer.Option(min=1, help="Maximum size of a request in MB.")] = 100,
    rate: Annotated[
        float, typer.Option(min=0, help="Requests a second for each caller; 0 for no limit.")
    ] = 1000.0,
    burst: Annotated[
        int, typer.Option(min=1, help="Requests that a caller may make at once.")
    ] = 2000,
    search_processes: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=64,
            help="Processes that search (default: one less than the processors, at most 4).",
        ),
    ] = None,
    until_closed: UntilClosed = False,
) -> None:
    """Serve a workspace over REST and MCP, with its sites."""
    from kbkit.runtime.processes import end_process, end_with_input
    from kbkit.server import ServerSettings, serve

    if until_closed:
        end_with_input()
    settings = ServerSettings(
        host=host,
        port=port,
        allow_hosts=tuple(allow_host or ()),
        public_url=public_url,
        allow_origins=tuple(allow_origin or ()),
        max_body=max_body * 1_000_000,
        rate=rate,
        burst=burst,
        allow_write=allow_write,
        max_tokens=max_tokens,
        tools=() if tools == "none" else tuple(name.strip() for name in tools.split(",")),
        search_processes=_spare_processors() if search_processes is None else search_processes,
    )
    with open_workspace() as workspace:
        serve(workspace, settings, say=say)
    end_process()


def _spare_processors() -> int:
    return min(4, (os.cpu_count() or 1) - 1)


@token_app.command("create")
def create_token(
    name: Annotated[str, typer.Argument(help="Its name, such as who it is for.")],
    scope: Annotated[
        str, typer.Option(help="read, write or admin; each includes the ones before it.")
    ] = "read",
    kb: Annotated[
        list[str] | None,
        typer.Option(
            help="Only for this knowledge base, `files` or `entries` (default: all). Repeatable."
        ),
    ] = None,
    days: Annotated[
        int | None, typer.Option(min=1, help="Days until it expires (default: never).")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Create a token and print it once."""
    from kbkit.access import Tokens

    with open_workspace() as workspace:
        new = Tokens(workspace).create(name, scope=scope, kbs=kb or (), days=days)
    if printed({"token": new.token, **new.info.to_dict()}, as_json):
        return
    typer.echo(new.token)
    say(f"keep it: it is not shown again; `kbkit token revoke '{name}'` revokes it")


@token_app.command("list")
def list_tokens(as_json: AsJson = False) -> None:
    """List tokens with scope, expiry and last use."""
    from kbkit.access import Tokens

    with open_workspace() as workspace:
        tokens = Tokens(workspace).list()
    print_listing(
        tokens,
        as_json,
        ("name", "id", "scope", "for", "created", "ends", "last used (UTC)"),
        lambda info: (
            info.name,
            info.id,
            info.scope,
            ", ".join(info.kbs) or "all",
            f"{info.created_at:%Y-%m-%d}",
            f"{info.expires_at:%Y-%m-%d}" if info.expires_at else "never",
            f"{info.used_at:%Y-%m-%d %H:%M}" if info.used_at else "never",
        ),
        empty="no tokens; make one with `kbkit token create NAME`",
    )


@token_app.command("revoke")
def revoke_token(name: Annotated[str, typer.Argument(help="Its name or id.")]) -> None:
    """Revoke a token."""
    from kbkit.access import Tokens

    with open_workspace() as workspace:
        info = Tokens(workspace).revoke(name)
    say(f"revoked {info.name}")
