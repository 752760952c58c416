"""The command line: translates arguments, calls a workspace, prints what comes back.

Exit codes: 0 done; 1 an error that the message explains; 2 the command was used wrongly;
3 the work was done, but some source gave nothing at all; 4 an evaluation fell below its floor;
130 interrupted.
"""

from __future__ import annotations

import sys
from contextlib import ExitStack, contextmanager, suppress
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from kbkit.errors import ConfigError, KbkitError, NotFoundError, SourceError
from kbkit.terminal import (
    console,
    info_lines,
    print_evaluation,
    print_hits,
    print_ingest,
    print_json,
    print_pairs,
    progress,
    say,
    say_notes,
    to_json,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from kbkit.export import ExportReport
    from kbkit.feedback.judgements import Judgements
    from kbkit.knowledge_base import KnowledgeBase
    from kbkit.models import IngestReport
    from kbkit.progress import OnProgress
    from kbkit.recipes import AnySource, Question
    from kbkit.workspace import Workspace

EXIT_ERROR = 1
EXIT_NOTHING_READ = 3
EXIT_BELOW_FLOOR = 4

app = typer.Typer(
    help="Turn documentation into knowledge bases that answer, and publish them.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode=None,
)

Name = Annotated[str, typer.Argument(help="Name of the knowledge base.", show_default=False)]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Crawl = Annotated[list[str] | None, typer.Option(help="Crawl a site from this address.")]
Page = Annotated[list[str] | None, typer.Option(help="Read one page.")]
Mirror = Annotated[
    str | None,
    typer.Option(
        help="Read HTML kept on disk: a folder, an archive (both need --base-url) or a WARC."
    ),
]
BaseUrl = Annotated[str | None, typer.Option(help="Address that the mirror stands for.")]
Files = Annotated[list[str] | None, typer.Option(help="Read files: a glob, a file or a folder.")]
Package = Annotated[
    list[str] | None, typer.Option(help="Read the API of an installed Python package.")
]
OpenApi = Annotated[
    list[str] | None, typer.Option("--openapi", help="Read an API description: a file or a URL.")
]
Jsonl = Annotated[
    list[str] | None,
    typer.Option(help="Read JSON lines with uri, title, text, and optional document_type, "
                 "tags, metadata."),
]  # fmt: skip
Limit = Annotated[int | None, typer.Option(min=1, help="Most documents of each source.")]
Include = Annotated[list[str] | None, typer.Option(help="Glob of paths to read.")]
Exclude = Annotated[list[str] | None, typer.Option(help="Glob of paths to leave out.")]
AllowPrivate = Annotated[
    bool, typer.Option("--allow-private", help="Permit loopback and private addresses.")
]


def _print_version(wanted: bool) -> None:
    if wanted:
        from kbkit import __version__

        typer.echo(f"kbkit {__version__}")
        raise typer.Exit


@app.callback()
def workspace_option(
    context: typer.Context,
    workspace: Annotated[
        Path | None,
        typer.Option(
            envvar="KBKIT_WORKSPACE",
            help="Folder of the workspace (default: ./kb).",
            show_default=False,
        ),
    ] = None,
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version.", callback=_print_version, is_eager=True
        ),
    ] = False,
) -> None:
    """Turn documentation into knowledge bases that answer, and publish them."""
    context.obj = workspace


@app.command()
def new(
    context: typer.Context,
    name: Name,
    crawl: Crawl = None,
    page: Page = None,
    mirror: Mirror = None,
    base_url: BaseUrl = None,
    files: Files = None,
    package: Package = None,
    openapi: OpenApi = None,
    jsonl: Jsonl = None,
    limit: Limit = None,
    include: Include = None,
    exclude: Exclude = None,
    allow_private: AllowPrivate = False,
    description: Annotated[str, typer.Option(help="What it is about.")] = "",
    as_json: AsJson = False,
) -> None:
    """Make a knowledge base, and read its sources if some are named."""
    specs = _sources(
        crawl, page, mirror, base_url, files, package, openapi, jsonl, limit, include, exclude,
        allow_private,
    )  # fmt: skip
    from kbkit.models import IngestReport

    with _workspace(context) as workspace:
        kb = workspace.create(name, description=description)
        if not specs:
            if as_json:
                print_json(IngestReport().to_dict())
            say(f"made {name}; add documents with `kbkit add {name}`")
            return
        with progress() as on_progress:
            report = kb.ingest(*specs, on_progress=on_progress)
        if _nothing_read(report):
            say(f"{name} is empty: read another source with `kbkit add {name}`, or delete it")
        _finish(report, as_json)


@app.command()
def add(
    context: typer.Context,
    name: Name,
    crawl: Crawl = None,
    page: Page = None,
    mirror: Mirror = None,
    base_url: BaseUrl = None,
    files: Files = None,
    package: Package = None,
    openapi: OpenApi = None,
    jsonl: Jsonl = None,
    limit: Limit = None,
    include: Include = None,
    exclude: Exclude = None,
    allow_private: AllowPrivate = False,
    as_json: AsJson = False,
) -> None:
    """Read more sources into a knowledge base."""
    specs = _sources(
        crawl, page, mirror, base_url, files, package, openapi, jsonl, limit, include, exclude,
        allow_private,
    )  # fmt: skip
    if not specs:
        raise typer.BadParameter("name a source, such as --crawl URL, --files GLOB or --jsonl FILE")
    with _workspace(context) as workspace, progress() as on_progress:
        report = workspace[name].ingest(*specs, on_progress=on_progress)
    _finish(report, as_json)


@app.command("list")
def list_(context: typer.Context, as_json: AsJson = False) -> None:
    """List the knowledge bases."""
    with _workspace(context) as workspace:
        infos = workspace.list()
    if as_json:
        print_json([info.to_dict() for info in infos])
        return
    if not infos:
        say("no knowledge bases yet; make one with `kbkit new` or `kbkit build`")
        return
    from rich.table import Table

    table = Table("name", "documents", "chunks", "updated (UTC)", "description", box=None)
    for info in infos:
        table.add_row(
            info.name, f"{info.documents:,}", f"{info.chunks:,}",
            f"{info.updated_at:%Y-%m-%d %H:%M}", info.description,
        )  # fmt: skip
    console().print(table)


@app.command()
def show(context: typer.Context, name: Name, as_json: AsJson = False) -> None:
    """Show the figures of a knowledge base."""
    with _workspace(context) as workspace:
        info = workspace[name].describe()
    if as_json:
        print_json(info.to_dict())
    else:
        print_pairs(info_lines(info))


@app.command()
def documents(
    context: typer.Context,
    name: Name,
    as_jsonl: Annotated[
        bool, typer.Option("--jsonl", help="Print one JSON object a line, with the content.")
    ] = False,
) -> None:
    """List the documents of a knowledge base."""
    keys = ("id", "uri", "title", "document_type", "tags", "state", "content")
    with _workspace(context) as workspace:
        for document in workspace[name].iter_documents():
            if as_jsonl:
                values = document.to_dict()
                typer.echo(to_json({key: values[key] for key in keys}))
            else:
                typer.echo(f"{document.state:8}{document.document_type:10}{document.uri}")


@app.command()
def search(
    context: typer.Context,
    query: Annotated[str | None, typer.Argument(help="A question or some words.")] = None,
    kb: Annotated[
        list[str] | None, typer.Option(help="Knowledge base to search (default: all).")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, help="Most hits.")] = 10,
    mode: Annotated[str, typer.Option(help="hybrid, dense or lexical.")] = "hybrid",
    document_type: Annotated[
        list[str] | None, typer.Option("--type", help="Only documents of this type.")
    ] = None,
    tag: Annotated[list[str] | None, typer.Option(help="Only documents with this tag.")] = None,
    source: Annotated[
        str | None, typer.Option(help="Only documents whose URI begins like this.")
    ] = None,
    path: Annotated[
        str | None,
        typer.Option(help="Only documents whose URI's path fits this glob (library/*)."),
    ] = None,
    after: Annotated[
        str | None, typer.Option(help="Only documents fetched at this date or later (2026-01-31).")
    ] = None,
    before: Annotated[
        str | None, typer.Option(help="Only documents fetched before this date.")
    ] = None,
    min_rating: Annotated[
        float | None, typer.Option(help="Only what is rated this well on average (1 to 5).")
    ] = None,
    state: Annotated[
        list[str] | None, typer.Option(help="Only documents in this state (current, stale).")
    ] = None,
    queries: Annotated[
        Path | None, typer.Option(help="File with one query a line; needs --json.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Search knowledge bases."""
    if (query is None) == (queries is None):
        raise typer.BadParameter("give a query, or --queries FILE")
    if queries is not None and not as_json:
        raise typer.BadParameter("--queries prints JSON only; add --json")
    from kbkit.models import Filters

    filters = Filters.of({
        "document_type": document_type, "tags": tag, "source": source, "path": path,
        "after": after, "before": before, "min_rating": min_rating, "state": state,
    })  # fmt: skip
    with _workspace(context) as workspace:
        if queries is not None:
            notes: dict[str, None] = {}
            for line in _lines(queries):
                if not line.strip():
                    typer.echo("[]")
                    continue
                hits = workspace.search(line, kb, limit, mode, filters=filters)
                typer.echo(to_json(hits.to_dicts()))
                notes.update(dict.fromkeys(hits.notes))
            say_notes(notes)
            return
        hits = workspace.search(query or "", kb, limit, mode, filters=filters)
    if as_json:
        say_notes(hits.notes)
        print_json(hits.to_dicts())
    else:
        print_hits(hits)


@app.command()
def refresh(context: typer.Context, name: Name, as_json: AsJson = False) -> None:
    """Read all sources of a knowledge base again, and take over what changed."""
    with _workspace(context) as workspace, progress() as on_progress:
        report = workspace[name].refresh(on_progress=on_progress)
    _finish(report, as_json)


@app.command()
def delete(
    context: typer.Context,
    name: Name,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Delete a knowledge base with its documents, vectors and ratings."""
    with _workspace(context) as workspace:
        info = workspace[name].describe()
        if not yes:
            typer.confirm(f"Delete {name} with its {info.documents:,} documents?", abort=True)
        workspace.delete(name)
    say(f"deleted {name}")


@app.command()
def build(
    context: typer.Context,
    recipe: Annotated[Path, typer.Argument(help="A recipe file.", show_default=False)],
    site: Annotated[bool, typer.Option(help="Export and build the site too.")] = True,
    as_json: AsJson = False,
) -> None:
    """Bring a recipe's knowledge base and site up to date; goes on where a killed build was."""
    from kbkit.builder import build as build_recipe
    from kbkit.recipes import load_recipe

    loaded = load_recipe(recipe)
    with _workspace(context) as workspace, progress() as on_progress:
        report = build_recipe(loaded, workspace, site=site, on_progress=on_progress)
    if as_json:
        print_json(report.to_dict())
    else:
        say(f"built {report.info.name}")
        print_pairs(report.lines())
    if _nothing_read(report.ingest):
        raise typer.Exit(EXIT_NOTHING_READ)


@app.command("eval")
def eval_(
    context: typer.Context,
    target: Annotated[
        str,
        typer.Argument(
            help="A recipe file, whose golden questions are asked, or a knowledge base.",
            show_default=False,
        ),
    ],
    questions: Annotated[
        Path | None,
        typer.Option(help="TSV: question, tab, relevant pages separated by commas (URI "
                     "suffixes; the first is the best)."),
    ] = None,
    judgements: Annotated[
        Path | None,
        typer.Option(help="TREC qrels of chunks, with the queries beside them. Without questions "
                     "and judgements a knowledge base is measured by its ratings."),
    ] = None,
    mode: Annotated[str, typer.Option(help="hybrid, dense or lexical.")] = "hybrid",
    against: Annotated[
        str | None, typer.Option(help="Mode to compare with, by a paired permutation test.")
    ] = None,
    fail_under: Annotated[
        float | None, typer.Option(help="Exit with 4 when nDCG@10 is lower; 0 to 1.")
    ] = None,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Show each question too.")
    ] = False,
    as_json: AsJson = False,
) -> None:  # fmt: skip
    """Measure how well search answers questions whose answers are known."""
    if questions is not None and judgements is not None:
        raise typer.BadParameter("give either --questions or --judgements")
    if fail_under is not None and not 0 <= fail_under <= 1:
        raise typer.BadParameter(f"--fail-under {fail_under}: give a number from 0 to 1")
    name, asked = _asked(target, questions, judgements)
    with _workspace(context) as workspace, progress() as on_progress:
        if name != target and name not in workspace:
            raise NotFoundError(f"{name}: is not built yet; run `kbkit build {target}` first")
        result = workspace[name].evaluate(asked, mode, against=against, on_progress=on_progress)
    if as_json:
        print_json(result.to_dict())
    else:
        print_evaluation(result, verbose)
    if fail_under is not None and result.ndcg < fail_under:
        say(f"nDCG@10 {result.ndcg:.3f} is below {fail_under}")
        raise typer.Exit(EXIT_BELOW_FLOOR)


@app.command()
def fidelity(
    place: Annotated[
        str, typer.Argument(help="An HTML file, a folder of them, or the address of a page.")
    ],
    allow_private: AllowPrivate = False,
    as_json: AsJson = False,
) -> None:
    """Measure what the Markdown of pages keeps: code, headings, anchors, terms, table rows."""
    from kbkit.sources.measuring import fidelity as measure

    with progress() as on_progress:
        report = measure(place, allow_private=allow_private, on_progress=on_progress)
    if as_json:
        print_json(report.to_dict())
        return
    from rich.table import Table

    (page, *kinds), *rows = report.rows()
    table = Table(box=None)
    table.add_column(page, overflow="fold")
    for kind in kinds:
        table.add_column(kind, no_wrap=True)
    for row in rows:
        table.add_row(*row)
    console().print(table)


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
    force: Annotated[bool, typer.Option("--force", help="Write over a file that exists.")] = False,
) -> None:  # fmt: skip
    """Write the notebook of a recipe: it builds the recipe and looks at what came of it."""
    from kbkit.notebook import run_notebook, write_notebook

    path = write_notebook(recipe, output, workspace=workspace or context.obj, force=force)
    say(f"wrote {path}")
    if run:
        with progress() as on_progress:
            run_notebook(path, on_progress=on_progress)
        say("ran it; open it in Jupyter to see what it found")


@app.command()
def export(
    context: typer.Context,
    target: Annotated[
        str,
        typer.Argument(
            help="A knowledge base, or a recipe file, whose knowledge base is built first where "
            "it is not there.",
            show_default=False,
        ),
    ],
    to: Annotated[
        Path | None, typer.Option(help="Folder of the MkDocs project.", show_default=False)
    ] = None,
    standalone: Annotated[
        Path | None,
        typer.Option(
            help="Folder of a MkDocs project that others can build: with requirements and a "
            "GitHub workflow.",
            show_default=False,
        ),
    ] = None,
    pages: Annotated[
        Path | None,
        typer.Option(
            help="Write only the pages, into this folder of the documentation of a site you have.",
            show_default=False,
        ),
    ] = None,
    html: Annotated[bool, typer.Option(help="Also run MkDocs, so that the site is ready.")] = True,
    as_json: AsJson = False,
) -> None:
    """Write a knowledge base as a MkDocs project and build its searchable site."""
    if sum(place is not None for place in (to, standalone, pages)) > 1:
        raise typer.BadParameter("give one of --to, --standalone and --pages")
    with _workspace(context) as workspace, progress() as on_progress:
        kb = _built(workspace, target, on_progress)
        if pages is not None:
            report = kb.export_pages(pages, on_progress=on_progress)
        else:
            report = kb.export(
                to or standalone,
                build=html,
                standalone=standalone is not None,
                on_progress=on_progress,
            )
    if as_json:
        print_json(report.to_dict())
        return
    say(f"wrote the {'project' if pages is None else 'pages'} {report.directory}")
    if report.html:
        place = kb.name if report.directory == kb.site_directory() else report.html
        say(f"look at it with `kbkit serve-site {place}`")


@app.command("serve-site")
def serve_site(
    context: typer.Context,
    site: Annotated[
        str, typer.Argument(help="A knowledge base that was exported, or a folder of HTML.")
    ],
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port on loopback.")] = 8000,
) -> None:
    """Serve an exported site on this machine until interrupted."""
    from kbkit.export import open_server

    folder = Path(site)
    if not (folder / "index.html").is_file():  # a folder may happen to be named as one is
        with _workspace(context) as workspace:
            if site in workspace or not folder.is_dir():
                folder = workspace[site].site_directory() / "site"
    with open_server(folder, port) as server:
        say(f"serving {folder} at http://127.0.0.1:{server.server_address[1]}/ (Ctrl+C ends it)")
        with suppress(KeyboardInterrupt):
            server.serve_forever()


@app.command()
def watch(
    context: typer.Context,
    target: Annotated[
        str,
        typer.Argument(
            help="A knowledge base, or a recipe file, whose knowledge base is built first where "
            "it is not there.",
            show_default=False,
        ),
    ],
    to: Annotated[
        Path | None, typer.Option(help="Folder of the MkDocs project.", show_default=False)
    ] = None,
    html: Annotated[bool, typer.Option(help="Also run MkDocs, so that the site is ready.")] = True,
    port: Annotated[
        int | None,
        typer.Option(min=0, max=65535, help="Also serve the site, at this port on loopback."),
    ] = None,
    interval: Annotated[
        float, typer.Option(min=0.1, max=3600, help="Seconds between two looks.")
    ] = 1.0,
) -> None:
    """Export again whenever files or the catalog change, until interrupted."""
    if port is not None and not html:
        raise typer.BadParameter("--port serves the site that --no-html does not build")
    from kbkit.watching import watch as keep_watching

    with _workspace(context) as workspace, ExitStack() as stack, suppress(KeyboardInterrupt):
        with progress() as on_progress:
            kb = _built(workspace, target, on_progress)
        served: list[str] = []

        def tell(report: ExportReport) -> None:
            place = report.html or report.directory
            say(f"wrote {report.written:,} pages, removed {report.removed:,}: {place}")
            if port is not None and report.html and not served:
                served.append(stack.enter_context(_serving(report.html, port)))
                say(f"serving it at {served[0]}")

        say(f"watching {kb.name} (Ctrl+C ends it)")
        keep_watching(
            kb,
            directory=to,
            build=html,
            interval=interval,
            on_export=tell,
            on_trouble=lambda error: say(f"kbkit: {error}"),
        )


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
) -> None:  # fmt: skip
    """Serve search, documents, ingest, judging and evaluation as a web page, until interrupted."""
    from kbkit.serving import serve_panel

    with suppress(KeyboardInterrupt):
        serve_panel(
            workspace or context.obj, host=host, port=port, token=token, theme=theme,
            open_browser=open_browser, say=say,
        )  # fmt: skip


def main() -> NoReturn:
    """Run the command line; an error becomes one clear message."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # no text of a page may end the command
            stream.reconfigure(errors="backslashreplace")
    try:
        app()
    except KbkitError as error:
        say(f"kbkit: {error}")
        sys.exit(EXIT_ERROR)
    except BrokenPipeError:  # the reader of a pipe went away, as `head` does
        sys.stderr.close()
        sys.exit(EXIT_ERROR)
    except OSError as error:  # a full disk, say
        say(f"kbkit: {error}")
        sys.exit(EXIT_ERROR)
    sys.exit(0)


def _finish(report: IngestReport, as_json: bool) -> None:
    """Print what was done; the exit code tells when that was nothing."""
    print_ingest(report, as_json)
    if _nothing_read(report):
        raise typer.Exit(EXIT_NOTHING_READ)


def _nothing_read(report: IngestReport) -> bool:
    return bool(report.failed or report.skipped) and not (
        report.new or report.changed or report.same
    )


def _workspace(context: typer.Context) -> Workspace:
    from kbkit.workspace import Workspace

    return Workspace(context.obj)


def _built(workspace: Workspace, target: str, on_progress: OnProgress | None) -> KnowledgeBase:
    """The knowledge base of that name, or of a recipe, built where it is not there."""
    from kbkit.builder import build as build_recipe
    from kbkit.recipes import load_recipe
    from kbkit.recipes.schema import SLUG

    if SLUG.fullmatch(target):
        return workspace[target]
    recipe = load_recipe(target)
    if recipe.name not in workspace:
        build_recipe(recipe, workspace, site=False, on_progress=on_progress)
    return workspace[recipe.name]


@contextmanager
def _serving(folder: Path, port: int) -> Iterator[str]:
    """Serve a site beside other work; gives its address."""
    from threading import Thread

    from kbkit.export import open_server

    with open_server(folder, port) as server:
        thread = Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/"
        finally:
            server.shutdown()
            thread.join()


def _asked(
    target: str, questions: Path | None, judgements: Path | None
) -> tuple[str, Sequence[Question] | Judgements | None]:
    """The knowledge base that is measured, and by what; ``None`` for its own ratings.

    Raises:
        ConfigError: A file cannot be read, or a recipe has no golden questions.
    """
    from kbkit.feedback.judgements import Judgements
    from kbkit.recipes import golden_questions, load_questions, load_recipe
    from kbkit.recipes.schema import SLUG

    recipe = None if SLUG.fullmatch(target) else load_recipe(target)
    name = target if recipe is None else recipe.name
    if questions is not None:
        return name, load_questions(questions)
    if judgements is not None:
        return name, Judgements.from_qrels(judgements)
    if recipe is None:
        return name, None
    asked = golden_questions(recipe)
    if not asked:
        raise ConfigError(f"{target}: has no golden questions; write some under `questions`")
    return name, asked


def _sources(
    crawl: list[str] | None,
    page: list[str] | None,
    mirror: str | None,
    base_url: str | None,
    files: list[str] | None,
    package: list[str] | None,
    openapi: list[str] | None,
    jsonl: list[str] | None,
    limit: int | None,
    include: list[str] | None,
    exclude: list[str] | None,
    allow_private: bool,
) -> list[AnySource]:
    """The sources that options name.

    Raises:
        ConfigError: An option's value cannot work.
    """
    from pydantic import ValidationError

    from kbkit.recipes import parse_source

    narrowed: dict[str, Any] = {"include": include or [], "exclude": exclude or []}
    most: dict[str, Any] = {} if limit is None else {"limit": limit}
    private = {"allow_private": allow_private}
    if mirror is None and base_url is not None:
        raise typer.BadParameter("--base-url goes with --mirror")
    wanted: list[dict[str, Any]] = [
        *({"type": "crawl", "url": url, **narrowed, **most, **private} for url in crawl or ()),
        *({"type": "page", "url": url, **private} for url in page or ()),
        *({"type": "files", "path": path} for path in files or ()),
        *({"type": "package", "name": name, **most} for name in package or ()),
        *(
            {"type": "openapi", "url": place, **most, **private}
            if place.startswith(("http://", "https://"))
            else {"type": "openapi", "path": place, **most}
            for place in openapi or ()
        ),
        *({"type": "jsonl", "path": path} for path in jsonl or ()),
    ]
    if mirror is not None:
        wanted.append({"type": "mirror", "path": mirror, "base_url": base_url, **narrowed, **most})
    try:
        return [parse_source(values) for values in wanted]
    except ValidationError as error:
        found = error.errors()[0]
        field = ".".join(str(part) for part in found["loc"])
        message = found["msg"].removeprefix("Value error, ")
        if field.endswith("url") and found["type"] == "string_pattern_mismatch":
            message = "not a web address; begin it with http:// or https://"
        given = f" (given: {found['input']})" if isinstance(found["input"], str) else ""
        raise ConfigError(f"{field}: {message}{given}") from None


def _lines(path: Path) -> list[str]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise SourceError(f"{path}: cannot be read as UTF-8 text: {error}") from error
    # not splitlines, which ends lines at characters that a query may have
    return text.removesuffix("\n").split("\n") if text else []


if __name__ == "__main__":
    main()
