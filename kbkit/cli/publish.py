"""Commands that publish and serve, and manage access tokens."""

from __future__ import annotations

import os
import threading
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kbkit import cli
from kbkit.cli.terminal import listing, progress, say
from kbkit.mcp import MIN_TOKENS, USUAL_TOKENS
from kbkit.models.values import pluralize

if TYPE_CHECKING:
    from kbkit.errors import KbkitError
    from kbkit.export import ExportReport
    from kbkit.knowledge_base import KnowledgeBase
    from kbkit.models import SyncReport, TokenInfo
    from kbkit.runtime.progress import OnProgress
    from kbkit.workspace import Workspace


Target = Annotated[
    str, typer.Argument(help="A knowledge base, or a recipe file (built first if needed).")
]


@cli.command(cli.app)
def export(
    target: Target,
    *,
    folder: Path | None = None,
    standalone: bool = False,
    pages_only: bool = False,
    build: bool = True,
    model: bool | None = None,
    graph: bool | None = None,
    files: bool | None = None,
    entries: bool | None = None,
    trust: bool = False,
) -> cli.Done:
    """Export a knowledge base as a searchable MkDocs site.

    Args:
        standalone: Add requirements and a GitHub workflow.
        pages_only: Write only the pages, for a MkDocs site that you have.
        model: Include the embedding model for browsers, 23 MB (default: the recipe's, or yes).
        graph: Include the knowledge graph (default: the recipe's, or yes).
        files: Include the workspace's files (default: the recipe's, or no).
        entries: Include the workspace's entries (default: the recipe's, or no).
    """
    if pages_only and (folder is None or standalone):
        raise typer.BadParameter("--pages-only needs --folder, and excludes --standalone")
    from kbkit.knowledge_base import handle_of

    with cli.open_workspace() as workspace, progress() as on_progress:
        kb = _build_recipe(workspace, target, on_progress, trust=trust)
        report = kb.export(
            folder=folder,
            build=build,
            standalone=standalone,
            pages_only=pages_only,
            model=model,
            graph=graph,
            files=files,
            entries=entries,
            on_progress=on_progress,
        )
    message = f"wrote the {'pages' if pages_only else 'project'} {report.folder}"
    if report.site:
        location = kb.name if report.folder == handle_of(kb).site_folder() else report.site
        message += f"\nlook at it with `kbkit serve-site {location}`"
    return cli.Done(report, message)


@cli.command(cli.app, "serve-site")
def serve_site(site: str, *, port: cli.Port = 8000, until_stdin_closes: bool = False) -> None:
    """Serve an exported site on this machine.

    Args:
        site: An exported knowledge base, or a folder of HTML.
        port: Port on loopback.
    """
    from kbkit.export import find_site
    from kbkit.export import serve_site as serve
    from kbkit.knowledge_base import handle_of
    from kbkit.runtime.processes import end_with_input, waiting_for_end

    if until_stdin_closes:
        end_with_input()
    folder = find_site(Path(site)) or Path(site)
    if not (folder / "index.html").is_file():  # a folder may have a knowledge base's name
        with cli.open_workspace() as workspace:
            if site in workspace or not folder.is_dir():
                folder = handle_of(workspace[site]).site_folder() / "site"
    with waiting_for_end() as wait, serve(folder, port) as address:
        say(f"serving {folder} at {address} (Ctrl+C to stop)")
        wait()


@cli.command(cli.app)
def watch(
    target: Target,
    *,
    folder: Path | None = None,
    build: bool = True,
    port: Annotated[int | None, typer.Option(min=0, max=65535)] = None,
    interval: Annotated[float, typer.Option(min=0.1, max=3600)] = 1.0,
    trust: bool = False,
) -> None:
    """Export again whenever something changes.

    Also imports outside changes of files and entries, and learns from finished tasks
    (KBKIT_AUTO_LEARN).

    Args:
        port: Also serve the site at this port on loopback.
        interval: Seconds between checks.
    """
    if port is not None and not build:
        raise typer.BadParameter("--port cannot be combined with --no-build")
    from kbkit.export import serve_site as serve
    from kbkit.workflows.builder import watch as keep_watching
    from kbkit.workflows.builder import watch_files

    with cli.open_workspace() as workspace, ExitStack() as stack, suppress(KeyboardInterrupt):
        with progress() as on_progress:
            kb = _build_recipe(workspace, target, on_progress, trust=trust)
        served: list[str] = []

        def on_export(report: ExportReport) -> None:
            output = report.site or report.folder
            say(f"wrote {pluralize(report.written, 'page')}, removed {report.removed:,}: {output}")
            if port is not None and report.site and not served:
                served.append(stack.enter_context(serve(report.site, port)))
                say(f"serving it at {served[0]}")

        say(f"watching {kb.name}, files and entries of the workspace (Ctrl+C to stop)")
        stop = threading.Event()
        for name, synced in (("files", workspace.files), ("entries", workspace.entries)):
            sync = partial(watch_files, synced, stop=stop, on_trouble=_say_trouble)
            thread = threading.Thread(target=sync, kwargs={"on_sync": partial(_say_sync, name)})
            thread.start()
            stack.callback(thread.join)
        stack.callback(stop.set)
        keep_watching(
            kb,
            folder=folder,
            build=build,
            interval=interval,
            on_export=on_export,
            on_trouble=_say_trouble,
        )


def _say_sync(name: str, report: SyncReport) -> None:
    say(
        f"{name}: {len(report.added):,} added, {len(report.updated):,} updated, "
        f"{len(report.removed):,} removed"
    )


def _say_trouble(error: KbkitError) -> None:
    say(f"kbkit: {error}")


@cli.command(cli.app)
def panel(
    workspace: Path | None = None,
    *,
    host: str = "127.0.0.1",
    port: cli.Port = 8866,
    token: str = "",
    theme: str = "light",
    open_browser: Annotated[bool, typer.Option("--open")] = False,
    until_stdin_closes: bool = False,
) -> None:
    """Serve the panels as a web page.

    Args:
        workspace: Folder of the workspace (default: --workspace).
        host: Address to listen on; needs --token unless it is loopback.
        port: Port; 0 for any free one.
        token: Token of visitors (default: KBKIT_PANEL_TOKEN, or a new one).
        theme: light or dark.
        open_browser: Open the page in the browser.
    """
    from kbkit.cli.dashboard import serve_panel
    from kbkit.runtime.processes import end_with_input

    if until_stdin_closes:
        end_with_input()
    with suppress(KeyboardInterrupt):
        serve_panel(
            workspace or cli.Chosen.workspace,
            host=host,
            port=port,
            token=token,
            theme=theme,
            open_browser=open_browser,
            say=say,
        )


def _build_recipe(
    workspace: Workspace, target: str, on_progress: OnProgress | None, *, trust: bool
) -> KnowledgeBase:
    from kbkit.recipes import load_recipe
    from kbkit.recipes.base import SLUG
    from kbkit.workflows.builder import build as build_recipe

    if SLUG.fullmatch(target):
        return workspace[target]
    recipe = load_recipe(target)
    if recipe.name not in workspace:
        build_recipe(recipe, workspace, site=False, trust=trust, on_progress=on_progress)
    return workspace[recipe.name]


token_app = typer.Typer(
    help="Manage the access tokens of a server.", no_args_is_help=True, rich_markup_mode=None
)
cli.app.add_typer(token_app, name="token")


@cli.command(cli.app)
def serve(
    *,
    host: str = "127.0.0.1",
    port: cli.Port = 8765,
    allow_host: list[str] | None = None,
    allow_origin: list[str] | None = None,
    public_url: str = "",
    tools: str = "core",
    allow_write: bool = False,
    max_tokens: Annotated[int, typer.Option(min=MIN_TOKENS)] = USUAL_TOKENS,
    max_body: cli.Count = 100,
    rate: Annotated[float, typer.Option(min=0)] = 1000.0,
    burst: cli.Count = 2000,
    search_processes: Annotated[int | None, typer.Option(min=0, max=64)] = None,
    until_stdin_closes: bool = False,
) -> None:
    """Serve a workspace over REST and MCP, with its sites.

    Args:
        host: Address to listen on; needs tokens unless it is loopback (`kbkit token create`).
        port: Port; 0 for any free one.
        allow_host: Another host name of the server, such as a proxy's. Repeatable.
        allow_origin: Web origin that may call the server, such as https://app.example. Repeatable.
        public_url: Address of the server for clients, if it is behind a proxy.
        tools: MCP tool sets, separated by commas; `none` turns MCP off.
        allow_write: Include MCP tools that write, for tokens with that scope.
        max_tokens: Maximum tokens of an MCP answer.
        max_body: Maximum size of a request in MB.
        rate: Requests a second for each caller; 0 for no limit.
        burst: Requests that a caller may make at once.
        search_processes: Processes that search (default: one less than the processors, at most 4).
    """
    from kbkit.runtime.processes import end_process, end_with_input
    from kbkit.server import ServerSettings, serve

    if until_stdin_closes:
        end_with_input()
    if search_processes is None:
        search_processes = min(4, (os.cpu_count() or 1) - 1)
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
        search_processes=search_processes,
    )
    with cli.open_workspace() as workspace:
        serve(workspace, settings, say=say)
    end_process()


@cli.command(token_app)
def create(
    ws: Workspace,
    name: str,
    *,
    scope: str = "read",
    kbs: list[str] | None = None,
    days: cli.OptionalCount = None,
) -> cli.Done:
    """Create a token and print it once.

    Args:
        name: Its name, such as who it is for.
        scope: read, write or admin; each includes the ones before it.
        kbs: Only for this knowledge base, `files` or `entries` (default: all). Repeatable.
        days: Days until it expires (default: never).
    """
    from kbkit.access import Tokens

    result = Tokens(ws).create(name, scope=scope, kbs=kbs or (), days=days)
    say(f"keep it: it is not shown again; `kbkit token revoke '{name}'` revokes it")
    return cli.Done(
        {"token": result.token, **result.info.to_dict()}, partial(typer.echo, result.token)
    )


@cli.command(
    token_app,
    "list",
    show=listing(
        "name id scope kbs created_at expires_at used_at",
        "no tokens; create one with `kbkit token create NAME`",
        kbs=lambda info: info.kbs or "all",
        expires_at=lambda info: info.expires_at or "never",
        used_at=lambda info: info.used_at or "never",
    ),
)
def list_tokens(ws: Workspace) -> list[TokenInfo]:
    """List tokens with scope, expiry and last use."""
    from kbkit.access import Tokens

    return Tokens(ws).list()


@cli.command(token_app)
def revoke(ws: Workspace, name: str) -> None:
    """Revoke a token.

    Args:
        name: Its name or id.
    """
    from kbkit.access import Tokens

    say(f"revoked {Tokens(ws).revoke(name).name}")
