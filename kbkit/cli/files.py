"""Commands for files, and for names and the trash of a workspace."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from kbkit.cli import AsJson, Name, Yes, app, open_workspace
from kbkit.cli.terminal import print_done, print_listing, printed, progress, say
from kbkit.models.values import plain, pluralize, without_controls

if TYPE_CHECKING:
    from kbkit.models import FileInfo

files = typer.Typer(help="Manage the files of a workspace.", no_args_is_help=True)
app.add_typer(files, name="files")

FilePath = Annotated[str, typer.Argument(metavar="PATH", help="Path from the root of the files.")]
FolderPath = Annotated[str, typer.Argument(metavar="PATH", help="A folder (default: the root).")]
Text = Annotated[str | None, typer.Argument(help="The text (default: standard input).")]
IfMatch = Annotated[
    str | None,
    typer.Option(
        help="The version that it must have now (see `ls --json`); '' if it must not exist."
    ),
]


@files.command()
def ls(path: FolderPath = "", as_json: AsJson = False) -> None:
    """List a folder."""
    with open_workspace() as workspace:
        infos = workspace.files.list(path)
    print_listing(
        infos,
        as_json,
        "name size changed_at",
        empty="no files; `kbkit files write PATH` writes one",
        name=lambda info: info.name + "/" * info.is_folder,
        size=lambda info: None if info.is_folder else info.size,
    )


@files.command()
def tree(
    path: FolderPath = "",
    depth: Annotated[
        int | None, typer.Option(min=1, help="Maximum depth (default: no limit).")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Draw a folder as a tree."""
    with open_workspace() as workspace:
        root = workspace.files.tree(path, depth=depth)
    if not printed(root, as_json):
        typer.echo(str(root))


@files.command()
def cat(path: FilePath, as_json: AsJson = False) -> None:
    """Print a file, or a document (`kb/NAME/...`)."""
    with open_workspace() as workspace:
        info, text = workspace.files.info(path), workspace.files.read(path)
    if printed({**info.to_dict(), "content": text}, as_json):
        return
    if sys.stdout.isatty():  # a terminal would obey control characters
        text = without_controls(text)
    typer.echo(text, nl=not text.endswith("\n"))


@files.command()
def write(
    path: FilePath, text: Text = None, if_match: IfMatch = None, as_json: AsJson = False
) -> None:
    """Write a file from an argument or standard input."""
    content = _text_or_input(text)
    with open_workspace() as workspace:
        _print_file(workspace.files.write(path, content, if_match=if_match), "wrote", as_json)


@files.command()
def append(
    path: FilePath, text: Text = None, if_match: IfMatch = None, as_json: AsJson = False
) -> None:
    """Append a line to a file."""
    content = _text_or_input(text)
    with open_workspace() as workspace:
        _print_file(workspace.files.append(path, content, if_match=if_match), "added to", as_json)


@files.command()
def mkdir(path: FilePath, as_json: AsJson = False) -> None:
    """Create a folder and its parents."""
    with open_workspace() as workspace:
        _print_file(workspace.files.mkdir(path), "made", as_json)


@files.command()
def rm(path: FilePath, as_json: AsJson = False) -> None:
    """Move a file or folder to the trash."""
    with open_workspace() as workspace:
        deleted = workspace.files.delete(path)
    print_done(
        deleted,
        as_json,
        f"deleted {path}; `kbkit files undelete {path}` restores it until `kbkit compact`",
    )


@files.command()
def mv(
    source: Annotated[str, typer.Argument(help="The current path.")],
    target: Annotated[str, typer.Argument(help="The new path.")],
    as_json: AsJson = False,
) -> None:
    """Move or rename a file or folder."""
    with open_workspace() as workspace:
        _print_file(workspace.files.move(source, target), "moved it to", as_json)


@files.command()
def undelete(
    path: Annotated[
        str | None, typer.Argument(help="Its old path or id (default: list the trash).")
    ] = None,
    to: Annotated[str, typer.Option(metavar="PATH", help="The new path.")] = "",
    as_json: AsJson = False,
) -> None:
    """Restore from the trash, or list the trash."""
    with open_workspace() as workspace:
        if path is not None:
            _print_file(workspace.files.undelete(path, to=to), "restored", as_json)
            return
        deleted = workspace.files.trash()
    print_listing(deleted, as_json, "deleted_at kind path id", empty="the trash is empty")


@files.command()
def sync(as_json: AsJson = False) -> None:
    """Read changes by other programs."""
    with open_workspace() as workspace, progress() as on_progress:
        report = workspace.files.sync(on_progress=on_progress)
    if printed(report, as_json):
        return
    say(str(report))
    for problem in report.skipped:
        say(f"not searched: {plain(problem.uri)}: {plain(problem.reason)}")


def _text_or_input(text: str | None) -> str:
    if text is not None:
        return text
    try:
        return sys.stdin.buffer.read().decode()
    except UnicodeDecodeError:
        raise typer.BadParameter("the input is not UTF-8") from None


def _print_file(info: FileInfo, done: str, as_json: bool) -> None:
    print_done(info, as_json, f"{done} {plain(info.path)}")


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


@app.command("undelete")
def undelete_kb(
    name: Name,
    documents: Documents = None,
    to: Annotated[
        str, typer.Option(metavar="NAME", help="A new name, if the old one is taken.")
    ] = "",
) -> None:
    """Restore a knowledge base or documents from the trash."""
    if documents and to:
        raise typer.BadParameter("--to cannot be combined with --document")
    with open_workspace() as workspace:
        if not documents:
            kb = workspace.undelete(name, to=to)
            say(f"restored {kb.name}, with {pluralize(kb.info().documents)}")
            return
        kb = workspace[name]
        for document in documents:
            info = kb.documents.undelete(document)
            if info is None:
                say(f"{document} is read again by the next `kbkit refresh {name}`")
            else:
                say(f"restored {info.uri}")


@app.command()
def trash(
    name: Annotated[
        str | None,
        typer.Argument(help="List documents of this knowledge base (default: knowledge bases)."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List the trash."""
    with open_workspace() as workspace:
        if name is not None:
            documents = workspace[name].documents.trash()
            print_listing(documents, as_json, "deleted_at title uri", empty="the trash is empty")
            return
        deleted = workspace.trash()
        inside = {kb: len(workspace[kb].documents.trash()) for kb in workspace}
    if deleted or as_json or not any(inside.values()):
        print_listing(
            deleted,
            as_json,
            "id deleted_at documents name",
            empty="the trash is empty",
            id=lambda each: each.id[:8],
        )
    for kb_name, count in inside.items():
        if count and not as_json:
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
    say(f"renamed {name} to {to}")


@app.command()
def describe(
    name: Name, description: Annotated[str, typer.Argument(help="Its description.")]
) -> None:
    """Change the description of a knowledge base."""
    with open_workspace() as workspace:
        workspace.describe(name, description=description)
    say(f"{name}: {description}")
