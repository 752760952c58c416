"""Commands that say what knowledge bases speak of."""

from __future__ import annotations

import textwrap
from typing import Annotated

import typer

from kbkit.cli.app import AsJson, app, open_workspace
from kbkit.models.plain import plain, pluralize
from kbkit.terminal import print_figures, print_json, say

Within = Annotated[
    list[str] | None, typer.Option("--kb", help="Only in this knowledge base (default: all).")
]

LONGEST_STATEMENT = 300
"""Characters of what a passage says that are shown of it."""


@app.command("subjects")
def list_subjects(
    context: typer.Context,
    kind: Annotated[
        str | None,
        typer.Option(help="Only this kind: domain, entity, problem, resolution or context."),
    ] = None,
    like: Annotated[str, typer.Option(help="Only names that contain this.")] = "",
    kb: Within = None,
    limit: Annotated[int, typer.Option(min=1, help="Maximum number of subjects.")] = 50,
    as_json: AsJson = False,
) -> None:
    """List subjects and how many chunks mention them."""
    with open_workspace(context) as workspace:
        found = workspace.subjects(kind=kind, like=like, kbs=kb or None, limit=limit)
    if as_json:
        print_json([subject.to_dict() for subject in found])
        return
    if not found:
        say("no subject; `kbkit improve NAME` annotates what has not been")
    print_figures(
        ("subject", "kind", "type", "chunks", "documents", "also"),
        (
            (
                plain(each.name), each.kind.value, each.type, f"{each.chunks:,}",
                f"{each.documents:,}", ", ".join(map(plain, each.aliases)),
            )
            for each in found
        ),
    )  # fmt: skip


@app.command()
def about(
    context: typer.Context,
    query: Annotated[str, typer.Argument(help="A name, such as an option, a term or a function.")],
    kb: Within = None,
    limit: Annotated[int, typer.Option(min=1, help="Maximum number of each.")] = 10,
    as_json: AsJson = False,
) -> None:
    """Show documents and chunks about a subject."""
    with open_workspace(context) as workspace:
        found = workspace.about(query, kbs=kb or None, limit=limit)
    if as_json:
        print_json(found.to_dict())
        return
    for subject in found.subjects:
        also = f", also {', '.join(map(plain, subject.aliases))}" if subject.aliases else ""
        typer.echo(
            f"{plain(subject.name)} ({plain(subject.type) or subject.kind}{also}): "
            f"in {pluralize(subject.chunks, 'passage')} of "
            f"{pluralize(subject.documents)}"
        )
    typer.echo()
    print_figures(
        ("document", "passages", "", "URI"),
        (
            (plain(each.title), f"{each.chunks:,}", "defines it" if each.defines else "", each.uri)
            for each in found.documents
        ),
    )
    for chunk in found.chunks:
        place = plain(" > ".join(filter(None, (chunk.title, chunk.section))))
        kind = f" ({chunk.frame.value})" if chunk.frame else ""
        said = textwrap.shorten(plain(chunk.statement), LONGEST_STATEMENT, placeholder=" …")
        typer.echo(f"\n{place}{kind}\n    {said}")
    if found.entities:
        typer.echo(f"\nbeside it: {', '.join(plain(each.name) for each in found.entities)}")
