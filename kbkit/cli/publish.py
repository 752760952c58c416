"""Commands that build, publish and serve."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kbkit.cli import (
    EXIT_NOTHING_READ,
    AsJson,
    UntilClosed,
    app,
    chosen_workspace,
    open_workspace,
    resumable,
)
from kbkit.cli.terminal import print_json, print_pairs, printed, progress, say
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
Trust = Annotated[
    bool,
    typer.Option(
        "--trust",
        help="Allow all that the recipe asks for: other folders, private addresses, code to run.",
    ),
]
Build = Annotated[bool, typer.Option(help="Also run MkDocs.")]
Recipe = Annotated[Path, typer.Argument(help="A recipe file.")]


def _include(what: str, default: str) -> Any:
    return typer.Option(help=f"Include {what} (default: the recipe's, or {default}).")


@app.command()
def build(
    recipe: Recipe,
    site: Annotated[bool, typer.Option(help="Also build the site.")] = True,
    yes: Annotated[
        bool,
        typer.Option("--yes", "-y", help="Let the recipe's language model exceed its `limit`."),
    ] = False,
    trust: Trust = False,
    engine: Annotated[
        str,
        typer.Option(
            metavar="ENGINE",
            help="Where the work runs: local, dask, or dask:ADDRESS, such as dask:tcp://10.0.0.5:8786.",
        ),
    ] = "local",
    as_json: AsJson = False,
) -> None:
    """Build or update a recipe's knowledge base and site."""
    from kbkit.recipes import load_recipe
    from kbkit.workflows.builder import build as build_recipe

    loaded = load_recipe(recipe)
    going_on = resumable(f"kbkit build {recipe}")
    with open_workspace() as workspace, going_on, progress() as on_progress:
        report = build_recipe(
            loaded,
            workspace,
            site=site,
            expand_all=yes,
            engine=engine,
            trust=trust,
            on_progress=on_progress,
        )
    if as_json:
        print_json(report)
    else:
        say(f"built {report.info.name}")
        print_pairs(report.lines())
    for problem in report.ingest.failed_sources:
        say(f"nothing could be read of {problem.uri}")
    if report.ingest.nothing_read or report.ingest.failed_sources:
        raise typer.Exit(EXIT_NOTHING_READ)


@app.command()
def notebook(
    recipe: Recipe,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The notebook (default: NAME.ipynb).")
    ] = None,
    workspace: Annotated[
        Path | None, typer.Option(help="Workspace that the notebook builds into.")
    ] = None,
    run: Annotated[bool, typer.Option("--run", help="Also run it and keep the output.")] = False,
    trust: Trust = False,
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")] = False,
) -> None:
    """Write a notebook that builds a recipe."""
    from kbkit.workflows.notebook import run_notebook, write_notebook

    path = write_notebook(
        recipe, output, workspace=workspace or chosen_workspace(), trust=trust, force=force
    )
    say(f"wrote {path}")
    if run:
        with progress() as on_progress:
            run_notebook(path, on_progress=on_progress)
        say("ran it; open it in Jupyter to see the results")


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
        raise typer.BadParameter("--pages-only needs --folder, and goes without --standalone")
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
        say(f"serving {folder} at {address} (Ctrl+C ends it)")
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
        raise typer.BadParameter("--port serves the site that --no-build does not build")
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

        say(f"watching {kb.name}, files and entries of the workspace (Ctrl+C ends it)")
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
