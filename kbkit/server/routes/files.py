"""Routes for files: `/api/files`."""

from dataclasses import replace
from enum import StrEnum
from typing import Annotated, Literal
from urllib.parse import quote

from fastapi import Body as AnyBody
from fastapi import Depends, Path, Query, Request, Response
from pydantic import Field, StringConstraints

from kbkit.errors import IsFolderError, NotTextError
from kbkit.files.files import Files
from kbkit.files.folder import version
from kbkit.files.paths import parts_of
from kbkit.files.shown import ROOT
from kbkit.models import DeletedFile, FileInfo, FileLink, FileTree, SyncReport
from kbkit.models.values import FILES
from kbkit.server.access import WRITE, Caller, WorkspaceOf
from kbkit.server.parameters import Body
from kbkit.server.responses import IfMatch, Page, answer
from kbkit.server.routing import Routes
from kbkit.server.uploads import RevisionOf, file_response, file_responses

routes = Routes("/api/files", "files")
trash = Routes("/api/trash", "trash")

_PATH = "From the root, such as `notes/today.md`."
_MAX_LENGTH = 4_000
PathOf = Annotated[str, Path(max_length=_MAX_LENGTH, description=_PATH)]
OptionalPath = Annotated[str, Query(max_length=_MAX_LENGTH, description=_PATH)]
BodyPath = Annotated[str, Field(max_length=_MAX_LENGTH, description=_PATH)]
_MAX_DELETED = 8_000


class Form(StrEnum):
    """Form of a file in the response."""

    RAW = "raw"
    INFO = "info"
    NUMBERED = "numbered"
    LINKS = "links"
    BACKLINKS = "backlinks"


class FolderToMake(Body):
    """A new folder."""

    path: BodyPath


class Move(Body):
    """Source and target of a move."""

    source: BodyPath
    target: BodyPath


class Replacement(Body):
    """A text that occurs exactly once in a file, and its replacement."""

    op: Literal["replace"]
    old: str = Field(description="The text.", json_schema_extra={"minLength": 1})
    new: str = Field(description="The replacement.")


class Insertion(Body):
    """A text to insert after a line."""

    op: Literal["insert"]
    line: int = Field(description="From 1; 0 for the start.", json_schema_extra={"minimum": 0})
    text: str = Field(description="The text.")


Edit = Annotated[Replacement | Insertion, AnyBody(discriminator="op")]
"""A change of a part of a file."""


class Undelete(Body):
    """A deleted file or entry."""

    path: str = Field(max_length=_MAX_DELETED, description="Its old path, or its id in the trash.")
    to: str = Field("", max_length=_MAX_DELETED, description="New path; by default the old one.")


def files_of(workspace: WorkspaceOf, caller: Caller) -> Files:
    caller.require_kb(FILES)
    return workspace.files


FilesOf = Annotated[Files, Depends(files_of)]


async def _text(request: Request) -> str:
    try:
        return (await request.body()).decode()
    except UnicodeDecodeError:
        path = request.path_params["path"]
        raise NotTextError(f"{path}: the content is not UTF-8 text") from None


TextOf = Annotated[str, Depends(_text)]
_TEXT_BODY = {
    "requestBody": {
        "required": True,
        "description": "The text, in UTF-8.",
        "content": {"text/plain": {"schema": {"type": "string"}}},
    }
}


@routes.get("")
def list_folder(files: FilesOf, caller: Caller, path: OptionalPath = "") -> list[FileInfo]:
    """List a folder: folders first, then files, by name."""
    _permit(path, caller)
    return [each for each in files.list(path) if _visible(each, caller)]


@routes.get("/tree")
def read_file_tree(
    files: FilesOf,
    caller: Caller,
    path: OptionalPath = "",
    depth: Annotated[
        int | None, Query(ge=0, le=100, description="Levels of folders; by default all.")
    ] = None,
) -> FileTree:
    """Return a folder with all its contents."""
    _permit(path, caller)
    return _visible_tree(files.tree(path, depth=depth), caller)


@routes.get("/prompt")
def read_files_prompt(files: FilesOf, caller: Caller) -> str:
    """Return a section for a system prompt: the root folders and their use."""
    caller.require_all_kbs()
    return files.prompt()


@routes.get("/revision")
def read_files_revision(
    files: FilesOf,
    caller: Caller,
    paths: Annotated[
        list[Annotated[str, StringConstraints(max_length=4_000)]] | None,
        Query(description="Paths to check on the server's disk too.", max_length=200),
    ] = None,
) -> RevisionOf:
    """Return a revision that changes with files; cheap enough to poll."""
    for path in paths or ():
        _permit(path, caller)
    return RevisionOf(revision=files.revision(paths or ()))


@routes.post("/mkdir", WRITE)
def make_folder(files: FilesOf, body: FolderToMake) -> FileInfo:
    """Create a folder and its parents; an existing one stays."""
    return files.mkdir(body.path)


@routes.post("/move", WRITE)
def move_file(files: FilesOf, body: Move) -> FileInfo:
    """Move a file or folder; the target must not exist."""
    return files.move(body.source, body.target)


@routes.post("/sync", WRITE)
def sync_files(files: FilesOf) -> SyncReport:
    """Import changes made outside kbkit on the server."""
    return files.sync(on_progress=lambda _: None)


@routes.get(
    "/{path:path}",
    response_class=Response,
    responses=file_responses(FileInfo | Page[FileLink] | Page[str]),
)
def read_file(
    *,
    files: FilesOf,
    caller: Caller,
    path: PathOf,
    form: Annotated[
        Form,
        Query(
            alias="as",
            description=(
                "`raw`: its bytes; `info`: size, times and version; `numbered`: its text with "
                "numbered lines, or the tree of a folder; `links` and `backlinks`: files that it "
                "links to, and that link to it."
            ),
        ),
    ] = Form.RAW,
    lines: Annotated[
        list[int] | None,
        Query(
            description="First and last line of `numbered`, from 1; -1 is the last line.",
            json_schema_extra={"minItems": 2, "maxItems": 2},
        ),
    ] = None,
) -> Response:
    """Read a file or facts about it. Browsers download it and never run it.

    Read a file with the name of a route, such as `tree`, at `/api/files/./tree`.
    """
    _permit(path, caller)
    if form is Form.INFO:
        return answer(files.info(path))
    if form is Form.NUMBERED:
        return Response(files.view(path, lines), media_type="text/plain")
    if form is Form.LINKS:
        return answer(files.links(path))
    if form is Form.BACKLINKS:
        return answer(files.backlinks(path))
    try:
        with files.open(path) as file:
            data = file.read()
    except IsFolderError as error:
        address = f"{routes.prefix}/tree?path={quote(path)}"
        raise IsFolderError(f"{error} (GET {address} lists all)") from None
    parts = parts_of(path)
    current = files.info(path).version if parts[:1] == (ROOT,) else version(data)
    return file_response(data, parts[-1], current)


@routes.put("/{path:path}", WRITE, openapi_extra=_TEXT_BODY)
def write_file(files: FilesOf, path: PathOf, content: TextOf, expected: IfMatch) -> FileInfo:
    """Write a whole file; creates missing folders."""
    return files.write(path, content, if_match=expected)


@routes.post("/{path:path}", WRITE, openapi_extra=_TEXT_BODY)
def append_to_file(files: FilesOf, path: PathOf, content: TextOf, expected: IfMatch) -> FileInfo:
    """Append a text on a new line; creates a missing file."""
    return files.append(path, content, if_match=expected)


@routes.patch("/{path:path}", WRITE)
def edit_file(files: FilesOf, path: PathOf, body: Edit, expected: IfMatch) -> FileInfo:
    """Replace a text that occurs exactly once, or insert one after a line."""
    if isinstance(body, Replacement):
        return files.replace(path, body.old, body.new, if_match=expected)
    return files.insert(path, body.line, body.text, if_match=expected)


@routes.delete("/{path:path}", WRITE)
def delete_file(files: FilesOf, path: PathOf, expected: IfMatch) -> DeletedFile:
    """Move a file or a folder to the trash."""
    return files.delete(path, if_match=expected)


@trash.get("/files")
def list_deleted_files(files: FilesOf) -> list[DeletedFile]:
    """List deleted files and folders that can be restored, newest first."""
    return files.trash()


@trash.post("/files", WRITE)
def undelete_file(files: FilesOf, body: Undelete) -> FileInfo:
    """Restore what was last deleted at a path."""
    return files.undelete(body.path, to=body.to)


def _permit(path: str, caller: Caller) -> None:
    parts = parts_of(path)
    if len(parts) > 1 and parts[0] == ROOT:
        caller.require_kb(parts[1])


def _visible(info: FileInfo, caller: Caller) -> bool:
    parts = info.path.split("/")
    return len(parts) != 2 or parts[0] != ROOT or bool(caller.visible(parts[1:]))


def _visible_tree(tree: FileTree, caller: Caller) -> FileTree:
    if not caller.kbs:
        return tree
    visible = (child for child in tree.children if _visible(child.info, caller))
    return replace(tree, children=tuple(_visible_tree(child, caller) for child in visible))
