"""Commands for files, and for names and the trash of a workspace."""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from kbkit.cli import Done, OptionalCount, app, command, open_workspace
from kbkit.cli.terminal import listing, say
from kbkit.models.values import plain, pluralize, without_controls

if TYPE_CHECKING:
    from kbkit.models import DeletedFile, FileInfo, FileTree, SyncReport
    from kbkit.runtime.progress import OnProgress
    from kbkit.workspace import Workspace

files = typer.Typer(help="Manage the files of a workspace.", no_args_is_help=True)
app.add_typer(files, name="files")

FilePath = Annotated[str, typer.Argument(help="Path from the root of the files.")]
FolderPath = Annotated[str, typer.Argument(help="A folder (default: the root).")]
Text = Annotated[str | None, typer.Argument(help="The text (default: standard input).")]
IfMatch = Annotated[
    str | None,
    typer.Option(
        "--if-match",
        help="The version that it must have now (see `ls --json`); '' if it must not exist.",
    ),
]


@command(
    files,
    show=listing(
        "name size changed_at",
        "no files; `kbkit files write PATH` writes one",
        name=lambda info: info.name + "/" * info.is_folder,
        size=lambda info: None if info.is_folder else info.size,
    ),
)
def ls(ws: Workspace, path: FolderPath = "") -> list[FileInfo]:
    """List a folder."""
    return ws.files.list(path)


@command(files, show=typer.echo)
def tree(ws: Workspace, path: FolderPath = "", *, depth: OptionalCount = None) -> FileTree:
    """Draw a folder as a tree.

    Args:
        depth: Maximum depth (default: no limit).
    """
    return ws.files.tree(path, depth=depth)


@command(files)
def cat(ws: Workspace, path: FilePath) -> Done:
    """Print a file, or a document (`kb/NAME/...`)."""
    info, text = ws.files.info(path), ws.files.read(path)
    # a terminal would obey control characters
    shown = without_controls(text) if sys.stdout.isatty() else text
    show = partial(typer.echo, shown, nl=not shown.endswith("\n"))
    return Done({**info.to_dict(), "content": text}, show)


@command(files)
def write(ws: Workspace, path: FilePath, text: Text = None, *, if_match: IfMatch = None) -> Done:
    """Write a file from an argument or standard input."""
    info = ws.files.write(path, _text_or_input(text), if_match=if_match)
    return _file_done("wrote", info)


@command(files)
def append(ws: Workspace, path: FilePath, text: Text = None, *, if_match: IfMatch = None) -> Done:
    """Append a line to a file."""
    info = ws.files.append(path, _text_or_input(text), if_match=if_match)
    return _file_done("added to", info)


@command(files)
def mkdir(ws: Workspace, path: FilePath) -> Done:
    """Create a folder and its parents."""
    return _file_done("made", ws.files.mkdir(path))


@command(files)
def rm(ws: Workspace, path: FilePath) -> Done:
    """Move a file or folder to the trash."""
    restore = f"`kbkit files undelete {path}` restores it until `kbkit compact`"
    return Done(ws.files.delete(path), f"deleted {path}; {restore}")


@command(files)
def mv(ws: Workspace, source: str, target: str) -> Done:
    """Move or rename a file or folder.

    Args:
        source: The current path.
        target: The new path.
    """
    return _file_done("moved it to", ws.files.move(source, target))


@command(files, show=listing("deleted_at kind path id", "the trash is empty"))
def undelete(ws: Workspace, path: str | None = None, *, to: str = "") -> Done | list[DeletedFile]:
    """Restore from the trash, or list the trash.

    Args:
        path: Its old path or id (default: list the trash).
        to: The new path.
    """
    if path is None:
        return ws.files.trash()
    return _file_done("restored", ws.files.undelete(path, to=to))


def _print_sync(report: SyncReport) -> None:
    say(str(report))
    for problem in report.skipped:
        say(f"not searched: {plain(problem.uri)}: {plain(problem.reason)}")


@command(files, show=_print_sync)
def sync(ws: Workspace, on_progress: OnProgress | None) -> SyncReport:
    """Read changes by other programs."""
    return ws.files.sync(on_progress=on_progress)


def _text_or_input(text: str | None) -> str:
    if text is not None:
        return text
    try:
        return sys.stdin.buffer.read().decode()
    except UnicodeDecodeError:
        raise typer.BadParameter("the input is not UTF-8") from None


def _file_done(verb: str, info: FileInfo) -> Done:
    return Done(info, f"{verb} {plain(info.path)}")


Documents = Annotated[
    list[str] | None,
    typer.Option("--document", help="Only this document: URI, id or file path. Repeatable."),
]


@command(app)
def delete(ws: Workspace, name: str, *, documents: Documents = None, yes: bool = False) -> None:
    """Move a knowledge base or documents to the trash."""
    kb = ws[name]
    if documents:
        for document in documents:
            uri = kb.documents[document].uri
            kb.documents.delete(uri)
            say(f"deleted {uri}; `kbkit undelete {name} --document {uri}` restores it")
        return
    info = kb.info()
    if not yes:
        typer.confirm(f"Delete {name} with its {pluralize(info.documents)}?", abort=True)
    ws.delete(name)
    say(f"deleted {name}; `kbkit undelete {name}` restores it until `kbkit compact`")


@command(app, "undelete")
def undelete_kb(name: str, *, documents: Documents = None, to: str = "") -> None:
    """Restore a knowledge base or documents from the trash.

    Args:
        to: A new name, if the old one is taken.
    """
    if documents and to:
        raise typer.BadParameter("--to cannot be combined with --document")
    with open_workspace() as ws:
        if not documents:
            kb = ws.undelete(name, to=to)
            say(f"restored {kb.name}, with {pluralize(kb.info().documents)}")
            return
        kb = ws[name]
        for document in documents:
            info = kb.documents.undelete(document)
            if info is None:
                say(f"{document} is read again by the next `kbkit refresh {name}`")
            else:
                say(f"restored {info.uri}")


@command(app)
def trash(ws: Workspace, name: str | None = None) -> Done:
    """List the trash.

    Args:
        name: List documents of this knowledge base (default: knowledge bases).
    """
    empty = "the trash is empty"
    if name is not None:
        documents = ws[name].documents.trash()
        return Done(documents, partial(listing("deleted_at title uri", empty), documents))
    deleted = ws.trash()
    inside = {kb: len(ws[kb].documents.trash()) for kb in ws}

    def show() -> None:
        if deleted or not any(inside.values()):
            listing("id deleted_at documents name", empty, id=lambda each: each.id[:8])(deleted)
        for kb_name, count in inside.items():
            if count:
                say(f"documents of {kb_name}: {count:,}; `kbkit trash {kb_name}` lists them")

    return Done(deleted, show)


@command(app)
def compact(ws: Workspace, *, yes: bool = False) -> Done:
    """Empty the trash for good and free disk space."""
    if not yes:
        typer.confirm(
            "Deleted items cannot be restored afterwards. Continue?", abort=True, err=True
        )
    result = ws.compact()
    return Done(
        result,
        f"emptied the trash: {pluralize(result.documents)}, "
        f"{pluralize(result.knowledge_bases, 'knowledge base')}, "
        f"{pluralize(result.files, 'file')} or folders, {result.entries:,} entries, "
        f"{pluralize(result.images, 'picture')}; "
        f"the workspace is {result.bytes / 1e6:,.1f} MB smaller",
    )


@command(app)
def rename(ws: Workspace, name: str, to: str) -> None:
    """Rename a knowledge base.

    Args:
        to: Its new name.
    """
    ws.rename(name, to=to)
    say(f"renamed {name} to {to}")


@command(app)
def describe(ws: Workspace, name: str, description: str) -> None:
    """Change the description of a knowledge base.

    Args:
        description: Its description.
    """
    ws.describe(name, description=description)
    say(f"{name}: {description}")
