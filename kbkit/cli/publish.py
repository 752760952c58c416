"""Commands that publish and serve, and manage access tokens."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kbkit.cli import AsJson, Trust, UntilClosed, app, chosen_workspace, open_workspace
from kbkit.cli.terminal import print_listing, printed, progress, say
from kbkit.mcp import MIN_TOKENS, USUAL_TOKENS
from kbkit.models.values import pluralize

if TYPE_CHECKING:
    from kbkit.export import ExportReport
    from kbkit.knowledge_base import KnowledgeBase
    from kbkit.models import SyncReport
    from kbkit.runtime.progress import OnProgress
    from kbkit.workflows.builder import SyncedFolder
    from kbkit.workspace import Workspace


Target = Annotated[
    str, typer.Argument(help="A knowledge base, or a recipe file (built first if needed).")
]
Folder = Annotated[Path | None, typer.Option(help="Output folder (default: the recipe's).")]
Build = Annotated[bool, typer.Option(help="Also run MkDocs.")]


def _include(what: str, default: str) -> Any:
    return typer.Option(help=f"Include {what} (default: the recipe's, or {default}).")


@app.command()
def export(
    target: Target,
    folder: Folder = None,
    standalone: Annotated[
        bool, typer.Option("--standalone", help="Add requirements and a GitHub workflow.")
    ] = False,
    pages_only: Annotated[
        bool,
        typer.Option("--pages-only", help="Write only the pages, for a MkDocs site that you have."),
    ] = False,
    build: Build = True,
    model: Annotated[
        bool | None, _include("the embedding model for browsers, 23 MB", "yes")
    ] = None,
    graph: Annotated[bool | None, _include("the knowledge graph", "yes")] = None,
    files: Annotated[bool | None, _include("the workspace's files", "no")] = None,
    entries: Annotated[bool | None, _include("the workspace's entries", "no")] = None,
    trust: Trust = False,
    as_json: AsJson = False,
) -> None:
    """Export a knowledge base as a searchable MkDocs site."""
    if pages_only and (folder is None or standalone):
        raise typer.BadParameter("--pages-only needs --folder, and excludes --standalone")
    from kbkit.knowledge_base import handle_of

    with open_workspace() as workspace, progress() as on_progress:
        kb = _built(workspace, target, on_progress, trust=trust)
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
    if printed(report, as_json):
        return
    say(f"wrote the {'pages' if pages_only else 'project'} {report.folder}")
    if report.site:
        place = kb.name if report.folder == handle_of(kb).site_folder() else report.site
        say(f"look at it with `kbkit serve-site {place}`")


@app.command("serve-site")
def serve_site(
    site: Annotated[str, typer.Argument(help="An exported knowledge base, or a folder of HTML.")],
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port on loopback.")] = 8000,
    until_closed: UntilClosed = False,
) -> None:
    """Serve an exported site on this machine."""
    from kbkit.export import find_site
    from kbkit.export import serve_site as serve
    from kbkit.knowledge_base import handle_of
    from kbkit.runtime.processes import end_with_input, waiting_for_end

    if until_closed:
        end_with_input()
    folder = find_site(Path(site)) or Path(site)
    if not (folder / "index.html").is_file():  # a folder may have a knowledge base's name
        with open_workspace() as workspace:
            if site in workspace or not folder.is_dir():
                folder = handle_of(workspace[site]).site_folder() / "site"
    with waiting_for_end() as wait, serve(folder, port) as address:
        say(f"serving {folder} at {address} (Ctrl+C to stop)")
        wait()


@app.command()
def watch(
    target: Target,
    folder: Folder = None,
    build: Build = True,
    port: Annotated[
        int | None,
        typer.Option(min=0, max=65535, help="Also serve the site at this port on loopback."),
    ] = None,
    interval: Annotated[
        float, typer.Option(min=0.1, max=3600, help="Seconds between checks.")
    ] = 1.0,
    trust: Trust = False,
) -> None:
    """Export again whenever something changes.

    Also imports outside changes of files and entries, and learns from finished tasks
    (KBKIT_AUTO_LEARN).
    """
    if port is not None and not build:
        raise typer.BadParameter("--port cannot be combined with --no-build")
    from kbkit.export import serve_site as serve
    from kbkit.workflows.builder import watch as keep_watching

    with open_workspace() as workspace, ExitStack() as stack, suppress(KeyboardInterrupt):
        with progress() as on_progress:
            kb = _built(workspace, target, on_progress, trust=trust)
        served: list[str] = []

        def on_export(report: ExportReport) -> None:
            place = report.site or report.folder
            say(f"wrote {pluralize(report.written, 'page')}, removed {report.removed:,}: {place}")
            if port is not None and report.site and not served:
                served.append(stack.enter_context(serve(report.site, port)))
                say(f"serving it at {served[0]}")

        say(f"watching {kb.name}, files and entries of the workspace (Ctrl+C to stop)")
        stack.enter_context(_watching_files("files", workspace.files))
        stack.enter_context(_watching_files("entries", workspace.entries))
        keep_watching(
            kb,
            folder=folder,
            build=build,
            interval=interval,
            on_export=on_export,
            on_trouble=lambda error: say(f"kbkit: {error}"),
        )


@contextmanager
def _watching_files(name: str, synced: SyncedFolder) -> Iterator[None]:
    from kbkit.workflows.builder import watch_files

    def on_sync(report: SyncReport) -> None:
        say(
            f"{name}: {len(report.added):,} added, {len(report.updated):,} updated, "
            f"{len(report.removed):,} removed"
        )

    stop = threading.Event()
    options = {"stop": stop, "on_sync": on_sync, "on_trouble": lambda error: say(f"kbkit: {error}")}
    thread = threading.Thread(target=watch_files, args=(synced,), kwargs=options)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


@app.command()
def panel(
    workspace: Annotated[
        Path | None, typer.Argument(help="Folder of the workspace (default: --workspace).")
    ] = None,
    host: Annotated[
        str, typer.Option(help="Address to listen on; needs --token unless it is loopback.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 for any free one.")] = 8866,
    token: Annotated[
        str, typer.Option(help="Token of visitors (default: KBKIT_PANEL_TOKEN, or a new one).")
    ] = "",
    theme: Annotated[str, typer.Option(help="light or dark.")] = "light",
    open_browser: Annotated[
        bool, typer.Option("--open", help="Open the page in the browser.")
    ] = False,
    until_closed: UntilClosed = False,
) -> None:
    """Serve the panels as a web page."""
    from kbkit.cli.dashboard import serve_panel
    from kbkit.runtime.processes import end_with_input

    if until_closed:
        end_with_input()
    with suppress(KeyboardInterrupt):
        serve_panel(
            workspace or chosen_workspace(),
            host=host,
            port=port,
            token=token,
            theme=theme,
            open_browser=open_browser,
            say=say,
        )


def _built(
    workspace: Workspace, target: str, on_progress: OnProgress | None, *, trust: bool
) -> KnowledgeBase:
    from kbkit.recipes import load_recipe
    from kbkit.recipes.schema import SLUG
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
        "name id scope kbs created_at expires_at used_at",
        empty="no tokens; create one with `kbkit token create NAME`",
        kbs=lambda info: info.kbs or "all",
        expires_at=lambda info: info.expires_at or "never",
        used_at=lambda info: info.used_at or "never",
    )


@token_app.command("revoke")
def revoke_token(name: Annotated[str, typer.Argument(help="Its name or id.")]) -> None:
    """Revoke a token."""
    from kbkit.access import Tokens

    with open_workspace() as workspace:
        info = Tokens(workspace).revoke(name)
    say(f"revoked {info.name}")
