"""Commands for subjects."""

from __future__ import annotations

import textwrap
from typing import Annotated

import typer

from kbkit.cli.app import AsJson, Name, Within, Yes, app, open_workspace
from kbkit.cli.terminal import print_listing, print_table, printed, say
from kbkit.models.values import plain, pluralize

MAX_STATEMENT_LENGTH = 300


@app.command("subjects")
def list_subjects(
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
    with open_workspace() as workspace:
        listed = workspace.subjects(kind=kind, like=like, kbs=kb or None, limit=limit)
    print_listing(
        listed,
        as_json,
        ("subject", "kind", "type", "chunks", "documents", "also"),
        lambda each: (
            each.name,
            each.kind,
            each.type,
            f"{each.chunks:,}",
            f"{each.documents:,}",
            ", ".join(each.aliases),
        ),
        empty="no subjects; `kbkit improve NAME` annotates the remaining chunks",
    )


@app.command()
def about(
    query: Annotated[str, typer.Argument(help="A name, such as an option, a term or a function.")],
    kb: Within = None,
    limit: Annotated[int, typer.Option(min=1, help="Maximum number of each.")] = 10,
    as_json: AsJson = False,
) -> None:
    """Show documents and chunks about a subject."""
    with open_workspace() as workspace:
        answer = workspace.about(query, kbs=kb or None, limit=limit)
    if printed(answer, as_json):
        return
    for subject in answer.subjects:
        also = f", also {', '.join(map(plain, subject.aliases))}" if subject.aliases else ""
        typer.echo(
            f"{plain(subject.name)} ({plain(subject.type) or subject.kind}{also}): "
            f"in {pluralize(subject.chunks, 'passage')} of "
            f"{pluralize(subject.documents)}"
        )
    typer.echo()
    print_table(
        ("document", "passages", "", "URI"),
        (
            (plain(each.title), f"{each.chunks:,}", "defines it" if each.defines else "", each.uri)
            for each in answer.documents
        ),
    )
    for chunk in answer.chunks:
        place = plain(" > ".join(filter(None, (chunk.title, chunk.section))))
        kind = f" ({chunk.frame.value})" if chunk.frame else ""
        statement = textwrap.shorten(plain(chunk.statement), MAX_STATEMENT_LENGTH, placeholder=" …")
        typer.echo(f"\n{place}{kind}\n    {statement}")
    if answer.entities:
        typer.echo(f"\nrelated: {', '.join(plain(each.name) for each in answer.entities)}")


Documents = Annotated[
    list[str] | None,
    typer.Option(
        "--document", metavar="URI", help="Only this document: URI, id or file path. Repeatable."
    ),
]


@app.command()
def delete(name: Name, documents: Documents = None, yes: Yes = False) -> None:
    """Move a knowledge base or documents to the trash."""
    with open_workspace() as workspace:
        kb = workspace[name]
        if documents:
            for document in documents:
                uri = kb.documents[document].uri
                kb.documents.delete(uri)
                say(f"deleted {uri}; `kbkit undelete {name} --document {uri}` restores it")
            return
        info = kb.info()
        if not yes:
            typer.confirm(f"Delete {name} with its {pluralize(info.documents)}?", abort=True)
        workspace.delete(name)
    say(f"deleted {name}; `kbkit undelete {name}` restores it until `kbkit compact`")


@app.command()
def undelete(
    name: Name,
    documents: Documents = None,
    to: Annotated[
        str, typer.Option(metavar="NAME", help="A new name, if the old one is taken.")
    ] = "",
) -> None:
    """Restore a knowledge base or documents from the trash."""
    if documents and to:
        raise typer.BadParameter("--to goes with a knowledge base, not with --document")
    with open_workspace() as workspace:
        if not documents:
            kb = workspace.undelete(name, to=to)
            say(f"{kb.name} is back, with {pluralize(kb.info().documents)}")
            return
        kb = workspace[name]
        for document in documents:
            info = kb.documents.undelete(document)
            if info is None:
                say(f"{document} comes back with the next `kbkit refresh {name}`")
            else:
                say(f"{info.uri} is back")


@app.command()
def trash(
    name: Annotated[
        str | None,
        typer.Argument(help="List documents of this knowledge base (default: knowledge bases)."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List the trash."""
    inside: dict[str, int] = {}
    with open_workspace() as workspace:
        if name is None:
            header: tuple[str, ...] = ("id", "deleted (UTC)", "documents", "name")
            trash_items = workspace.trash()
            rows: list[tuple[str, ...]] = [
                (one.id[:8], f"{one.deleted_at:%Y-%m-%d %H:%M}", f"{one.documents:,}", one.name)
                for one in trash_items
            ]
            values = [one.to_dict() for one in trash_items]
            inside = {kb: len(workspace[kb].documents.trash()) for kb in workspace}
        else:
            header = ("deleted (UTC)", "title", "URI")
            deleted = workspace[name].documents.trash()
            rows = [(f"{each.deleted_at:%Y-%m-%d %H:%M}", each.title, each.uri) for each in deleted]
            values = [each.to_dict() for each in deleted]
    if printed(values, as_json):
        return
    if values:
        print_table(header, rows)
    elif not any(inside.values()):
        say("the trash is empty")
    for kb_name, count in inside.items():
        if count:
            say(f"documents of {kb_name}: {count:,}; `kbkit trash {kb_name}` lists them")


@app.command()
def compact(yes: Yes = False, as_json: AsJson = False) -> None:
    """Empty the trash for good and free disk space."""
    with open_workspace() as workspace:
        if not yes:
            typer.confirm(
                "Deleted items cannot be restored afterwards. Continue?", abort=True, err=True
            )
        done = workspace.compact()
    if printed(done, as_json):
        return
    say(
        f"emptied the trash: {pluralize(done.documents)}, "
        f"{pluralize(done.knowledge_bases, 'knowledge base')}, "
        f"{pluralize(done.files, 'file')} or folders, {done.entries:,} entries, "
        f"{pluralize(done.images, 'picture')}; "
        f"the workspace is {done.bytes / 1e6:,.1f} MB smaller"
    )


@app.command()
def rename(
    name: Name, to: Annotated[str, typer.Argument(metavar="NEW", help="Its new name.")]
) -> None:
    """Rename a knowledge base."""
    with open_workspace() as workspace:
        workspace.rename(name, to=to)
    say(f"{name} is called {to} now")


@app.command()
def describe(
    name: Name, description: Annotated[str, typer.Argument(help="Its description.")]
) -> None:
    """Change the description of a knowledge base."""
    with open_workspace() as workspace:
        workspace.describe(name, description=description)
    say(f"{name}: {description}")
