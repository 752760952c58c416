"""Commands that create, fill, inspect and delete knowledge bases."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kbkit import models
from kbkit.cli import Done, app, command, ingested, open_workspace, resumable, terminal
from kbkit.cli.sources import SomeSpecs, Specs
from kbkit.models.values import plain, pluralize

if TYPE_CHECKING:
    from kbkit.knowledge_base import KnowledgeBase
    from kbkit.runtime.progress import OnProgress
    from kbkit.workspace import Workspace


Price = Annotated[float, typer.Option(min=0)]


@command(app, resume="kbkit refresh {name}")
def new(
    ws: Workspace,
    name: str,
    *,
    specs: Specs,
    description: str = "",
    embedding: str | None = None,
    on_progress: OnProgress | None,
) -> Done:
    """Create a knowledge base and read its sources.

    Args:
        description: Its description.
        embedding: Embedding model: auto, static, minilm or multilingual (default: auto).
    """
    kb = ws.create(name, description=description, embedding=embedding)
    if not specs:
        return Done(models.IngestReport(), f"created {name}; add documents with `kbkit add {name}`")
    report = kb.ingest(*specs, on_progress=on_progress)
    if report.nothing_read and not report.interrupted:
        ws.delete(name, forever=True)
        terminal.say(f"{name} was not created, because nothing could be read")
    return ingested(report, name)


@command(app, resume="kbkit refresh {name}")
def add(ws: Workspace, name: str, *, specs: SomeSpecs, on_progress: OnProgress | None) -> Done:
    """Add sources to a knowledge base and read them."""
    report = ws[name].ingest(*specs, on_progress=on_progress)
    _say_failed_sources(ws[name], report)
    return ingested(report, name)


@command(
    app,
    "list",
    show=terminal.listing(
        "name documents chunks updated_at description",
        "no knowledge bases yet; create one with `kbkit new` or `kbkit build`",
    ),
)
def list_(ws: Workspace) -> list[models.KnowledgeBaseInfo]:
    """List the knowledge bases."""
    return ws.list()


@command(app)
def show(ws: Workspace, name: str, *, verbose: bool = False) -> Done:
    """Show the figures of a knowledge base.

    Args:
        verbose: Also show fingerprints and the collection.
    """
    info = ws[name].info()
    return Done(info, partial(terminal.print_pairs, info.lines(verbose=verbose)))


@command(app)
def documents(
    ws: Workspace,
    name: str,
    *,
    as_json: bool = False,
    as_jsonl: bool = False,
    output: Path | None = None,
) -> None:
    """List the documents of a knowledge base.

    Args:
        as_jsonl: Print JSON lines with content.
        output: Write to this file (.jsonl or .parquet).
    """
    collection = ws[name].documents
    if output is not None:
        from kbkit.knowledge_base.chunks import write_documents

        terminal.say(f"wrote {pluralize(write_documents(collection, output))} into {output}")
    elif as_jsonl:
        for document in collection:
            typer.echo(terminal.to_json(_document_row(document, "metadata", "content")))
    elif as_json:
        terminal.print_json([_document_row(document) for document in collection.list()])
    else:
        terminal.listing("document_type state title uri")(collection.list())


@command(app)
def chunks(
    name: str,
    *,
    output: Path | None = None,
    vectors: bool = False,
    as_json: bool = False,
    as_jsonl: bool = False,
) -> None:
    """List the chunks of a knowledge base.

    Args:
        output: Write to this file (.jsonl or .parquet).
        vectors: Include vectors; needs --output.
        as_jsonl: Print JSON lines.
    """
    if vectors and output is None:
        raise typer.BadParameter("--vectors needs --output FILE")
    with open_workspace() as workspace:
        collection = workspace[name].chunks
        if output is not None:
            from kbkit.knowledge_base.chunks import write_chunks

            count = write_chunks(collection, output, vectors=vectors)
            terminal.say(f"wrote {pluralize(count, 'chunk')} into {output}")
        elif as_json:
            terminal.print_json(list(collection))
        elif as_jsonl:
            for chunk in collection:
                typer.echo(terminal.to_json(chunk.to_dict()))
        else:
            for chunk in collection:
                path = " › ".join(chunk.heading_path)
                typer.echo(f"{chunk.id}  {plain(path)}: {plain(chunk.text)[:100]}")


@command(app, resume="kbkit refresh {name}")
def refresh(ws: Workspace, name: str, *, on_progress: OnProgress | None) -> Done:
    """Read all sources again and store what changed."""
    report = ws[name].refresh(on_progress=on_progress)
    _say_failed_sources(ws[name], report)
    return ingested(report, name)


@command(app, resume="kbkit improve {name}")
def improve(
    ws: Workspace,
    name: str,
    *,
    embedding: str | None = None,
    estimate: bool = False,
    background: bool = False,
    on_progress: OnProgress | None,
) -> Done:
    """Finish annotations and vectors that an ingest postponed.

    Args:
        embedding: New embedding model: auto, or one of `kbkit models list`.
        estimate: Only print the work left and an estimate of its time.
        background: Return at once and work in the background.
    """
    remaining = ws[name].improve(
        embedding=embedding, background=background, estimate=estimate, on_progress=on_progress
    )
    if remaining and not estimate:
        return Done(remaining, partial(terminal.say_improvement, remaining, name))
    return Done(remaining, f"left to do: {remaining}")


@command(app)
def expand(
    ws: Workspace,
    name: str,
    *,
    llm: str | None = None,
    questions: Annotated[int | None, typer.Option(min=0, max=10)] = None,
    estimate: bool = False,
    yes: bool = False,
    remove: bool = False,
    input_price: Price = 0.0,
    output_price: Price = 0.0,
) -> Done:
    """Let a language model describe each document.

    Args:
        llm: The model, such as openai:gpt-4o-mini (default: the recipe's).
        questions: Questions for each document (default: the recipe's, or 5).
        remove: Delete the descriptions that models wrote.
    """
    documents_ = ws[name].documents
    if remove:
        count = documents_.unexpand()
        return Done(count, f"deleted text by models about {pluralize(count)}")
    report = documents_.expand(llm, questions=questions, estimate=True)
    _say_price(report, input_price, output_price)
    if report.documents and not estimate:
        if not yes:
            typer.confirm("Send them?", abort=True, err=True)
        with resumable(f"kbkit expand {name}"), terminal.progress() as on_progress:
            report = documents_.expand(llm, questions=questions, on_progress=on_progress)
        terminal.say(f"{report.model} wrote of {pluralize(report.written)}")
        _say_failed(report.failed)
    return Done(report, "")


@command(app)
def annotate(
    ws: Workspace,
    name: str,
    *,
    estimate: bool = False,
    yes: bool = False,
    input_price: Price = 0.0,
    output_price: Price = 0.0,
) -> Done:
    """Annotate new chunks as the recipe says."""
    annotations = ws[name].annotations
    report = annotations.make(estimate=True)
    if report.chunks:
        _say_price(report, input_price, output_price)
    if not estimate:
        if report.chunks and not yes:
            typer.confirm("Send them?", abort=True, err=True)
        with resumable(f"kbkit annotate {name}"), terminal.progress() as on_progress:
            report = annotations.make(on_progress=on_progress)
        terminal.say(f"annotated {pluralize(report.annotated, 'chunk')}")
        if report.requests:
            terminal.say(
                f"{report.model}: {report.requests:,} requests, {report.used_input_tokens:,} "
                f"tokens in and {report.used_output_tokens:,} out"
            )
        _say_failed(report.failed)
    elif not report.chunks:
        terminal.say("nothing to send")
    return Done(report, "")


def _say_price(
    report: models.Expansion | models.AnnotationReport, input_price: float, output_price: float
) -> None:
    price = report.price(input_price, output_price)
    terminal.say(f"to be sent: {report}" + (f"; costs about {price:,.2f}" if price else ""))


def _say_failed(problems: Iterable[models.Problem]) -> None:
    for problem in problems:
        terminal.say(f"failed: {problem.uri}: {problem.reason}")


def _say_failed_sources(kb: KnowledgeBase, report: models.IngestReport) -> None:
    for problem in report.failed_sources:
        if problem.uri in kb.sources:
            terminal.say(
                f"nothing could be read from {problem.uri}; change it with `kbkit sources set`, "
                f"`disable` or `remove {kb.name}`"
            )
        else:
            terminal.say(
                f"{problem.uri} was not added as a source, because nothing could be read from it"
            )


def _document_row(document: models.Document, *more: str) -> dict[str, Any]:
    values = document.to_dict()
    keys = ("id", "uri", "title", "description", "document_type", "tags", "state", *more)
    return {key: values[key] for key in keys} | models.License.of(document.metadata).to_metadata()
