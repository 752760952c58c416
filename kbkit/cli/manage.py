"""Commands that make, fill, look through and delete knowledge bases."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from kbkit.cli.app import AsJson, Name, app, finish, nothing_read, open_workspace, resumable
from kbkit.cli.sources import takes_sources
from kbkit.terminal import (
    print_json,
    print_pairs,
    print_row,
    print_table,
    progress,
    say,
    say_improvement,
    to_json,
)

if TYPE_CHECKING:
    from kbkit.recipes import AnySource


@app.command()
@takes_sources
def new(
    context: typer.Context,
    name: Name,
    specs: list[AnySource],
    description: Annotated[str, typer.Option(help="What it is about.")] = "",
    as_json: AsJson = False,
) -> None:
    """Make a knowledge base, and read its sources if some are named."""
    from kbkit.models import IngestReport

    with open_workspace(context) as workspace:
        kb = workspace.create(name, description=description)
        if not specs:
            if as_json:
                print_json(IngestReport().to_dict())
            say(f"made {name}; add documents with `kbkit add {name}`")
            return
        with resumable(f"kbkit refresh {name}"), progress() as on_progress:
            report = kb.ingest(*specs, on_progress=on_progress)
        if nothing_read(report):
            say(f"{name} is empty: read another source with `kbkit add {name}`, or delete it")
        finish(report, as_json, name)


@app.command()
@takes_sources
def add(
    context: typer.Context,
    name: Name,
    specs: list[AnySource],
    as_json: AsJson = False,
) -> None:
    """Read more sources into a knowledge base."""
    if not specs:
        raise typer.BadParameter("name a source, such as --crawl URL, --files GLOB or --jsonl FILE")
    going_on = resumable(f"kbkit refresh {name}")
    with open_workspace(context) as workspace, going_on, progress() as on_progress:
        report = workspace[name].ingest(*specs, on_progress=on_progress)
    finish(report, as_json, name)


@app.command("list")
def list_(context: typer.Context, as_json: AsJson = False) -> None:
    """List the knowledge bases."""
    with open_workspace(context) as workspace:
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
    print_table(table)


@app.command()
def show(context: typer.Context, name: Name, as_json: AsJson = False) -> None:
    """Show the figures of a knowledge base."""
    with open_workspace(context) as workspace:
        info = workspace[name].info()
    if as_json:
        print_json(info.to_dict())
    else:
        print_pairs(info.lines())


@app.command()
def documents(
    context: typer.Context,
    name: Name,
    as_jsonl: Annotated[
        bool, typer.Option("--jsonl", help="Print one JSON object a line, with the content.")
    ] = False,
) -> None:
    """List the documents of a knowledge base."""
    from kbkit.models import License

    keys = ("id", "uri", "title", "description", "document_type", "tags", "state", "content")
    with open_workspace(context) as workspace:
        for document in workspace[name].documents:
            if as_jsonl:
                values = document.to_dict()
                license = License.of(document.metadata).to_metadata()
                typer.echo(to_json({**{key: values[key] for key in keys}, **license}))
            else:
                line = f"{document.state:8}{document.document_type:10}{document.uri}"
                print_row(line, document.description)


@app.command()
def refresh(context: typer.Context, name: Name, as_json: AsJson = False) -> None:
    """Read all sources of a knowledge base again, and take over what changed."""
    going_on = resumable(f"kbkit refresh {name}")
    with open_workspace(context) as workspace, going_on, progress() as on_progress:
        report = workspace[name].refresh(on_progress=on_progress)
    finish(report, as_json, name)


@app.command()
def improve(
    context: typer.Context,
    name: Name,
    embedding: Annotated[
        str | None,
        typer.Option(
            help="What embeds the chunks from now on: static, or a model of `kbkit models list`."
        ),
    ] = None,
    estimate: Annotated[
        bool, typer.Option("--estimate", help="Only say what is left and what it would take.")
    ] = False,
    background: Annotated[
        bool, typer.Option("--background", help="Return at once; a process of its own does it.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Have models embed the cards, and the chunks where chosen, that static vectors serve."""
    going_on = resumable(f"kbkit improve {name}")
    with open_workspace(context) as workspace, going_on, progress() as on_progress:
        left = workspace[name].improve(
            embedding=embedding,
            background=background,
            estimate=estimate,
            on_progress=on_progress,
        )
    if as_json:
        print_json(left.to_dict())
    elif left and not estimate:
        say_improvement(left, name)
    else:
        say(f"left for a model to embed: {left}")


@app.command()
def expand(
    context: typer.Context,
    name: Name,
    llm: Annotated[
        str | None,
        typer.Option(help="The model, such as openai:gpt-4o-mini (default: the recipe's)."),
    ] = None,
    questions: Annotated[
        int | None,
        typer.Option(min=0, max=10, help="Questions of a document (default: the recipe's, or 5)."),
    ] = None,
    estimate: Annotated[
        bool, typer.Option("--estimate", help="Only say what would be sent.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    remove: Annotated[
        bool, typer.Option("--remove", help="Forget what models wrote, and have the cards again.")
    ] = False,
    input_price: Annotated[
        float, typer.Option(min=0, help="Price of a million tokens sent, for the estimate.")
    ] = 0.0,
    output_price: Annotated[
        float, typer.Option(min=0, help="Price of a million tokens answered, likewise.")
    ] = 0.0,
    as_json: AsJson = False,
) -> None:
    """Have a language model write of each document what it is and answers; its gain is unknown."""
    with open_workspace(context) as workspace:
        documents_ = workspace[name].documents
        if remove:
            say(f"forgot what models wrote of {documents_.unexpand():,} documents")
            return
        report = documents_.expand(llm, questions=questions, estimate=True)
        if not as_json or not estimate:
            price = report.price(input_price, output_price)
            say(f"to be sent: {report}" + (f"; costs about {price:,.2f}" if price else ""))
        if report.documents and not estimate:
            if not yes:
                typer.confirm("Send them?", abort=True, err=True)
            with resumable(f"kbkit expand {name}"), progress() as on_progress:
                report = documents_.expand(llm, questions=questions, on_progress=on_progress)
            say(f"{report.model} wrote of {report.written:,} documents")
            for problem in report.failed:
                say(f"failed: {problem.uri}: {problem.reason}")
    if as_json:
        print_json(report.to_dict())


@app.command()
def delete(
    context: typer.Context,
    name: Name,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Delete a knowledge base with its documents, vectors and ratings."""
    with open_workspace(context) as workspace:
        info = workspace[name].info()
        if not yes:
            typer.confirm(f"Delete {name} with its {info.documents:,} documents?", abort=True)
        workspace.delete(name)
    say(f"deleted {name}")
