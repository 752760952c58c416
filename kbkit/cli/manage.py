"""Commands that create, fill, inspect and delete knowledge bases."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import rmtree
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kbkit.cli import (
    AsJson,
    Name,
    Yes,
    app,
    chosen_workspace,
    finish,
    open_workspace,
    resumable,
    takes,
)
from kbkit.cli.sources import source_specs
from kbkit.cli.terminal import (
    print_json,
    print_listing,
    print_pairs,
    print_table,
    printed,
    progress,
    say,
    say_improvement,
    to_json,
)
from kbkit.models.values import plain, pluralize
from kbkit.runtime.config import Settings

if TYPE_CHECKING:
    from kbkit.knowledge_base import KnowledgeBase
    from kbkit.models import AnnotationReport, Document, Expansion, IngestReport, Problem
    from kbkit.workspace import Workspace


Output = Annotated[
    Path | None,
    typer.Option("--output", "-o", metavar="FILE", help="Write to this file (.jsonl or .parquet)."),
]

Estimate = Annotated[
    bool, typer.Option("--estimate", help="Only print an estimate of the tokens to send.")
]
InputPrice = Annotated[
    float, typer.Option(min=0, help="Price of a million input tokens, for the estimate.")
]
OutputPrice = Annotated[
    float, typer.Option(min=0, help="Price of a million output tokens, for the estimate.")
]


@app.command()
@takes(source_specs, "specs")
def new(
    name: Name,
    specs: list[Any],
    description: Annotated[str, typer.Option(help="Its description.")] = "",
    embedding: Annotated[
        str | None,
        typer.Option(help="Embedding model: auto, static, minilm or multilingual (default: auto)."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Create a knowledge base and read its sources."""
    from kbkit.models import IngestReport

    with _new_workspace() as workspace:
        kb = workspace.create(name, description=description, embedding=embedding)
        if not specs:
            if as_json:
                print_json(IngestReport().to_dict())
            say(f"created {name}; add documents with `kbkit add {name}`")
            return
        with resumable(f"kbkit refresh {name}"), progress() as on_progress:
            report = kb.ingest(*specs, on_progress=on_progress)
        if report.nothing_read and not report.interrupted:
            workspace.delete(name, forever=True)
            say(f"{name} was not created, because nothing could be read")
        finish(report, as_json, name)


@app.command()
@takes(source_specs, "specs")
def add(name: Name, specs: list[Any], as_json: AsJson = False) -> None:
    """Add sources to a knowledge base and read them."""
    if not specs:
        raise typer.BadParameter("name a source, such as --crawl URL, --files GLOB or --jsonl FILE")
    going_on = resumable(f"kbkit refresh {name}")
    with open_workspace() as workspace, going_on, progress() as on_progress:
        kb = workspace[name]
        report = kb.ingest(*specs, on_progress=on_progress)
        _say_failed_sources(kb, report)
    finish(report, as_json, name)


@app.command("list")
def list_(as_json: AsJson = False) -> None:
    """List the knowledge bases."""
    with open_workspace() as workspace:
        infos = workspace.list()
    print_listing(
        infos,
        as_json,
        "name documents chunks updated_at description",
        empty="no knowledge bases yet; create one with `kbkit new` or `kbkit build`",
    )


@app.command()
def show(
    name: Name,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Also show fingerprints and the collection.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show the figures of a knowledge base."""
    with open_workspace() as workspace:
        info = workspace[name].info()
    if not printed(info, as_json):
        print_pairs(info.lines(verbose=verbose))


@app.command()
def documents(
    name: Name,
    as_json: AsJson = False,
    as_jsonl: Annotated[
        bool, typer.Option("--jsonl", help="Print JSON lines with content.")
    ] = False,
    output: Output = None,
) -> None:
    """List the documents of a knowledge base."""
    with open_workspace() as workspace:
        collection = workspace[name].documents
        if output is not None:
            from kbkit.knowledge_base.chunks import write_documents

            say(f"wrote {pluralize(write_documents(collection, output))} into {output}")
            return
        if as_jsonl:
            for document in collection:
                typer.echo(to_json(_listed(document, "metadata", "content")))
            return
        listed = collection.list()
    if printed([_listed(document) for document in listed], as_json):
        return
    rows = ((d.document_type, d.state, plain(d.title), plain(d.uri)) for d in listed)
    print_table(("type", "state", "title", "URI"), rows)


@app.command()
def chunks(
    name: Name,
    output: Output = None,
    vectors: Annotated[
        bool, typer.Option("--vectors", help="Include vectors; needs --output.")
    ] = False,
    as_json: AsJson = False,
    as_jsonl: Annotated[bool, typer.Option("--jsonl", help="Print JSON lines.")] = False,
) -> None:
    """List the chunks of a knowledge base."""
    if vectors and output is None:
        raise typer.BadParameter("--vectors needs --output FILE")
    with open_workspace() as workspace:
        collection = workspace[name].chunks
        if output is not None:
            from kbkit.knowledge_base.chunks import write_chunks

            count = write_chunks(collection, output, vectors=vectors)
            say(f"wrote {pluralize(count, 'chunk')} into {output}")
        elif as_json:
            print_json(list(collection))
        elif as_jsonl:
            for chunk in collection:
                typer.echo(to_json(chunk.to_dict()))
        else:
            for chunk in collection:
                path = " › ".join(chunk.heading_path)
                typer.echo(f"{chunk.id}  {plain(path)}: {plain(chunk.text)[:100]}")


@app.command()
def refresh(name: Name, as_json: AsJson = False) -> None:
    """Read all sources again and store what changed."""
    going_on = resumable(f"kbkit refresh {name}")
    with open_workspace() as workspace, going_on, progress() as on_progress:
        kb = workspace[name]
        report = kb.refresh(on_progress=on_progress)
        _say_failed_sources(kb, report)
    finish(report, as_json, name)


@app.command()
def improve(
    name: Name,
    embedding: Annotated[
        str | None, typer.Option(help="New embedding model: auto, or one of `kbkit models list`.")
    ] = None,
    estimate: Annotated[
        bool,
        typer.Option("--estimate", help="Only print the work left and an estimate of its time."),
    ] = False,
    background: Annotated[
        bool, typer.Option("--background", help="Return at once and work in the background.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Finish annotations and vectors that an ingest postponed."""
    going_on = resumable(f"kbkit improve {name}")
    with open_workspace() as workspace, going_on, progress() as on_progress:
        left = workspace[name].improve(
            embedding=embedding, background=background, estimate=estimate, on_progress=on_progress
        )
    if as_json:
        print_json(left)
    elif left and not estimate:
        say_improvement(left, name)
    else:
        say(f"left to do: {left}")


@app.command()
def expand(
    name: Name,
    llm: Annotated[
        str | None,
        typer.Option(help="The model, such as openai:gpt-4o-mini (default: the recipe's)."),
    ] = None,
    questions: Annotated[
        int | None,
        typer.Option(
            min=0, max=10, help="Questions for each document (default: the recipe's, or 5)."
        ),
    ] = None,
    estimate: Estimate = False,
    yes: Yes = False,
    remove: Annotated[
        bool, typer.Option("--remove", help="Delete the descriptions that models wrote.")
    ] = False,
    input_price: InputPrice = 0.0,
    output_price: OutputPrice = 0.0,
    as_json: AsJson = False,
) -> None:
    """Let a language model describe each document."""
    with open_workspace() as workspace:
        documents_ = workspace[name].documents
        if remove:
            say(f"deleted text by models about {pluralize(documents_.unexpand())}")
            return
        report = documents_.expand(llm, questions=questions, estimate=True)
        if not as_json or not estimate:
            _say_price(report, input_price, output_price)
        if report.documents and not estimate:
            if not yes:
                typer.confirm("Send them?", abort=True, err=True)
            with resumable(f"kbkit expand {name}"), progress() as on_progress:
                report = documents_.expand(llm, questions=questions, on_progress=on_progress)
            say(f"{report.model} wrote of {pluralize(report.written)}")
            _say_failed(report.failed)
    if as_json:
        print_json(report)


@app.command()
def annotate(
    name: Name,
    estimate: Estimate = False,
    yes: Yes = False,
    input_price: InputPrice = 0.0,
    output_price: OutputPrice = 0.0,
    as_json: AsJson = False,
) -> None:
    """Annotate new chunks as the recipe says."""
    with open_workspace() as workspace:
        annotations = workspace[name].annotations
        report = annotations.make(estimate=True)
        if report.chunks:
            _say_price(report, input_price, output_price)
        if not estimate:
            if report.chunks and not yes:
                typer.confirm("Send them?", abort=True, err=True)
            with resumable(f"kbkit annotate {name}"), progress() as on_progress:
                report = annotations.make(on_progress=on_progress)
            say(f"annotated {pluralize(report.annotated, 'chunk')}")
            if report.requests:
                say(
                    f"{report.model}: {report.requests:,} requests, {report.used_input_tokens:,} "
                    f"tokens in and {report.used_output_tokens:,} out"
                )
            _say_failed(report.failed)
        elif not report.chunks:
            say("nothing to send")
    if as_json:
        print_json(report)


def _say_price(
    report: Expansion | AnnotationReport, input_price: float, output_price: float
) -> None:
    price = report.price(input_price, output_price)
    say(f"to be sent: {report}" + (f"; costs about {price:,.2f}" if price else ""))


def _say_failed(problems: Iterable[Problem]) -> None:
    for problem in problems:
        say(f"failed: {problem.uri}: {problem.reason}")


@contextmanager
def _new_workspace() -> Iterator[Workspace]:
    """Open the workspace; remove its folder if it is new and stays empty."""
    existed, is_empty = (chosen_workspace() or Settings.load().workspace).exists(), False
    try:
        with open_workspace() as workspace:
            try:
                yield workspace
            finally:
                is_empty = not len(workspace)
    finally:
        if is_empty and not existed:
            rmtree(workspace.path, ignore_errors=True)


def _say_failed_sources(kb: KnowledgeBase, report: IngestReport) -> None:
    for problem in report.failed_sources:
        if problem.uri in kb.sources:
            say(
                f"nothing could be read from {problem.uri}; change it with `kbkit sources set`, "
                f"`disable` or `remove {kb.name}`"
            )
        else:
            say(f"{problem.uri} was not added as a source, because nothing could be read from it")


def _listed(document: Document, *more: str) -> dict[str, Any]:
    from kbkit.models import License

    values = document.to_dict()
    keys = ("id", "uri", "title", "description", "document_type", "tags", "state", *more)
    return {key: values[key] for key in keys} | License.of(document.metadata).to_metadata()
