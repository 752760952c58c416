"""Commands that build, publish and serve."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kbkit.cli.app import (
    EXIT_NOTHING_READ,
    AsJson,
    UntilClosed,
    app,
    open_workspace,
    resumable,
)
from kbkit.models.plain import pluralize
from kbkit.terminal import (
    print_json,
    print_pairs,
    progress,
    say,
)

if TYPE_CHECKING:
    from kbkit.export import ExportReport
    from kbkit.knowledge_base import KnowledgeBase
    from kbkit.models import SyncReport
    from kbkit.progress import OnProgress
    from kbkit.watching import Synced
    from kbkit.workspace import Workspace


Target = Annotated[
    str,
    typer.Argument(
        help="A knowledge base, or a recipe file, whose knowledge base is built first where "
        "it is not there.",
        show_default=False,
    ),
]
Folder = Annotated[
    Path | None,
    typer.Option(help="Folder to write to (default: as the recipe says).", show_default=False),
]
Trust = Annotated[
    bool,
    typer.Option(
        "--trust",
        help="Agree to all that the recipe asks for: paths outside of its folder, private "
        "addresses, a folder to write to, code that is run.",
    ),
]
Build = Annotated[bool, typer.Option(help="Also run MkDocs, so that the site is ready.")]


@app.command()
def build(
    context: typer.Context,
    recipe: Annotated[Path, typer.Argument(help="A recipe file.", show_default=False)],
    site: Annotated[bool, typer.Option(help="Export and build the site too.")] = True,
    yes: Annotated[
        bool,
        typer.Option(
            "--yes", "-y",
            help="Ask the recipe's language model about more documents than its `limit` too.",
        ),
    ] = False,
    trust: Trust = False,
    engine: Annotated[
        str,
        typer.Option(
            metavar="ENGINE",
            help="What does the work: local, dask (a cluster of this machine's processors), or "
            "dask:ADDRESS, as dask:tcp://10.0.0.5:8786.",
        ),
    ] = "local",
    as_json: AsJson = False,
) -> None:  # fmt: skip
    """Bring a recipe's knowledge base and site up to date; goes on where a killed build was."""
    from kbkit.builder import build as build_recipe
    from kbkit.recipes import load_recipe

    loaded = load_recipe(recipe)
    going_on = resumable(f"kbkit build {recipe}")
    with open_workspace(context) as workspace, going_on, progress() as on_progress:
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
        print_json(report.to_dict())
    else:
        say(f"built {report.info.name}")
        print_pairs(report.lines())
    for problem in report.ingest.failed_sources:
        say(f"nothing could be read of {problem.uri}")
    if report.ingest.nothing_read or report.ingest.failed_sources:
        raise typer.Exit(EXIT_NOTHING_READ)


@app.command()
def notebook(
    context: typer.Context,
    recipe: Annotated[Path, typer.Argument(help="A recipe file.", show_default=False)],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="The notebook (default: NAME.ipynb, after the recipe).",
                     show_default=False),
    ] = None,
    workspace: Annotated[
        Path | None,
        typer.Option(help="Folder of the workspace that it builds into.", show_default=False),
    ] = None,
    run: Annotated[bool, typer.Option("--run", help="Run it too, and keep the output.")] = False,
    trust: Trust = False,
    force: Annotated[bool, typer.Option("--force", help="Write over a file that exists.")] = False,
) -> None:  # fmt: skip
    """Write the notebook of a recipe: it builds the recipe and looks at what came of it."""
    from kbkit.notebook import run_notebook, write_notebook

    path = write_notebook(
        recipe, output, workspace=workspace or context.obj, trust=trust, force=force
    )
    say(f"wrote {path}")
    if run:
        with progress() as on_progress:
            run_notebook(path, on_progress=on_progress)
        say("ran it; open it in Jupyter to see what it found")


@app.command()
def export(
    context: typer.Context,
    target: Target,
    folder: Folder = None,
    standalone: Annotated[
        bool,
        typer.Option(
            "--standalone",
            help="Add what others need to build the project: requirements and a GitHub workflow.",
        ),
    ] = False,
    pages_only: Annotated[
        bool,
        typer.Option(
            "--pages-only",
            help="Write only the pages, into a folder of the documentation of a site you have.",
        ),
    ] = False,
    build: Build = True,
    model: Annotated[
        bool | None,
        typer.Option(
            help="Give browsers the model that embeds queries as kbkit does, 23 MB of files "
            "(default: as the recipe says, else yes).",
            show_default=False,
        ),
    ] = None,
    graph: Annotated[
        bool | None,
        typer.Option(
            help="Give the knowledge graph a page (default: as the recipe says, else yes).",
            show_default=False,
        ),
    ] = None,
    files: Annotated[
        bool | None,
        typer.Option(
            help="Make the files of the workspace a section of the site "
            "(default: as the recipe says, else no).",
            show_default=False,
        ),
    ] = None,
    entries: Annotated[
        bool | None,
        typer.Option(
            help="Make the entries of the workspace a section of the site "
            "(default: as the recipe says, else no).",
            show_default=False,
        ),
    ] = None,
    trust: Trust = False,
    as_json: AsJson = False,
) -> None:
    """Write a knowledge base as a MkDocs project and build its searchable site."""
    if pages_only and (folder is None or standalone):
        raise typer.BadParameter("--pages-only needs --folder, and goes without --standalone")
    from kbkit.knowledge_base import handle_of

    with open_workspace(context) as workspace, progress() as on_progress:
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
    if as_json:
        print_json(report.to_dict())
        return
    say(f"wrote the {'pages' if pages_only else 'project'} {report.folder}")
    if report.site:
        place = kb.name if report.folder == handle_of(kb).site_folder() else report.site
        say(f"look at it with `kbkit serve-site {place}`")


@app.command("serve-site")
def serve_site(
    context: typer.Context,
    site: Annotated[
        str,
        typer.Argument(
            help="A knowledge base that was exported, a folder of HTML, or a project with one."
        ),
    ],
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port on loopback.")] = 8000,
    until_closed: UntilClosed = False,
) -> None:
    """Serve an exported site on this machine until interrupted."""
    from kbkit.export import find_site
    from kbkit.export import serve_site as serve
    from kbkit.knowledge_base import handle_of
    from kbkit.processes import end_with_input, waiting_for_end

    if until_closed:
        end_with_input()
    folder = find_site(Path(site)) or Path(site)
    if not (folder / "index.html").is_file():  # a folder may happen to be named as one is
        with open_workspace(context) as workspace:
            if site in workspace or not folder.is_dir():
                folder = handle_of(workspace[site]).site_folder() / "site"
    with waiting_for_end() as wait, serve(folder, port) as address:
        say(f"serving {folder} at {address} (Ctrl+C ends it)")
        wait()


@app.command()
def watch(
    context: typer.Context,
    target: Target,
    folder: Folder = None,
    build: Build = True,
    port: Annotated[
        int | None,
        typer.Option(min=0, max=65535, help="Also serve the site, at this port on loopback."),
    ] = None,
    interval: Annotated[
        float, typer.Option(min=0.1, max=3600, help="Seconds between two looks.")
    ] = 1.0,
    trust: Trust = False,
) -> None:
    """Export again whenever files or the catalog change, until interrupted.

    What other programs change among the files and entries of the workspace (`kbkit files`, `kbkit
    entries`) is taken over too, and what finished tasks leave is learned (KBKIT_AUTO_LEARN).
    """
    if port is not None and not build:
        raise typer.BadParameter("--port serves the site that --no-build does not build")
    from kbkit.export import serve_site as serve
    from kbkit.watching import watch as keep_watching

    with open_workspace(context) as workspace, ExitStack() as stack, suppress(KeyboardInterrupt):
        with progress() as on_progress:
            kb = _built(workspace, target, on_progress, trust=trust)
        served: list[str] = []

        def tell(report: ExportReport) -> None:
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
            on_export=tell,
            on_trouble=lambda error: say(f"kbkit: {error}"),
        )


@contextmanager
def _watching_files(name: str, synced: Synced) -> Iterator[None]:
    """Have what changes among files or entries be searched, as long as the block runs."""
    from kbkit.watching import watch_files

    def tell(report: SyncReport) -> None:
        say(
            f"{name}: {len(report.added):,} added, {len(report.updated):,} updated, "
            f"{len(report.removed):,} removed"
        )

    stop = threading.Event()

    def keep() -> None:
        watch_files(
            synced,
            stop=stop,
            on_sync=tell,
            on_trouble=lambda error: say(f"kbkit: {error}"),
        )

    thread = threading.Thread(target=keep)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


@app.command()
def panel(
    context: typer.Context,
    workspace: Annotated[
        Path | None,
        typer.Argument(help="Folder of the workspace (default: that of --workspace)."),
    ] = None,
    host: Annotated[
        str, typer.Option(help="Address to listen at; others than this machine need --token.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port; 0 takes any free one.")
    ] = 8866,
    token: Annotated[
        str,
        typer.Option(
            help="What a visitor must know (default: KBKIT_PANEL_TOKEN, else a new one).",
            show_default=False,
        ),
    ] = "",
    theme: Annotated[str, typer.Option(help="light or dark.")] = "light",
    open_browser: Annotated[
        bool, typer.Option("--open", help="Show the page in the browser.")
    ] = False,
    until_closed: UntilClosed = False,
) -> None:  # fmt: skip
    """Serve search, documents, ingest, judging and evaluation as a web page, until interrupted."""
    from kbkit.processes import end_with_input
    from kbkit.serving import serve_panel

    if until_closed:
        end_with_input()
    with suppress(KeyboardInterrupt):
        serve_panel(
            workspace or context.obj, host=host, port=port, token=token, theme=theme,
            open_browser=open_browser, say=say,
        )  # fmt: skip


def _built(
    workspace: Workspace, target: str, on_progress: OnProgress | None, *, trust: bool
) -> KnowledgeBase:
    """The knowledge base of that name, or of a recipe, built where it is not there."""
    from kbkit.builder import build as build_recipe
    from kbkit.recipes import load_recipe
    from kbkit.recipes.schema import SLUG

    if SLUG.fullmatch(target):
        return workspace[target]
    recipe = load_recipe(target)
    if recipe.name not in workspace:
        build_recipe(recipe, workspace, site=False, trust=trust, on_progress=on_progress)
    return workspace[recipe.name]
